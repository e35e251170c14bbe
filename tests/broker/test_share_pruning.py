"""The log of share states is pruned up to a snapshot that is committed."""

from types import SimpleNamespace as Of

import pytest

from barnabas.broker.share_runtime import ShareRuntime
from barnabas.errors import OffsetOutOfRange


class Log:
    def __init__(self, high_watermark):
        self.high_watermark = high_watermark
        self.begins_at = 0

    def delete_records_before(self, offset):
        if offset == 13:
            raise OffsetOutOfRange
        self.begins_at = offset


@pytest.mark.parametrize(
    ("high_watermark", "is_pruned"), [(10, False), (11, False), (12, True)], ids=["before", "at it", "after"]
)
def test_another_leader_may_lack_a_snapshot_that_is_not_committed(high_watermark, is_pruned):
    log = Log(high_watermark)
    assert ShareRuntime._prune(Of(partition=Of(log=log)), 11) is is_pruned
    assert log.begins_at == (11 if is_pruned else 0)


def test_a_log_that_cannot_be_pruned_is_tried_again():
    assert ShareRuntime._prune(Of(partition=Of(log=Log(20))), 13) is False
