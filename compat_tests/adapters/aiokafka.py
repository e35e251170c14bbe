"""aiokafka behind the common interface, its coroutines run on a loop in a thread. Knows its library only."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import (
    BrokerResponseError,
    KafkaConnectionError,
    KafkaError,
    MessageSizeTooLargeError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    ProducerFenced,
    for_code,
)

from compat_tests.adapters import base
from compat_tests.adapters.base import WAIT_S, Fenced, Headers, OffsetOutOfRange, Place, Record, Refused, Written

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


SENDER_ENDED = "Unexpected error during batch delivery"
"""The message of a producer whose sender task has ended."""


class Loop:
    """An event loop in a thread, for synchronous callers."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="aiokafka", daemon=True)
        self.thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(WAIT_S + 10)

    def call(self, function: Any, *arguments: Any, **keywords: Any) -> Any:
        async def on_loop() -> Any:
            return function(*arguments, **keywords)

        return self.run(on_loop())

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


class Pending(base.Pending):
    def __init__(self, loop: Loop, future: Any) -> None:
        self.loop, self.future = loop, future

    def result(self) -> Written:
        async def wait() -> Any:
            return await asyncio.wait_for(self.future, WAIT_S)

        with refusals():
            metadata = self.loop.run(wait())
        return Written(-1, -1) if metadata is None else Written(metadata.partition, metadata.offset)


class Failed(base.Pending):
    """A record that the producer refused without sending it."""

    def __init__(self, error: BrokerResponseError) -> None:
        self.error = error

    def result(self) -> Written:
        raise Refused(self.error.errno, str(self.error)) from self.error


class Producer(base.Producer):
    def __init__(self, loop: Loop, **configs: Any) -> None:
        super().__init__()
        self.loop = loop
        deadline = time.monotonic() + WAIT_S
        while True:
            self.inner = loop.call(AIOKafkaProducer, **configs)
            try:
                loop.run(self.inner.start())
                return
            except KafkaConnectionError:  # the other libraries' producers wait for a broker that is down
                loop.run(self.inner.stop())
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def _send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        headers: Headers,
        partition: int,
        timestamp: int | None,
    ) -> base.Pending:
        sending = self.inner.send(
            topic, value, key=key, headers=list(headers), partition=partition, timestamp_ms=timestamp
        )
        try:
            return Pending(self.loop, self.loop.run(sending))
        except MessageSizeTooLargeError as error:
            return Failed(error)

    def _flush(self) -> None:
        self.loop.run(self.inner.flush())

    def close(self) -> None:
        self.loop.run(self.inner.stop())


class Transactional(Producer, base.Transactional):
    def __init__(self, loop: Loop, **configs: Any) -> None:
        try:
            with refusals():
                super().__init__(loop, **configs)
        except BaseException:
            self.close()
            raise

    def begin(self) -> None:
        with refusals():
            self.loop.run(self.inner.begin_transaction())

    def commit(self) -> None:
        with refusals():
            self.loop.run(self.inner.commit_transaction())

    def abort(self) -> None:
        with refusals():
            self.loop.run(self.inner.abort_transaction())

    def send_offsets(self, consumer: base.Consumer, offsets: Mapping[Place, int]) -> None:
        assert isinstance(consumer, Consumer)
        named = {TopicPartition(*place): offset for place, offset in offsets.items()}
        with refusals():
            self.loop.run(self.inner.send_offsets_to_transaction(named, consumer.group))


class Consumer(base.Consumer):
    def __init__(self, loop: Loop, **configs: Any) -> None:
        self.loop = loop
        self.group = configs["group_id"]
        self.inner = loop.call(AIOKafkaConsumer, **configs)
        loop.run(self.inner.start())

    def assign(self, places: Iterable[Place]) -> None:
        self.loop.call(self.inner.assign, [TopicPartition(*place) for place in places])

    def subscribe(self, topics: Sequence[str]) -> None:
        self.loop.call(self.inner.subscribe, list(topics))

    def poll(self, seconds: float = 0.1) -> list[Record]:
        try:
            polled = self.loop.run(self.inner.getmany(timeout_ms=int(seconds * 1000)))
        except (NoOffsetForPartitionError, OffsetOutOfRangeError) as error:
            raise OffsetOutOfRange(str(error)) from error
        return [record_of(record) for records in polled.values() for record in records]

    def assignment(self) -> set[Place]:
        return {tuple(place) for place in self.inner.assignment()}

    def commit(self, offsets: Mapping[Place, int] | None = None) -> None:
        named = None if offsets is None else {TopicPartition(*place): offset for place, offset in offsets.items()}
        with refusals():
            self.loop.run(self.inner.commit(named))

    def commit_soon(self) -> None:
        asyncio.run_coroutine_threadsafe(self.inner.commit(), self.loop.loop)

    def committed(self, place: Place) -> int | None:
        return self.loop.run(self.inner.committed(TopicPartition(*place)))

    def position(self, place: Place) -> int:
        return self.loop.run(self.inner.position(TopicPartition(*place)))

    def seek(self, place: Place, offset: int) -> None:
        self.loop.call(self.inner.seek, TopicPartition(*place), offset)

    def pause(self, place: Place) -> None:
        self.loop.call(self.inner.pause, TopicPartition(*place))

    def resume(self, place: Place) -> None:
        self.loop.call(self.inner.resume, TopicPartition(*place))

    def offset_at(self, place: Place, timestamp: int) -> int | None:
        found = self.loop.run(self.inner.offsets_for_times({TopicPartition(*place): timestamp}))
        at = found[TopicPartition(*place)]
        return None if at is None else at.offset

    def bounds(self, place: Place) -> tuple[int, int]:
        partition = TopicPartition(*place)
        first = self.loop.run(self.inner.beginning_offsets([partition]))[partition]
        return first, self.loop.run(self.inner.end_offsets([partition]))[partition]

    def close(self) -> None:
        self.loop.run(self.inner.stop())


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


class AiokafkaClient(base.Client):
    name = "aiokafka"

    def __init__(self, bootstrap: str) -> None:
        super().__init__(bootstrap)
        self.loop = Loop()
        self.cleanup = contextlib.ExitStack()
        self.cleanup.callback(self.loop.close)
        self._admin: AIOKafkaAdminClient | None = None

    @property
    def admin(self) -> AIOKafkaAdminClient:
        """The admin client, whose coroutines go to ``loop.run``."""
        if self._admin is None:
            self._admin = self.loop.call(AIOKafkaAdminClient, bootstrap_servers=self.bootstrap)
            self.loop.run(self._admin.start())
            self.cleanup.callback(lambda: self.loop.run(self._admin.close()))
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
            self.loop,
            bootstrap_servers=self.bootstrap,
            acks=acks,
            compression_type=None if compression == "none" else compression,
            enable_idempotence=idempotent,
            linger_ms=linger_ms,
            max_request_size=max_request_bytes,
        )
        self.cleanup.callback(producer.close)
        return producer

    def transactional(self, transactional_id: str, *, timeout_ms: int = 60_000) -> Transactional:
        producer = Transactional(
            self.loop,
            bootstrap_servers=self.bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
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
            self.loop,
            bootstrap_servers=self.bootstrap,
            group_id=group,
            group_instance_id=instance,
            auto_offset_reset=reset,
            enable_auto_commit=auto_commit,
            isolation_level=isolation,
            partition_assignment_strategy=[ASSIGNORS[assignor]],
            session_timeout_ms=session_ms,
            heartbeat_interval_ms=200,
            fetch_max_wait_ms=100,  # offsets are requested on the same connection
        )
        self.cleanup.callback(consumer.close)
        return consumer

    def create_topic(self, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        wanted = NewTopic(topic, partitions, 1, topic_configs=dict(configs or {}))
        for _, code, message in self.loop.run(self.admin.create_topics([wanted])).topic_errors:
            if code:
                raise Refused(code, message or for_code(code).description)

    def delete_topic(self, topic: str) -> None:
        for _, code in self.loop.run(self.admin.delete_topics([topic])).topic_error_codes:
            if code:
                raise Refused(code, for_code(code).description)

    def topics(self) -> set[str]:
        return set(self.loop.run(self.admin.list_topics()))

    def close(self) -> None:
        self.cleanup.close()


@contextlib.contextmanager
def refusals() -> Any:
    try:
        yield
    except ProducerFenced as error:
        raise Fenced(str(error)) from error
    except BrokerResponseError as error:
        raise Refused(error.errno, str(error)) from error
    except KafkaError as error:
        if SENDER_ENDED not in str(error):
            raise
        raise Fenced(str(error)) from error  # this producer no longer sends anything (FINDINGS)
