"""What DescribeTransactions and ListTransactions return of transactional ids.

Knows nothing of how transactions come about.
"""

from collections.abc import Iterable

from barnabas.patterns import matcher
from barnabas.transactions.messages import DescribedTransaction, ListedTransaction
from barnabas.transactions.states import BY_TITLE
from barnabas.transactions.transaction import Transaction


def described(transaction: Transaction) -> DescribedTransaction:
    """Returns what DescribeTransactions shows of a transactional id."""
    facts = transaction.facts
    return DescribedTransaction(
        transaction.transactional_id,
        facts.state.title,
        facts.timeout_ms,
        facts.start_time_ms,
        facts.producer_id,
        facts.producer_epoch,
        tuple(facts.partitions),
    )


class Filter:
    """The filters of a ListTransactions request. One that is empty, or below 0, matches everything.

    :raises InvalidRegularExpression: ``pattern`` is not one (KIP-1152)
    """

    def __init__(
        self,
        states: Iterable[str],
        producer_ids: Iterable[int],
        duration_ms: int,
        pattern: str | None,
        now_ms: int,
    ) -> None:
        names = tuple(states)
        self._any_state = not names
        self._states = {BY_TITLE[name] for name in names if name in BY_TITLE}
        self.unknown_states = [name for name in names if name not in BY_TITLE]
        self._producer_ids = frozenset(producer_ids)
        self._began_before_ms = now_ms - duration_ms if duration_ms >= 0 else None
        self._matches = matcher(pattern) if pattern else None

    def of(self, transactions: Iterable[Transaction]) -> list[ListedTransaction]:
        """Returns those that pass all filters."""
        return [
            ListedTransaction(each.transactional_id, each.facts.producer_id, each.facts.state.title)
            for each in transactions
            if self._lets_through(each)
        ]

    def _lets_through(self, transaction: Transaction) -> bool:
        facts = transaction.facts
        return (
            (not self._producer_ids or facts.producer_id in self._producer_ids)
            and (self._any_state or facts.state in self._states)
            and (self._began_before_ms is None or facts.start_time_ms < self._began_before_ms)
            and (self._matches is None or self._matches(transaction.transactional_id))
        )
