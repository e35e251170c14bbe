"""Decides when a snapshot of the metadata image is written, and writes it.

Knows nothing of the leader. Apache Kafka's ``SnapshotGenerator`` and ``SnapshotEmitter`` (KIP-630).
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from barnabas.clock import Clock
from barnabas.cluster.image.loader import MetadataLoader
from barnabas.cluster.image.records import records_of_image
from barnabas.cluster.quorum.client import CommittedBatch, Leadership
from barnabas.cluster.quorum.metadata_log import MetadataLog
from barnabas.cluster.quorum.snapshots import KRaftState, SnapshotId, encode_snapshot
from barnabas.errors import KafkaStorageError

logger = logging.getLogger(__name__)

LONG_TO_READ = 1 << 20
"""The size of the log after the last snapshot that takes a quarter of a second to load at the start."""


class SnapshotLimits(NamedTuple):
    """The growth of the log, and the time (0: no limit), between two snapshots."""

    bytes: int = 20 << 20
    ms: int = 3_600_000


DEFAULT_LIMITS = SnapshotLimits()


class SnapshotGenerator:
    """A :class:`~barnabas.cluster.quorum.client.QuorumListener` that comes after the loader."""

    def __init__(
        self,
        metadata_log: MetadataLog,
        loader: MetadataLoader,
        kraft: Callable[[], KRaftState],
        clock: Clock,
        limits: SnapshotLimits = DEFAULT_LIMITS,
    ) -> None:
        self._metadata_log = metadata_log
        self._loader = loader
        self._kraft = kraft
        self._clock = clock
        self._limits = limits
        self._is_loaded = False
        self._bytes_since_snapshot = 0
        self._due_ms = clock.time_ms() + limits.ms

    def snapshot_loaded(self, snapshot_id: SnapshotId, records: Sequence[Any], timestamp: int) -> None:
        self._bytes_since_snapshot = 0

    def committed(self, batches: Sequence[CommittedBatch]) -> None:
        """Writes a snapshot if enough was committed since the last one, once the log is loaded."""
        self._bytes_since_snapshot += sum(batch.size for batch in batches)
        is_due = self._limits.ms and self._clock.time_ms() >= self._due_ms
        if self._is_loaded and (is_due or self._bytes_since_snapshot >= self._limits.bytes):
            try:
                self.write_snapshot()
            except (OSError, KafkaStorageError) as error:  # the records are committed nevertheless
                logger.error("Cannot write a snapshot of the metadata: %s", error)

    def leadership_changed(self, leadership: Leadership) -> None:
        self._is_loaded = True

    def spare_the_next_start(self) -> None:
        """Writes a snapshot if much of the log follows the last one, since each start and stop appends to the log."""
        if self._bytes_since_snapshot > LONG_TO_READ:
            self.write_snapshot()

    def write_snapshot(self) -> SnapshotId:
        """Writes the committed image in the background, and deletes older snapshots according to the retention."""
        self._metadata_log.clean()
        image, kraft, last_timestamp = self._loader.image, self._kraft(), self._loader.last_timestamp
        now_ms = self._clock.time_ms()
        snapshot_id = SnapshotId(image.offset + 1, image.epoch)

        def encode() -> bytes:
            return encode_snapshot(
                records_of_image(image),
                kraft=kraft,
                metadata_version=image.metadata_version,
                epoch=image.epoch,
                last_timestamp=last_timestamp,
                now_ms=now_ms,
            )

        def written(error: BaseException | None) -> None:
            if error is not None:
                logger.error("Cannot write the snapshot %s: %s", snapshot_id.file_name, error)

        self._bytes_since_snapshot = 0
        self._due_ms = now_ms + self._limits.ms
        self._metadata_log.write_snapshot(snapshot_id, encode, written)
        return snapshot_id
