"""The metadata log: records are appended to ``__cluster_metadata-0``, applied to the image, and told to listeners.

Knows nothing of what a command means (the controller decides) or of what the cluster's members do about a change. One
node is the whole quorum here: it leads it from the start, in an epoch of its own each time.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from barnabas.clock import Clock
from barnabas.cluster.commands import SAFE_DOWNGRADE, UPGRADE, FeatureUpdate, UpdateFeatures
from barnabas.cluster.controller import Controller
from barnabas.cluster.feature_decisions import bootstrap_records, first_records, metadata_version_of
from barnabas.cluster.features import (
    FEATURES,
    KRAFT,
    KRAFT_VERSION,
    METADATA_TRANSACTIONS,
    METADATA_VERSION,
    first_levels,
)
from barnabas.cluster.image import MetadataDelta, MetadataImage
from barnabas.cluster.quorum_state import (
    FILE_NAME,
    CorruptQuorumState,
    QuorumState,
    read_quorum_state,
    write_quorum_state,
)
from barnabas.cluster.record_batches import (
    MAX_BATCH_BYTES,
    Control,
    as_read,
    control_batch,
    decode_batches,
    encode_batches,
)
from barnabas.cluster.snapshot import (
    KRaftState,
    SnapshotId,
    after_control,
    control_records,
    decode_snapshot,
    encode_snapshot,
    parse_file_name,
    records_of_image,
)
from barnabas.cluster.topic_names import CLUSTER_METADATA
from barnabas.config.endpoints import Endpoint
from barnabas.config.topic import TopicConfig
from barnabas.errors import CorruptMessage, KafkaStorageError, MalformedMessage
from barnabas.log.background import Background, Inline
from barnabas.log.files import Files
from barnabas.log.partition_log import PartitionLog
from barnabas.records.batch import RecordBatch
from barnabas.wire.message import Message
from barnabas.wire.messages.control_records import ControlRecordType, LeaderChangeMessage, VotersRecord
from barnabas.wire.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from barnabas.wire.types import ZERO_UUID

logger = logging.getLogger(__name__)

TOPIC_ID = bytes(15) + b"\1"
"""The id that the metadata log has in every cluster (``Uuid.METADATA_TOPIC_ID``)."""

DIRECTORY = f"{CLUSTER_METADATA}-0"
BOOTSTRAP_FILE = "bootstrap.checkpoint"
READ_BYTES = 1 << 20

LONG_TO_READ = 1 << 20
"""Bytes of the log, behind the last snapshot, that make a start long: a quarter of a second."""

Listener = Callable[[MetadataImage, MetadataDelta], object]


class MetadataLogError(Exception):
    """The metadata log cannot be opened by this node: it is damaged, or part of a quorum of several."""


class Limits(NamedTuple):
    """When the log has grown enough for a snapshot, and how much of what is behind one is kept."""

    bytes_between_snapshots: int = 20 << 20
    ms_between_snapshots: int = 3_600_000
    retention_bytes: int = 100 << 20
    retention_ms: int = 604_800_000


DEFAULT_LIMITS = Limits()


def topic_config(segment_bytes: int = 1 << 30, segment_ms: int = 604_800_000) -> TopicConfig:
    """What the log itself goes by: each change is fsynced, and nothing deleted but what a snapshot stands for."""
    return TopicConfig(
        segment_bytes=segment_bytes,
        segment_ms=segment_ms,
        retention_ms=-1,
        retention_bytes=-1,
        max_message_bytes=MAX_BATCH_BYTES,
        flush_messages=1,
        file_delete_delay_ms=60_000,
    )


class ClusterMetadata:
    """The cluster's metadata: :attr:`image` is what it is, :meth:`submit` changes it.

    Everything happens at once: when :meth:`submit` returns, the records are in the log, the image has them, and every
    listener has been told. ``directory`` is that of the log, ``__cluster_metadata-0``.
    """

    def __init__(
        self,
        log: PartitionLog,
        directory: str,
        files: Files,
        *,
        node_id: int,
        controller: Controller,
        clock: Clock,
        limits: Limits = DEFAULT_LIMITS,
        directory_id: bytes = ZERO_UUID,
        background: Background | None = None,
        features: Mapping[str, int] | None = None,
    ) -> None:
        self.log = log
        self.node_id = node_id
        self.controller = controller
        self.directory_id = directory_id
        self.image = MetadataImage()
        self.epoch = 0  #: in which this node leads
        self.kraft = KRaftState()
        self.listeners: list[Listener] = []
        self.voter_endpoints: Sequence[Endpoint] = ()  #: where this node is reached by other controllers
        self._wanted_features = dict(features or {})  #: levels that a new cluster is to have, or this one to be at
        self._features_at_start: Mapping[str, int] = {}
        self._directory = directory
        self._files = files
        self._clock = clock
        self._limits = limits
        self._background: Background = background or Inline()
        self._last_timestamp = -1
        self._bytes_since_snapshot = 0
        self._snapshot_due_ms = clock.time_ms() + limits.ms_between_snapshots
        self._transaction: list[Any] | None = None

    # ------------------------------------------------------------ opening

    def open(self) -> None:
        """Read snapshot and log, and begin an epoch; a log with nothing in it becomes that of a new cluster.

        :raises MetadataLogError: it cannot be read, others have a vote, or its features are at levels that this node
            does not know or was not asked for
        """
        start = self._load_snapshot()
        self._replay(start)
        is_new = METADATA_VERSION not in self.image.features
        if not is_new:  # before anything is written: a node that may not serve leaves no trace
            self._check_levels(self.image.features)
        self._lead()
        if self._transaction is not None:
            logger.warning("the metadata log ends within a transaction, which is given up")
            self._append([AbortTransactionRecord(reason="its controller has stopped")])
            self._transaction = None
        if is_new:
            self._bootstrap()
        self._features_at_start = self.image.features

    def _check_levels(self, levels: Mapping[str, int]) -> None:
        """Refuse to serve at levels that this node does not know, or that were not asked for.

        Nobody changes a level in passing. Only ``kraft.version`` is raised after the bootstrap, before the first broker
        registers: until then it may be below what was asked for.
        """
        check_features(levels)
        now = {KRAFT_VERSION: self.kraft.version, **levels}
        for name, level in self._wanted_features.items():
            there = now.get(name, 0)
            is_to_come = name == KRAFT_VERSION and there < level and not self.image.brokers
            if there != level and not is_to_come:
                raise MetadataLogError(
                    f"{self._directory}: {name} is at level {there}, and {level} was asked for; --feature "
                    "is for the first start, `barnabas features upgrade` for a cluster that there is"
                )

    @property
    def metadata_version(self) -> int:
        """The level that decides which versions of records are written."""
        return metadata_version_of(self.image)

    @property
    def voter_directory_id(self) -> bytes:
        """The directory by which this node votes; zero where voters are known by their node ids alone."""
        return self.directory_id if self.kraft.version else ZERO_UUID

    def _load_snapshot(self) -> int:
        """Take the newest snapshot that can be read for the image; answer the offset that comes after it."""
        for snapshot_id in sorted(self.snapshots(), reverse=True):
            try:
                found = decode_snapshot(self._files.read(f"{self._directory}/{snapshot_id.file_name}"))
            except CorruptMessage as error:
                logger.error("the snapshot %s cannot be used: %s", snapshot_id.file_name, error)
                continue
            offset, epoch = snapshot_id.end_offset - 1, snapshot_id.epoch
            self.image, _ = self.image.apply(found.records, offset=offset, epoch=epoch)
            self.kraft, self._last_timestamp = found.kraft, found.timestamp
            if snapshot_id.end_offset < self.log.log_start_offset or snapshot_id.end_offset > self.log.log_end_offset:
                break
            return snapshot_id.end_offset
        if self.log.log_start_offset > 0 or self.image.offset >= 0:
            raise MetadataLogError(
                f"{self._directory}: the log has offsets {self.log.log_start_offset} to {self.log.log_end_offset}, "
                "and there is no snapshot that it continues"
            )
        return 0

    def snapshots(self) -> list[SnapshotId]:
        """Those that are there, in no order."""
        names = map(parse_file_name, self._files.list(self._directory))
        return [snapshot_id for snapshot_id in names if snapshot_id is not None]

    def _replay(self, offset: int) -> None:
        log = self.log
        end = log.log_end_offset
        while offset < end:
            data = log.read(offset, READ_BYTES, up_to=end, minimum_one=True)
            if not data:
                raise MetadataLogError(f"{self._directory}: nothing can be read at offset {offset}")
            try:
                offset = self._replay_batches(data)
            except (CorruptMessage, MalformedMessage, KeyError) as error:
                raise MetadataLogError(
                    f"{self._directory}: the log cannot be understood past offset {offset}: {error!r}"
                ) from error
            self._bytes_since_snapshot += len(data)

    def _replay_batches(self, data: bytes) -> int:
        """Apply them; the offset that comes next."""
        ready: list[Any] = []
        for batch, records in decode_batches(data):
            for record in records:
                if isinstance(record, Control):
                    self.kraft = after_control(self.kraft, record)
                else:
                    self._transact(record, ready)
            offset, epoch = batch.next_offset, batch.partition_leader_epoch
            self._last_timestamp = batch.max_timestamp
        self.image, _ = self.image.apply(ready, offset=offset - 1, epoch=epoch)
        return offset

    def _transact(self, record: Any, ready: list[Any]) -> None:
        """Hold back what a transaction has written until it ends (KIP-868)."""
        if isinstance(record, BeginTransactionRecord):
            self._transaction = []
        elif isinstance(record, EndTransactionRecord):
            ready += self._transaction or ()
            self._transaction = None
        elif isinstance(record, AbortTransactionRecord):
            self._transaction = None
        else:
            (ready if self._transaction is None else self._transaction).append(record)

    # ------------------------------------------------------------ leading

    def _lead(self) -> None:
        """Elect this node: the epoch is written down before anything is appended in it."""
        path = f"{self._directory}/{FILE_NAME}"
        try:
            before = read_quorum_state(self._files, path) or QuorumState()
        except CorruptQuorumState as error:
            raise MetadataLogError(str(error)) from error
        if before.voters is not None and not set(before.voters) <= {self.node_id}:
            raise MetadataLogError(f"{path}: nodes {sorted(before.voters)} have a vote, and this one is {self.node_id}")
        if self.kraft.voters is not None:
            voters = [voter.voter_id for voter in self.kraft.voters.voters]
            if voters != [self.node_id]:
                raise MetadataLogError(f"{self._directory}: nodes {voters} have a vote, and this one is {self.node_id}")
        self.epoch = max(before.leader_epoch, self.image.epoch, self.log.latest_epoch) + 1
        voters_here = None if self.kraft.version else (self.node_id,)
        write_quorum_state(self._files, path, QuorumState(self.node_id, self.epoch, voters_here))
        now_ms = self._clock.time_ms()
        batch = control_batch(self._first_of_epoch(), timestamp=now_ms, epoch=self.epoch)
        self._write(batch, now_ms)
        self.image = self.image._replace(offset=self.log.log_end_offset - 1, epoch=self.epoch)

    def _first_of_epoch(self) -> list[tuple[ControlRecordType, Message, int]]:
        """What a leader says first: that it leads; in a new log also what the log was formatted with (KIP-853)."""
        voter = LeaderChangeMessage.Voter(voter_id=self.node_id)
        change = LeaderChangeMessage(version=0, leader_id=self.node_id, voters=[voter], granting_voters=[voter])
        records: list[tuple[ControlRecordType, Message, int]] = [(ControlRecordType.LEADER_CHANGE, change, 0)]
        if self.log.log_end_offset == 0:
            records += control_records(self.kraft)
        return records

    def _bootstrap(self) -> None:
        """Write what the first controller of a cluster writes, all or nothing."""
        path = self._directory.removesuffix(DIRECTORY) + BOOTSTRAP_FILE
        if self._files.exists(path):
            try:
                bootstrap = decode_snapshot(self._files.read(path)).records
            except CorruptMessage as error:
                raise MetadataLogError(f"{path}: {error}") from error
        else:
            levels = first_levels(self._wanted_features)
            bootstrap = list(bootstrap_records(levels))
            data = encode_snapshot(
                bootstrap,
                kraft=KRaftState(),
                metadata_version=levels[METADATA_VERSION],
                epoch=0,
                last_timestamp=0,
                now_ms=self._clock.time_ms(),
            )
            self._files.write_atomically(path, data, sync=True)
        found = {each.name: each.feature_level for each in bootstrap if isinstance(each, FeatureLevelRecord)}
        if METADATA_VERSION not in found:
            raise MetadataLogError(f"{path}: {METADATA_VERSION} is not among what the directory was formatted with")
        self._check_levels(found)
        records = first_records(bootstrap, self.controller.settings["min.insync.replicas"])
        if found[METADATA_VERSION] >= METADATA_TRANSACTIONS:
            records = [BeginTransactionRecord(name="Bootstrap records"), *records, EndTransactionRecord()]
        self._append(records)

    # ------------------------------------------------------------ changing

    def submit(self, command: Any) -> Any:
        """Do what the command says, and answer what came of it: see the command.

        :raises KafkaError: the command as a whole cannot be
        :raises KafkaStorageError: it could not be written; nothing has changed
        """
        decision = self.controller.decide(command, self.image)
        if decision.records:
            self._append(decision.records)
        return decision.result

    def update_features(self, updates: Sequence[FeatureUpdate], *, validate_only: bool = False) -> None:
        """Change the levels of features, all or none.

        :raises InvalidUpdateVersion: one of them cannot go to that level
        :raises KafkaStorageError: it could not be written; nothing has changed
        """
        decision = self.controller.decide(UpdateFeatures(updates, validate_only, self.kraft.version), self.image)
        if decision.result:
            self._raise_kraft_version()
        if decision.records:
            self._append(decision.records)

    def reset_features(self) -> None:
        """Bring features back to where they were when the log was opened.

        ``metadata.version`` and ``kraft.version`` stay, since they may not go back.
        """
        updates = []
        for name in FEATURES:
            before, level = self.image.features.get(name, 0), self._features_at_start.get(name, 0)
            if name != METADATA_VERSION and level != before:
                updates.append(FeatureUpdate(name, level, UPGRADE if level > before else SAFE_DOWNGRADE))
        if updates:
            self.update_features(updates)

    def _raise_kraft_version(self) -> None:
        """From now on the log itself says who votes: this node, by its directory (KIP-853)."""
        voter = VotersRecord.Voter(
            voter_id=self.node_id,
            voter_directory_id=self.directory_id,
            endpoints=[
                VotersRecord.Voter.Endpoint(name=each.name, host=each.host, port=each.port)
                for each in self.voter_endpoints
            ],
            kraft_version_feature=VotersRecord.Voter.KRaftVersionFeature(
                min_supported_version=KRAFT.first, max_supported_version=KRAFT.last
            ),
        )
        raised = KRaftState(KRAFT.last, VotersRecord(version=0, voters=[voter]))
        now_ms = self._clock.time_ms()
        self._write(control_batch(control_records(raised), timestamp=now_ms, epoch=self.epoch), now_ms)
        self.kraft = raised

    @property
    def is_kept(self) -> bool:
        """Whether every change so far is on the disk."""
        return self.log.recovery_point >= self.log.log_end_offset and not self.log.is_offline

    def when_kept(self, callback: Callable[[], object]) -> None:
        """Call back when every change up to now is on the disk, or when the log is offline: see which."""
        self.log.when_flushed(self.log.log_end_offset, callback)

    def _append(self, records: Sequence[Any]) -> None:
        """Write, then apply, then tell. What does not fit into one batch is made one by a transaction."""
        now_ms = self._clock.time_ms()
        written = list(self._encoded(records, now_ms))
        if len(written) > 1 and self.metadata_version >= METADATA_TRANSACTIONS:
            framed = [BeginTransactionRecord(), *records, EndTransactionRecord()]
            written = list(self._encoded(framed, now_ms))
        for batch in written:
            self._write(batch, now_ms)
        plain: list[Any] = []
        version = self.metadata_version
        for record in records:
            self._transact(as_read(record, version), plain)
        self.image, delta = self.image.apply(plain, offset=self.log.log_end_offset - 1, epoch=self.epoch)
        for listener in self.listeners:
            listener(self.image, delta)
        self._maybe_snapshot(now_ms)

    def _encoded(self, records: Iterable[Any], now_ms: int) -> Iterable[bytearray]:
        version = self.metadata_version
        return encode_batches(records, metadata_version=version, timestamp=now_ms, epoch=self.epoch)

    def _write(self, data: bytearray, now_ms: int) -> None:
        self.log.append_as_leader(RecordBatch.parse(data), leader_epoch=self.epoch, now_ms=now_ms)
        self.log.maybe_set_high_watermark(self.log.log_end_offset)
        self._last_timestamp = now_ms
        self._bytes_since_snapshot += len(data)

    # ------------------------------------------------------------ snapshots

    def _maybe_snapshot(self, now_ms: int) -> None:
        limits = self._limits
        grown = limits.bytes_between_snapshots
        if self._bytes_since_snapshot >= grown or (limits.ms_between_snapshots and now_ms >= self._snapshot_due_ms):
            try:
                self.write_snapshot()
            except (OSError, KafkaStorageError) as error:  # what it was due for has been done, and stays done
                logger.error("no snapshot was written: %s", error)

    def spare_the_next_start(self) -> None:
        """Write a snapshot if it took long to read the log: each start and each stop of a broker makes it longer."""
        if self._bytes_since_snapshot > LONG_TO_READ:
            self.write_snapshot()

    def write_snapshot(self) -> SnapshotId:
        """Write the image out. What is behind older snapshots goes when it is time."""
        now_ms = self._clock.time_ms()
        self._clean(now_ms)
        image, kraft, last_timestamp = self.image, self.kraft, self._last_timestamp
        metadata_version, files = self.metadata_version, self._files
        snapshot_id = SnapshotId(image.offset + 1, image.epoch)
        path = f"{self._directory}/{snapshot_id.file_name}"

        flush = self.log.begin_flush()

        def write() -> None:
            if flush is not None:
                flush.run()
            data = encode_snapshot(
                records_of_image(image),
                kraft=kraft,
                metadata_version=metadata_version,
                epoch=image.epoch,
                last_timestamp=last_timestamp,
                now_ms=now_ms,
            )
            files.write_atomically(path, data, sync=True)

        def written(error: BaseException | None) -> None:
            if error is not None:
                logger.error("the snapshot %s was not written: %s", snapshot_id.file_name, error)
            elif flush is not None:
                self.log.finish_flush(flush, now_ms)

        self._bytes_since_snapshot = 0
        self._snapshot_due_ms = now_ms + self._limits.ms_between_snapshots
        self._background.run(write, written)
        return snapshot_id

    def _clean(self, now_ms: int) -> None:
        """Delete snapshots that are too old or too much, and the log before the oldest one that stays.

        The newest is never deleted, nor what the log has after it (``KafkaMetadataLog.maybeClean``).
        """
        sizes = self._files.sizes(self._directory)
        there = sorted(self.snapshots())
        total = self.log.size + sum(sizes.get(each.file_name, 0) for each in there)
        while len(there) > 1:
            path = f"{self._directory}/{there[0].file_name}"
            is_old = now_ms - self._files.modified_ms(path) > self._limits.retention_ms >= 0
            if not is_old and (total <= self._limits.retention_bytes or self._limits.retention_bytes < 0):
                break
            self.log.delete_records_before(there[1].end_offset)
            self._files.delete(path)
            total -= sizes.get(there[0].file_name, 0)
            del there[0]
        self.log.enforce_retention(now_ms)


def check_features(levels: Mapping[str, int]) -> None:
    """Raise :class:`MetadataLogError` when the cluster is at a level of a feature that this node does not know."""
    for name, level in levels.items():
        known = FEATURES.get(name)
        if known is None or not known.first <= level <= known.last:
            raise MetadataLogError(f"the cluster is at level {level} of {name}, which this version does not know")
