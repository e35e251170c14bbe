"""A current client beside the old ones: writes the records that they read, reads the records that they wrote.

Knows nothing of the old clients.
"""

import time
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

SECONDS = 30.0

Written = tuple[str | None, str | None, int]
"""Key, value, timestamp (ms)."""


def write(bootstrap: str, topic: str, records: list[Written], codec: str = "none", **settings: Any) -> None:
    """Writes one batch of these records, each with a header."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 50, "acks": "all", **settings}
    )
    failed: list[Any] = []
    for key, value, timestamp in records:
        producer.produce(
            topic,
            value,
            key,
            partition=0,
            timestamp=timestamp,
            headers=[("header", b"yes")] if "broker.version.fallback" not in settings else None,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
    assert producer.flush(SECONDS) == 0
    assert not failed, failed


def read(bootstrap: str, topic: str, count: int, offset: int = 0, **settings: Any) -> list[Any]:
    """Yields messages from that offset on."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "modern", "enable.auto.commit": False, **settings})
    consumer.assign([TopicPartition(topic, 0, offset)])
    try:
        return poll(consumer, count)
    finally:
        consumer.close()


def poll(consumer: Consumer, count: int) -> list[Any]:
    found: list[Any] = []
    deadline = time.monotonic() + SECONDS
    while len(found) < count and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is not None:
            assert message.error() is None, message.error()
            found.append(message)
    return found


def plain(message: Any) -> tuple[int, str | None, str | None]:
    key, value = message.key(), message.value()
    return message.offset(), None if key is None else key.decode(), None if value is None else value.decode()
