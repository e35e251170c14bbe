"""kafka-python behind the common interface. Knows its library only."""

import contextlib
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.errors import (
    BrokerResponseError,
    InvalidProducerEpochError,
    KafkaError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    ProducerFencedError,
    RebalanceInProgressError,
)
from kafka.structs import OffsetAndMetadata

from compat_tests.adapters import base
from compat_tests.adapters.base import WAIT_S, Fenced, Headers, OffsetOutOfRange, Place, Record, Refused, Written

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


class Pending(base.Pending):
    def __init__(self, future: Any) -> None:
        self.future = future

    def result(self) -> Written:
        with refusals():
            metadata = self.future.get(timeout=WAIT_S)
        return Written(metadata.partition, metadata.offset)


class Producer(base.Producer):
    def __init__(self, **configs: Any) -> None:
        super().__init__()
        self.inner = KafkaProducer(**configs)

    def _send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Headers,
        partition: int,
        timestamp: int | None,
    ) -> Pending:
        sent = self.inner.send(
            topic, value, key=key, headers=list(headers), partition=partition, timestamp_ms=timestamp
        )
        return Pending(sent)

    def _flush(self) -> None:
        self.inner.flush(WAIT_S)

    def close(self) -> None:
        self.inner.close(timeout=WAIT_S)


def keep_requests(manager: Any) -> None:
    """Repeats requests of a transaction that kafka-python 3.0.12 forgets: the coordinator refused the connection.

    Otherwise the transaction never ends, and the commit waits without a limit, with Apache Kafka as well.
    """
    look_up = manager.lookup_coordinator_for_request

    def look_up_and_retry(request: Any) -> None:
        look_up(request)
        if sys.exc_info()[0] is not None:  # while it handles an exception it does not retry
            manager.retry(request)

    manager.lookup_coordinator_for_request = look_up_and_retry


class Transactional(Producer, base.Transactional):
    def __init__(self, **configs: Any) -> None:
        super().__init__(**configs)
        keep_requests(self.inner._transaction_manager)
        try:
            with refusals():
                self.inner.init_transactions()
        except BaseException:
            self.close()
            raise

    def begin(self) -> None:
        with refusals():
            self.inner.begin_transaction()

    def commit(self) -> None:
        with refusals():
            self.inner.commit_transaction()

    def abort(self) -> None:
        with refusals():
            self.inner.abort_transaction()

    def send_offsets(self, consumer: base.Consumer, offsets: Mapping[Place, int]) -> None:
        assert isinstance(consumer, Consumer)
        named = {TopicPartition(*place): OffsetAndMetadata(offset) for place, offset in offsets.items()}
        with refusals():
            self.inner.send_offsets_to_transaction(named, consumer.inner.group_metadata())


class Consumer(base.Consumer):
    def __init__(self, **configs: Any) -> None:
        self.inner = KafkaConsumer(**configs)
        self.ahead: list[Record] = []

    def assign(self, places: Iterable[Place]) -> None:
        self.inner.assign([TopicPartition(*place) for place in places])

    def subscribe(self, topics: Sequence[str]) -> None:
        self.inner.subscribe(list(topics))
        # A leader whose metadata are older than its subscription joins again once newer metadata come; and kafka-python
        # 3.0.12 forgets a join that ends between two polls, with Apache Kafka too: no partitions, no heartbeats.
        self.inner.topics()

    def poll(self, seconds: float = 0.1) -> list[Record]:
        if self.ahead:
            ahead, self.ahead = self.ahead, []
            return ahead
        try:
            polled = self.inner.poll(timeout_ms=int(seconds * 1000))
        except (NoOffsetForPartitionError, OffsetOutOfRangeError) as error:
            raise OffsetOutOfRange(str(error)) from error
        return [record_of(record) for records in polled.values() for record in records]

    def assignment(self) -> set[Place]:
        return {tuple(place) for place in self.inner.assignment() or ()}

    def commit(self, offsets: Mapping[Place, int] | None = None) -> None:
        named = None
        if offsets is not None:
            named = {TopicPartition(*place): OffsetAndMetadata(offset) for place, offset in offsets.items()}
        deadline = time.monotonic() + WAIT_S
        while True:
            try:
                return self.inner.commit(named)
            except RebalanceInProgressError:  # the library's own: new metadata, so it rejoins
                assert time.monotonic() < deadline
                self.ahead += self.poll()
            except BrokerResponseError as error:
                raise Refused(error.errno, str(error)) from error

    def commit_soon(self) -> None:
        self.inner.commit_async()

    def committed(self, place: Place) -> int | None:
        return self.inner.committed(TopicPartition(*place))

    def position(self, place: Place) -> int:
        return self.inner.position(TopicPartition(*place))

    def seek(self, place: Place, offset: int) -> None:
        self.inner.seek(TopicPartition(*place), offset)

    def pause(self, place: Place) -> None:
        self.inner.pause(TopicPartition(*place))

    def resume(self, place: Place) -> None:
        self.inner.resume(TopicPartition(*place))

    def offset_at(self, place: Place, timestamp: int) -> int | None:
        found = self.inner.offsets_for_times({TopicPartition(*place): timestamp})[TopicPartition(*place)]
        return None if found is None else found.offset

    def bounds(self, place: Place) -> tuple[int, int]:
        partition = TopicPartition(*place)
        return self.inner.beginning_offsets([partition])[partition], self.inner.end_offsets([partition])[partition]

    def close(self) -> None:
        self.inner.close()


def record_of(record: Any) -> Record:
    return Record(
        record.topic,
        record.partition,
        record.offset,
        record.timestamp,
        record.timestamp_type,
        record.key,
        record.value,
        tuple(record.headers),
    )


class KafkaPythonClient(base.Client):
    name = "kafka-python"
    sends_null_headers = False

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self.cleanup = contextlib.ExitStack()
        self._admin: KafkaAdminClient | None = None

    @property
    def admin(self) -> KafkaAdminClient:
        if self._admin is None:
            self._admin = KafkaAdminClient(bootstrap_servers=self.bootstrap)
            self.cleanup.callback(self._admin.close)
        return self._admin

    def producer(
        self,
        *,
        acks: int = -1,
        compression: str = "none",
        idempotent: bool = False,
        linger_ms: int = 0,
        max_request_bytes: int = 1 << 20,
    ) -> Producer:
        producer = Producer(
            bootstrap_servers=self.bootstrap,
            acks=acks,
            compression_type=None if compression == "none" else compression,
            enable_idempotence=idempotent,
            linger_ms=linger_ms,
            max_request_size=max_request_bytes,
            reconnect_backoff_max_ms=200,
        )
        self.cleanup.callback(producer.close)
        return producer

    def transactional(self, transactional_id: str, *, timeout_ms: int = 60_000) -> Transactional:
        producer = Transactional(
            bootstrap_servers=self.bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            retry_backoff_ms=20,
            reconnect_backoff_max_ms=200,
        )
        self.cleanup.callback(producer.close)
        return producer

    def consumer(
        self,
        *,
        group: str | None = None,
        reset: str = "earliest",
        instance: str | None = None,
        auto_commit: bool = False,
        isolation: str = "read_uncommitted",
        assignor: str = "range",
        session_ms: int = 6000,
    ) -> Consumer:
        consumer = Consumer(
            bootstrap_servers=self.bootstrap,
            group_id=group,
            group_instance_id=instance,
            auto_offset_reset=reset,
            enable_auto_commit=auto_commit,
            isolation_level=isolation,
            partition_assignment_strategy=[ASSIGNORS[assignor]],
            session_timeout_ms=session_ms,
            heartbeat_interval_ms=200,
            reconnect_backoff_max_ms=200,
        )
        self.cleanup.callback(consumer.close)
        return consumer

    def create_topic(self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        wanted = {"num_partitions": partitions, "replication_factor": 1, "configs": dict(configs or {})}
        with refusals():
            self.admin.create_topics({topic: wanted}, wait_for_metadata=True)

    def delete_topic(self, topic: str) -> None:
        with refusals():
            self.admin.delete_topics([topic])

    def topics(self) -> set[str]:
        return set(self.admin.list_topics())

    def close(self) -> None:
        self.cleanup.close()


@contextlib.contextmanager
def refusals() -> Any:
    try:
        yield
    except (InvalidProducerEpochError, ProducerFencedError) as error:
        raise Fenced(str(error)) from error
    except BrokerResponseError as error:
        raise Refused(error.errno, str(error)) from error
    except KafkaError as error:  # where the library gives only a text for the broker's error
        code = re.search(r"\[Error (\d+)\]", str(error))
        if code is None:
            raise
        raise Refused(int(code[1]), str(error)) from error
