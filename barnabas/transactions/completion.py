"""Ends what has been decided: a marker to each partition, then the record that says that all have it.

Knows nothing of clients, who have their answer already. Kafka's ``TransactionMarkerChannelManager`` and
``TransactionMarkerRequestCompletionHandler``.
"""

import logging
from collections.abc import Callable, Collection, Iterable

from barnabas.clock import Clock, Scheduler, Timer
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
"""Seconds until what could not be written is tried again, for all of them at once; twice as many each time."""

NOT_NEEDED = frozenset({
    UnknownTopicOrPartition,  # deleted since; nothing is left there that would have to end
    UnsupportedForMessageFormat,  # it can't have taken anything of the transaction
    UnsupportedVersion,
    InvalidProducerEpoch,  # it has heard of a later epoch, and has ended what was open before
    ProducerFenced,
})  # fmt: skip
"""With these a partition is done, too."""


class Completion:
    """The transactions that are decided, and not yet complete."""

    def __init__(
        self,
        clock: Clock,
        scheduler: Scheduler,
        writer: Writer,
        send_markers: SendMarkers,
        coordinator_epoch: Callable[[str], int],
    ) -> None:
        self._clock = clock
        self._scheduler = scheduler
        self._writer = writer
        self._send_markers = send_markers
        self._coordinator_epoch = coordinator_epoch
        self._late: dict[Transaction, Collection[TopicPartition]] = {}
        """To be tried again, with the partitions that need a marker; without any, only the record is missing."""
        self._timer: Timer | None = None
        self._wait = SHORTEST_WAIT
        self._is_closed = False

    def begin(self, transaction: Transaction) -> Facts:
        """The decision is written: tell the partitions. What it is when they all know, which may be later."""
        target = transaction.completing = transaction.complete(self._clock.time_ms())
        if transaction.facts.partitions:
            self._send(transaction, tuple(transaction.facts.partitions))
        else:
            self._finish(transaction)
        return target

    def forget(self, transaction: Transaction) -> None:
        """Another node sees to it from here on."""
        transaction.completing = None
        self._late.pop(transaction, None)

    def topics_deleted(self, transactions: Iterable[Transaction], topics: Collection[str]) -> None:
        """Partitions of these topics need no marker any more."""
        for transaction in transactions:
            if transaction.completing is not None:
                gone = [each for each in transaction.facts.partitions if each.topic in topics]
                if gone:
                    self._told(transaction, transaction.completing, dict.fromkeys(gone, UnknownTopicOrPartition))

    def close(self) -> None:
        """Nothing more is written, whatever is still being written: the next start goes on with it."""
        self._is_closed = True
        self._late.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # ---------------------------------------------------------------- markers

    def _send(self, transaction: Transaction, partitions: Collection[TopicPartition]) -> None:
        if self._is_closed:
            return
        facts, target = transaction.facts, transaction.completing
        assert target is not None
        marker = Marker(
            facts.producer_id,
            facts.producer_epoch,
            self._coordinator_epoch(transaction.transactional_id),
            facts.state is State.PREPARE_COMMIT,
            facts.client_version,
        )
        self._send_markers(marker, tuple(partitions), lambda errors: self._told(transaction, target, errors))

    def _told(self, transaction: Transaction, target: Facts, errors: PartitionErrors) -> None:
        """What became of some markers."""
        if self._is_closed or transaction.completing is not target:
            return  # the next start's or another node's business by now, or complete without these
        remaining = dict(transaction.facts.partitions)
        late: list[TopicPartition] = []
        for partition, error in errors.items():
            if partition not in remaining:
                continue
            if error is None:
                del remaining[partition]
            elif error is TransactionCoordinatorFenced:
                logger.warning(
                    "%s: %s-%d has a marker of a later coordinator; this one leaves the transaction to it",
                    transaction.transactional_id,
                    *partition,
                )
                self.forget(transaction)
                return
            elif error in NOT_NEEDED:
                logger.info("%s: no marker for %s-%d: %s", transaction.transactional_id, *partition, error.__name__)
                del remaining[partition]
            else:
                late.append(partition)
        transaction.facts = transaction.facts._replace(partitions=remaining)
        if late:
            logger.info("%s: %d markers have to be written again", transaction.transactional_id, len(late))
            self._retry(transaction, late)
        elif not remaining:
            self._finish(transaction)

    def _finish(self, transaction: Transaction) -> None:
        """All markers are written: say so in the log."""
        if self._is_closed:
            return
        target = transaction.completing
        assert target is not None
        self._late.pop(transaction, None)

        def written(error: type[KafkaError] | None) -> None:
            if error is None:
                transaction.completing = None
            elif error is NotCoordinator:
                self.forget(transaction)
            elif not self._is_closed:
                logger.warning(
                    "%s: it cannot be written that its transaction is complete: %s",
                    transaction.transactional_id,
                    error.__name__,
                )
                transaction.pending = target.state
                self._retry(transaction, ())

        self._writer.write(transaction, target, written)

    # ------------------------------------------------------------------ again

    def _retry(self, transaction: Transaction, partitions: Collection[TopicPartition]) -> None:
        self._late[transaction] = {**dict.fromkeys(self._late.get(transaction, ())), **dict.fromkeys(partitions)}
        if self._timer is None:
            self._timer = self._scheduler.call_later(self._wait, self._again)

    def _again(self) -> None:
        self._timer = None
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
