"""Replays one partition of an internal topic into its shard, a piece at a time.

Knows nothing of when the next piece is due, nor of what the records say.
"""

from typing import Any

from barnabas.coordinators.shard import ShardContext
from barnabas.log.transactions import marker_of
from barnabas.records.batch import RecordBatch, batches
from barnabas.records.record import records_of

LARGEST_PIECE = 1 << 18
"""Bytes to read and replay at a time, some milliseconds' work."""

NO_PRODUCER_ID = -1


class Loading:
    """The replay of one shard under way."""

    def __init__(self, context: ShardContext[Any], buffer_size: int) -> None:
        self.context = context
        self._size = min(buffer_size, LARGEST_PIECE)
        self._offset = context.partition.log.log_start_offset

    @property
    def is_done(self) -> bool:
        return self._offset >= self.context.partition.log.log_end_offset

    def step(self) -> None:
        """Replays the next piece. :raises KafkaError, MalformedMessage: it cannot be read"""
        log = self.context.partition.log
        data = log.read(self._offset, self._size, up_to=log.log_end_offset, minimum_one=True)
        if not data:
            self._offset = log.log_end_offset
        for batch in batches(data):
            self._replay(batch)
            self._offset = batch.next_offset

    def _replay(self, batch: RecordBatch) -> None:
        shard = self.context.shard
        if batch.is_control:
            if batch.has_producer_id and (marker := marker_of(batch)) is not None:
                shard.replay_end_marker(batch.producer_id, not marker.is_abort)
            return
        producer_id = batch.producer_id if batch.has_producer_id else NO_PRODUCER_ID
        for record in records_of(batch):
            shard.replay(record.offset, producer_id, record.key or b"", record.value)
