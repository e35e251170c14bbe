"""The metadata log on the disk of one node: ``__cluster_metadata-0`` and its snapshots.

Knows nothing of leaders, of metadata records, nor of what is committed. Apache Kafka's ``KafkaMetadataLog``.
"""

import logging
from collections.abc import Callable, Iterator
from typing import NamedTuple

from barnabas.clock import Clock
from barnabas.cluster.quorum.record_batches import MAX_BATCH_BYTES, Decoded, decode_batches
from barnabas.cluster.quorum.snapshots import Snapshot, SnapshotId, decode_snapshot, parse_file_name
from barnabas.cluster.topic_names import CLUSTER_METADATA
from barnabas.config.topic import TopicConfig
from barnabas.errors import CorruptMessage, InvalidRecord, MalformedMessage
from barnabas.log.background import Background
from barnabas.log.files import Files
from barnabas.log.follower import EpochEnd
from barnabas.log.partition_log import PartitionLog

logger = logging.getLogger(__name__)

TOPIC_ID = bytes(15) + b"\1"
"""The topic id of the metadata log in all clusters (``Uuid.METADATA_TOPIC_ID``)."""

DIRECTORY = f"{CLUSTER_METADATA}-0"
READ_BYTES = 1 << 20


class MetadataLogError(Exception):
    """The metadata log cannot be opened: it is damaged, or belongs to another quorum or feature level."""


class Retention(NamedTuple):
    """The retention of snapshots, and of the log before them. Negative values mean no limit."""

    bytes: int = 100 << 20
    ms: int = 604_800_000


DEFAULT_RETENTION = Retention()


def topic_config(segment_bytes: int = 1 << 30, segment_ms: int = 604_800_000, *, is_voters: bool = True) -> TopicConfig:
    """Returns the config of the log, which deletes nothing by itself.

    :param is_voters: whether every append is fsynced; an observer fetches lost records again
    """
    config = TopicConfig(
        segment_bytes=segment_bytes,
        segment_ms=segment_ms,
        retention_ms=-1,
        retention_bytes=-1,
        max_message_bytes=MAX_BATCH_BYTES,
        file_delete_delay_ms=60_000,
    )
    return config._replace(flush_messages=1) if is_voters else config


class MetadataLog:
    """The log and its snapshots. ``directory`` is the path of ``__cluster_metadata-0``."""

    def __init__(
        self,
        log: PartitionLog,
        directory: str,
        files: Files,
        *,
        clock: Clock,
        background: Background,
        retention: Retention = DEFAULT_RETENTION,
    ) -> None:
        self.log = log
        self.directory = directory
        self._files = files
        self._clock = clock
        self._background = background
        self._retention = retention

    # ------------------------------------------------------------ reading

    def newest_snapshot(self) -> tuple[SnapshotId, Snapshot] | None:
        """Returns the newest readable snapshot.

        :raises MetadataLogError: there is none, and the log does not begin at offset 0
        """
        for snapshot_id in sorted(self.snapshots(), reverse=True):
            try:
                return snapshot_id, decode_snapshot(self._files.read(self.path_of(snapshot_id)))
            except CorruptMessage as error:
                logger.error("Cannot use the snapshot %s: %s", snapshot_id.file_name, error)
        return None

    def check_continues(self, snapshot_id: SnapshotId | None) -> None:
        """Checks that the log has the offset after the snapshot, or offset 0 without one.

        :raises MetadataLogError: offsets are missing between the snapshot and the log
        """
        log, offset = self.log, 0 if snapshot_id is None else snapshot_id.end_offset
        if not log.log_start_offset <= offset <= log.log_end_offset:
            raise MetadataLogError(
                f"{self.directory}: the log has offsets {log.log_start_offset} to {log.log_end_offset}, "
                "and there is no snapshot that it continues"
            )

    def snapshots(self) -> list[SnapshotId]:
        """Returns the ids of the snapshot files, unordered."""
        names = map(parse_file_name, self._files.list(self.directory))
        return [snapshot_id for snapshot_id in names if snapshot_id is not None]

    def size_of(self, snapshot_id: SnapshotId) -> int | None:
        """Returns the size of a snapshot file in bytes; None if there is none."""
        return self._files.sizes(self.directory).get(snapshot_id.file_name)

    def read_snapshot(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> bytes:
        """Returns bytes of a snapshot file from ``position`` on."""
        file = self._files.open(self.path_of(snapshot_id))
        try:
            return file.pread(min(max_bytes, file.size() - position), position)
        finally:
            file.close()

    def path_of(self, snapshot_id: SnapshotId) -> str:
        return f"{self.directory}/{snapshot_id.file_name}"

    def read(self, offset: int, up_to: int | None = None) -> Iterator[list[Decoded]]:
        """Yields the batches from ``offset`` to ``up_to``, or to the end of the log, in chunks.

        :raises MetadataLogError: a batch cannot be read or decoded
        """
        log = self.log
        end = log.log_end_offset if up_to is None else up_to
        while offset < end:
            data = log.read(offset, READ_BYTES, up_to=end, minimum_one=True)
            if not data:
                raise MetadataLogError(f"{self.directory}: nothing can be read at offset {offset}")
            try:
                decoded = list(decode_batches(data))
            except (CorruptMessage, InvalidRecord, MalformedMessage) as error:
                raise MetadataLogError(
                    f"{self.directory}: the log cannot be understood past offset {offset}: {error!r}"
                ) from error
            yield decoded
            offset = decoded[-1].batch.next_offset

    # ------------------------------------------------------------ epochs

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record of the log, or of the snapshot before an empty log; 0 without one."""
        if self.log.latest_epoch >= 0:
            return self.log.latest_epoch
        return max(self.snapshots(), default=SnapshotId(0, 0)).epoch

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """Returns the largest epoch up to ``epoch`` and its end (``KafkaRaftLog.endOffsetForEpoch``).

        Before the first epoch of the log it returns the oldest snapshot, after the last one the end of the log.
        """
        found, end_offset = self.log.end_offset_for_epoch(epoch)
        if found < 0:
            return EpochEnd(self.last_epoch, self.log.log_end_offset)
        if found == epoch and end_offset <= self.log.log_start_offset:
            oldest = min(self.snapshots(), default=None)
            if oldest is not None and oldest.end_offset == end_offset:
                return EpochEnd(oldest.epoch, oldest.end_offset)
        return EpochEnd(found, end_offset)

    def truncate_to_end_of(self, diverging: EpochEnd, now_ms: int) -> int:
        """Truncates the log to the offset up to which it may equal the leader's, and returns that offset.

        :param diverging: the diverging epoch and its end offset in the leader's log
        """
        end_offset = min(diverging.end_offset, self.log.log_end_offset)
        if diverging.epoch:
            epoch, own_end = self.end_of_epoch(diverging.epoch)
            end_offset = min(own_end, end_offset) if epoch == diverging.epoch else own_end
        self.log.truncate_to(end_offset, now_ms)
        return end_offset

    # ------------------------------------------------------------ snapshots

    def begin_with(self, snapshot_id: SnapshotId) -> None:
        """Empties the log so that it continues a snapshot on the disk, and deletes older snapshots."""
        self.log.truncate_fully_and_start_at(snapshot_id.end_offset, self._clock.time_ms())
        for older in self.snapshots():
            if older < snapshot_id:
                self._files.delete(self.path_of(older))

    def write_snapshot(
        self, snapshot_id: SnapshotId, encode: Callable[[], bytes], done: Callable[[BaseException | None], object]
    ) -> None:
        """Writes a snapshot file in the background. ``encode`` runs there, too, and must only read immutable state."""

        def write() -> None:
            self._files.write_atomically(self.path_of(snapshot_id), encode(), sync=True)

        self._background.run(write, done)

    def clean(self) -> None:
        """Deletes snapshots beyond the retention, and the log before the oldest one that is kept.

        The newest snapshot and the log after it are kept (``KafkaMetadataLog.maybeClean``).
        """
        now_ms, retention = self._clock.time_ms(), self._retention
        sizes = self._files.sizes(self.directory)
        kept = sorted(self.snapshots())
        total = self.log.size + sum(sizes.get(each.file_name, 0) for each in kept)
        while len(kept) > 1:
            path = self.path_of(kept[0])
            is_old = now_ms - self._files.modified_ms(path) > retention.ms >= 0
            if not is_old and (total <= retention.bytes or retention.bytes < 0):
                break
            self.log.delete_records_before(kept[1].end_offset)
            self._files.delete(path)
            total -= sizes.get(kept[0].file_name, 0)
            del kept[0]
        self.log.enforce_retention(now_ms)
