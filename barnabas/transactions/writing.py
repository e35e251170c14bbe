"""Appends a state record, and applies it once it is durable.

Knows nothing of why a state changes. Kafka's ``TransactionStateManager.appendTransactionToLog``.
"""

from collections.abc import Callable

from barnabas.errors import KafkaError
from barnabas.transactions.messages import Write, Written
from barnabas.transactions.records import record_of, tombstone
from barnabas.transactions.states import State
from barnabas.transactions.transaction import Facts, Transaction


class Writing:
    """One record that is being written. Called with None once it is durable, or with the error."""

    __slots__ = ("_facts", "_then", "_transaction")

    def __init__(self, transaction: Transaction, facts: Facts | None, then: Written) -> None:
        self._transaction = transaction
        self._facts = facts
        self._then = then

    def __call__(self, error: KafkaError | None) -> None:
        transaction = self._transaction
        if transaction.writing is not self:
            return  # the shard was unloaded, which has answered the request
        transaction.writing = transaction.pending = None
        if error is None and self._facts is not None:
            transaction.facts = self._facts
        self._then(error)


class Writer:
    """Writes state records in the format of the current transaction.version."""

    def __init__(self, write: Write, transaction_version: Callable[[], int]) -> None:
        self._append = write
        self._transaction_version = transaction_version

    def write_tombstone(self, transaction: Transaction, then: Written) -> None:
        """Writes the tombstone of the transactional id."""
        transaction.pending = State.DEAD
        self.write(transaction, None, then)

    def write(self, transaction: Transaction, facts: Facts | None, then: Written) -> None:
        """Writes prepared facts, or a tombstone. They take effect before ``then`` is called with None; an error drops
        them.
        """
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
