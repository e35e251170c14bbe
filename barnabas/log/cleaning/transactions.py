"""Tracks transactions while a log is cleaned: which batches are aborted, and which markers can be discarded.

Knows nothing of keys and records, except markers. The rules are those of Apache Kafka's ``CleanedTransactionMetadata``.
"""

from collections import deque
from collections.abc import Collection

from barnabas.errors import CorruptMessage
from barnabas.log.files import Files
from barnabas.log.offset_index import CorruptIndex
from barnabas.log.segment import TXN_INDEX_SUFFIX
from barnabas.log.transaction_index import ENTRY_SIZE, AbortedTransaction, decode_transactions
from barnabas.records.batch import RecordBatch
from barnabas.records.control import ControlRecordType, control_record_type
from barnabas.records.record import records_of


def aborted_transactions(
    files: Files, directory: str, names: Collection[str], from_offset: int, up_to: int
) -> list[AbortedTransaction]:
    """Returns the aborted transactions with records from ``from_offset`` to below ``up_to``, by first offset.

    All transaction indexes are read: the marker of a transaction may be in any later segment, also in the active one,
    to whose index the broker may be appending.

    :param names: of the files in the directory
    :raises CorruptMessage: an index is invalid; without it aborted records would be taken for committed ones
    """
    found: set[AbortedTransaction] = set()
    for name in names:
        stem = name.removesuffix(TXN_INDEX_SUFFIX)
        if stem == name or not stem.isdigit():
            continue
        path, base_offset = f"{directory}/{name}", int(stem)
        data = files.read(path)
        if base_offset >= up_to:
            data = data[: len(data) // ENTRY_SIZE * ENTRY_SIZE]
        try:
            entries = decode_transactions(data, base_offset)
        except CorruptIndex as error:
            raise CorruptMessage(f"{path}: {error}") from None
        found.update(each for each in entries if each.first_offset < up_to and each.last_offset >= from_offset)
    return sorted(found, key=lambda each: each.first_offset)


class CleanedTransactions:
    """The transactions at the current position of a pass. Every batch must be passed to one of its methods."""

    __slots__ = ("_aborted", "_committed", "_upcoming", "retained")

    def __init__(self, aborted: list[AbortedTransaction]) -> None:
        """
        :param aborted: the result of :func:`aborted_transactions` from the first batch of the pass on
        """
        self._upcoming = deque(aborted)
        #: By producer id: the aborted transaction it is in, and whether a batch of it was read.
        self._aborted: dict[int, tuple[AbortedTransaction, bool]] = {}
        self._committed: set[int] = set()  #: producer ids of committed transactions of which a batch was read
        self.retained: list[AbortedTransaction] = []  #: those whose markers are retained, for the new index

    def is_aborted(self, batch: RecordBatch) -> bool:
        """Registers a batch of data. Returns whether it is part of an aborted transaction."""
        if not batch.is_transactional:
            return False
        self._advance_to(batch.last_offset)
        producer_id = batch.producer_id
        state = self._aborted.get(producer_id)
        if state is None:
            self._committed.add(producer_id)
            return False
        self._aborted[producer_id] = state[0], True
        return True

    def can_discard_marker(self, batch: RecordBatch) -> bool:
        """Registers a control batch. Returns whether no batch of its transaction is left, so that it can be discarded.

        It is discarded when its delete horizon has passed.
        """
        self._advance_to(batch.last_offset)
        record = next(records_of(batch), None)
        if record is None:
            return True  # an earlier pass removed the record
        kind = control_record_type(record.key)
        if kind is ControlRecordType.ABORT:
            state = self._aborted.pop(batch.producer_id, None)
            if state is not None and state[1]:
                self.retained.append(state[0])
                return False
            return True
        if kind is ControlRecordType.COMMIT:
            if batch.producer_id in self._committed:
                self._committed.remove(batch.producer_id)
                return False
            return True
        return False

    def _advance_to(self, offset: int) -> None:
        upcoming = self._upcoming
        while upcoming and upcoming[0].first_offset <= offset:
            transaction = upcoming.popleft()
            self._aborted.setdefault(transaction.producer_id, (transaction, False))
