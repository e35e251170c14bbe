"""The transaction coordinator: who holds which transactional id, what its transaction is in, and how it ends.

Does no I/O and knows no requests: commands come as calls, answers go to callbacks (or are returned, where nothing has
to be waited for), records and markers go out through one function each, and records come back through
:meth:`TransactionCoordinator.load`.
"""

import logging
from collections.abc import Callable, Iterable, Sequence

from barnabas.clock import Clock, Scheduler, Timer
from barnabas.errors import (
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidRequest,
    InvalidTransactionTimeout,
    KafkaError,
    NotCoordinator,
    ProducerFenced,
    TransactionAbortable,
    TransactionalIdNotFound,
    UnknownServerError,
    UnsupportedVersion,
)
from barnabas.transactions.completion import Completion
from barnabas.transactions.config import TransactionConfig
from barnabas.transactions.ending import Verdict, outcome
from barnabas.transactions.listing import Filter, described
from barnabas.transactions.messages import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    DescribedTransaction,
    EndReply,
    EndResult,
    ErrorReply,
    InitProducer,
    InitReply,
    InitResult,
    Listing,
    PartitionErrors,
    ProducerIdentity,
    Record,
    SendMarkers,
    TopicPartition,
    Write,
)
from barnabas.transactions.records import LONGEST_ID, latest
from barnabas.transactions.states import DECIDED, IDLE, State
from barnabas.transactions.transaction import EPOCH_RISES, Facts, Transaction, is_exhausted
from barnabas.transactions.writing import Writer

logger = logging.getLogger(__name__)

NEVER_TIMES_OUT = (1 << 31) - 1
"""A time-out that stands for none: of a transaction whose end somebody else decides (KIP-939)."""


class TransactionCoordinator:
    """All transactional ids whose coordinator this node is (Kafka's class of that name).

    >>> from barnabas.clock import ManualClock
    >>> clock = ManualClock()
    >>> coordinator = TransactionCoordinator(
    ...     TransactionConfig(),
    ...     clock,
    ...     clock,
    ...     write=lambda transactional_id, record, written: written(None),
    ...     send_markers=lambda marker, partitions, done: done(dict.fromkeys(partitions)),
    ...     next_producer_id=lambda: 1000,
    ... )
    >>> coordinator.init_producer_id(InitProducer("mover", timeout_ms=60_000), print)
    InitResult(error=None, producer_id=1000, producer_epoch=0)
    """

    def __init__(
        self,
        config: TransactionConfig,
        clock: Clock,
        scheduler: Scheduler,
        *,
        write: Write,
        send_markers: SendMarkers,
        next_producer_id: Callable[[], int],
        coordinator_epoch: Callable[[str], int] = lambda transactional_id: 0,
        is_coordinator: Callable[[str], bool] = lambda transactional_id: True,
        transaction_version: Callable[[], int] = lambda: EPOCH_RISES,
    ) -> None:
        self.config = config
        self._clock = clock
        self._scheduler = scheduler
        self._next_producer_id = next_producer_id
        self._is_coordinator = is_coordinator
        self._transaction_version = transaction_version
        self._transactions: dict[str, Transaction] = {}
        self._writer = Writer(write, transaction_version)
        self._completion = Completion(clock, scheduler, self._writer, send_markers, coordinator_epoch)
        self._sweeps: dict[str, Timer] = {}

    # --------------------------------------------------------- InitProducerId

    def init_producer_id(self, ask: InitProducer, reply: InitReply) -> None:
        """InitProducerId with a transactional id: take it over from whoever had it, and have a new epoch of it.

        What is open is aborted first, with CONCURRENT_TRANSACTIONS until that is done.
        """
        try:
            transaction = self._taken_over(ask)
            self._check_taker(ask, transaction)
            if transaction.state is State.ONGOING:
                self._fence(transaction, lambda error: reply(InitResult(error or ConcurrentTransactions)))
                return
            facts = self._renewed(ask, transaction)
        except KafkaError as error:
            reply(InitResult(type(error)))
            return

        def written(error: type[KafkaError] | None) -> None:
            reply(InitResult(None, facts.producer_id, facts.producer_epoch) if error is None else InitResult(error))

        self._writer.write(transaction, facts, written)

    def _taken_over(self, ask: InitProducer) -> Transaction:
        """What there is under that id, made if there is nothing."""
        transactional_id = ask.transactional_id
        if not transactional_id:
            raise InvalidRequest
        if not 0 < ask.timeout_ms <= self.config.transaction_max_timeout_ms:
            raise InvalidTransactionTimeout
        transaction = self._transactions.get(transactional_id)
        if transaction is None:
            if not self._is_coordinator(transactional_id):
                raise NotCoordinator
            if len(transactional_id.encode()) > LONGEST_ID:
                raise UnknownServerError("a transactional id of that length cannot be kept")
            facts = Facts(
                State.EMPTY,
                self._next_producer_id(),
                NO_PRODUCER_EPOCH,
                ask.timeout_ms,
                update_time_ms=self._clock.time_ms(),
            )
            transaction = self._transactions[transactional_id] = Transaction(transactional_id, facts)
        return transaction

    @staticmethod
    def _check_taker(ask: InitProducer, transaction: Transaction) -> None:
        """Raise what keeps this producer from it (KIP-360)."""
        if transaction.pending is not None:
            raise ConcurrentTransactions
        facts = transaction.facts
        is_known = (
            ask.producer_id in (NO_PRODUCER_ID, facts.producer_id)
            or facts.producer_epoch == NO_PRODUCER_EPOCH  # nobody has had it yet
            or (ask.producer_id == facts.previous_producer_id and is_exhausted(ask.producer_epoch))
        )
        if not is_known:
            raise ProducerFenced
        if facts.state in DECIDED:
            raise ConcurrentTransactions

    def _renewed(self, ask: InitProducer, transaction: Transaction) -> Facts:
        """With the next epoch; with another producer id where there is none."""
        facts = transaction.facts
        expected = None if ask.producer_id == NO_PRODUCER_ID else ask.producer_epoch
        now_ms = self._clock.time_ms()
        if facts.is_exhausted and expected in (None, facts.producer_epoch):
            return transaction.rotate(self._next_producer_id(), ask.timeout_ms, expected, now_ms)
        return transaction.raise_epoch(ask.timeout_ms, expected, now_ms)

    def check_session(self, producer: ProducerIdentity) -> None:
        """Remembers by which session the producer sends. Commands of a producer do so by themselves.

        :raises Overtaken: it has sent something by a newer session
        """
        transaction = self._transactions.get(producer.transactional_id)
        if transaction is not None:
            transaction.check_session(producer)

    # ------------------------------------------------------------- partitions

    def add_partitions(
        self,
        producer: ProducerIdentity,
        partitions: Sequence[TopicPartition],
        reply: ErrorReply,
        *,
        client_version: int = 0,
    ) -> None:
        """AddPartitionsToTxn: what is written to these partitions is in the transaction, which the first one begins.

        :raises Overtaken: the producer has sent something by a newer session
        """
        try:
            transaction = self._of(producer)
        except KafkaError as error:
            reply(type(error))
            return
        facts = transaction.facts
        if transaction.pending is not None or facts.state in DECIDED:
            reply(ConcurrentTransactions)
        elif facts.state is State.ONGOING and all(each in facts.partitions for each in partitions):
            reply(None)
        elif not self._can_keep(client_version):
            reply(UnsupportedVersion)
        else:
            self._writer.write(transaction, transaction.add(partitions, client_version, self._clock.time_ms()), reply)

    def verify_partitions(self, producer: ProducerIdentity, partitions: Sequence[TopicPartition]) -> PartitionErrors:
        """Returns TRANSACTION_ABORTABLE for each of these partitions that is not in the transaction (KIP-890).

        :raises Overtaken: the producer has sent something by a newer session
        """
        try:
            facts = self._of(producer).facts
            if facts.state in DECIDED:
                raise ConcurrentTransactions
        except KafkaError as error:
            return dict.fromkeys(partitions, type(error))
        return {each: None if each in facts.partitions else TransactionAbortable for each in partitions}

    def _of(self, producer: ProducerIdentity) -> Transaction:
        """Returns what the producer's transactional id is up to, if it is that producer's."""
        transaction = self._find(producer.transactional_id, InvalidProducerIdMapping)
        if transaction.facts.producer_id != producer.producer_id:
            raise InvalidProducerIdMapping
        if transaction.facts.producer_epoch != producer.producer_epoch:
            raise ProducerFenced
        transaction.check_session(producer)
        return transaction

    def _find(self, transactional_id: str, otherwise: type[KafkaError]) -> Transaction:
        transaction = self._transactions.get(transactional_id)
        if transaction is not None:
            return transaction
        if not transactional_id:
            raise InvalidRequest
        raise otherwise if self._is_coordinator(transactional_id) else NotCoordinator

    # -------------------------------------------------------------------- end

    def end(self, producer: ProducerIdentity, is_commit: bool, reply: EndReply, *, client_version: int = 0) -> None:
        """EndTxn: answered when the decision is written; all partitions have it, too, if that could be done at once.

        :raises Overtaken: the producer has sent something by a newer session
        """
        try:
            transaction = self._find(producer.transactional_id, InvalidProducerIdMapping)
            transaction.check_session(producer)
            facts = transaction.facts
            is_pending = transaction.pending is not None
            ids = producer.producer_id, producer.producer_epoch
            verdict = outcome(facts, is_pending, *ids, is_commit, client_version)
            if verdict is Verdict.END:
                self._end(transaction, is_commit, client_version, reply)
            elif verdict is Verdict.DONE:
                reply(_ended(facts, client_version))
            else:
                reply(EndResult(verdict))
        except KafkaError as error:
            reply(EndResult(type(error)))

    def _end(self, transaction: Transaction, is_commit: bool, client_version: int, reply: EndReply) -> None:
        decided = self._decided(transaction, is_commit, client_version)

        def written(error: type[KafkaError] | None) -> None:
            if error is None:
                reply(_ended(self._completion.begin(transaction), client_version))
            else:
                reply(EndResult(error))

        self._writer.write(transaction, decided, written)

    def _fence(self, transaction: Transaction, then: ErrorReply) -> None:
        """Abort what is open, against its producer: in the generation that the cluster is at, whatever the client's."""
        version = EPOCH_RISES if self._transaction_version() >= EPOCH_RISES else 0
        if version < EPOCH_RISES:
            transaction.fence()
        decided = self._decided(transaction, False, version)

        def written(error: type[KafkaError] | None) -> None:
            if error is None:
                self._completion.begin(transaction)
            elif version < EPOCH_RISES:
                transaction.has_failed_fence = True
            then(error)

        self._writer.write(transaction, decided, written)

    def _decided(self, transaction: Transaction, is_commit: bool, client_version: int) -> Facts:
        """As it is with the decision; with the producer id to go on with, where the epoch rises for the last time."""
        if not self._can_keep(client_version):
            raise UnsupportedVersion
        next_producer_id = NO_PRODUCER_ID
        if client_version >= EPOCH_RISES and transaction.facts.is_exhausted:
            next_producer_id = self._next_producer_id()
        return transaction.decide(is_commit, client_version, next_producer_id, self._clock.time_ms())

    def _can_keep(self, client_version: int) -> bool:
        """Whether records have a place for the client's generation: those of transaction.version 0 have none."""
        return client_version == 0 or self._transaction_version() > 0

    # ---------------------------------------------------------------- looking

    def describe(self, transactional_id: str) -> DescribedTransaction:
        """DescribeTransactions, one of them; INVALID_REQUEST, NOT_COORDINATOR or TRANSACTIONAL_ID_NOT_FOUND."""
        return described(self._find(transactional_id, TransactionalIdNotFound))

    def list_transactions(
        self,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        duration_ms: int = -1,
        pattern: str | None = None,
    ) -> Listing:
        """ListTransactions: those that all filters let through. INVALID_REGULAR_EXPRESSION where that is none."""
        wanted = Filter(states, producer_ids, duration_ms, pattern, self._clock.time_ms())
        return wanted.listing(self._transactions.values())

    # ------------------------------------------------------------------- time

    def abort_timed_out(self) -> None:
        """Abort each transaction that has been open for longer than its producer said."""
        now_ms = self._clock.time_ms()
        late = [
            each
            for each in self._transactions.values()
            if each.facts.state is State.ONGOING
            and each.pending is None
            and each.facts.start_time_ms + each.facts.timeout_ms < now_ms
            and each.facts.timeout_ms != NEVER_TIMES_OUT
        ]
        for transaction in late:
            facts = transaction.facts
            logger.info(
                "%s: its transaction, open for more than %d ms, is aborted; producer %d with epoch %d is fenced",
                transaction.transactional_id,
                facts.timeout_ms,
                facts.producer_id,
                facts.producer_epoch,
            )
            failed = _log_failure(transaction.transactional_id, "its transaction cannot be aborted")
            try:
                self._fence(transaction, failed)
            except KafkaError as error:  # there are no producer ids to be had
                failed(type(error))

    def remove_expired(self) -> None:
        """Forget each transactional id that nobody has used for transactional.id.expiration.ms."""
        oldest_ms = self._clock.time_ms() - self.config.transactional_id_expiration_ms
        expired = [
            each
            for each in self._transactions.values()
            if each.facts.state in IDLE and each.pending is None and each.facts.update_time_ms <= oldest_ms
        ]
        for transaction in expired:
            self._expire(transaction)

    def _expire(self, transaction: Transaction) -> None:
        transactional_id = transaction.transactional_id

        def written(error: type[KafkaError] | None) -> None:
            _log_failure(transactional_id, "it has expired, but cannot be forgotten")(error)
            if error is None and self._transactions.get(transactional_id) is transaction:
                logger.info("%s: nobody has used it for long, and it is forgotten", transactional_id)
                del self._transactions[transactional_id]

        self._writer.bury(transaction, written)

    def _sweep_regularly(self, sweep: Callable[[], None], interval_ms: int) -> None:
        def come() -> None:
            self._sweep_regularly(sweep, interval_ms)
            sweep()

        self._sweeps[sweep.__name__] = self._scheduler.call_later(interval_ms / 1000, come)

    # ------------------------------------------------------------ start, stop

    def load(self, records: Iterable[Record]) -> None:
        """Take in the records of a partition of ``__transaction_state``, in order; MalformedMessage if one is none."""
        for transactional_id, facts in latest(records):
            former = self._transactions.pop(transactional_id, None)
            if former is not None:
                self._abandon(former)
            if facts is not None:
                self._transactions[transactional_id] = Transaction(transactional_id, facts)

    def start(self) -> None:
        """All is loaded: finish what was decided, and begin to look out for what takes too long."""
        for transaction in list(self._transactions.values()):
            if transaction.state in DECIDED and transaction.pending is None:
                self._completion.begin(transaction)
        for timer in self._sweeps.values():
            timer.cancel()
        config = self.config
        self._sweep_regularly(self.abort_timed_out, config.transaction_abort_timed_out_transaction_cleanup_interval_ms)
        self._sweep_regularly(self.remove_expired, config.transaction_remove_expired_transaction_cleanup_interval_ms)

    def stop(self) -> None:
        """Nothing is done any more that nobody asked for. What waits stays unanswered, as the connections go."""
        self._completion.close()
        for timer in self._sweeps.values():
            timer.cancel()
        self._sweeps.clear()

    def resign(self) -> None:
        """Another node is the coordinator now, or nobody: whoever waits is told so, and all ids are forgotten."""
        transactions = list(self._transactions.values())
        self._transactions.clear()
        for transaction in transactions:
            self._abandon(transaction)

    def resign_lost(self) -> None:
        """As :meth:`resign`, of the ids whose partition of ``__transaction_state`` is not led here any more."""
        lost = [each for each in self._transactions.values() if not self._is_coordinator(each.transactional_id)]
        for transaction in lost:
            del self._transactions[transaction.transactional_id]
        for transaction in lost:
            self._abandon(transaction)

    def _abandon(self, transaction: Transaction) -> None:
        self._completion.forget(transaction)
        if transaction.writing is not None:
            transaction.writing(NotCoordinator)

    def topics_deleted(self, topics: Iterable[str]) -> None:
        """Those topics are no more: no transaction waits for a marker in them."""
        self._completion.topics_deleted(list(self._transactions.values()), frozenset(topics))


def _ended(facts: Facts, client_version: int) -> EndResult:
    """What a client goes on with; one of the older generation is not told, as its epoch stays."""
    if client_version < EPOCH_RISES:
        return EndResult(None)
    return EndResult(None, facts.producer_id, facts.producer_epoch)


def _log_failure(transactional_id: str, what: str) -> ErrorReply:
    def written(error: type[KafkaError] | None) -> None:
        if error is not None:
            logger.warning("%s: %s: %s", transactional_id, what, error.__name__)

    return written
