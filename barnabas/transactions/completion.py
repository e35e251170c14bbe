"""Completes decided transactions: a marker to each partition, then the record that the transaction is complete.

Knows nothing of clients, who have been answered by then. Kafka's ``TransactionMarkerChannelManager`` and
``TransactionMarkerRequestCompletionHandler``.
"""

import logging
from collections.abc import Callable, Collection, Iterable

from barnabas.clock import Clock
from barnabas.deadlines import Deadline, Deadlines
from barnabas.errors import (
    InvalidProducerEpoch,
    KafkaError,
    NotCoordinator,
    ProducerFenced,
    TransactionCoordinatorFenced,
    UnknownTopicOrPartition,
    UnsupportedForMessageFormat,
    UnsupportedVersion,
)
from barnabas.transactions.messages import Marker, PartitionErrors, SendMarkers, TopicPartition
from barnabas.transactions.states import State
from barnabas.transactions.transaction import Facts, Transaction
from barnabas.transactions.writing import Writer

logger = logging.getLogger(__name__)

SHORTEST_WAIT, LONGEST_WAIT = 0.1, 3.2
"""Seconds until all failed writes are retried, doubled each time."""

NOT_NEEDED = (
    UnknownTopicOrPartition,  # it was deleted
    UnsupportedForMessageFormat,  # it cannot have records of a transaction
    UnsupportedVersion,
    InvalidProducerEpoch,  # it knows a later epoch, and has ended what was open before
    ProducerFenced,
)
"""After these errors a partition needs no marker."""


class Completion:
    """The transactions that are decided, and not complete yet."""

    def __init__(
        self,
        clock: Clock,
        deadlines: Deadlines,
        writer: Writer,
        send_markers: SendMarkers,
        coordinator_epoch: Callable[[], int],
    ) -> None:
        self._clock = clock
        self._deadlines = deadlines
        self._writer = writer
        self._send_markers = send_markers
        self._coordinator_epoch = coordinator_epoch
        self._late: dict[Transaction, Collection[TopicPartition]] = {}
        """To be retried, with the partitions that need a marker; without any, only the record is missing."""
        self._retries = Deadline(self._again)
        self._wait = SHORTEST_WAIT

    def begin(self, transaction: Transaction) -> Facts:
        """Sends the markers of a decided transaction. Returns what it is once all partitions have theirs."""
        target = transaction.completing = transaction.complete(self._clock.time_ms())
        if transaction.facts.partitions:
            self._send(transaction, tuple(transaction.facts.partitions))
        else:
            self._finish(transaction)
        return target

    def forget(self, transaction: Transaction) -> None:
        """Stops completing the transaction: another coordinator does it."""
        transaction.completing = None
        self._late.pop(transaction, None)

    def topics_deleted(self, transactions: Iterable[Transaction], topics: Collection[str]) -> None:
        """Stops waiting for markers in partitions of these topics."""
        for transaction in transactions:
            if transaction.completing is not None:
                gone = [each for each in transaction.facts.partitions if each.topic in topics]
                if gone:
                    self._answered(transaction, transaction.completing, dict.fromkeys(gone, UnknownTopicOrPartition()))

    # ---------------------------------------------------------------- markers

    def _send(self, transaction: Transaction, partitions: Collection[TopicPartition]) -> None:
        facts, target = transaction.facts, transaction.completing
        assert target is not None
        marker = Marker(
            facts.producer_id,
            facts.producer_epoch,
            self._coordinator_epoch(),
            facts.state is State.PREPARE_COMMIT,
            facts.client_version,
        )
        self._send_markers(marker, tuple(partitions), lambda errors: self._answered(transaction, target, errors))

    def _answered(self, transaction: Transaction, target: Facts, errors: PartitionErrors) -> None:
        """Handles the results of some markers."""
        if transaction.completing is not target:
            return  # another coordinator completes it by now, or it is complete without these
        remaining = dict(transaction.facts.partitions)
        late: list[TopicPartition] = []
        for partition, error in errors.items():
            if partition not in remaining:
                continue
            if error is None:
                del remaining[partition]
            elif isinstance(error, TransactionCoordinatorFenced):
                logger.warning(
                    "%s: %s-%d has a marker of a later coordinator, which completes the transaction",
                    transaction.transactional_id,
                    *partition,
                )
                self.forget(transaction)
                return
            elif isinstance(error, NOT_NEEDED):
                logger.info(
                    "%s: %s-%d needs no marker: %s", transaction.transactional_id, *partition, type(error).__name__
                )
                del remaining[partition]
            else:
                late.append(partition)
        transaction.facts = transaction.facts._replace(partitions=remaining)
        if late:
            logger.info("%s: retrying %d markers", transaction.transactional_id, len(late))
            self._retry(transaction, late)
        elif not remaining:
            self._finish(transaction)

    def _finish(self, transaction: Transaction) -> None:
        """Writes that the transaction is complete."""
        target = transaction.completing
        assert target is not None
        self._late.pop(transaction, None)

        def written(error: KafkaError | None) -> None:
            if error is None:
                transaction.completing = None
            elif isinstance(error, NotCoordinator):
                self.forget(transaction)
            else:
                logger.warning(
                    "%s: cannot write that the transaction is complete: %s",
                    transaction.transactional_id,
                    type(error).__name__,
                )
                transaction.pending = target.state
                self._retry(transaction, ())

        self._writer.write(transaction, target, written)

    # ---------------------------------------------------------------- retries

    def _retry(self, transaction: Transaction, partitions: Collection[TopicPartition]) -> None:
        self._late[transaction] = {**dict.fromkeys(self._late.get(transaction, ())), **dict.fromkeys(partitions)}
        if not self._retries.is_set:
            self._deadlines.set(self._retries, self._wait)

    def _again(self) -> None:
        self._wait = min(self._wait * 2, LONGEST_WAIT)
        late, self._late = self._late, {}
        for transaction, partitions in late.items():
            if transaction.completing is None:
                continue
            needed = [each for each in partitions if each in transaction.facts.partitions]
            if needed:
                self._send(transaction, needed)
            elif not transaction.facts.partitions:
                self._finish(transaction)
        if not self._late:
            self._wait = SHORTEST_WAIT
