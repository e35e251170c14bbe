"""What a follower looks at before it writes what its leader sent.

Knows nothing of the log that it is written to but where that ends.
"""

from barnabas.errors import CorruptMessage, OffsetOutOfRange
from barnabas.log.transactions import marker_of
from barnabas.records.batch import RecordBatch


def check_followed(data: memoryview, log_end_offset: int) -> list[RecordBatch]:
    """The batches in ``data``, which must be whole, undamaged, in order, and not before ``log_end_offset``.

    Holes between offsets are the leader's: compaction made them. Raises CorruptMessage, or InvalidRecord for the end of
    a transaction that is none; OffsetOutOfRange for one that does not follow.
    """
    batches: list[RecordBatch] = []
    at, next_offset = 0, log_end_offset
    while at < len(data):
        batch = RecordBatch.parse(data, at)
        batch.check_crc()
        if batch.base_offset < next_offset or batch.last_offset_delta < 0:
            raise OffsetOutOfRange(f"Offset {batch.base_offset} came in where {next_offset} or later has to follow.")
        if batch.is_control and batch.has_producer_id:
            marker_of(batch)
        batches.append(batch)
        next_offset = batch.next_offset
        at += batch.size_in_bytes
    if not batches:
        raise CorruptMessage("There is no batch to append.")
    return batches
