"""Writes columns of records to topics: assigns partitions, encodes batches, and keeps several requests in flight.

Knows nothing of Spark. Its guarantee is that of Java's ``KafkaProducer``: the batches of a partition are written in
order and once (KIP-98), whatever happens to connections and leaders. The first batch that cannot be written raises an
error.
"""

import random
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from kafka import errors as kafka_errors
from kafka.future import Future
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer import ProduceRequest

from barnabas.columnar.encoding import Columns, encode_runs, record_sizes, stamp
from barnabas.columnar.partitioning import StickyPartitions, partitions_of
from barnabas.errors import (
    DuplicateSequenceNumber,
    InvalidProducerEpoch,
    KafkaError,
    LeaderNotAvailable,
    MessageTooLarge,
    NetworkException,
    OutOfOrderSequenceNumber,
    RequestTimedOut,
    UnknownProducerId,
    UnknownServerError,
)
from barnabas.pipelines.client import TopicPartition
from barnabas.pipelines.client.cluster import Cluster
from barnabas.pipelines.client.identity import Identity, idempotent, new_identity, release
from barnabas.pipelines.client.lanes import Batch, Lane, halves
from barnabas.pipelines.client.write_settings import WriteSettings
from barnabas.records.batch import HEADER_SIZE

SMALLEST_BATCH = 1024
LAST_VERSION_BY_NAME = 11
"""The last version of ProduceRequest with topic names instead of ids (KIP-516), and before partitions join a
transaction implicitly (KIP-890)."""


class Writer:
    """Writes to any topics of one cluster. Not thread-safe.

    `write` encodes records and returns when they are queued; it waits while the buffer is full. `flush` returns when
    all are acknowledged. Both raise the first error of any batch, one of `barnabas.errors` with topic and partition in
    its message. After that nothing can be written.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: WriteSettings,
        *,
        identity: Identity | None = None,
        before_first: Callable[[Sequence[TopicPartition]], Awaitable[None]] | None = None,
        chance: random.Random | None = None,
    ) -> None:
        """:param before_first: awaited before the first batches of partitions are sent; a transaction adds the
        partitions.
        """
        self._cluster = cluster
        self._settings = settings
        self._identity = identity
        if identity is None and settings.idempotent:
            self._identity = idempotent(cluster)
        self._before_first = before_first
        self._lanes: dict[TopicPartition, Lane] = {}
        self._taken_in: set[TopicPartition] = set()
        self._leaders: dict[TopicPartition, int] = {}
        self._requests: dict[int, list[Any]] = {}
        self._buffered = 0
        self._failure: BaseException | None = None
        self._needs_new_identity = False
        self._sticky = StickyPartitions(settings.batch_bytes, chance or random.Random())
        self._batch_bytes: dict[str, int] = {}
        self._partition_counts: dict[str, int] = {}
        self.records = self.bytes = 0

    def write(self, topic: str, columns: Columns, partitions: pa.Array | None = None) -> None:
        """Sends records to a topic, each to its partition in `partitions`, or else by the hash of its key (murmur2).

        :raises NoSuchPartition: the topic does not have a partition in `partitions`.
        :raises UnknownTopicOrPartition: there is no such topic.
        """
        self._check()
        count = self._partition_count(topic, partitions)
        if not len(columns.timestamps):
            return
        sizes = record_sizes(columns)
        if self._settings.record_bytes is not None and sizes.max() > self._settings.record_bytes:
            raise MessageTooLarge(
                f"a record for {topic} has {sizes.max()} bytes, kafka.max.request.size is {self._settings.record_bytes}"
            )
        chosen = partitions_of(columns.key, sizes, count, sticky=self._sticky, explicit=partitions, topic=topic)
        if (chosen[1:] < chosen[:-1]).any():
            order = np.argsort(chosen.astype(np.int32), kind="stable")
            columns, chosen = columns.take(order), chosen[order]
        bounds = [0, *(np.flatnonzero(np.diff(chosen)) + 1).tolist(), len(chosen)]
        encoded = encode_runs(
            columns,
            bounds,
            max_batch_bytes=self._batch_bytes.get(topic, self._settings.batch_bytes),
            compression=self._settings.compression,
            level=self._settings.level,
        )
        deadline = time.monotonic() + self._settings.delivery_timeout
        for run, batch in encoded:
            topic_partition = TopicPartition(topic, int(chosen[bounds[run]]))
            lane = self._lanes.setdefault(topic_partition, Lane())
            # A batch may be a view of megabytes shared with other partitions, which a blocked batch would keep alive
            data = bytearray(batch.data) if lane.is_blocked else batch.data
            lane.waiting.append(Batch(topic_partition, data, batch.count, lane.records, deadline))
            lane.records += batch.count
            self._buffered += len(data)
            self.bytes += len(data)
        self.records += len(chosen)
        self._take_in(TopicPartition(topic, int(chosen[start])) for start in bounds[:-1])
        self._send()
        while self._buffered > self._settings.buffer_bytes:
            self._step()

    def _take_in(self, topic_partitions: Iterable[TopicPartition]) -> None:
        if self._before_first is None:
            return
        new = [topic_partition for topic_partition in topic_partitions if topic_partition not in self._taken_in]
        if new:
            self._cluster.run(self._before_first, new)
            self._taken_in.update(new)

    def flush(self) -> None:
        """Returns when all records are acknowledged."""
        self._check()
        while self._buffered:
            self._step()
        self._check()

    def settle(self) -> None:
        """Returns when no request is in flight; drops what was not sent."""
        for requests in self._requests.values():
            for request in requests:
                self._cluster.finish(request)

    def close(self) -> None:
        """Releases the producer id for the next writer, unless this one failed."""
        identity = self._identity
        if self._failure is None and not self._buffered and identity is not None and identity.transactional_id is None:
            release(self._cluster, identity)
            self._identity = None

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _partition_count(self, topic: str, explicit: pa.Array | None) -> int:
        """Returns the number of partitions of the topic. Refreshes metadata if a record names a partition beyond it."""
        count = self._partition_counts.get(topic)
        if count is None:
            count = self._partition_counts[topic] = _partition_count(self._cluster, topic)
        elif explicit is not None and (pc.max(explicit).as_py() or 0) >= count:
            self._cluster.forget()
            count = self._partition_counts[topic] = len(self._cluster.partitions(topic))
        return count

    # Sending, on the caller's thread, which runs the cluster's event loop when it has to wait

    def _step(self) -> None:
        """Waits until a request has a response, or until a failed one may be retried."""
        self._check()
        self._send()
        begun = [request for requests in self._requests.values() for request in requests if not request.is_done]
        if begun:
            self._cluster.run(_any_of, begun)
        elif self._buffered and self._failure is None:
            self._cluster.run(self._cluster.pause)
        self._check()

    def _send(self) -> None:
        """Sends requests up to the limit in flight, each with at most one batch of each partition of a node."""
        if self._needs_new_identity and not self._renew_identity():
            return
        try:
            ready = self._ready()
        except Exception as problem:
            self._failure = problem
            raise
        for node, lanes in ready.items():
            requests = self._requests.setdefault(node, [])
            requests[:] = [request for request in requests if not request.is_done]
            while len(requests) < self._settings.max_in_flight and not self._needs_new_identity:
                batches = self._next_request(lanes)
                if not batches:
                    break
                requests.append(self._cluster.start(self._deliver, node, batches))

    def _ready(self) -> dict[int, list[Lane]]:
        """Returns the lanes that may send, by the leader of their partition."""
        now = time.monotonic()
        ready: dict[int, list[Lane]] = {}
        for topic_partition, lane in self._lanes.items():
            if lane.failed and not lane.sent:
                # No batch is in flight: all failed ones are repeated, in order.
                lane.waiting.extendleft(sorted(lane.failed, key=lambda batch: -batch.first))
                lane.failed = []
            if not lane.waiting or lane.failed or now < lane.not_before:
                continue
            node = self._leaders.get(topic_partition)
            if node is None:
                node = self._leaders[topic_partition] = self._leader(topic_partition, lane.waiting[0].deadline)
            ready.setdefault(node, []).append(lane)
        return ready

    def _leader(self, topic_partition: TopicPartition, deadline: float) -> int:
        """Returns the leader of a partition. Waits for one until the deadline of the next batch."""
        while True:
            try:
                return self._cluster.leader(topic_partition)
            except (NetworkException, LeaderNotAvailable):
                if time.monotonic() > deadline:
                    raise

    def _renew_identity(self) -> bool:
        """Requests a new producer id, whose sequences begin at 0, once nothing is in flight; returns whether it did."""
        if any(lane.sent for lane in self._lanes.values()):
            return False
        self._identity = self._cluster.run(self._cluster.retrying, lambda: new_identity(self._cluster))
        for lane in self._lanes.values():
            lane.is_acknowledged = False
            for batch in (*lane.failed, *lane.waiting):
                batch.stamped = None
        self._needs_new_identity = False
        return True

    def _next_request(self, lanes: Iterable[Lane]) -> list[Batch]:
        """Returns one batch of each lane, up to the size of a request; lanes with the fewest batches in flight come
        first.
        """
        batches: list[Batch] = []
        size = 0
        for lane in sorted(lanes, key=lambda lane: lane.sent):
            if not lane.may_send or (batches and size + len(lane.waiting[0].data) > self._settings.request_bytes):
                continue
            batch = lane.waiting.popleft()
            lane.sent += 1
            lane.is_repeating = batch.tries > 0
            self._stamp(batch)
            size += len(batch.data)
            batches.append(batch)
        return batches

    def _stamp(self, batch: Batch) -> None:
        """Writes producer id and sequence number into a batch, unless it was sent before."""
        if self._identity is not None and batch.stamped is None:
            batch.stamped = self._identity.next(batch.topic_partition, batch.count)
            stamp(batch.data, batch.stamped)

    async def _deliver(self, node: int, batches: list[Batch]) -> None:
        """Sends one request and handles its response. Does not raise."""
        try:
            response = await self._cluster.send(node, self._request(batches), self._settings.request_timeout * 1000)
        except (kafka_errors.RetriableError, kafka_errors.UnknownBrokerIdError) as problem:
            for batch in batches:
                self._retry(batch, problem)
            return
        except Exception as problem:
            self._fail(problem)
            return
        if response is None:  # acks=0: there is no response
            for batch in batches:
                self._done(batch)
            return
        answers = {
            TopicPartition(topic.name, partition.index): partition
            for topic in response.responses
            for partition in topic.partition_responses
        }
        for batch in batches:
            self._answered(batch, answers[batch.topic_partition])

    def _request(self, batches: Sequence[Batch]) -> Any:
        topics: dict[str, list[Any]] = {}
        for batch in batches:
            topics.setdefault(batch.topic_partition.topic, []).append(
                ProduceRequest.TopicProduceData.PartitionProduceData(
                    index=batch.topic_partition.partition, records=batch.data
                )
            )
        return ProduceRequest(
            transactional_id=None if self._identity is None else self._identity.transactional_id,
            acks=self._settings.acks,
            timeout_ms=int(self._settings.request_timeout * 1000),
            topic_data=[
                ProduceRequest.TopicProduceData(name=name, partition_data=partitions)
                for name, partitions in topics.items()
            ],
            max_version=LAST_VERSION_BY_NAME,
        )

    # Responses

    def _answered(self, batch: Batch, answer: Any) -> None:
        if answer.error_code in (0, DuplicateSequenceNumber.code):
            self._done(batch)
            return
        error = KafkaError.by_code.get(answer.error_code, UnknownServerError)
        if error is MessageTooLarge and batch.count > 1:
            self._split(batch)
        elif error is OutOfOrderSequenceNumber and self._is_behind_another(batch):
            self._retry(batch, error())
        elif error in (UnknownProducerId, InvalidProducerEpoch) and self._before_first is None:
            self._needs_new_identity = True
            self._retry(batch, error())
        elif error.retriable:
            self._retry(batch, error())
        else:
            self._fail(self._refusal(error, batch, answer))

    def _done(self, batch: Batch) -> None:
        lane = self._lanes[batch.topic_partition]
        lane.sent -= 1
        lane.is_acknowledged = True
        self._buffered -= len(batch.data)

    def _retry(self, batch: Batch, problem: Exception) -> None:
        """Holds a batch back until the batches sent after it have responses, too; then all of them are repeated."""
        lane = self._lanes[batch.topic_partition]
        lane.sent -= 1
        lane.failed.append(batch)
        lane.not_before = time.monotonic() + self._cluster.settings.seconds("retry.backoff.ms")
        if self._leaders.pop(batch.topic_partition, None) is not None:
            self._cluster.forget()
        batch.tries += 1
        if time.monotonic() > batch.deadline:
            limit = f"within {self._settings.delivery_timeout:g} s (delivery.timeout.ms)"
        elif self._settings.retries is not None and batch.tries > self._settings.retries:
            limit = f"in {batch.tries} attempts (retries)"
        else:
            return
        error = type(problem) if isinstance(problem, KafkaError) else RequestTimedOut
        self._fail(error(f"cannot write a batch to {batch.topic_partition} {limit}: {problem}"))

    def _is_behind_another(self, batch: Batch) -> bool:
        """Returns whether an earlier batch of the partition has to be repeated, which must be written first."""
        return any(other.first < batch.first for other in self._lanes[batch.topic_partition].failed)

    def _split(self, batch: Batch) -> None:
        """Sends a batch that is too large for its topic in two halves, and makes later batches smaller."""
        lane = self._lanes[batch.topic_partition]
        lane.sent -= 1
        topic = batch.topic_partition.topic
        known = self._batch_bytes.get(topic, self._settings.batch_bytes)
        self._batch_bytes[topic] = min(known, max(len(batch.data) // 2, SMALLEST_BATCH))
        self._buffered -= len(batch.data)
        for half in halves(batch, self._settings.level):
            lane.failed.append(half)
            self._buffered += len(half.data)

    def _refusal(self, error: type[KafkaError], batch: Batch, answer: Any) -> KafkaError:
        """Returns the error of a batch that is not retried."""
        name = batch.topic_partition
        if error is MessageTooLarge:
            return error(
                f"{name} rejects a record of {len(batch.data) - HEADER_SIZE} bytes: its max.message.bytes is smaller"
            )
        said = [getattr(answer, "error_message", None) or str(error())]
        said += [f"record {item.batch_index}: {item.batch_index_error_message}" for item in answer.record_errors or ()]
        return error(f"{name}: {'; '.join(said)}")

    def _fail(self, problem: Exception) -> None:
        if self._failure is None:
            self._failure = problem


async def _any_of(begun: Sequence[Any]) -> None:
    """Returns when one of them is done."""
    one = Future()

    def done(_: object) -> None:
        if not one.is_done:
            one.success(None)

    for future in begun:
        future.add_both(done)
    await one


def _partition_count(cluster: Cluster, topic: str) -> int:
    """Returns the number of partitions of a topic. The request creates the topic if the brokers create topics
    automatically.
    """
    if topic not in cluster.describe([topic]):
        request = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=topic)],
            allow_auto_topic_creation=True,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        )
        cluster.run(cluster.retrying, lambda: cluster.send_to_any(request))
    return len(cluster.partitions(topic))
