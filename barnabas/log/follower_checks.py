"""The checks of batches from a leader before a follower appends them.

Knows nothing of the log but its end offset.
"""

from barnabas.errors import CorruptMessage, OffsetOutOfRange
from barnabas.log.transactions import marker_of
from barnabas.records.batch import RecordBatch


def check_batches(data: memoryview, log_end_offset: int) -> list[RecordBatch]:
    """Returns the batches in ``data``, which must be whole, intact and in order, from ``log_end_offset`` on.

    Gaps between the offsets are allowed: compaction on the leader makes them.

    :raises CorruptMessage: when a batch is not whole or its CRC does not match, or there is no batch
    :raises InvalidRecord: when a control batch with a producer id holds no transaction marker
    :raises OffsetOutOfRange: when a batch does not follow the one before
    """
    batches: list[RecordBatch] = []
    at, next_offset = 0, log_end_offset
    while at < len(data):
        batch = RecordBatch.parse(data, at)
        batch.check_crc()
        if batch.base_offset < next_offset or batch.last_offset_delta < 0:
            raise OffsetOutOfRange(f"A batch has base offset {batch.base_offset}, expected {next_offset} or later.")
        if batch.is_control and batch.has_producer_id:
            marker_of(batch)
        batches.append(batch)
        next_offset = batch.next_offset
        at += batch.size_in_bytes
    if not batches:
        raise CorruptMessage("There is no batch to append.")
    return batches
