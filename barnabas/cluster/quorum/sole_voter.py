"""A quorum of one voter: this node elects itself, and a batch is committed once it is fsynced.

Knows nothing of metadata records. Several voters are another implementation of the same interface.
"""

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from barnabas.clock import Clock
from barnabas.cluster.features import KRAFT
from barnabas.cluster.quorum.client import NO_NODE, CommittedBatch, LastLeader, Leadership, QuorumListener, ReplicaKey
from barnabas.cluster.quorum.metadata_log import MetadataLog, MetadataLogError
from barnabas.cluster.quorum.quorum_state import (
    FILE_NAME,
    CorruptQuorumState,
    QuorumState,
    read_quorum_state,
    write_quorum_state,
)
from barnabas.cluster.quorum.record_batches import Control, Decoded, EncodedBatch, control_batch
from barnabas.cluster.quorum.snapshots import KRaftState, after_control, control_records
from barnabas.cluster.quorum.voters import voter_record
from barnabas.config.endpoints import Endpoint
from barnabas.errors import KafkaStorageError, NotController
from barnabas.log.files import Files
from barnabas.records.batch import RecordBatch
from barnabas.records.control import ControlRecordType
from barnabas.wire.message import Message
from barnabas.wire.messages.control_records import LeaderChangeMessage, VotersRecord
from barnabas.wire.types import ZERO_UUID

if TYPE_CHECKING:
    from barnabas.cluster.quorum.leader_log import LeaderLog

logger = logging.getLogger(__name__)


class SoleVoter:
    """A :class:`~barnabas.cluster.quorum.client.QuorumClient` for a quorum of this node alone.

    :meth:`load` reads the log, :meth:`start` starts to write. In between the caller may check what was loaded.
    """

    is_sole_voter = True

    def __init__(self, metadata_log: MetadataLog, files: Files, clock: Clock, voter: ReplicaKey) -> None:
        self.metadata_log = metadata_log
        self.log = metadata_log.log
        self.node_id = voter.node_id
        self.directory_id = voter.directory_id
        self.kraft = KRaftState()
        self.leadership = Leadership()
        self.last_leader = LastLeader()
        self.voter_endpoints: Sequence[Endpoint] = ()
        self.listeners: list[QuorumListener] = []
        self._files = files
        self._clock = clock
        self._pending: deque[CommittedBatch] = deque()
        self._is_notifying = False

    # ------------------------------------------------------------ loading

    def load(self) -> None:
        """Passes the newest snapshot and the log after it to the listeners. All of it is committed.

        :raises MetadataLogError: the log cannot be read
        :raises KafkaStorageError: the disk fails
        """
        if self.log.recovery_point < self.log.log_end_offset:
            self.log.flush()  # an earlier process may have been killed before its fsync
        newest = self.metadata_log.newest_snapshot()
        offset = 0
        if newest is not None:
            snapshot_id, snapshot = newest
            self.kraft = snapshot.kraft
            offset = snapshot_id.end_offset
            for listener in self.listeners:
                listener.snapshot_loaded(snapshot_id, snapshot.records, snapshot.timestamp)
        self.metadata_log.check_continues(None if newest is None else newest[0])
        for decoded in self.metadata_log.read(offset):
            committed = [self._committed(each) for each in decoded]
            for listener in self.listeners:
                listener.committed(committed)
        self.log.maybe_set_high_watermark(self.log.log_end_offset)

    def _committed(self, decoded: Decoded) -> CommittedBatch:
        if decoded.batch.is_control:
            for record in decoded.records:
                assert isinstance(record, Control)
                self.kraft = after_control(self.kraft, record)
        return CommittedBatch.of(decoded)

    # ------------------------------------------------------------ leading

    def start(self) -> None:
        """Makes this node the leader of a new epoch, which is stored before anything is appended in it.

        :raises MetadataLogError: other nodes have a vote, or the last epoch is not known
        """
        directory = self.metadata_log.directory
        path = f"{directory}/{FILE_NAME}"
        try:
            before = read_quorum_state(self._files, path) or QuorumState()
        except CorruptQuorumState as error:
            raise MetadataLogError(str(error)) from error
        if before.voters is not None and not set(before.voters) <= {self.node_id}:
            self._refuse(path, sorted(before.voters))
        if self.kraft.voters is not None:
            voters = [voter.voter_id for voter in self.kraft.voters.voters]
            if voters != [self.node_id]:
                self._refuse(directory, voters)
        epoch = max(before.leader_epoch, self.log.latest_epoch) + 1
        voters_here = None if self.kraft.version else (self.node_id,)
        write_quorum_state(self._files, path, QuorumState(self.node_id, epoch, voters_here))
        self.leadership = Leadership(self.node_id, epoch)
        self._append_control(self._first_of_epoch())
        for listener in self.listeners:
            listener.leadership_changed(self.leadership)

    def stop(self) -> None:
        """Does nothing: the quorum ends with its log."""

    def resign(self, done: Callable[[], object]) -> None:
        done()

    def when_caught_up(self, done: Callable[[], object]) -> None:
        done()

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        return self.voter_endpoints[0] if node_id == self.node_id and self.voter_endpoints else None

    def endpoints_of(self, node_id: int) -> Sequence[Endpoint]:
        return self.voter_endpoints if node_id == self.node_id else ()

    def _refuse(self, where: str, voters: Sequence[int]) -> None:
        raise MetadataLogError(f"{where}: nodes {voters} have a vote, and this one is {self.node_id}")

    def _first_of_epoch(self) -> list[tuple[ControlRecordType, Message, int]]:
        """Returns the leader's first control records; in a new log also those of its formatting (KIP-853)."""
        voter = LeaderChangeMessage.Voter(voter_id=self.node_id)
        change = LeaderChangeMessage(version=0, leader_id=self.node_id, voters=[voter], granting_voters=[voter])
        records: list[tuple[ControlRecordType, Message, int]] = [(ControlRecordType.LEADER_CHANGE, change, 0)]
        if self.log.log_end_offset == 0:
            records += control_records(self.kraft)
        return records

    @property
    def is_leader(self) -> bool:
        return self.leadership.leader_id == self.node_id

    @property
    def is_elected(self) -> bool:
        return self.is_leader

    @property
    def high_watermark(self) -> int | None:
        return self.log.high_watermark

    def voters(self) -> Mapping[int, ReplicaKey]:
        return {self.node_id: ReplicaKey(self.node_id, self.voter_directory_id)}

    def leader_endpoint(self, listener: str) -> Endpoint | None:
        return next((each for each in self.voter_endpoints if self.is_leader and each.name == listener), None)

    @property
    def next_offset(self) -> int:
        return self.log.log_end_offset

    @property
    def voter_directory_id(self) -> bytes:
        """The directory id of this voter; zero if voters have only node ids."""
        return self.directory_id if self.kraft.version else ZERO_UUID

    @cached_property
    def leader_log(self) -> "LeaderLog":
        """Serves the log to other nodes; created at the first use."""
        from barnabas.cluster.quorum.leader_log import LeaderLog

        return LeaderLog(self, self.metadata_log)

    def _advanced(self) -> None:
        if "leader_log" in self.__dict__:
            self.leader_log.advanced()

    # ------------------------------------------------------------ appending

    def append(self, batches: Sequence[EncodedBatch]) -> int:
        if not self.is_leader:
            raise NotController
        for data, records in batches:
            self._write(data, records)
        self.log.when_flushed(self.log.log_end_offset, self._flushed)
        return self.log.log_end_offset - 1

    def upgrade_kraft_version(self) -> None:
        """Appends the control records with the voter, this node, and its directory (KIP-853)."""
        raised = only_voter(self.node_id, self.directory_id, self.voter_endpoints)
        self._append_control(control_records(raised))
        self.kraft = raised

    def _append_control(self, records: Sequence[tuple[ControlRecordType, Message, int]]) -> None:
        if not self.is_leader:
            raise NotController
        timestamp, epoch = self._clock.time_ms(), self.leadership.epoch
        self._write(control_batch(records, timestamp=timestamp, epoch=epoch), ())
        self.log.when_flushed(self.log.log_end_offset, self._flushed)

    def _write(self, data: bytearray, records: Sequence[object]) -> None:
        batch = RecordBatch.parse(data)
        try:
            self.log.append_as_leader(batch, leader_epoch=self.leadership.epoch, now_ms=self._clock.time_ms())
        except KafkaStorageError:
            self._flushed()
            raise
        self._pending.append(
            CommittedBatch(
                batch.base_offset,
                batch.last_offset,
                batch.partition_leader_epoch,
                batch.max_timestamp,
                batch.size_in_bytes,
                records,
            )
        )

    # ------------------------------------------------------------ committing

    def _flushed(self) -> None:
        """Commits the fsynced batches. A listener that appends is not called again within its own call."""
        if self._is_notifying:
            return
        self._is_notifying = True
        try:
            while batches := self._on_disk():
                for listener in self.listeners:
                    listener.committed(batches)
                self._advanced()
        finally:
            self._is_notifying = False
        if self.log.is_offline and self.is_leader:
            self._resign()

    def _on_disk(self) -> list[CommittedBatch]:
        pending, safe = self._pending, min(self.log.recovery_point, self.log.log_end_offset)
        batches = []
        while pending and pending[0].last_offset < safe:
            batches.append(pending.popleft())
        if batches:
            self.log.maybe_set_high_watermark(batches[-1].last_offset + 1)
        return batches

    def _resign(self) -> None:
        """Resigns after a disk failure. The pending batches may or may not be on the disk."""
        self._pending.clear()
        self.leadership = Leadership(NO_NODE, self.leadership.epoch)
        for listener in self.listeners:
            listener.leadership_changed(self.leadership)
        self._advanced()


def only_voter(node_id: int, directory_id: bytes, endpoints: Sequence[Endpoint]) -> KRaftState:
    """Returns the state of a quorum whose only voter is this node, with its directory (KIP-853)."""
    return KRaftState(
        KRAFT.last, VotersRecord(version=0, voters=[voter_record(ReplicaKey(node_id, directory_id), endpoints)])
    )
