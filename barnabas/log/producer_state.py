"""What a partition remembers of its idempotent producers: the last batches of each, so that a retry is no new record.

Knows nothing of segments, and of files only its snapshots. Rules and bytes are those of Apache Kafka's
``ProducerStateManager`` and ``ProducerAppendInfo`` (KIP-98, KIP-360).

A snapshot, ``<offset>.snapshot``, is the state that the records below that offset make; big-endian::

    int16 version (1), uint32 CRC-32C of what follows, int32 number of entries, then for each producer:
    int64 producer id, int16 epoch, int32 last sequence, int64 last offset, int32 last offset - first offset of its
    last batch, int64 timestamp, int32 coordinator epoch, int64 first offset of its open transaction (or -1)
"""

import logging
from collections.abc import Container, Iterable
from struct import Struct
from typing import Final, NamedTuple

from barnabas.errors import (
    InvalidProducerEpoch,
    InvalidRecord,
    InvalidTxnState,
    OutOfOrderSequenceNumber,
    TransactionCoordinatorFenced,
)
from barnabas.log.files import Files
from barnabas.log.transaction_index import AbortedTransaction
from barnabas.log.transactions import Transactions, marker_of
from barnabas.log.verification import Verification
from barnabas.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, TRANSACTIONAL_BIT, RecordBatch
from barnabas.records.checksum import crc32c

logger = logging.getLogger(__name__)

BATCHES_KEPT: Final = 5  # as many as a producer may have in flight: a retry is never of an older one
MAX_SEQUENCE: Final = 2**31 - 1
BUMPS_EPOCH: Final = 2  # the transaction.version from which on each transaction has an epoch of its own (KIP-890)

_VERSION: Final = 1
_HEADER: Final = Struct(">hIi")
_CHECKED_FROM: Final = 6
_ENTRY: Final = Struct(">qhiqiqiq")


class CorruptSnapshot(Exception):
    """The file is not a producer snapshot, or not whole."""


class KnownBatch(NamedTuple):
    """One of the last batches of a producer."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        """The sequence of its first record; sequences go on from 2**31 - 1 at 0."""
        return self.last_sequence - self.offset_delta & MAX_SEQUENCE

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerStateEntry:
    """One producer on one partition."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
    )

    def __init__(self, producer_id: int, producer_epoch: int) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.batches: list[KnownBatch] = []
        self.last_timestamp = -1
        self.coordinator_epoch = -1
        self.current_txn_first_offset = -1

    @property
    def last_sequence(self) -> int:
        """The sequence of its last record in this epoch, -1 when there is none."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1

    def __repr__(self) -> str:
        return f"ProducerStateEntry({self.producer_id}, epoch {self.producer_epoch}, batches {self.batches})"


_UNKNOWN: Final = ProducerStateEntry(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)  # what is known of one that has not written


class ProducerState:
    """All producers of one partition."""

    __slots__ = ("_directory", "_files", "entries", "snapshots", "transactions", "verifications")

    def __init__(self, files: Files, directory: str, snapshots: Iterable[int] = ()) -> None:
        self._files = files
        self._directory = directory
        self.entries: dict[int, ProducerStateEntry] = {}
        self.transactions = Transactions()
        self.verifications: dict[int, Verification] = {}  #: by producer id; most of the time there are none
        self.snapshots = sorted(snapshots)  #: the offsets of the snapshots that there are

    def check(self, batch: RecordBatch, *, by_coordinator: bool = False) -> KnownBatch | None:
        """Whether a batch may be appended: None when it may, or the batch that it repeats.

        What a coordinator writes for a producer has no sequence of the producer's: only its epoch is looked at.

        Raises OutOfOrderSequenceNumber when sequences are missing, or were seen longer ago than is remembered;
        InvalidProducerEpoch when a later incarnation of the producer has written; InvalidRecord without a sequence;
        InvalidTxnState when its transaction is open and the batch is not part of it. A marker is judged by its epochs:
        TransactionCoordinatorFenced.
        """
        first = batch.base_sequence
        entry = self.entries.get(batch.producer_id)
        if by_coordinator and not batch.is_control:
            if entry is not None and batch.producer_epoch < entry.producer_epoch:
                raise _older_epoch_of(batch, entry)
            return None
        if first < 0:
            if not batch.is_control:
                raise InvalidRecord(f"Sequence number {first} in the batch with producerId {batch.producer_id}")
            self._check_marker(batch, entry)
            return None
        if entry is None:
            if batch.producer_epoch < NO_PRODUCER_EPOCH:
                raise InvalidProducerEpoch(f"Epoch {batch.producer_epoch} of producer {batch.producer_id} is none.")
            if self.verifications:
                self._check_first(batch, entry)
            return None  # its records may have been deleted long since: any sequence may come first
        epoch = batch.producer_epoch
        if epoch != entry.producer_epoch:
            self._check_new_epoch(batch, entry)
        else:
            batches = entry.batches
            last = batches[-1].last_sequence if batches else NO_SEQUENCE
            if first != (last + 1 if last != MAX_SEQUENCE else 0):
                for known in batches:
                    if known.last_sequence == batch.last_sequence and known.first_sequence == first:
                        return known
                if epoch != NO_PRODUCER_EPOCH:
                    raise OutOfOrderSequenceNumber(
                        f"Out of order sequence number for producer {batch.producer_id}: "
                        f"{first} came in, and {last} is the last one there is."
                    )
        if entry.current_txn_first_offset >= 0 and not batch.attributes & TRANSACTIONAL_BIT:
            raise InvalidTxnState(
                f"A batch of producer {batch.producer_id} is not part of its transaction, "
                f"which is open since offset {entry.current_txn_first_offset}."
            )
        if self.verifications:
            self._check_first(batch, entry)
        return None

    # ------------------------------------------------------------ transactions

    def is_ongoing(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether the producer's transaction of that epoch has records here, and no end yet."""
        entry = self.entries.get(producer_id)
        return entry is not None and entry.current_txn_first_offset >= 0 and entry.producer_epoch == producer_epoch

    def begin_verification(
        self, producer_id: int, producer_epoch: int, sequence: int, now_ms: int, *, bumps_epoch: bool
    ) -> Verification | None:
        """Somebody is about to ask the coordinator about a transaction that is not ongoing here; None when it is.

        :param sequence: of the first record that is to be written
        :raises InvalidProducerEpoch: the producer has been fenced
        """
        entry = self.entries.get(producer_id)
        if entry is not None:
            if producer_epoch < entry.producer_epoch:
                raise _older_epoch(producer_id, producer_epoch, entry)
            if entry.current_txn_first_offset >= 0 and producer_epoch == entry.producer_epoch:
                return None
        verification = self.verifications.get(producer_id)
        if verification is None:
            verification = Verification(producer_epoch, sequence, now_ms, bumps_epoch=bumps_epoch)
            self.verifications[producer_id] = verification
        else:
            verification.join(producer_epoch, sequence)
        return verification

    def check_verified(self, producer_id: int, producer_epoch: int, verification: Verification | None) -> None:
        """A batch may go into the transaction: it is ongoing, or has not ended since it was verified.

        :raises InvalidTxnState: it has; unless the producer has been fenced, which :meth:`check` says
        """
        if verification is not None and self.verifications.get(producer_id) is verification:
            return
        entry = self.entries.get(producer_id)
        if entry is not None and (
            producer_epoch < entry.producer_epoch or self.is_ongoing(producer_id, producer_epoch)
        ):
            return
        raise InvalidTxnState(f"The transaction of producer {producer_id} has ended before its records were there.")

    def _check_first(self, batch: RecordBatch, entry: ProducerStateEntry | None) -> None:
        """The first batch of a transaction is the first that asked, and begins a new epoch's sequences at 0."""
        verification = self.verifications.get(batch.producer_id)
        if verification is None:
            return
        starts_anew = verification.bumps_epoch and (entry is None or not entry.batches)
        expected = 0 if starts_anew else verification.lowest_sequence
        if batch.base_sequence > expected:
            raise OutOfOrderSequenceNumber(
                f"Out of order sequence number for producer {batch.producer_id}: {batch.base_sequence} came in, "
                f"and its transaction has to begin with {expected} here."
            )

    def check_end(self, producer_id: int, producer_epoch: int, transaction_version: int) -> None:
        """Whether a marker may end the transaction that is open, beyond what :meth:`check` asks of any marker.

        From ``transaction.version`` 2 on its epoch is above that of the records: one that is not would end a later
        transaction than it was meant for (KIP-1228). The same marker once more ends nothing, and is let in.

        :raises InvalidProducerEpoch: it may not
        """
        entry = self.entries.get(producer_id)
        if transaction_version < BUMPS_EPOCH or entry is None or producer_epoch > entry.producer_epoch:
            return
        if producer_epoch < entry.producer_epoch or entry.current_txn_first_offset >= 0:
            raise InvalidProducerEpoch(
                f"A marker of producer {producer_id} has epoch {producer_epoch}, "
                f"which is not above {entry.producer_epoch}, that of its records."
            )

    def _check_marker(self, batch: RecordBatch, entry: ProducerStateEntry | None) -> None:
        marker = marker_of(batch)
        if marker is None:
            return
        entry = entry or _UNKNOWN
        if batch.producer_epoch < entry.producer_epoch:
            raise _older_epoch_of(batch, entry)
        if marker.coordinator_epoch < entry.coordinator_epoch:
            raise TransactionCoordinatorFenced(
                f"Invalid coordinator epoch for producer {batch.producer_id}: {marker.coordinator_epoch} came in, "
                f"and {entry.coordinator_epoch} is the last one seen."
            )

    def _check_new_epoch(self, batch: RecordBatch, entry: ProducerStateEntry) -> None:
        if batch.producer_epoch < entry.producer_epoch:
            raise _older_epoch_of(batch, entry)
        if batch.base_sequence > 0 and entry.producer_epoch != NO_PRODUCER_EPOCH:
            raise OutOfOrderSequenceNumber(
                f"Invalid sequence number for new epoch {batch.producer_epoch} of producer {batch.producer_id}: "
                f"it has to start at 0, and {batch.base_sequence} came in."
            )

    def update(self, batch: RecordBatch, base_offset: int) -> AbortedTransaction | None:
        """The batch, of a producer id, is in the log at ``base_offset``.

        Gives the transaction that it ends by an abort, for the index. Raises InvalidRecord for a marker that is none.
        """
        if batch.is_control:
            return self._end_transaction(batch, base_offset)
        entry = self._entry_of(batch)
        delta = batch.last_offset_delta
        timestamp = batch.max_timestamp
        batches = entry.batches
        batches.append(KnownBatch(batch.last_sequence, base_offset + delta, delta, timestamp))
        if len(batches) > BATCHES_KEPT:
            del batches[0]
        entry.last_timestamp = timestamp
        if batch.attributes & TRANSACTIONAL_BIT:
            if entry.current_txn_first_offset < 0:
                entry.current_txn_first_offset = base_offset
                self.transactions.begin(base_offset, batch.producer_id)
            if self.verifications:
                self.verifications.pop(batch.producer_id, None)
        return None

    def _entry_of(self, batch: RecordBatch) -> ProducerStateEntry:
        """What is known of the batch's producer in the batch's epoch."""
        entry = self.entries.get(batch.producer_id)
        if entry is None:
            entry = self.entries[batch.producer_id] = ProducerStateEntry(batch.producer_id, batch.producer_epoch)
        elif entry.producer_epoch != batch.producer_epoch:
            entry.producer_epoch = batch.producer_epoch
            entry.batches = []
        return entry

    def _end_transaction(self, batch: RecordBatch, base_offset: int) -> AbortedTransaction | None:
        """A marker. One without records before it ends nothing, and the index needs not know."""
        marker = marker_of(batch)
        if marker is None:
            return None
        entry = self._entry_of(batch)
        self._void_verification(batch)
        first_offset = entry.current_txn_first_offset
        entry.current_txn_first_offset = -1
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = marker.timestamp
        if first_offset < 0:
            return None
        ended = self.transactions.end(first_offset, batch.producer_id, base_offset)
        return ended if marker.is_abort else None

    def _void_verification(self, marker: RecordBatch) -> None:
        """The transaction that somebody asked about has ended; but not the next, which has the marker's epoch."""
        verification = self.verifications.get(marker.producer_id)
        if verification is not None and not (
            verification.bumps_epoch and verification.producer_epoch == marker.producer_epoch
        ):
            del self.verifications[marker.producer_id]

    def replay(self, batch: RecordBatch) -> AbortedTransaction | None:
        """Take in a batch that is in the log, whatever came before it. Gives and raises what :meth:`update` does."""
        return self.update(batch, batch.base_offset) if batch.producer_id >= 0 else None

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget the producers that wrote nothing for ``producer.id.expiration.ms``; how many there were."""
        expired = [
            producer_id
            for producer_id, entry in self.entries.items()
            if entry.current_txn_first_offset < 0 and now_ms - entry.last_timestamp >= expiration_ms
        ]
        for producer_id in expired:
            del self.entries[producer_id]
        for producer_id, verification in list(self.verifications.items()):
            if now_ms - verification.since_ms >= expiration_ms:
                del self.verifications[producer_id]
        return len(expired)

    def encode(self) -> bytes:
        """The snapshot file of this state."""
        body = [
            _ENTRY.pack(
                entry.producer_id,
                entry.producer_epoch,
                entry.last_sequence,
                entry.last_offset,
                entry.batches[-1].offset_delta if entry.batches else 0,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.current_txn_first_offset,
            )
            for entry in self.entries.values()
        ]
        data = bytearray(b"".join([_HEADER.pack(_VERSION, 0, len(body)), *body]))
        _HEADER.pack_into(data, 0, _VERSION, crc32c(memoryview(data)[_CHECKED_FROM:]), len(body))
        return bytes(data)

    def snapshot_path(self, offset: int) -> str:
        return f"{self._directory}/{offset:020d}.snapshot"

    def take_snapshot(self, offset: int) -> str | None:
        """Write the state that the records below ``offset`` made; the file's path, None when it is there already."""
        if offset in self.snapshots:
            return None
        path = self.snapshot_path(offset)
        self._files.write_atomically(path, self.encode(), sync=False)
        self.snapshots.append(offset)
        self.snapshots.sort()
        return path

    def load_snapshot(self, first: int, last: int) -> int | None:
        """Become the state in the latest good snapshot of an offset from ``first`` to ``last``; which one that is.

        None, and no producers, when there is none. Snapshots that cannot be read are deleted.
        """
        self.clear()
        for offset in reversed(self.snapshots):
            if not first <= offset <= last:
                continue
            try:
                data = self._files.read(self.snapshot_path(offset))
                entries = _decode(data)
            except (CorruptSnapshot, FileNotFoundError) as error:
                logger.warning("Snapshot %s is left out: %s", self.snapshot_path(offset), error)
                self.remove_snapshots(offset, offset)
                continue
            self.entries = {entry.producer_id: entry for entry in entries}
            for first, producer_id in sorted((entry.current_txn_first_offset, entry.producer_id) for entry in entries):
                if first >= 0:
                    self.transactions.begin(first, producer_id)
            return offset
        return None

    def clear(self) -> None:
        """Forget all producers and their transactions."""
        self.entries = {}
        self.transactions.clear()
        self.verifications.clear()

    def remove_snapshots(self, first: int, last: int) -> None:
        """Delete the snapshots of offsets from ``first`` to ``last``."""
        for offset in [offset for offset in self.snapshots if first <= offset <= last]:
            self._files.delete(self.snapshot_path(offset))
            self.snapshots.remove(offset)

    def remove_strays(self, bases: Container[int]) -> None:
        """Delete the snapshots that no segment begins with, but for the latest."""
        for offset in self.snapshots[:-1]:
            if offset not in bases:
                self.remove_snapshots(offset, offset)


def _older_epoch_of(batch: RecordBatch, entry: ProducerStateEntry) -> InvalidProducerEpoch:
    return _older_epoch(batch.producer_id, batch.producer_epoch, entry)


def _older_epoch(producer_id: int, producer_epoch: int, entry: ProducerStateEntry) -> InvalidProducerEpoch:
    return InvalidProducerEpoch(
        f"Epoch of producer {producer_id} is {producer_epoch}, "
        f"which is smaller than the last seen epoch {entry.producer_epoch}."
    )


def _decode(data: bytes) -> list[ProducerStateEntry]:
    if len(data) < _HEADER.size:
        raise CorruptSnapshot(f"{len(data)} bytes are too few")
    version, crc, count = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise CorruptSnapshot(f"version {version}, not {_VERSION}")
    if crc32c(memoryview(data)[_CHECKED_FROM:]) != crc:
        raise CorruptSnapshot("the CRC is not that of the bytes")
    if count * _ENTRY.size != len(data) - _HEADER.size:
        raise CorruptSnapshot(f"{count} entries do not take {len(data) - _HEADER.size} bytes")
    entries = []
    for producer_id, epoch, sequence, offset, delta, timestamp, coordinator, txn in _ENTRY.iter_unpack(data[10:]):
        entry = ProducerStateEntry(producer_id, epoch)
        if sequence != NO_SEQUENCE:
            entry.batches.append(KnownBatch(sequence, offset, delta, timestamp))
        entry.last_timestamp, entry.coordinator_epoch, entry.current_txn_first_offset = timestamp, coordinator, txn
        entries.append(entry)
    return entries
