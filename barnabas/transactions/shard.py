"""One shard of the transaction coordinator: the transactional ids that one partition of ``__transaction_state`` keeps.

Does no I/O and knows no requests: commands come as calls, answers go to callbacks (or are returned, where nothing has
to be waited for), records and markers go out through one function each, and records come back through
:meth:`TransactionShard.replay`.
"""

import logging
from collections.abc import Callable, Iterable, Sequence

from barnabas.clock import Clock
from barnabas.deadlines import Deadline, Deadlines
from barnabas.errors import (
    ConcurrentTransactions,
    InvalidProducerIdMapping,
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
    ListedTransaction,
    PartitionErrors,
    ProducerIdentity,
    SendMarkers,
    TopicPartition,
    Write,
)
from barnabas.transactions.records import LONGEST_ID, facts_of, is_known
from barnabas.transactions.states import DECIDED, IDLE, State
from barnabas.transactions.transaction import EPOCH_RISES, Facts, Transaction, is_exhausted
from barnabas.transactions.writing import Writer
from barnabas.wire.messages.transaction_records import decode_key

logger = logging.getLogger(__name__)

NEVER_TIMES_OUT = (1 << 31) - 1
"""The time-out of a transaction that an external coordinator ends (KIP-939)."""


class TransactionShard:
    """The transactional ids of one partition. Every command names one that this partition keeps, or would keep.

    >>> from barnabas.clock import ManualClock
    >>> clock = ManualClock()
    >>> shard = TransactionShard(
    ...     TransactionConfig(),
    ...     clock,
    ...     Deadlines(clock, clock),
    ...     write=lambda transactional_id, record, written: written(None),
    ...     send_markers=lambda marker, partitions, done: done(dict.fromkeys(partitions)),
    ...     next_producer_id=lambda: 1000,
    ... )
    >>> shard.init_producer_id(InitProducer("mover", timeout_ms=60_000), print)
    InitResult(error=None, producer_id=1000, producer_epoch=0)
    """

    def __init__(
        self,
        config: TransactionConfig,
        clock: Clock,
        deadlines: Deadlines,
        *,
        write: Write,
        send_markers: SendMarkers,
        next_producer_id: Callable[[], int],
        coordinator_epoch: Callable[[], int] = lambda: 0,
        transaction_version: Callable[[], int] = lambda: EPOCH_RISES,
    ) -> None:
        """:param coordinator_epoch: returns the leader epoch of the shard's partition"""
        self.config = config
        self._clock = clock
        self._deadlines = deadlines
        self._next_producer_id = next_producer_id
        self._transaction_version = transaction_version
        self._transactions: dict[str, Transaction] = {}
        self._replayed: dict[bytes, bytes | None] = {}
        """While loading, the last value of each key: only that one is decoded."""
        self._unknown_records = 0
        self._writer = Writer(write, transaction_version)
        self._completion = Completion(clock, deadlines, self._writer, send_markers, coordinator_epoch)
        self._abort_check = Deadline(self._check_timed_out)
        self._expiry_check = Deadline(self._check_expired)

    # --------------------------------------------------------- InitProducerId

    def init_producer_id(self, ask: InitProducer, reply: InitReply) -> None:
        """InitProducerId with a transactional id: replies with a new epoch, which fences the former producer.

        An open transaction is aborted first; until that is done the reply is CONCURRENT_TRANSACTIONS.
        """
        try:
            transaction = self._find_or_create(ask)
            self._check_producer(ask, transaction)
            if transaction.state is State.ONGOING:
                self._fence(transaction, lambda error: reply(InitResult(error or ConcurrentTransactions())))
                return
            facts = self._renewed(ask, transaction)
        except KafkaError as error:
            reply(InitResult(error))
            return

        def written(error: KafkaError | None) -> None:
            reply(InitResult(None, facts.producer_id, facts.producer_epoch) if error is None else InitResult(error))

        self._writer.write(transaction, facts, written)

    def _find_or_create(self, ask: InitProducer) -> Transaction:
        transactional_id = ask.transactional_id
        transaction = self._transactions.get(transactional_id)
        if transaction is None:
            if len(transactional_id.encode()) > LONGEST_ID:
                raise UnknownServerError("a record has no place for a transactional id of that length")
            facts = Facts(
                State.EMPTY,
                self._next_producer_id(),
                NO_PRODUCER_EPOCH,
                ask.timeout_ms,
                update_time_ms=self._clock.time_ms(),
            )
            transaction = self._transactions[transactional_id] = Transaction(transactional_id, facts)
            self._begin_checks()
        return transaction

    @staticmethod
    def _check_producer(ask: InitProducer, transaction: Transaction) -> None:
        """Raises the error that keeps this producer from taking the id over (KIP-360)."""
        if transaction.pending is not None:
            raise ConcurrentTransactions
        facts = transaction.facts
        is_known = (
            ask.producer_id in (NO_PRODUCER_ID, facts.producer_id)
            or facts.producer_epoch == NO_PRODUCER_EPOCH  # no producer has used it
            or (ask.producer_id == facts.previous_producer_id and is_exhausted(ask.producer_epoch))
        )
        if not is_known:
            raise ProducerFenced
        if facts.state in DECIDED:
            raise ConcurrentTransactions

    def _renewed(self, ask: InitProducer, transaction: Transaction) -> Facts:
        """Returns the facts with the next epoch, or with another producer id where epochs have run out."""
        facts = transaction.facts
        expected = None if ask.producer_id == NO_PRODUCER_ID else ask.producer_epoch
        now_ms = self._clock.time_ms()
        if facts.is_exhausted and expected in (None, facts.producer_epoch):
            return transaction.rotate(self._next_producer_id(), ask.timeout_ms, expected, now_ms)
        return transaction.raise_epoch(ask.timeout_ms, expected, now_ms)

    def check_session(self, producer: ProducerIdentity) -> None:
        """Remembers by which session the producer sends. Commands of a producer do so by themselves.

        :raises Overtaken: the producer has sent something by a newer session
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
        """AddPartitionsToTxn: replies when the partitions are part of the transaction, which the first one begins.

        :raises Overtaken: the producer has sent something by a newer session
        """
        try:
            transaction = self._of(producer)
        except KafkaError as error:
            reply(error)
            return
        facts = transaction.facts
        if transaction.pending is not None or facts.state in DECIDED:
            reply(ConcurrentTransactions())
        elif facts.state is State.ONGOING and all(each in facts.partitions for each in partitions):
            reply(None)
        elif not self._can_keep(client_version):
            reply(UnsupportedVersion())
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
            return dict.fromkeys(partitions, error)
        return {each: None if each in facts.partitions else TransactionAbortable() for each in partitions}

    def _of(self, producer: ProducerIdentity) -> Transaction:
        """Returns the producer's transactional id. :raises KafkaError: it is not that producer's"""
        transaction = self._find(producer.transactional_id, InvalidProducerIdMapping)
        if transaction.facts.producer_id != producer.producer_id:
            raise InvalidProducerIdMapping
        if transaction.facts.producer_epoch != producer.producer_epoch:
            raise ProducerFenced
        transaction.check_session(producer)
        return transaction

    def _find(self, transactional_id: str, otherwise: type[KafkaError]) -> Transaction:
        transaction = self._transactions.get(transactional_id)
        if transaction is None:
            raise otherwise
        return transaction

    # -------------------------------------------------------------------- end

    def end(self, producer: ProducerIdentity, is_commit: bool, reply: EndReply, *, client_version: int = 0) -> None:
        """EndTxn: replies when the decision is written. The markers follow by themselves.

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
                reply(EndResult(verdict()))
        except KafkaError as error:
            reply(EndResult(error))

    def _end(self, transaction: Transaction, is_commit: bool, client_version: int, reply: EndReply) -> None:
        decided = self._decided(transaction, is_commit, client_version)

        def written(error: KafkaError | None) -> None:
            if error is None:
                reply(_ended(self._completion.begin(transaction), client_version))
            else:
                reply(EndResult(error))

        self._writer.write(transaction, decided, written)

    def _fence(self, transaction: Transaction, then: ErrorReply) -> None:
        """Aborts the open transaction and fences its producer, by the rules of the cluster's transaction.version."""
        version = EPOCH_RISES if self._transaction_version() >= EPOCH_RISES else 0
        if version < EPOCH_RISES:
            transaction.fence()
        decided = self._decided(transaction, False, version)

        def written(error: KafkaError | None) -> None:
            if error is None:
                self._completion.begin(transaction)
            elif version < EPOCH_RISES:
                transaction.has_failed_fence = True
            then(error)

        self._writer.write(transaction, decided, written)

    def _decided(self, transaction: Transaction, is_commit: bool, client_version: int) -> Facts:
        """Returns the facts with the decision, and with the next producer id where epochs run out."""
        if not self._can_keep(client_version):
            raise UnsupportedVersion
        next_producer_id = NO_PRODUCER_ID
        if client_version >= EPOCH_RISES and transaction.facts.is_exhausted:
            next_producer_id = self._next_producer_id()
        return transaction.decide(is_commit, client_version, next_producer_id, self._clock.time_ms())

    def _can_keep(self, client_version: int) -> bool:
        """Returns whether records have a place for the client's version: those of transaction.version 0 have none."""
        return client_version == 0 or self._transaction_version() > 0

    # ------------------------------------------------------------- inspection

    def describe(self, transactional_id: str) -> DescribedTransaction:
        """DescribeTransactions, one of them. :raises TransactionalIdNotFound: there is no such id"""
        return described(self._find(transactional_id, TransactionalIdNotFound))

    def list_transactions(self, wanted: Filter) -> list[ListedTransaction]:
        """ListTransactions: returns those that pass the filter."""
        return wanted.of(self._transactions.values())

    # ------------------------------------------------------------------- time

    def abort_timed_out(self) -> None:
        """Aborts each transaction that has been open for longer than its time-out."""
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
                "%s: aborting the transaction after its time-out of %d ms; producer %d with epoch %d is fenced",
                transaction.transactional_id,
                facts.timeout_ms,
                facts.producer_id,
                facts.producer_epoch,
            )
            failed = _log_failure(transaction.transactional_id, "cannot abort the transaction")
            try:
                self._fence(transaction, failed)
            except KafkaError as error:  # no producer id is available
                failed(error)

    def remove_expired(self) -> None:
        """Writes a tombstone for each transactional id that was not used for transactional.id.expiration.ms."""
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

        def written(error: KafkaError | None) -> None:
            _log_failure(transactional_id, "cannot write the tombstone of an expired id")(error)
            if error is None and self._transactions.get(transactional_id) is transaction:
                logger.info("%s: expired", transactional_id)
                del self._transactions[transactional_id]

        self._writer.write_tombstone(transaction, written)

    def _begin_checks(self) -> None:
        """Checks regularly from now on, as long as there is a transactional id: most shards have none."""
        config = self.config
        for check, interval_ms in (
            (self._abort_check, config.transaction_abort_timed_out_transaction_cleanup_interval_ms),
            (self._expiry_check, config.transaction_remove_expired_transaction_cleanup_interval_ms),
        ):
            if self._transactions and not check.is_set:
                self._deadlines.set(check, interval_ms / 1000)

    def _check_timed_out(self) -> None:
        self._begin_checks()
        self.abort_timed_out()

    def _check_expired(self) -> None:
        self._begin_checks()
        self.remove_expired()

    # ------------------------------------------------------------ the log

    def replay(self, offset: int, producer_id: int, key: bytes, value: bytes | None) -> None:
        """Stores a record of ``__transaction_state``, to be applied by :meth:`loaded`."""
        if value is None or is_known(value):
            self._replayed[key] = value
        else:
            self._unknown_records += 1

    def replay_end_marker(self, producer_id: int, is_commit: bool) -> None:
        """Ignored: no transaction writes to ``__transaction_state``."""

    def loaded(self) -> None:
        """Completes what was decided, and begins to look for transactions that take too long.

        :raises MalformedMessage: a record is not one of ``__transaction_state``
        """
        if self._unknown_records:
            logger.warning("Ignoring %d records of a version that this broker does not know", self._unknown_records)
        for key, value in self._replayed.items():
            transactional_id = decode_key(key)
            if transactional_id is not None and value is not None:
                self._transactions[transactional_id] = Transaction(transactional_id, facts_of(value))
        self._replayed.clear()
        for transaction in list(self._transactions.values()):
            if transaction.state in DECIDED and transaction.pending is None:
                self._completion.begin(transaction)
        self._begin_checks()

    def unloaded(self) -> None:
        """Drops all ids, and answers NOT_COORDINATOR to requests that wait for a record of one."""
        transactions = list(self._transactions.values())
        self._transactions.clear()
        for transaction in transactions:
            self._completion.forget(transaction)
            if transaction.writing is not None:
                transaction.writing(NotCoordinator())

    def topics_deleted(self, topics: Iterable[str]) -> None:
        """Stops waiting for markers in partitions of these topics."""
        self._completion.topics_deleted(list(self._transactions.values()), frozenset(topics))


def _ended(facts: Facts, client_version: int) -> EndResult:
    """Returns the id and epoch to continue with. A client of version 0 keeps its epoch, and gets neither."""
    if client_version < EPOCH_RISES:
        return EndResult(None)
    return EndResult(None, facts.producer_id, facts.producer_epoch)


def _log_failure(transactional_id: str, what: str) -> ErrorReply:
    def written(error: KafkaError | None) -> None:
        if error is not None:
            logger.warning("%s: %s: %s", transactional_id, what, type(error).__name__)

    return written
