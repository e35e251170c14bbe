"""A transaction of one producer: records and offsets of groups that are committed together or not at all (KIP-98).

Knows nothing of what the records and offsets are, nor of Spark.

Uses the protocol of all brokers since 0.11: partitions and groups are added to the transaction before they are written
to. Each `begin` requests a new producer epoch, which fences the last owner of the transactional id and aborts that
one's transaction. So what is read after `begin` cannot be changed by an earlier owner.
"""

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from kafka import errors as kafka_errors
from kafka.protocol.metadata import CoordinatorType
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)

from barnabas.columnar.encoding import Columns
from barnabas.errors import (
    ConcurrentTransactions,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    KafkaError,
    OperationNotAttempted,
    ProducerFenced,
    UnknownServerError,
)
from barnabas.pipelines.client import TopicPartition
from barnabas.pipelines.client.cluster import Cluster
from barnabas.pipelines.client.identity import Identity, new_identity
from barnabas.pipelines.client.write_settings import WriteSettings
from barnabas.pipelines.client.writing import Writer

COMPLETION_PAUSE = 0.01
"""Seconds between retries while the last transaction is being completed; Java's producer waits 20 ms."""

FENCED = (InvalidProducerEpoch, ProducerFenced, InvalidProducerIdMapping)
"""Errors of a fenced producer: another one has begun with the same transactional id, or the transaction has timed out.
"""


class Transaction:
    """A transaction between `begin` and `commit` under one transactional id. It can begin again after its end.

    Raises ProducerFenced once another owner of the id has begun, or the transaction took longer than
    ``transaction.timeout.ms``, and otherwise the errors of `Writer`. After an error only `abort` is allowed.
    """

    def __init__(self, cluster: Cluster, transactional_id: str, settings: WriteSettings | None = None) -> None:
        self._cluster = cluster
        self._settings = settings or WriteSettings()
        self.transactional_id = transactional_id
        self._identity: Identity | None = None
        self._writer: Writer | None = None
        self._taken_in: set[TopicPartition | str] = set()

    def begin(self) -> None:
        """Fences the last owner of this id, waits until its transaction is aborted, and begins."""
        self._identity = self._cluster.run(self._retrying, self._init)
        self._taken_in.clear()
        self._writer = Writer(
            self._cluster, self._settings, identity=self._identity, before_first=self._take_in_partitions
        )

    @property
    def writer(self) -> Writer:
        """The writer of the transaction's records."""
        if self._writer is None:
            raise RuntimeError(f"transaction {self.transactional_id} has not begun")
        return self._writer

    def produce(self, topic: str, columns: Columns, partitions: pa.Array | None = None) -> None:
        """Writes records as `Writer.write` does."""
        self._fenced_or(lambda: self.writer.write(topic, columns, partitions))

    def commit_offsets(self, group: str, offsets: Mapping[TopicPartition, int], metadata: str = "") -> None:
        """Adds committed offsets of a group without members to the transaction."""
        if group not in self._taken_in:
            self._cluster.run(self._retrying, lambda: self._take_in_group(group))
            self._taken_in.add(group)
        self._cluster.run(self._retrying, lambda: self._commit_offsets(group, offsets, metadata))

    def commit(self) -> None:
        """Writes everything and commits."""
        self._fenced_or(self.writer.flush)
        self._end(committed=True)

    def abort(self) -> None:
        """Aborts. Does nothing if another owner has begun under this id, as that has aborted it."""
        if self._writer is not None:
            self._writer.settle()
        try:
            self._end(committed=False)
        except ProducerFenced:
            self._writer = None

    def _fenced_or(self, work: Callable[[], None]) -> None:
        try:
            work()
        except FENCED as problem:
            raise self._fenced(problem) from problem

    def _end(self, *, committed: bool) -> None:
        if self._taken_in:
            self._cluster.run(self._retrying, lambda: self._end_request(committed))
        self._writer = None
        self._taken_in.clear()

    # Requests

    async def _init(self) -> Identity:
        return await new_identity(self._cluster, self.transactional_id, self._settings.transaction_timeout_ms)

    async def _take_in_partitions(self, topic_partitions: Sequence[TopicPartition]) -> None:
        await self._retrying(lambda: self._add_partitions(topic_partitions))
        self._taken_in.update(topic_partitions)

    async def _add_partitions(self, topic_partitions: Sequence[TopicPartition]) -> None:
        topics: dict[str, list[int]] = {}
        for topic, partition in topic_partitions:
            topics.setdefault(topic, []).append(partition)
        request = AddPartitionsToTxnRequest(
            **{f"v3_and_below_{name}": value for name, value in self._begun().items()},
            v3_and_below_topics=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=partitions)
                for name, partitions in topics.items()
            ],
            max_version=3,  # later ones are for brokers
        )
        response = await self._send(request)
        problems = [
            (partition.partition_error_code, f"{topic.name}-{partition.partition_index}")
            for topic in response.results_by_topic_v3_and_below
            for partition in topic.results_by_partition
            if partition.partition_error_code
        ]
        # If one partition fails, the others are OPERATION_NOT_ATTEMPTED, which explains nothing
        for code, name in sorted(problems, key=lambda problem: problem[0] == OperationNotAttempted.code):
            raise _error(code, name)

    async def _take_in_group(self, group: str) -> None:
        response = await self._send(
            AddOffsetsToTxnRequest(
                **self._begun(),
                group_id=group,
                max_version=3,
            )
        )
        if response.error_code:
            raise _error(response.error_code, f"group {group}")

    async def _commit_offsets(self, group: str, offsets: Mapping[TopicPartition, int], metadata: str) -> None:
        topic_class = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        topics: dict[str, list[Any]] = {}
        for (topic, partition), offset in offsets.items():
            topics.setdefault(topic, []).append(
                topic_class.TxnOffsetCommitRequestPartition(
                    partition_index=partition,
                    committed_offset=offset,
                    committed_leader_epoch=-1,
                    committed_metadata=metadata,
                )
            )
        request = TxnOffsetCommitRequest(
            **self._begun(),
            group_id=group,
            generation_id=-1,
            member_id="",
            group_instance_id=None,
            topics=[topic_class(name=name, partitions=partitions) for name, partitions in topics.items()],
            max_version=4,
        )
        try:
            response = await self._cluster.send_to_coordinator(group, request)
            for topic in response.topics:
                for partition in topic.partitions:
                    if partition.error_code:
                        raise _error(partition.error_code, f"group {group}, {topic.name}-{partition.partition_index}")
        except (kafka_errors.KafkaError, KafkaError):
            self._cluster.forget_coordinator(group)
            raise

    async def _end_request(self, committed: bool) -> None:
        response = await self._send(
            EndTxnRequest(
                **self._begun(),
                committed=committed,
                max_version=4,
            )
        )
        if response.error_code:
            raise _error(response.error_code, "the transaction")

    def _begun(self) -> dict[str, Any]:
        """Returns the fields that identify the transaction in each request."""
        if self._identity is None:
            raise RuntimeError(f"transaction {self.transactional_id} has not begun")
        return {
            "transactional_id": self.transactional_id,
            "producer_id": self._identity.producer_id,
            "producer_epoch": self._identity.epoch,
        }

    async def _send(self, request: Any) -> Any:
        return await self._cluster.send_to_coordinator(self.transactional_id, request, CoordinatorType.TRANSACTION)

    async def _retrying(self, attempt: Callable[[], Awaitable[Any]]) -> Any:
        """Retries for ``default.api.timeout.ms``; after a short pause if the last transaction is still being
        completed.
        """
        deadline = time.monotonic() + self._cluster.settings.seconds("default.api.timeout.ms")

        async def once() -> Any:
            while True:
                try:
                    return await attempt()
                except ConcurrentTransactions:
                    if time.monotonic() > deadline:
                        raise
                    await self._cluster.pause(COMPLETION_PAUSE)
                except FENCED as problem:
                    raise self._fenced(problem) from problem
                except (kafka_errors.KafkaError, KafkaError):
                    self._cluster.forget_coordinator(self.transactional_id, CoordinatorType.TRANSACTION)
                    raise

        return await self._cluster.retrying(once, until=deadline)

    def _fenced(self, problem: KafkaError) -> ProducerFenced:
        return ProducerFenced(
            f"another producer has begun a transaction as {self.transactional_id}, or this one was open for more than "
            f"{self._settings.transaction_timeout_ms} ms (transaction.timeout.ms): {problem}"
        )


def _error(code: int, what: str) -> KafkaError:
    error = KafkaError.by_code.get(code, UnknownServerError)
    return error(f"{what}: {error()}")
