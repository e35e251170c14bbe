"""Which batches are of aborted transactions, and which markers have nothing left to mark, as a log is read on.

Knows nothing of keys and records, but what a marker says. Rules of Apache Kafka's ``CleanedTransactionMetadata``.
"""

from collections import deque
from collections.abc import Collection

from barnabas.errors import CorruptMessage
from barnabas.log.files import Files
from barnabas.log.offset_index import CorruptIndex
from barnabas.log.segment import TXN_INDEX_SUFFIX
from barnabas.log.transaction_index import ENTRY_SIZE, AbortedTransaction, decode_transactions
from barnabas.records.batch import RecordBatch
from barnabas.records.control import ControlType, control_type
from barnabas.records.record import records_of


def aborted_transactions(
    files: Files, directory: str, names: Collection[str], from_offset: int, up_to: int
) -> list[AbortedTransaction]:
    """The aborted ones that have something in this range, by their first offsets.

    ``names`` are those of the files in the directory. All indexes are asked: the marker of a transaction that began
    here may be in any segment after it, also in the active one, to whose index the broker may be adding right now.

    Raises CorruptMessage when an index cannot be read: to take aborted records for committed would bring them back.
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
    """What is known of the transactions around the batch that is being read; every batch has to be shown to it."""

    __slots__ = ("_aborted", "_committed", "_to_come", "retained")

    def __init__(self, aborted: list[AbortedTransaction]) -> None:
        """``aborted`` is what :func:`aborted_transactions` gives from the first batch on that will be shown."""
        self._to_come = deque(aborted)
        #: By producer id, the one that it is in, and whether any of its batches was met.
        self._aborted: dict[int, tuple[AbortedTransaction, bool]] = {}
        self._committed: set[int] = set()  #: producer ids of transactions of which a batch was met
        self.retained: list[AbortedTransaction] = []  #: those whose markers have to stay, for the new index

    def is_aborted(self, batch: RecordBatch) -> bool:
        """Take notice of a batch of data; whether it is part of an aborted transaction."""
        if not batch.is_transactional:
            return False
        self._come_to(batch.last_offset)
        producer_id = batch.producer_id
        state = self._aborted.get(producer_id)
        if state is None:
            self._committed.add(producer_id)
            return False
        self._aborted[producer_id] = state[0], True
        return True

    def has_nothing_to_mark(self, batch: RecordBatch) -> bool:
        """Take notice of a control batch; whether no batch of its transaction is left, so that it may go some day."""
        self._come_to(batch.last_offset)
        record = next(records_of(batch), None)
        if record is None:
            return True  # an earlier pass emptied it
        kind = control_type(record.key)
        if kind is ControlType.ABORT:
            state = self._aborted.pop(batch.producer_id, None)
            if state is not None and state[1]:
                self.retained.append(state[0])
                return False
            return True
        if kind is ControlType.COMMIT:
            if batch.producer_id in self._committed:
                self._committed.remove(batch.producer_id)
                return False
            return True
        return False

    def _come_to(self, offset: int) -> None:
        to_come = self._to_come
        while to_come and to_come[0].first_offset <= offset:
            transaction = to_come.popleft()
            self._aborted.setdefault(transaction.producer_id, (transaction, False))
