"""Writes what is to become of a transactional id, and lets it come true when that is safe.

Knows nothing of why. Kafka's ``TransactionStateManager.appendTransactionToLog``.
"""

from collections.abc import Callable

from barnabas.errors import KafkaError
from barnabas.transactions.messages import Write, Written
from barnabas.transactions.records import record_of, tombstone
from barnabas.transactions.states import State
from barnabas.transactions.transaction import Facts, Transaction


class Writing:
    """One record on its way; called with None when it is safe, or with why it cannot be."""

    __slots__ = ("_facts", "_then", "_transaction")

    def __init__(self, transaction: Transaction, facts: Facts | None, then: Written) -> None:
        self._transaction = transaction
        self._facts = facts
        self._then = then

    def __call__(self, error: type[KafkaError] | None) -> None:
        transaction = self._transaction
        if transaction.writing is not self:
            return  # another node's business by now, and whoever waited has been told
        transaction.writing = transaction.pending = None
        if error is None and self._facts is not None:
            transaction.facts = self._facts
        self._then(error)


class Writer:
    """Writes records, at the level of transaction.version at hand."""

    def __init__(self, write: Write, transaction_version: Callable[[], int]) -> None:
        self._append = write
        self._transaction_version = transaction_version

    def write(self, transaction: Transaction, facts: Facts, then: Written) -> None:
        """Write what was prepared. It is so when ``then`` is called with None; given up when it is with an error."""
        self._write(transaction, facts, then)

    def bury(self, transaction: Transaction, then: Written) -> None:
        """Write that the transactional id is no more."""
        transaction.pending = State.DEAD
        self._write(transaction, None, then)

    def _write(self, transaction: Transaction, facts: Facts | None, then: Written) -> None:
        transactional_id = transaction.transactional_id
        writing = transaction.writing = Writing(transaction, facts, then)
        try:
            if facts is None:
                record = tombstone(transactional_id)
            else:
                record = record_of(transactional_id, facts, self._transaction_version())
            self._append(transactional_id, record, writing)
        except BaseException:
            if transaction.writing is writing:
                transaction.writing = transaction.pending = None
            raise
