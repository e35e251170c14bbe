"""The check of a segment's transaction index against the batches that its entries are of.

Knows nothing of what happens to a segment with an invalid index.
"""

from collections.abc import Sequence
from struct import Struct
from typing import Final

from barnabas.errors import CorruptMessage
from barnabas.log.segment import Segment
from barnabas.records.batch import CONTROL_BIT, HEADER_SIZE

_PRODUCER: Final = Struct(">q13xh4x16xq")  # base_offset, attributes, producer_id


def is_transaction_index_valid(segments: Sequence[Segment]) -> bool:
    """Returns whether each entry of the last segment's transaction index has a marker and a first batch.

    The first batch may be missing where compaction or retention has removed it.

    :raises CorruptMessage: the index cannot be parsed
    :raises OSError: a file cannot be read
    """
    segment = segments[-1]
    for entry in segment.transactions.entries:
        marker = _batch_at(segment, entry.last_offset)
        if marker != (entry.last_offset, True, entry.producer_id):
            return False
        if not 0 <= entry.last_stable_offset <= entry.last_offset + 1:
            return False
        holding = [each for each in segments if each.base_offset <= entry.first_offset]
        first = _batch_at(holding[-1], entry.first_offset) if holding else None
        if entry.first_offset < 0 or (holding and first is None):
            return False
        is_there = first is not None and first[0] <= entry.first_offset
        if is_there and first != (entry.first_offset, False, entry.producer_id):
            return False
    return True


def _batch_at(segment: Segment, offset: int) -> tuple[int, bool, int] | None:
    """Returns base offset, whether it is a marker, and producer id of the batch at ``offset``, or of the next one."""
    try:
        header = segment.file.pread(HEADER_SIZE, segment.locate(offset))
    except CorruptMessage:
        return None
    if len(header) < HEADER_SIZE:
        return None
    base_offset, attributes, producer_id = _PRODUCER.unpack_from(header)
    return base_offset, attributes & CONTROL_BIT != 0, producer_id
