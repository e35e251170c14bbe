"""The checks of batches from a leader before a follower appends them.

Knows nothing of the log but its end offset.
"""

from typing import Final

from barnabas.errors import CorruptMessage, OffsetOutOfRange, UnknownLeaderEpoch
from barnabas.log.transactions import marker_of
from barnabas.records.batch import LOG_OVERHEAD, RecordBatch

ANY_EPOCH: Final = 0x7FFFFFFF


def check_batches(data: memoryview, log_end_offset: int, leader_epoch: int = ANY_EPOCH) -> list[RecordBatch]:
    """Returns the batches in ``data``, which must be intact and in order, from ``log_end_offset`` on.

    Gaps between the offsets are allowed: compaction on the leader makes them. The last batch is left out if it is cut
    off, as Apache Kafka's answers have it, and so are batches of a later epoch than ``leader_epoch``: the leader has
    been elected again since the fetch, and the fetched records may diverge (``UnifiedLog.append``, KAFKA-18723).

    :raises CorruptMessage: the CRC of a batch does not match, or there is no whole batch
    :raises InvalidRecord: a control batch with a producer id holds no transaction marker
    :raises OffsetOutOfRange: a batch does not follow the one before
    :raises UnknownLeaderEpoch: the first batch is of a later epoch
    """
    batches: list[RecordBatch] = []
    at, next_offset = 0, log_end_offset
    while at < len(data):
        if batches and _is_cut_off(data, at):
            break
        batch = RecordBatch.parse(data, at)
        if batch.partition_leader_epoch > leader_epoch:
            if not batches:
                raise UnknownLeaderEpoch(
                    f"A batch is of leader epoch {batch.partition_leader_epoch}, the log follows {leader_epoch}."
                )
            break
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


def _is_cut_off(data: memoryview, at: int) -> bool:
    """Returns whether the batch at that place is cut off by the end of ``data``."""
    left = len(data) - at
    return left < LOG_OVERHEAD or left < LOG_OVERHEAD + int.from_bytes(data[at + 8 : at + 12], signed=True)
