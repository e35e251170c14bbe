"""Mistakes to plant in the brokers, one at a time: whether the simulator finds them is its own test.

Each changes one rule in the code of all nodes. Knows nothing of runs.
"""

from collections.abc import Callable

import pytest

from barnabas.cluster.quorum.elections import Elections, Leader
from barnabas.cluster.replication.followers import Followers
from barnabas.cluster.replication.partition import Partition
from barnabas.log.partition_log import PartitionLog
from barnabas.log.producer_state import ProducerState

Plant = Callable[[pytest.MonkeyPatch], None]


def commit_alone(patch: pytest.MonkeyPatch) -> None:
    """The leader of the quorum counts its own log only."""

    def advance(self: Elections) -> bool:
        offset = self._around.synced_offset()
        if not isinstance(self.state, Leader) or offset <= max(self.state.start_offset, self.high_watermark):
            return False
        self.high_watermark = offset
        return True

    patch.setattr(Elections, "advance", advance)


def count_the_leader_only(patch: pytest.MonkeyPatch) -> None:
    """The high watermark of a partition does not wait for the followers."""
    patch.setattr(Followers, "committed_offset", lambda self: self.log.log_end_offset)


def take_in_who_lags(patch: pytest.MonkeyPatch) -> None:
    """A follower comes into the ISR before it has all that is committed."""
    patch.setattr(Followers, "_may_come", lambda self, replica: self._is_eligible(replica))


def acknowledge_at_once(patch: pytest.MonkeyPatch) -> None:
    """acks=all is answered before the followers have the records."""
    patch.setattr(Partition, "is_safe", lambda self, offset, acks: True)


def append_retries(patch: pytest.MonkeyPatch) -> None:
    """A batch that a producer sends again is appended again."""
    patch.setattr(ProducerState, "check", lambda self, batch, **_: None)


def follow_without_producers(patch: pytest.MonkeyPatch) -> None:
    """A follower does not take in what the producers of its leader have written."""
    patch.setattr(ProducerState, "replay", lambda self, batch: None)


def keep_what_differs(patch: pytest.MonkeyPatch) -> None:
    """A follower does not remove what its new leader has not."""
    patch.setattr(PartitionLog, "truncate_to", lambda self, offset, now_ms=0: None)


MISTAKES: dict[str, Plant] = {
    each.__name__: each
    for each in (
        commit_alone,
        count_the_leader_only,
        take_in_who_lags,
        acknowledge_at_once,
        append_retries,
        follow_without_producers,
        keep_what_differs,
    )
}
