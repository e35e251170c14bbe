"""The metadata log of a node that copies it from the leader, and the listeners' position in it.

Knows nothing of requests, nor of the leader. Copied records are not committed: the listeners get them when the leader's
high watermark has passed them (KIP-595). After a restart the high watermark is not known until a response has it.
"""

from collections.abc import Callable, Iterable, Sequence

from barnabas.cluster.quorum.client import CommittedBatch, QuorumListener
from barnabas.cluster.quorum.kraft_history import KRaftHistory
from barnabas.cluster.quorum.metadata_log import MetadataLog, MetadataLogError
from barnabas.cluster.quorum.snapshots import KRaftState, Snapshot, SnapshotId
from barnabas.log.follower import EpochEnd
from barnabas.records.batch import RecordBatch, batches


class ReplicatedLog:
    """A copy of the leader's log. ``on_voters`` is called when the voters of the log, committed or not, change."""

    def __init__(
        self,
        metadata_log: MetadataLog,
        listeners: Sequence[QuorumListener],
        on_voters: Callable[[KRaftState], object],
    ) -> None:
        self.metadata_log = metadata_log
        self.log = metadata_log.log
        self.high_watermark: int | None = None
        self._listeners = listeners
        self._on_voters = on_voters
        self._history = KRaftHistory()
        self._next_offset = 0  # the listeners have all records before it
        self._unheard: tuple[SnapshotId, Snapshot] | None = None  # a snapshot that the listeners do not have yet

    def load(self) -> None:
        """Reads the newest snapshot, and the voters of the log after it.

        :raises MetadataLogError: the log cannot be read
        """
        newest = self.metadata_log.newest_snapshot()
        if newest is not None:
            snapshot_id, snapshot = newest
            self._start_from(snapshot_id, snapshot)
            end = SnapshotId(self.log.log_end_offset, max(self.log.latest_epoch, 0))
            if snapshot_id.epoch > end.epoch or (snapshot_id.epoch == end.epoch and snapshot_id > end):
                # The node has crashed after it had downloaded the snapshot, and before it had truncated the log.
                self.metadata_log.begin_with(snapshot_id)
        self.metadata_log.check_continues(None if newest is None else newest[0])
        for decoded in self.metadata_log.read(self._next_offset):
            self._read_voters(each.batch for each in decoded)

    # ------------------------------------------------------------ the listeners' position

    @property
    def latest_kraft(self) -> KRaftState:
        """The state of the quorum at the end of the log, which may not be committed."""
        return self._history.latest

    @property
    def voters_offset(self) -> int:
        """The offset of the last record with voters; -1 if it was committed long ago."""
        return self._history.voters_offset

    @property
    def kraft(self) -> KRaftState:
        """The state of the quorum at the listeners' position."""
        return self._history.at(self._next_offset)

    def has_heard(self, offset: int) -> bool:
        """Returns whether the listeners have all records before ``offset``."""
        return self._unheard is None and self._next_offset >= offset

    def commit(self, high_watermark: int) -> None:
        """Raises the high watermark, as far as the log reaches, and passes the records to the listeners.

        :raises MetadataLogError: the log cannot be understood
        """
        reached = min(high_watermark, self.log.log_end_offset)
        if self.high_watermark is not None and reached <= self.high_watermark:
            return
        self.high_watermark = reached
        self.log.maybe_set_high_watermark(reached)
        if self._unheard is not None and self._unheard[0].end_offset <= reached:
            (snapshot_id, snapshot), self._unheard = self._unheard, None
            for listener in self._listeners:
                listener.snapshot_loaded(snapshot_id, snapshot.records, snapshot.timestamp)
        if self._unheard is None:
            self._tell(reached)

    def _tell(self, up_to: int) -> None:
        for decoded in self.metadata_log.read(self._next_offset, up_to):
            committed = [CommittedBatch.of(each) for each in decoded]
            self._next_offset = committed[-1].last_offset + 1
            for listener in self._listeners:
                listener.committed(committed)
        self._history.forget_before(self._next_offset)

    # ------------------------------------------------------------ copying

    def append(self, data: bytes, now_ms: int) -> None:
        """Appends the batches of a response, without a last one that is truncated.

        :raises CorruptMessage, InvalidRecord, OffsetOutOfRange: a batch is damaged or does not follow the log's end
        :raises KafkaStorageError: the disk fails
        """
        found = list(batches(data))
        if found:
            self.log.append_as_follower(memoryview(data)[: sum(each.size_in_bytes for each in found)], now_ms=now_ms)
            self._read_voters(found)

    def append_as_leader(self, batch: RecordBatch, leader_epoch: int, now_ms: int) -> None:
        """Appends a batch of this node as the leader. :raises KafkaStorageError: the disk fails"""
        self.log.append_as_leader(batch, leader_epoch=leader_epoch, now_ms=now_ms)
        self._read_voters([batch])

    def truncate(self, diverging: EpochEnd, now_ms: int) -> int:
        """Truncates the log to the offset up to which it may equal the leader's, and returns that offset.

        :raises MetadataLogError: committed records would be removed
        """
        if self.high_watermark is not None and diverging.end_offset < self.high_watermark:
            raise MetadataLogError(
                f"The leader requested truncation to offset {diverging.end_offset}, which is below the current high "
                f"watermark {self.high_watermark}"
            )
        end_offset = self.metadata_log.truncate_to_end_of(diverging, now_ms)
        before = self.latest_kraft
        self._history.truncate_to(end_offset)
        if self.latest_kraft != before:
            self._on_voters(self.latest_kraft)
        return end_offset

    def install(self, snapshot_id: SnapshotId, snapshot: Snapshot) -> None:
        """Replaces the log with a snapshot on the disk. All of it is committed.

        :raises MetadataLogError: the log cannot be understood
        """
        self.metadata_log.begin_with(snapshot_id)
        self._start_from(snapshot_id, snapshot)
        self._on_voters(self.latest_kraft)
        self.commit(snapshot_id.end_offset)

    def _start_from(self, snapshot_id: SnapshotId, snapshot: Snapshot) -> None:
        self._unheard = (snapshot_id, snapshot)
        self._next_offset = snapshot_id.end_offset
        self._history = KRaftHistory(snapshot.kraft)

    def _read_voters(self, found: Iterable[RecordBatch]) -> None:
        if self._history.read(found):
            self._on_voters(self.latest_kraft)
