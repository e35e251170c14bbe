"""Has the transaction coordinator add partitions to a transaction, or verify them, before records are appended.

Knows nothing of the Produce requests, nor of how records are appended. Model: Apache Kafka's
``AddPartitionsToTxnManager`` and ``ReplicaManager.maybeSendPartitionsToTransactionCoordinator`` (KIP-890).
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum
from typing import Protocol

from barnabas.broker.leaders import coordinator_of
from barnabas.clock import Clock, Scheduler
from barnabas.cluster.image.image import MetadataImage
from barnabas.cluster.replication.partition import Partition
from barnabas.cluster.topic_names import TRANSACTION_STATE
from barnabas.config import BrokerConfig
from barnabas.errors import (
    ClusterAuthorizationFailed,
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
    RequestTimedOut,
    TransactionAbortable,
)
from barnabas.log.verification import Verification
from barnabas.peers.peers import Peers, error_of
from barnabas.records.batch import NO_SEQUENCE
from barnabas.transactions.messages import ProducerIdentity, TopicPartition, by_topic
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

LANE = "add-partitions"

VERIFICATION = "transaction.partition.verification.enable"
RETRY_BACKOFF_MS = "add.partitions.to.txn.retry.backoff.ms"

Transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
Topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic

Errors = Mapping[TopicPartition, KafkaError | None]


class Operation(Enum):
    """The operation for a write (Kafka's ``TransactionSupportedOperation``). The version of its request decides."""

    DEFAULT_ERROR = "the partition has to be in the transaction; the client knows INVALID_TXN_STATE"
    GENERIC_ERROR_SUPPORTED = "the partition has to be in the transaction; the client knows TRANSACTION_ABORTABLE"
    ADD_PARTITION = "the partition is added to the transaction with the write"


UNREACHABLE = (NetworkException, CoordinatorLoadInProgress, CoordinatorNotAvailable, NotCoordinator)
"""Errors that clients do not expect of a write. They get NOT_ENOUGH_REPLICAS, and retry without a metadata update."""


class Node(Protocol):
    """The part of the broker that is used here."""

    @property
    def config(self) -> BrokerConfig: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def scheduler(self) -> Scheduler: ...

    @property
    def image(self) -> MetadataImage: ...

    @property
    def peers(self) -> Peers: ...

    def partition(self, topic: str, index: int, /) -> Partition:
        """Returns a partition that this node hosts. :raises KafkaError: it does not host it"""


def ensure_in_transaction(
    node: Node,
    producer: ProducerIdentity,
    partitions: Iterable[TopicPartition] | Mapping[TopicPartition, int],
    operation: Operation,
    done: Callable[[Errors], object],
    *,
    patience_ms: int = 0,
) -> Callable[[], object]:
    """Asks the coordinator about the partitions whose logs do not know the transaction, then calls ``done``.

    A partition without an error may be written to, as long as ``done`` does so before it returns. ``done`` is called at
    once if no request is needed or the response is immediate. Returns a function that cancels the call of ``done``.

    :param partitions: the partitions, or a mapping from them to the sequences of their first records
    :param patience_ms: how long to retry while the previous transaction is being completed (CONCURRENT_TRANSACTIONS)
    """
    if operation is not Operation.ADD_PARTITION and not node.config[VERIFICATION]:
        done({})
        return lambda: None
    sequences = partitions if isinstance(partitions, Mapping) else dict.fromkeys(partitions, NO_SEQUENCE)
    now_ms = node.clock.time_ms()
    asking = AddPartitionsToTxn(node, producer, operation, sequences, done, now_ms + patience_ms)
    asking.ask(now_ms)
    return asking.cancel


class AddPartitionsToTxn:
    """The verification of one write, which may take several requests."""

    def __init__(
        self,
        node: Node,
        producer: ProducerIdentity,
        operation: Operation,
        sequences: Mapping[TopicPartition, int],
        done: Callable[[Errors], object],
        until_ms: int,
    ) -> None:
        self._node = node
        self._producer = producer
        self._operation = operation
        self._sequences = sequences
        self._done = done
        self._until_ms = until_ms
        self._verifications: dict[TopicPartition, Verification] = {}
        self._errors: dict[TopicPartition, KafkaError | None] = {}
        self._is_cancelled = False

    def cancel(self) -> None:
        """Stops retrying, and does not call ``done``."""
        self._is_cancelled = True

    def ask(self, now_ms: int) -> None:
        """Asks about the partitions whose logs do not know the transaction, if there are any."""
        if self._is_cancelled:
            return
        self._verifications.clear()
        self._errors.clear()
        for place, sequence in self._sequences.items():
            try:
                verification = self._begin_verification(place, sequence, now_ms)
            except KafkaError as error:
                self._errors[place] = type(error)()
                continue
            if verification is not None:
                self._verifications[place] = verification
        if not self._verifications:
            self._done(self._errors)
            return
        node, producer = self._node, self._producer
        coordinator = coordinator_of(node.image, TRANSACTION_STATE, producer.transactional_id)
        if coordinator is None:
            self._answered_alike(CoordinatorNotAvailable())
        else:
            is_verification = self._operation is not Operation.ADD_PARTITION
            node.peers.send(
                coordinator, _request(producer, self._verifications, is_verification), self._received, lane=LANE
            )

    def _ask_again(self) -> None:
        self.ask(self._node.clock.time_ms())

    def _begin_verification(self, place: TopicPartition, sequence: int, now_ms: int) -> Verification | None:
        """Returns None if the transaction is ongoing in the log.

        :raises KafkaError: this node does not lead the partition
        """
        node, producer = self._node, self._producer
        partition = node.partition(*place)
        partition.check_leader()
        return partition.log.producers.begin_verification(
            producer.producer_id,
            producer.producer_epoch,
            sequence,
            now_ms,
            bumps_epoch=self._operation is Operation.ADD_PARTITION,
        )

    def _received(self, response: AddPartitionsToTxnResponse | None, error: KafkaError | None) -> None:
        if response is None:
            self._answered_alike(NetworkException() if isinstance(error, RequestTimedOut) else error)
            return
        if response.error_code:
            # The client must not see an authorization error of this broker.
            refusal = error_of(response.error_code)
            self._answered_alike(InvalidTxnState() if isinstance(refusal, ClusterAuthorizationFailed) else refusal)
            return
        self._answered({
            TopicPartition(topic.name, each.partition_index): failure
            for result in response.results_by_transaction
            for topic in result.topic_results
            for each in topic.results_by_partition
            if (failure := error_of(each.partition_error_code)) is not None
        })  # fmt: skip

    def _answered_alike(self, error: KafkaError | None) -> None:
        assert error is not None  # there is no response, or it has an error code
        self._answered(dict.fromkeys(self._verifications, error))

    def _answered(self, failed: Mapping[TopicPartition, KafkaError]) -> None:
        """Handles the errors of a response; partitions without an entry are in the transaction."""
        if self._is_cancelled:
            return
        node, operation = self._node, self._operation
        is_concurrent = any(isinstance(error, ConcurrentTransactions) for error in failed.values())
        if is_concurrent and node.clock.time_ms() < self._until_ms:
            node.scheduler.call_later(node.config[RETRY_BACKOFF_MS] / 1000, self._ask_again)
            return
        for place, error in failed.items():
            self._errors[place] = write_error(error, operation)
        if operation is not Operation.ADD_PARTITION or node.config[VERIFICATION]:
            self._check_verified()
        self._done(self._errors)

    def _check_verified(self) -> None:
        """Refuses partitions whose transaction has ended since the request was sent."""
        producer_id, producer_epoch = self._producer.producer_id, self._producer.producer_epoch
        for place in self._sequences:
            if self._errors.get(place) is not None:
                continue
            try:
                producers = self._node.partition(*place).log.producers
            except KafkaError:
                continue  # the write has the same error
            try:
                producers.check_verified(producer_id, producer_epoch, self._verifications.get(place))
            except InvalidTxnState as error:
                self._errors[place] = error


def _request(
    producer: ProducerIdentity, partitions: Collection[TopicPartition], verify_only: bool
) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        transactions=[
            Transaction(
                transactional_id=producer.transactional_id,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                verify_only=verify_only,
                topics=[Topic(name=name, partitions=indexes) for name, indexes in by_topic(partitions).items()],
            )
        ]
    )


def write_error(error: KafkaError, operation: Operation) -> KafkaError:
    """Returns the coordinator's error as one that the client of a write expects, with Apache Kafka's text."""
    if isinstance(error, ProducerFenced):
        return InvalidProducerEpoch()
    is_unknown_to_client = isinstance(error, TransactionAbortable) and operation is Operation.DEFAULT_ERROR
    if isinstance(error, InvalidTxnState) or is_unknown_to_client:
        return InvalidTxnState("Partition was not added to the transaction")
    is_concurrent = isinstance(error, ConcurrentTransactions) and operation is not Operation.ADD_PARTITION
    if isinstance(error, UNREACHABLE) or is_concurrent:
        name = re.sub("(?<=[a-z])(?=[A-Z])", "_", type(error).__name__).upper()
        return NotEnoughReplicas(
            f"Unable to verify the partition has been added to the transaction. Underlying error: {name}"
        )
    return error
