"""Compacted logs of several nodes: equal where they have the same offset, and none without the latest of a key.

Knows nothing of how they are compacted. Each node does it at other times, so that batches differ.
"""

from collections.abc import Iterable

from barnabas.log.partition_log import PartitionLog
from barnabas.records.batch import RecordBatch, batches
from barnabas.records.record import records_of

Content = tuple[bytes | None, bytes | None, bool]
"""The key and the value of a record, and whether it is a control record or part of a transaction."""


def contents(batch: RecordBatch) -> Iterable[tuple[int, Content]]:
    """Yields the records of a batch by their offsets."""
    is_special = batch.is_control or batch.is_transactional
    for record in records_of(batch):
        yield record.offset, (record.key, record.value, is_special)


def lost(log: PartitionLog, committed: dict[int, Content], end: int) -> int | None:
    """Returns the offset of a record below ``end`` that compaction should have kept; None if there is none.

    That is the latest of a key. A tombstone may be gone; so may be a record of a transaction, which may be aborted.
    """
    latest = {content[0]: offset for offset, content in sorted(committed.items()) if offset < end}
    wanted = {offset for offset in latest.values() if committed[offset][1] is not None and not committed[offset][2]}
    at = log.log_start_offset
    while at < end and (data := log.read(at, 1 << 20, up_to=end, minimum_one=True)):
        for batch in batches(memoryview(data)):
            wanted -= {offset for offset, _ in contents(batch)}
            at = max(at, batch.last_offset + 1)
    return min(wanted, default=None)
