"""That a transaction knows its partitions before they take its records: asking the coordinator on behalf of a write.

Knows nothing of requests, and not how the records are written. Rules of Apache Kafka's ``AddPartitionsToTxnManager``
and ``ReplicaManager.maybeSendPartitionsToTransactionCoordinator`` (KIP-890).
"""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING

from barnabas.errors import (
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    InvalidProducerEpoch,
    InvalidTxnState,
    KafkaError,
    NetworkException,
    NotCoordinator,
    NotEnoughReplicas,
    ProducerFenced,
    TransactionAbortable,
)
from barnabas.log.verification import Verification
from barnabas.records.batch import NO_SEQUENCE
from barnabas.transactions.messages import PartitionErrors, ProducerIdentity, TopicPartition
from barnabas.transactions.transaction import EPOCH_RISES

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

VERIFICATION = "transaction.partition.verification.enable"

Errors = Mapping[TopicPartition, KafkaError | None]


class Membership(Enum):
    """What a write has to see to (``TransactionSupportedOperation``); the version of its request says which."""

    VERIFY = "the partition has to be there; the client knows INVALID_TXN_STATE"
    VERIFY_ABORTABLE = "the partition has to be there; the client knows TRANSACTION_ABORTABLE"
    ADD = "the partition is added with the write"


UNREACHABLE = (NetworkException, CoordinatorLoadInProgress, CoordinatorNotAvailable, NotCoordinator)
"""Errors that an old client does not expect of a write; it gets one that it retries without asking for metadata."""


def ensure_in_transaction(
    broker: "Broker",
    producer: ProducerIdentity,
    partitions: Iterable[TopicPartition] | Mapping[TopicPartition, int],
    membership: Membership,
    done: Callable[[Errors], object],
    *,
    patience_ms: int = 0,
) -> Callable[[], object]:
    """Call ``done`` when the coordinator has answered for the partitions whose logs do not know the transaction.

    A partition without an error in it may be written to, as long as ``done`` does so before it returns. It may be
    called at once. What is returned is to be called when nobody waits any more: ``done`` is not, after that.

    :param partitions: with the sequence of the first record for each, where a producer gave it one
    :param patience_ms: how long to ask again while the transaction before is being ended (CONCURRENT_TRANSACTIONS)
    :raises Overtaken: the producer has sent something by a newer session
    """
    broker.transactions.check_session(producer)
    firsts = partitions if isinstance(partitions, Mapping) else dict.fromkeys(partitions, NO_SEQUENCE)
    if membership is not Membership.ADD and not broker.config[VERIFICATION]:
        done({})
        return lambda: None
    question = _Question(broker, producer, membership, firsts, done, broker.clock.time_ms() + patience_ms)
    question.ask()
    return question.give_up


class _Question:
    """One write's question, which may have to be asked several times."""

    def __init__(
        self,
        broker: "Broker",
        producer: ProducerIdentity,
        membership: Membership,
        firsts: Mapping[TopicPartition, int],
        done: Callable[[Errors], object],
        until_ms: int,
    ) -> None:
        self._broker = broker
        self._producer = producer
        self._membership = membership
        self._firsts = firsts
        self._done = done
        self._until_ms = until_ms
        self._verifications: dict[TopicPartition, Verification] = {}
        self._errors: dict[TopicPartition, KafkaError | None] = {}
        self._is_given_up = False

    def give_up(self) -> None:
        """Nothing is asked or done any more, whatever the answer."""
        self._is_given_up = True

    def ask(self) -> None:
        """Ask the coordinator about the partitions whose logs do not know the transaction, if there are any."""
        if self._is_given_up:
            return
        self._verifications.clear()
        self._errors.clear()
        for place, first in self._firsts.items():
            try:
                verification = self._begin(place, first)
            except KafkaError as error:
                self._errors[place] = type(error)()
                continue
            if verification is not None:
                self._verifications[place] = verification
        if not self._verifications:
            self._done(self._errors)
            return
        coordinator, unknown = self._broker.transactions, list(self._verifications)
        if self._membership is Membership.ADD:
            coordinator.add_partitions(
                self._producer,
                unknown,
                lambda error: self._answered(dict.fromkeys(unknown, error)),
                client_version=EPOCH_RISES,
            )
        else:
            self._answered(coordinator.verify_partitions(self._producer, unknown))

    def _begin(self, place: TopicPartition, first: int) -> Verification | None:
        broker, producer = self._broker, self._producer
        partition = broker.partitions.get(place) or broker.partition(*place)
        partition.check_leader()
        return partition.log.producers.begin_verification(
            producer.producer_id,
            producer.producer_epoch,
            first,
            broker.clock.time_ms(),
            bumps_epoch=self._membership is Membership.ADD,
        )

    def _answered(self, answers: PartitionErrors) -> None:
        if self._is_given_up:
            return
        broker = self._broker
        if ConcurrentTransactions in answers.values() and broker.clock.time_ms() < self._until_ms:
            broker.scheduler.call_later(broker.config["add.partitions.to.txn.retry.backoff.ms"] / 1000, self.ask)
            return
        membership = self._membership
        for place, error in answers.items():
            if error is not None:
                self._errors[place] = write_error(error, membership)
        if membership is not Membership.ADD or broker.config[VERIFICATION]:
            self._look_again()
        self._done(self._errors)

    def _look_again(self) -> None:
        """The transaction may have ended while the coordinator was asked: what it said then is worth nothing."""
        producer_id, producer_epoch = self._producer.producer_id, self._producer.producer_epoch
        for place in self._firsts:
            partition = self._broker.partitions.get(place)
            if self._errors.get(place) is None and partition is not None:
                verification = self._verifications.get(place)
                try:
                    partition.log.producers.check_verified(producer_id, producer_epoch, verification)
                except InvalidTxnState as error:
                    self._errors[place] = error


def write_error(error: type[KafkaError], membership: Membership) -> KafkaError:
    """The coordinator's error as one that the client of a write expects; with a text where the client is to see it."""
    if error is ProducerFenced:
        return InvalidProducerEpoch()
    if error is InvalidTxnState or (error is TransactionAbortable and membership is Membership.VERIFY):
        return InvalidTxnState("The partition is not in the transaction")
    if issubclass(error, UNREACHABLE) or (error is ConcurrentTransactions and membership is not Membership.ADD):
        return NotEnoughReplicas(f"Whether the partition is in the transaction cannot be found out: {error.__name__}")
    return error()
