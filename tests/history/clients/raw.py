"""Transactional producers of both generations on plain sockets, since no Python client supports the second one yet.

They know the messages, and behave as clients: they repeat a request on another connection until there is a response,
number the batches of each partition, and use the ids of responses.
"""

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from barnabas import errors
from barnabas.errors import NONE, KafkaError
from barnabas.records.builder import build_batch
from barnabas.wire.message import Request
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.history.clients import base, confluent_kafka
from tests.history.clients.base import REQUEST_TIMEOUT_MS, TRANSACTION_TIMEOUT_MS, WAIT_S, Lost, Refused, Sent
from tests.raw import Client

Consumer = confluent_kafka.Consumer

GROUP, TRANSACTION = 0, 1
PAUSE_S = 0.02

AGAIN = frozenset(
    error.code
    for error in (
        errors.UnknownTopicOrPartition,
        errors.LeaderNotAvailable,
        errors.NotLeaderOrFollower,
        errors.RequestTimedOut,
        errors.CoordinatorLoadInProgress,
        errors.CoordinatorNotAvailable,
        errors.NotCoordinator,
        errors.ConcurrentTransactions,
        errors.NotEnoughReplicas,  # Apache Kafka's error for the coordinator's own requests
    )
)
"""The errors after which a request is repeated."""

ELSEWHERE = frozenset(
    error.code for error in (errors.NotLeaderOrFollower, errors.NotCoordinator, errors.UnknownTopicOrPartition)
)
"""Those of them that another broker may not return."""

COORDINATOR = "the transaction coordinator"

ABORTABLE = frozenset(
    error.code
    for error in (errors.TransactionAbortable, errors.IllegalGeneration, errors.UnknownMemberId, errors.InvalidTxnState)
)


class Producer(base.Producer):
    """The common part of both generations; one partition and one record in a batch."""

    init_version: int
    produce_version: int
    offsets_version: int
    end_version: int

    def __init__(self, bootstrap: str, transactional_id: str | None = None) -> None:
        assert transactional_id is not None
        self.ports = [int(each.rpartition(":")[2]) for each in bootstrap.split(",")]
        self.places: dict[str, int] = defaultdict(int)  #: the index of the port for a partition, or a coordinator
        self.transactional_id = transactional_id
        self.producer_id, self.epoch = -1, -1
        self.sequences: dict[str, int] = defaultdict(int)
        self.connections: dict[int, Client] = {}

    def start(self) -> None:
        found = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[self.transactional_id])
        self._ask(found, 4, lambda answer: answer.coordinators[0].error_code)
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS
        )
        self._go_on(self._ask(request, self.init_version, lambda answer: answer.error_code, at=COORDINATOR))

    def begin(self) -> None:
        """Does nothing: the first request of the transaction begins it."""

    def send(self, key: str, value: bytes) -> Sent:
        topic, partition = base.place(key)
        batch = build_batch(
            [(None, value, int(time.time() * 1000))],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self.sequences[key],
            is_transactional=True,
        )
        part = ProduceRequest.TopicProduceData.PartitionProduceData(index=partition, records=memoryview(batch))
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=REQUEST_TIMEOUT_MS,
            topic_data=[ProduceRequest.TopicProduceData(name=topic, partition_data=[part])],
        )
        answer = self._ask(
            request,
            self.produce_version,
            lambda answer: answer.responses[0].partition_responses[0].error_code,
            also_good=errors.DuplicateSequenceNumber.code,
            at=key,
        )
        self.sequences[key] += 1
        sent, written = Sent(), answer.responses[0].partition_responses[0]
        sent.offset = written.base_offset if written.error_code == NONE else -1
        return sent

    def flush(self) -> None:
        """Does nothing: each send waits for its response."""

    def send_offsets(self, offsets: Mapping[str, int], consumer: base.Consumer) -> None:
        topics = defaultdict(list)
        for key, offset in offsets.items():
            topic, partition = base.place(key)
            topics[topic].append(
                TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic.TxnOffsetCommitRequestPartition(
                    partition_index=partition, committed_offset=offset, committed_metadata=""
                )
            )
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=consumer.group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[
                TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
        )
        self._find_group(consumer.group)
        self._ask(
            request,
            self.offsets_version,
            lambda answer: worst(part.error_code for topic in answer.topics for part in topic.partitions),
            at=f"group {consumer.group}",
        )

    def _find_group(self, group: str) -> None:
        """The offsets topic is created by the first request for a coordinator."""
        request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=[group])
        self._ask(request, 4, lambda answer: answer.coordinators[0].error_code)

    def commit(self) -> None:
        self._end(committed=True)

    def abort(self) -> None:
        self._end(committed=False)

    def _end(self, *, committed: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=committed,
        )
        self._go_on(self._ask(request, self.end_version, lambda answer: answer.error_code, at=COORDINATOR))

    def _go_on(self, answer: Any) -> None:
        """Uses the ids of a response, if it has any."""
        if answer.producer_id >= 0:
            if (answer.producer_id, answer.producer_epoch) != (self.producer_id, self.epoch):
                self.sequences.clear()
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch

    def _ask(
        self,
        request: Request,
        version: int,
        error_of: Callable[[Any], int],
        *,
        also_good: int = NONE,
        at: str = "anywhere",
    ) -> Any:
        """Returns the first response without a retriable error; raises `Refused` or `Lost`.

        It sends the request to one broker after the other, beginning with the last one that has responded for the
        place.
        """
        deadline = time.monotonic() + WAIT_S
        error: object = None
        while time.monotonic() < deadline:
            answer = None
            port = self.ports[self.places[at] % len(self.ports)]
            try:
                if port not in self.connections:
                    self.connections[port] = Client(port, timeout=REQUEST_TIMEOUT_MS / 1000)
                answer = self.connections[port].ask(request, version)
            except OSError as problem:
                error = problem
            if answer is None:
                self._close(port)
                self.places[at] += 1
                time.sleep(PAUSE_S)
                continue
            code = error_of(answer)
            if code in (NONE, also_good):
                return answer
            error = KafkaError.by_code.get(code, code)
            if code in ABORTABLE:
                raise Refused(f"{type(request).__name__}: {error}")
            if code not in AGAIN:
                raise Lost(f"{type(request).__name__}: {error}")
            if code in ELSEWHERE:
                self.places[at] += 1
            time.sleep(PAUSE_S)
        raise Lost(f"{type(request).__name__}: {error}")

    def _close(self, port: int) -> None:
        connection = self.connections.pop(port, None)
        if connection is not None:
            with contextlib.suppress(OSError):
                connection.socket.close()

    def abandon(self) -> None:
        for port in list(self.connections):
            self._close(port)


class V1Producer(Producer):
    """transaction.version 1: each partition and group is added by a request, and the epoch stays."""

    init_version, produce_version, offsets_version, end_version = 4, 11, 3, 3

    def __init__(self, bootstrap: str, transactional_id: str | None = None) -> None:
        super().__init__(bootstrap, transactional_id)
        self.added: set[str] = set()

    def begin(self) -> None:
        self.added.clear()

    def send(self, key: str, value: bytes) -> Sent:
        if key not in self.added:
            topic, partition = base.place(key)
            names = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=[partition])
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self.transactional_id,
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.epoch,
                v3_and_below_topics=[names],
            )
            self._ask(
                request,
                3,
                lambda answer: answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code,
                at=COORDINATOR,
            )
            self.added.add(key)
        return super().send(key, value)

    def send_offsets(self, offsets: Mapping[str, int], consumer: base.Consumer) -> None:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=consumer.group,
        )
        self._ask(request, 3, lambda answer: answer.error_code, at=COORDINATOR)
        self.added.add(consumer.group)
        super().send_offsets(offsets, consumer)

    def _end(self, *, committed: bool) -> None:
        if self.added:  # ending an empty transaction is an error
            super()._end(committed=committed)


class V2Producer(Producer):
    """transaction.version 2 (KIP-890): partitions are added by writes, and each transaction has its own epoch."""

    init_version, produce_version, offsets_version, end_version = 5, 12, 5, 5

    def __init__(self, bootstrap: str, transactional_id: str | None = None) -> None:
        super().__init__(bootstrap, transactional_id)
        self.is_open = False

    def begin(self) -> None:
        self.is_open = False

    def send(self, key: str, value: bytes) -> Sent:
        self.is_open = True
        return super().send(key, value)

    def send_offsets(self, offsets: Mapping[str, int], consumer: base.Consumer) -> None:
        self.is_open = True
        super().send_offsets(offsets, consumer)

    def _end(self, *, committed: bool) -> None:
        if self.is_open or not committed:
            super()._end(committed=committed)


def worst(codes: Any) -> int:
    """Returns one error of several codes, preferably one that is not retriable."""
    failed = [code for code in codes if code != NONE]
    return min(failed, key=lambda code: code in AGAIN, default=NONE)
