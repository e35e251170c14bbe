"""Applies the committed metadata log to the image, and publishes each new image with its delta.

Knows nothing of the writer of the log, nor of the publishers. Apache Kafka's ``MetadataLoader``.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from barnabas.cluster.image.difference import difference
from barnabas.cluster.image.image import MetadataDelta, MetadataImage
from barnabas.cluster.quorum.client import CommittedBatch, Leadership
from barnabas.cluster.quorum.metadata_log import MetadataLogError
from barnabas.cluster.quorum.snapshots import SnapshotId
from barnabas.wire.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)

_FRAMES: Final = frozenset[type]((BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord))

Publisher = Callable[[MetadataImage, MetadataDelta], object]
"""Called with each new committed image and its delta. Must not raise."""


class MetadataLoader:
    """A :class:`~barnabas.cluster.quorum.client.QuorumListener`; :attr:`image` is the committed image."""

    def __init__(self) -> None:
        self.image = MetadataImage()
        self.publishers: list[Publisher] = []
        self.last_timestamp = -1  #: the timestamp of the last committed batch, in milliseconds since 1970
        self._transaction: list[Any] | None = None

    @property
    def is_in_transaction(self) -> bool:
        """Whether the last metadata transaction has not ended (KIP-868). The image does not have its records."""
        return self._transaction is not None

    def snapshot_loaded(self, snapshot_id: SnapshotId, records: Sequence[Any], timestamp: int) -> None:
        offset, epoch = snapshot_id.end_offset - 1, snapshot_id.epoch
        self._transaction = None
        self.last_timestamp = timestamp
        before = self.image
        self.image, delta = MetadataImage().apply(records, offset=offset, epoch=epoch)
        # The publishers of a node that has lagged far behind know an older image.
        self._publish(delta if before.offset < 0 else difference(before, self.image))

    def committed(self, batches: Sequence[CommittedBatch]) -> None:
        """Applies the batches and publishes the new image once.

        :raises MetadataLogError: a record cannot be applied
        """
        ready: list[Any] = []
        offset, epoch = self.image.offset, self.image.epoch
        for batch in batches:
            if self._transaction is None and _FRAMES.isdisjoint(map(type, batch.records)):
                ready += batch.records
            else:
                for record in batch.records:
                    self._take(record, ready)
            if self._transaction is None:
                offset, epoch = batch.last_offset, batch.epoch
            self.last_timestamp = batch.timestamp
        try:
            self.image, delta = self.image.apply(ready, offset=offset, epoch=epoch)
        except KeyError as error:
            first, last = batches[0].base_offset, batches[-1].last_offset
            raise MetadataLogError(
                f"the metadata log cannot be understood between offsets {first} and {last}: {error!r}"
            ) from error
        if ready:
            self._publish(delta)

    def _take(self, record: Any, ready: list[Any]) -> None:
        """Holds back the records of a transaction until it ends (KIP-868)."""
        if isinstance(record, BeginTransactionRecord):
            self._transaction = []
        elif isinstance(record, EndTransactionRecord):
            ready += self._transaction or ()
            self._transaction = None
        elif isinstance(record, AbortTransactionRecord):
            self._transaction = None
        else:
            (ready if self._transaction is None else self._transaction).append(record)

    def _publish(self, delta: MetadataDelta) -> None:
        for publisher in self.publishers:
            publisher(self.image, delta)

    def leadership_changed(self, leadership: Leadership) -> None:
        """Does nothing: the committed image does not depend on the leader."""
