"""Four clients that send a record, commit an offset and create a topic, each with the same settings.

Knows nothing of faults, which the tests set. A client's error becomes a :class:`Failed` with its name.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, Protocol

import aiokafka
import aiokafka.admin
import confluent_kafka
import confluent_kafka.admin
import kafka
import kafka.admin

from compat_tests.apache_kafka.apache import JavaProgram

PATIENCE_S = 20
TOPIC = "t"
OFFSET = 7
BACKOFF_MS = 20


class Failed(Exception):
    """A client's error."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name


class Options(NamedTuple):
    """The options of a send."""

    idempotent: bool = False
    request_timeout_ms: int = 30_000
    delivery_timeout_ms: int = 30_000
    transactional_id: str | None = None
    topic: str = TOPIC
    warm_up: bool = False
    """Whether a record is sent first, so that there is a connection to the leader."""
    connected: Callable[[], object] = lambda: None
    """Called once the client has the topic's metadata."""


class Client(Protocol):
    """The operations of a client. ``servers`` are the configs of its connection."""

    name: str

    def send(self, servers: Mapping[str, Any], options: Options) -> None:
        """Sends a record, and returns once it is acknowledged."""

    def commit(self, servers: Mapping[str, Any]) -> int | None:
        """Commits :data:`OFFSET` in group ``g``; returns the committed offset."""

    def create(self, servers: Mapping[str, Any], topic: str) -> None: ...


class KafkaPython:
    """kafka-python."""

    name: ClassVar = "kafka-python"
    settings_name: ClassVar = "kafka-python"

    def send(self, servers: Mapping[str, Any], options: Options) -> None:
        is_safe = options.idempotent or options.transactional_id is not None
        with (
            _raised_by(kafka.errors.KafkaError),
            kafka.KafkaProducer(
                **servers,
                client_id="writer",
                acks="all",
                retries=100,
                linger_ms=0,
                retry_backoff_ms=BACKOFF_MS,
                reconnect_backoff_ms=BACKOFF_MS,
                reconnect_backoff_max_ms=5 * BACKOFF_MS,
                request_timeout_ms=options.request_timeout_ms,
                delivery_timeout_ms=options.delivery_timeout_ms,
                max_block_ms=options.delivery_timeout_ms,
                enable_idempotence=is_safe,
                transactional_id=options.transactional_id,
            ) as producer,
        ):
            producer.partitions_for(options.topic)
            if options.warm_up:
                producer.send(options.topic, b"water").get(PATIENCE_S)
            options.connected()
            if options.transactional_id is not None:
                producer.init_transactions()
                producer.begin_transaction()
            sent = producer.send(options.topic, b"tea")
            if options.transactional_id is not None:
                producer.commit_transaction()
            sent.get(PATIENCE_S)

    def commit(self, servers: Mapping[str, Any]) -> int:
        settings = {"group_id": "g", "retry_backoff_ms": BACKOFF_MS, "enable_auto_commit": False}
        with _raised_by(kafka.errors.KafkaError), kafka.KafkaConsumer(**servers, **settings) as consumer:
            partition = kafka.TopicPartition(TOPIC, 0)
            consumer.assign([partition])
            consumer.seek(partition, 0)
            consumer.commit({partition: kafka.OffsetAndMetadata(OFFSET, "", -1)})
            return int(consumer.committed(partition))

    def create(self, servers: Mapping[str, Any], topic: str) -> None:
        with (
            _raised_by(kafka.errors.KafkaError),
            contextlib.closing(kafka.KafkaAdminClient(**servers, client_id="writer")) as admin,
        ):
            admin.create_topics([kafka.admin.NewTopic(topic, 1, 1)])


class ConfluentKafka:
    """confluent-kafka, which is librdkafka."""

    name: ClassVar = "confluent-kafka"
    settings_name: ClassVar = "confluent"

    def send(self, servers: Mapping[str, Any], options: Options) -> None:
        configs = {
            **servers,
            "client.id": "writer",
            "linger.ms": 0,
            "retry.backoff.ms": BACKOFF_MS,
            "retry.backoff.max.ms": 50,
            "reconnect.backoff.ms": BACKOFF_MS,
            "reconnect.backoff.max.ms": 5 * BACKOFF_MS,
            "topic.metadata.refresh.fast.interval.ms": BACKOFF_MS,
            "socket.timeout.ms": options.request_timeout_ms,
            "socket.connection.setup.timeout.ms": max(options.request_timeout_ms, 1_000),
            "request.timeout.ms": min(options.request_timeout_ms, 29_000),
            "message.timeout.ms": options.delivery_timeout_ms,
            "enable.idempotence": options.idempotent or options.transactional_id is not None,
            "log_level": 0,
        }
        if options.transactional_id is not None:
            configs |= {"transactional.id": options.transactional_id, "transaction.timeout.ms": 60_000}
        with _raised_by_confluent():
            producer = confluent_kafka.Producer(configs)
            producer.list_topics(options.topic, PATIENCE_S)
            if options.warm_up:
                producer.produce(options.topic, b"water")
                producer.flush(PATIENCE_S)
            options.connected()
            errors: list[confluent_kafka.KafkaError] = []
            if options.transactional_id is not None:
                producer.init_transactions(PATIENCE_S)
                producer.begin_transaction()
            producer.produce(options.topic, b"tea", on_delivery=lambda error, message: errors.append(error))
            if options.transactional_id is not None:
                producer.commit_transaction(PATIENCE_S)
            assert producer.flush(PATIENCE_S) == 0
            for error in errors:
                if error is not None:
                    raise confluent_kafka.KafkaException(error)

    def commit(self, servers: Mapping[str, Any]) -> int:
        configs = {**servers, "group.id": "g", "enable.auto.commit": False, "log_level": 0}
        partition = confluent_kafka.TopicPartition(TOPIC, 0, OFFSET)
        with _raised_by_confluent(), contextlib.closing(confluent_kafka.Consumer(configs)) as consumer:
            consumer.assign([partition])
            consumer.commit(offsets=[partition], asynchronous=False)
            return int(consumer.committed([partition], PATIENCE_S)[0].offset)

    def create(self, servers: Mapping[str, Any], topic: str) -> None:
        admin = confluent_kafka.admin.AdminClient({**servers, "client.id": "writer", "log_level": 0})
        with _raised_by_confluent():
            for future in admin.create_topics([confluent_kafka.admin.NewTopic(topic, 1, 1)]).values():
                future.result(PATIENCE_S)


class AioKafka:
    """aiokafka."""

    name: ClassVar = "aiokafka"
    settings_name: ClassVar = "aiokafka"

    def send(self, servers: Mapping[str, Any], options: Options) -> None:
        self._run(self._send(servers, options))

    async def _send(self, servers: Mapping[str, Any], options: Options) -> None:
        is_safe = options.idempotent or options.transactional_id is not None
        async with aiokafka.AIOKafkaProducer(
            **servers,
            client_id="writer",
            acks="all",
            retry_backoff_ms=BACKOFF_MS,
            request_timeout_ms=options.request_timeout_ms,
            enable_idempotence=is_safe,
            transactional_id=options.transactional_id,
        ) as producer:
            await producer.partitions_for(options.topic)
            if options.warm_up:
                await producer.send_and_wait(options.topic, b"water")
            options.connected()
            if options.transactional_id is None:
                await producer.send_and_wait(options.topic, b"tea")
            else:
                async with producer.transaction():
                    await producer.send_and_wait(options.topic, b"tea")

    def commit(self, servers: Mapping[str, Any]) -> int | None:
        found: int | None = self._run(self._commit(servers))
        return found

    async def _commit(self, servers: Mapping[str, Any]) -> int | None:
        partition = aiokafka.TopicPartition(TOPIC, 0)
        settings = {"group_id": "g", "retry_backoff_ms": BACKOFF_MS, "enable_auto_commit": False}
        consumer = aiokafka.AIOKafkaConsumer(**servers, **settings)
        async with consumer:
            consumer.assign([partition])
            consumer.seek(partition, 0)  # otherwise a separate task fetches the committed offset at any time
            await consumer.commit({partition: OFFSET})
            found: int | None = await consumer.committed(partition)
            return found

    def create(self, servers: Mapping[str, Any], topic: str) -> None:
        self._run(self._create(servers, topic))

    async def _create(self, servers: Mapping[str, Any], topic: str) -> None:
        admin = aiokafka.admin.AIOKafkaAdminClient(**servers, client_id="writer")
        await admin.start()
        try:
            answer = await admin.create_topics([aiokafka.admin.NewTopic(topic, 1, 1)])
        finally:
            await admin.close()
        for _, code, *_ in answer.topic_errors:
            if code:
                raise aiokafka.errors.for_code(code)

    @staticmethod
    def _run(coroutine: Any) -> Any:
        with _raised_by(aiokafka.errors.KafkaError):
            return asyncio.run(asyncio.wait_for(coroutine, PATIENCE_S))


class Java:
    """Apache Kafka's own client. All tests of a process share its JVM."""

    name: ClassVar = "Java"
    settings_name: ClassVar = "java"

    def __init__(self, program: JavaProgram) -> None:
        self._program = program

    def ask(self, verb: str, topic: str, **properties: Any) -> str:
        words = [f"{name.replace('_', '.')}={value}" for name, value in properties.items()]
        line = "\t".join([verb, topic, *words]).replace("\n", "\v")  # certificates have several lines
        state, _, rest = self._program.ask(line).partition(" ")
        if state != "ok":
            raise Failed(*rest.split(": ", 1))
        return rest

    def send(self, servers: Mapping[str, Any], options: Options) -> None:
        properties: dict[str, Any] = {
            "client_id": "writer",
            "retry_backoff_ms": BACKOFF_MS,
            "retry_backoff_max_ms": 50,
            "reconnect_backoff_ms": BACKOFF_MS,
            "reconnect_backoff_max_ms": 5 * BACKOFF_MS,
            "request_timeout_ms": options.request_timeout_ms,
            "socket_connection_setup_timeout_ms": options.request_timeout_ms,
            "delivery_timeout_ms": options.delivery_timeout_ms,
            "max_block_ms": options.delivery_timeout_ms,
            "linger_ms": 0,
            "enable_idempotence": str(options.idempotent or options.transactional_id is not None).lower(),
        }
        if options.transactional_id is not None:
            properties["transactional_id"] = options.transactional_id
        try:
            self.ask("open", options.topic, **servers, **properties)
            if options.warm_up:
                self.ask("send", options.topic)
            options.connected()
            self.ask("send", options.topic)
        finally:
            self.ask("close", options.topic)

    def commit(self, servers: Mapping[str, Any]) -> int:
        return int(self.ask("commit offset", TOPIC, **servers, group_id="g", retry_backoff_ms=BACKOFF_MS))

    def create(self, servers: Mapping[str, Any], topic: str) -> None:
        self.ask("create", topic, **servers, client_id="writer", default_api_timeout_ms=2_000, request_timeout_ms=1_000)


PYTHON_CLIENTS = (KafkaPython, ConfluentKafka, AioKafka)


@contextlib.contextmanager
def _raised_by(kind: type[Exception]) -> Iterator[None]:
    try:
        yield
    except (kind, ValueError, TypeError, RuntimeError, OSError) as error:
        raise Failed(type(error).__name__, str(error)) from error


@contextlib.contextmanager
def _raised_by_confluent() -> Iterator[None]:
    try:
        yield
    except confluent_kafka.KafkaException as error:
        raise Failed(error.args[0].name(), error.args[0].str()) from error
