"""What the leader of one partition has appended, since somebody last read it.

Knows nothing of the readers. Apache Kafka's ``BrokerTopicMetrics``, which counts by topic. Offsets and positions of the
log tell records and bytes, so that an append counts only its batch.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.log.partition_log import PartitionLog
    from barnabas.records.batch import RecordBatch


class Traffic:
    """The counts of one partition. The partition begins and ends it with its leadership, and counts the batches."""

    __slots__ = ("_log", "_offset", "_position", "bytes_in", "messages_in")

    def __init__(self) -> None:
        self.bytes_in = 0  #: bytes of the batches
        self.messages_in = 0  #: records, as offsets count them; a control batch has one
        self._log: PartitionLog | None = None  # while the partition leads
        self._offset = self._position = 0  # of the log's end when it was last looked at

    def begin(self, log: "PartitionLog") -> None:
        """Counts what is appended to the log from now on."""
        self._log = log
        self._offset, self._position = log.log_end_offset, log.segments.end_position

    def look(self) -> None:
        """Adds what was appended since the last look."""
        log = self._log
        if log is not None:
            self.messages_in += log.log_end_offset - self._offset
            self.bytes_in += log.segments.end_position - self._position
            self.begin(log)

    def end(self) -> None:
        """Adds what was appended since the last look, and counts no more."""
        self.look()
        self._log = None

    def add_duplicate(self, batch: "RecordBatch") -> None:
        """Adds a batch that the log had already."""
        self.messages_in += batch.last_offset_delta + 1
        self.bytes_in += batch.size_in_bytes
