"""The state of the idempotent producers of one partition: the last batches of each, which make retries detectable.

Knows nothing of segments, and of files only its snapshots. Rules and bytes are those of Apache Kafka's
``ProducerStateManager`` and ``ProducerAppendInfo`` (KIP-98, KIP-360).

A snapshot, ``<offset>.snapshot``, holds the state of the records below that offset; big-endian::

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
from barnabas.integers import MAX_INT
from barnabas.log.files import Files
from barnabas.log.transaction_index import AbortedTransaction
from barnabas.log.transactions import Transactions, marker_of
from barnabas.log.verification import Verification
from barnabas.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, TRANSACTIONAL_BIT, RecordBatch
from barnabas.records.checksum import crc32c

logger = logging.getLogger(__name__)

BATCHES_KEPT: Final = 5  # a producer has at most five batches in flight, so a retry is never of an older one
MAX_SEQUENCE: Final = MAX_INT
BUMPS_EPOCH: Final = 2  # from this transaction.version on each transaction has its own epoch (KIP-890)

_VERSION: Final = 1
_HEADER: Final = Struct(">hIi")
_CHECKED_FROM: Final = 6
_ENTRY: Final = Struct(">qhiqiqiq")


class CorruptSnapshot(Exception):
    """The file is not a valid producer snapshot."""


class KnownBatch(NamedTuple):
    """One of the last batches of a producer."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        """The sequence of the first record. Sequences wrap from 2**31 - 1 to 0."""
        return self.last_sequence - self.offset_delta & MAX_SEQUENCE

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


class ProducerStateEntry:
    """The state of one producer."""

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
        """The sequence of the last record in this epoch; -1 when there is none."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else -1

    def __repr__(self) -> str:
        return f"ProducerStateEntry({self.producer_id}, epoch {self.producer_epoch}, batches {self.batches})"


_UNKNOWN: Final = ProducerStateEntry(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)  # the state of a producer without records


class ProducerState:
    """The state of all producers of one partition."""

    __slots__ = ("_directory", "_files", "entries", "snapshots", "transactions", "verifications")

    def __init__(self, files: Files, directory: str, snapshots: Iterable[int] = ()) -> None:
        self._files = files
        self._directory = directory
        self.entries: dict[int, ProducerStateEntry] = {}
        self.transactions = Transactions()
        self.verifications: dict[int, Verification] = {}  #: by producer id; usually empty
        self.snapshots = sorted(snapshots)  #: the offsets of the existing snapshots

    def check(self, batch: RecordBatch, *, by_coordinator: bool = False) -> KnownBatch | None:
        """Checks whether a batch may be appended. Returns None, or the known batch that it is a retry of.

        :param by_coordinator: a coordinator appends the batch for the producer; then only its epoch is checked
        :raises OutOfOrderSequenceNumber: sequences are missing, or the batch is older than the known ones
        :raises InvalidProducerEpoch: the batch has an older epoch than the producer's last one
        :raises InvalidRecord: a batch of data has no sequence
        :raises InvalidTxnState: the producer's transaction is open and the batch is not transactional
        :raises TransactionCoordinatorFenced: a marker has an older coordinator epoch than the last one
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
                raise InvalidProducerEpoch(f"Epoch {batch.producer_epoch} of producer {batch.producer_id} is invalid.")
            if self.verifications:
                self._check_first(batch, entry)
            return None  # earlier records may be deleted, so the first known batch may have any sequence
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
                        f"{first} (incoming), {last} (last appended)."
                    )
        if entry.current_txn_first_offset >= 0 and not batch.attributes & TRANSACTIONAL_BIT:
            raise InvalidTxnState(
                f"A batch of producer {batch.producer_id} is not transactional, "
                f"and the producer's transaction is open since offset {entry.current_txn_first_offset}."
            )
        if self.verifications:
            self._check_first(batch, entry)
        return None

    # ------------------------------------------------------------ transactions

    def is_ongoing(self, producer_id: int, producer_epoch: int) -> bool:
        """Returns whether the producer's transaction of that epoch has records in the log and no marker yet."""
        entry = self.entries.get(producer_id)
        return entry is not None and entry.current_txn_first_offset >= 0 and entry.producer_epoch == producer_epoch

    def begin_verification(
        self, producer_id: int, producer_epoch: int, sequence: int, now_ms: int, *, bumps_epoch: bool
    ) -> Verification | None:
        """Adds a verification before the request to the coordinator. Returns None when the transaction is ongoing here.

        :param sequence: of the first record to append
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
        """Checks that the transaction is ongoing, or has not ended since the verification began.

        A producer that has been fenced passes: :meth:`check` raises the error for it.

        :raises InvalidTxnState: the transaction has ended
        """
        if verification is not None and self.verifications.get(producer_id) is verification:
            return
        entry = self.entries.get(producer_id)
        if entry is not None and (
            producer_epoch < entry.producer_epoch or self.is_ongoing(producer_id, producer_epoch)
        ):
            return
        raise InvalidTxnState(f"The transaction of producer {producer_id} ended before its records were appended.")

    def _check_first(self, batch: RecordBatch, entry: ProducerStateEntry | None) -> None:
        """Checks the first batch of a transaction: the lowest sequence comes first, and a new epoch starts at 0."""
        verification = self.verifications.get(batch.producer_id)
        if verification is None:
            return
        starts_anew = verification.bumps_epoch and (entry is None or not entry.batches)
        expected = 0 if starts_anew else verification.lowest_sequence
        if batch.base_sequence > expected:
            raise OutOfOrderSequenceNumber(
                f"Out of order sequence number for producer {batch.producer_id}: {batch.base_sequence} (incoming), "
                f"{expected} (the first of its transaction)."
            )

    def check_end(self, producer_id: int, producer_epoch: int, transaction_version: int) -> None:
        """Checks whether a marker may end the open transaction, in addition to :meth:`check`.

        From ``transaction.version`` 2 on a marker's epoch is above that of the records. Another marker would end a
        later transaction than it was written for (KIP-1228). A repeated marker ends nothing and is accepted.

        :raises InvalidProducerEpoch: the marker's epoch is not above that of the records
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
                f"Invalid coordinator epoch for producer {batch.producer_id}: {marker.coordinator_epoch} (incoming), "
                f"{entry.coordinator_epoch} (last seen)."
            )

    def _check_new_epoch(self, batch: RecordBatch, entry: ProducerStateEntry) -> None:
        if batch.producer_epoch < entry.producer_epoch:
            raise _older_epoch_of(batch, entry)
        if batch.base_sequence > 0 and entry.producer_epoch != NO_PRODUCER_EPOCH:
            raise OutOfOrderSequenceNumber(
                f"Invalid sequence number for new epoch {batch.producer_epoch} of producer {batch.producer_id}: "
                f"{batch.base_sequence} (incoming), 0 (expected)."
            )

    def update(self, batch: RecordBatch, base_offset: int) -> AbortedTransaction | None:
        """Adds a batch with a producer id that was appended at ``base_offset``.

        Returns the transaction that it aborts, for the transaction index.

        :raises InvalidRecord: a control batch holds something else than a marker
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
        """Returns the entry of the batch's producer, with the batch's epoch."""
        entry = self.entries.get(batch.producer_id)
        if entry is None:
            entry = self.entries[batch.producer_id] = ProducerStateEntry(batch.producer_id, batch.producer_epoch)
        elif entry.producer_epoch != batch.producer_epoch:
            entry.producer_epoch = batch.producer_epoch
            entry.batches = []
        return entry

    def _end_transaction(self, batch: RecordBatch, base_offset: int) -> AbortedTransaction | None:
        """Adds a marker. A marker without a transaction ends nothing, and needs no entry in the transaction index."""
        marker = marker_of(batch)
        if marker is None:
            return None
        entry = self._entry_of(batch)
        self._remove_verification(batch)
        first_offset = entry.current_txn_first_offset
        entry.current_txn_first_offset = -1
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.last_timestamp = marker.timestamp
        if first_offset < 0:
            return None
        ended = self.transactions.end(first_offset, batch.producer_id, base_offset)
        return ended if marker.is_abort else None

    def _remove_verification(self, marker: RecordBatch) -> None:
        """Removes the verification of the transaction that ended; that of the next one has the marker's epoch."""
        verification = self.verifications.get(marker.producer_id)
        if verification is not None and not (
            verification.bumps_epoch and verification.producer_epoch == marker.producer_epoch
        ):
            del self.verifications[marker.producer_id]

    def replay(self, batch: RecordBatch) -> AbortedTransaction | None:
        """Adds a batch of the log without a check. Returns and raises what :meth:`update` does."""
        return self.update(batch, batch.base_offset) if batch.producer_id >= 0 else None

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Removes the producers that have written nothing for ``producer.id.expiration.ms``. Returns their number."""
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
        """Returns the content of a snapshot of this state."""
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
        """Writes a snapshot of the records below ``offset``. Returns its path; None when it exists already."""
        if offset in self.snapshots:
            return None
        path = self.snapshot_path(offset)
        self._files.write_atomically(path, self.encode(), sync=False)
        self.snapshots.append(offset)
        self.snapshots.sort()
        return path

    def load_snapshot(self, first: int, last: int) -> int | None:
        """Loads the latest valid snapshot of an offset from ``first`` to ``last``. Returns that offset.

        Returns None, and removes all producers, when there is none. Invalid snapshots are deleted.
        """
        self.clear()
        for offset in reversed(self.snapshots):
            if not first <= offset <= last:
                continue
            try:
                data = self._files.read(self.snapshot_path(offset))
                entries = _decode(data)
            except (CorruptSnapshot, FileNotFoundError) as error:
                logger.warning("Cannot load producer snapshot %s: %s", self.snapshot_path(offset), error)
                self.remove_snapshots(offset, offset)
                continue
            self.entries = {entry.producer_id: entry for entry in entries}
            for first, producer_id in sorted((entry.current_txn_first_offset, entry.producer_id) for entry in entries):
                if first >= 0:
                    self.transactions.begin(first, producer_id)
            return offset
        return None

    def clear(self) -> None:
        """Removes all producers and their transactions."""
        self.entries = {}
        self.transactions.clear()
        self.verifications.clear()

    def remove_snapshots(self, first: int, last: int) -> None:
        """Deletes the snapshots of offsets from ``first`` to ``last``."""
        for offset in [offset for offset in self.snapshots if first <= offset <= last]:
            self._files.delete(self.snapshot_path(offset))
            self.snapshots.remove(offset)

    def remove_strays(self, bases: Container[int]) -> None:
        """Deletes the snapshots that are of no segment's base offset, except the latest one."""
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
        raise CorruptSnapshot(f"{len(data)} bytes are too few for a header")
    version, crc, count = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise CorruptSnapshot(f"version {version}, not {_VERSION}")
    if crc32c(memoryview(data)[_CHECKED_FROM:]) != crc:
        raise CorruptSnapshot("the CRC does not match")
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
