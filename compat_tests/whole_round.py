"""The steps of each Python client in tests of secured connections: an aborted transaction, a committed one, and a group
that reads it.

Knows nothing of TLS or SASL: the caller's settings say how a client connects.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from kafka import KafkaConsumer, KafkaProducer

Settings = Mapping[str, Any]
Client = Callable[[Settings, str, Sequence[bytes]], list[bytes]]
"""Takes the client's configs, a topic and values; returns the records that a group read."""

WAIT_S = 30
READING = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}


def with_kafka_python(settings: Settings, topic: str, values: Sequence[bytes]) -> list[bytes]:
    producer = KafkaProducer(**settings, transactional_id=topic)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"aborted")
    producer.flush()
    producer.abort_transaction()
    producer.begin_transaction()
    for value in values:
        producer.send(topic, value)
    producer.commit_transaction()
    producer.close()
    consumer = KafkaConsumer(topic, **settings, **READING, group_id=topic, consumer_timeout_ms=WAIT_S * 1000)
    read = [record.value for _, record in zip(values, consumer, strict=False)]
    consumer.commit()
    consumer.close()
    return read


def with_confluent_kafka(settings: Settings, topic: str, values: Sequence[bytes]) -> list[bytes]:
    producer = Producer({**settings, "transactional.id": topic})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce(topic, b"aborted")
    producer.flush(WAIT_S)
    producer.abort_transaction(WAIT_S)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value)
    producer.commit_transaction(WAIT_S)
    reading = {name.replace("_", "."): value for name, value in READING.items()}
    consumer = Consumer({**settings, **reading, "group.id": topic})
    consumer.subscribe([topic])
    read: list[bytes] = []
    deadline = time.monotonic() + WAIT_S
    while len(read) < len(values) and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        if message is not None and not message.error():
            read.append(message.value() or b"")
    consumer.commit(asynchronous=False)
    consumer.close()
    return read


def with_aiokafka(settings: Settings, topic: str, values: Sequence[bytes]) -> list[bytes]:
    async def run() -> list[bytes]:
        async with AIOKafkaProducer(**settings, transactional_id=topic) as producer:
            await producer.begin_transaction()
            await producer.send_and_wait(topic, b"aborted")
            await producer.abort_transaction()
            async with producer.transaction():
                for value in values:
                    await producer.send(topic, value)
        async with asyncio.timeout(WAIT_S), AIOKafkaConsumer(topic, **settings, **READING, group_id=topic) as consumer:
            read = [(await consumer.getone()).value for _ in values]
            await consumer.commit()
            return read

    return asyncio.run(run())


CLIENTS: Mapping[str, Client] = {
    "kafka-python": with_kafka_python,
    "confluent-kafka": with_confluent_kafka,
    "aiokafka": with_aiokafka,
}
