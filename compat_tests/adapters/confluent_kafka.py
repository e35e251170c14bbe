"""confluent-kafka, which is librdkafka, behind the common interface. Knows its library only."""

import contextlib
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka import Consumer as InnerConsumer
from confluent_kafka import Producer as InnerProducer
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.adapters import base
from compat_tests.adapters.base import WAIT_S, Fenced, Headers, OffsetOutOfRange, Place, Record, Refused, Written

QUIET = 2
"""syslog's "critical": some tests stop the broker, which is a lesser error."""

FENCING = (KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH, KafkaError.PRODUCER_FENCED)

RESETS = {"earliest": "earliest", "latest": "latest", "none": "error"}


class Pending(base.Pending):
    def __init__(self) -> None:
        self.done = threading.Event()
        self.error: KafkaError | None = None
        self.message: Message | None = None
        self.producer: InnerProducer | None = None

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        self.error, self.message = error, message
        self.done.set()

    def result(self) -> Written:
        if not self.done.is_set():
            self.producer.flush(WAIT_S)
        if self.error is not None:
            raise refusal(self.error)
        assert self.message is not None, "no delivery report"
        return Written(self.message.partition(), self.message.offset())


class Producer(base.Producer):
    def __init__(self, configs: Mapping[str, Any]) -> None:
        super().__init__()
        self.inner = InnerProducer(dict(configs))

    def _send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Headers,
        partition: int,
        timestamp: int | None,
    ) -> Pending:
        pending = Pending()
        pending.producer = self.inner
        more: dict[str, Any] = {} if timestamp is None else {"timestamp": timestamp}
        try:
            self.inner.produce(topic, value, key, partition, on_delivery=pending, headers=list(headers), **more)
        except KafkaException as error:  # the producer itself refuses it, for instance as too large
            pending(error.args[0], None)
        return pending

    def _flush(self) -> None:
        try:
            with refusals():
                assert self.inner.flush(WAIT_S) == 0
        except SystemError as error:  # a fatal error is raised within a delivery report
            if not isinstance(error.__cause__, KafkaException):
                raise
            raise refusal(error.__cause__.args[0]) from error

    def close(self) -> None:
        self.inner.flush(WAIT_S)


class Transactional(Producer, base.Transactional):
    def __init__(self, configs: Mapping[str, Any]) -> None:
        super().__init__(configs)
        with refusals():
            self.inner.init_transactions(WAIT_S)

    def begin(self) -> None:
        with refusals():
            self.inner.begin_transaction()

    def commit(self) -> None:
        with refusals():
            self.inner.commit_transaction(WAIT_S)

    def abort(self) -> None:
        with refusals():
            self.inner.abort_transaction(WAIT_S)

    def send_offsets(self, consumer: base.Consumer, offsets: Mapping[Place, int]) -> None:
        assert isinstance(consumer, Consumer)
        named = [TopicPartition(*place, offset) for place, offset in offsets.items()]
        with refusals():
            self.inner.send_offsets_to_transaction(named, consumer.inner.consumer_group_metadata(), WAIT_S)


class Consumer(base.Consumer):
    def __init__(self, configs: Mapping[str, Any], start: int) -> None:
        self.inner = InnerConsumer(dict(configs))
        self.start = start

    def assign(self, places: Iterable[Place]) -> None:
        self.inner.assign([TopicPartition(*place, self.start) for place in places])

    def subscribe(self, topics: Sequence[str]) -> None:
        self.inner.subscribe(list(topics))

    def poll(self, seconds: float = 0.1) -> list[Record]:
        first = self.inner.poll(seconds)  # consume() would wait all that time for the full number of messages
        messages = [] if first is None else [first, *self.inner.consume(1000, 0)]
        return [record_of(message) for message in messages if is_record(message)]

    def assignment(self) -> set[Place]:
        return {(place.topic, place.partition) for place in self.inner.assignment()}

    def commit(self, offsets: Mapping[Place, int] | None = None) -> None:
        with refusals():
            if offsets is None:
                answers = self.inner.commit(asynchronous=False)
            else:
                wanted = [TopicPartition(*place, offset) for place, offset in offsets.items()]
                answers = self.inner.commit(offsets=wanted, asynchronous=False)
        for answer in answers:
            if answer.error:
                raise Refused(answer.error.code(), answer.error.str())

    def commit_soon(self) -> None:
        self.inner.commit(asynchronous=True)

    def committed(self, place: Place) -> int | None:
        offset = self.inner.committed([TopicPartition(*place)], WAIT_S)[0].offset
        return None if offset == OFFSET_INVALID else offset

    def position(self, place: Place) -> int:
        return self.inner.position([TopicPartition(*place)])[0].offset

    def seek(self, place: Place, offset: int) -> None:
        until = threading.Event()
        for _ in range(200):  # a seek is refused until the partition's fetcher has started
            try:
                return self.inner.seek(TopicPartition(*place, offset))
            except KafkaException as error:
                if error.args[0].code() != KafkaError._STATE:
                    raise
                until.wait(0.02)
        raise AssertionError(f"{place} cannot be sought")

    def pause(self, place: Place) -> None:
        self.inner.pause([TopicPartition(*place)])

    def resume(self, place: Place) -> None:
        self.inner.resume([TopicPartition(*place)])

    def offset_at(self, place: Place, timestamp: int) -> int | None:
        found = self.inner.offsets_for_times([TopicPartition(*place, timestamp)], WAIT_S)[0]
        assert not found.error, found.error
        return None if found.offset < 0 else found.offset

    def bounds(self, place: Place) -> tuple[int, int]:
        first, after = self.inner.get_watermark_offsets(TopicPartition(*place), WAIT_S)
        return first, after

    def close(self) -> None:
        self.inner.close()


def is_record(message: Message) -> bool:
    error = message.error()
    if error is None:
        return True
    if error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE):
        raise OffsetOutOfRange(error.str())
    if error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:  # the topic is being created
        return False
    raise KafkaException(error)


def record_of(message: Message) -> Record:
    kind, timestamp = message.timestamp()
    return Record(
        message.topic(),
        message.partition(),
        message.offset(),
        timestamp,
        kind - 1,  # librdkafka counts "none" as 0
        message.key(),
        message.value(),
        tuple(message.headers() or ()),
    )


class ConfluentClient(base.Client):
    name = "confluent-kafka"

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self.cleanup = contextlib.ExitStack()
        self._admin: AdminClient | None = None

    @property
    def admin(self) -> AdminClient:
        if self._admin is None:
            self._admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": QUIET})
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
        configs = {
            "bootstrap.servers": self.bootstrap,
            "log_level": QUIET,
            "acks": acks,
            "compression.type": compression,
            "enable.idempotence": idempotent,
            "linger.ms": linger_ms,
            "message.max.bytes": max_request_bytes,
        }
        producer = Producer(configs)
        self.cleanup.callback(producer.close)
        return producer

    def transactional(self, transactional_id: str, *, timeout_ms: int = 60_000) -> Transactional:
        configs = {
            "bootstrap.servers": self.bootstrap,
            "log_level": QUIET,
            # Otherwise librdkafka 2.16 drops a sole broker that is down, makes a new one, and sends offsets to the old.
            "metadata.recovery.strategy": "none",
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
            "linger.ms": 0,
            "retry.backoff.ms": 20,
            "reconnect.backoff.max.ms": 200,
        }
        producer = Transactional(configs)
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
        starts = {"earliest": OFFSET_BEGINNING, "latest": OFFSET_END, "none": OFFSET_INVALID}
        configs = {
            "bootstrap.servers": self.bootstrap,
            "group.id": group or "nobody",  # librdkafka wants one even where no group is used
            "log_level": QUIET,
            "auto.offset.reset": RESETS[reset],
            "enable.auto.commit": auto_commit,
            "isolation.level": isolation,
            "partition.assignment.strategy": assignor,
            "session.timeout.ms": session_ms,
            "heartbeat.interval.ms": 200,
            "topic.metadata.refresh.fast.interval.ms": 100,
            "fetch.error.backoff.ms": 50,
            "fetch.wait.max.ms": 100,
        }
        if instance is not None:
            configs["group.instance.id"] = instance
        consumer = Consumer(configs, starts[reset] if group is None else OFFSET_INVALID)
        self.cleanup.callback(consumer.close)
        return consumer

    def create_topic(self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        with refusals():
            wanted = NewTopic(topic, partitions, 1, config=dict(configs or {}))
            self.admin.create_topics([wanted])[topic].result(WAIT_S)

    def delete_topic(self, topic: str) -> None:
        with refusals():
            self.admin.delete_topics([topic])[topic].result(WAIT_S)

    def topics(self) -> set[str]:
        return set(self.admin.list_topics(timeout=WAIT_S).topics)

    def close(self) -> None:
        self.cleanup.close()
        self._admin = None


def refusal(error: KafkaError) -> Fenced | Refused:
    return Fenced(error.str()) if error.code() in FENCING else Refused(error.code(), error.str())


@contextlib.contextmanager
def refusals() -> Any:
    try:
        yield
    except KafkaException as error:
        raise refusal(error.args[0]) from error
