"""The Python clients with tokens by OAUTHBEARER: a transaction that counts, and a group that reads it."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.abc import AbstractTokenProvider as TokenProviderOfAiokafka
from aiokafka.helpers import create_ssl_context
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, KafkaProducer
from kafka.net.sasl.oauth import AbstractTokenProvider

from .secured import Secured, unsecured_token

COUNT = 30
VALUES = [f"{number} {'x' * 10_000}".encode() for number in range(COUNT)]
READING = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}
SECONDS = 15.0


class Tokens(AbstractTokenProvider):  # type: ignore[misc]  # kafka-python has no types
    def token(self) -> str:
        return unsecured_token()


class TokensOfAiokafka(TokenProviderOfAiokafka):  # type: ignore[misc]  # nor has aiokafka
    async def token(self) -> str:
        return unsecured_token()


def of_librdkafka(secured: Secured, protocol: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": secured.bootstrap(protocol),
        "security.protocol": protocol,
        "sasl.mechanism": "OAUTHBEARER",
        "oauth_cb": lambda _: (unsecured_token(), time.time() + 3600),
        "ssl.ca.location": secured.authority,
    }


def with_kafka_python(secured: Secured, protocol: str, topic: str) -> list[bytes]:
    settings = {
        "bootstrap_servers": secured.bootstrap(protocol),
        "security_protocol": protocol,
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_provider": Tokens(),
        "ssl_cafile": secured.authority,
    }
    producer = KafkaProducer(**settings, transactional_id=topic)
    producer.init_transactions()
    producer.begin_transaction()
    for value in VALUES:
        producer.send(topic, value)
    producer.commit_transaction()
    producer.close()
    consumer = KafkaConsumer(topic, **settings, **READING, group_id=topic, consumer_timeout_ms=int(SECONDS * 1000))
    read = [record.value for record, _ in zip(consumer, VALUES, strict=False)]
    consumer.commit()
    consumer.close()
    return read


def with_confluent_kafka(secured: Secured, protocol: str, topic: str) -> list[bytes]:
    settings = of_librdkafka(secured, protocol)
    producer = Producer({**settings, "transactional.id": topic})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    for value in VALUES:
        producer.produce(topic, value)
    producer.commit_transaction(SECONDS)
    consumer = Consumer({**settings, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    read: list[bytes] = []
    deadline = time.monotonic() + SECONDS
    while len(read) < COUNT and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is not None and not message.error():
            read.append(message.value() or b"")
    consumer.commit(asynchronous=False)
    consumer.close()
    return read


def with_aiokafka(secured: Secured, protocol: str, topic: str) -> list[bytes]:
    async def run() -> list[bytes]:
        settings = {
            "bootstrap_servers": secured.bootstrap(protocol),
            "security_protocol": protocol,
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauth_token_provider": TokensOfAiokafka(),
            "ssl_context": create_ssl_context(cafile=secured.authority),
        }
        async with AIOKafkaProducer(**settings, transactional_id=topic) as producer, producer.transaction():
            for value in VALUES:
                await producer.send(topic, value)
        async with asyncio.timeout(SECONDS), AIOKafkaConsumer(topic, **settings, **READING, group_id=topic) as consumer:
            read = [(await consumer.getone()).value for _ in VALUES]
            await consumer.commit()
            return read

    return asyncio.run(run())


Client = Callable[[Secured, str, str], list[bytes]]
CLIENTS: list[Client] = [with_kafka_python, with_confluent_kafka, with_aiokafka]


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("client", CLIENTS, ids=lambda each: each.__name__)
def test_python(secured: Secured, client: Client, protocol: str) -> None:
    assert client(secured, protocol, f"{client.__name__}-{protocol}") == VALUES


def test_a_token_that_has_expired(secured: Secured) -> None:
    said: list[KafkaError] = []
    expired = unsecured_token(issued_at=time.time() - 7200)
    settings = {
        **of_librdkafka(secured, "SASL_SSL"),
        "oauth_cb": lambda _: (expired, time.time() + 3600),
        "error_cb": said.append,
    }
    admin = AdminClient(settings)
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=5)
    admin.poll(1)
    assert any(error.code() == KafkaError._AUTHENTICATION for error in said), said
