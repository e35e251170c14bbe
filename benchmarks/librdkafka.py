"""The load of librdkafka, through confluent-kafka: producing, consuming, and latency from end to end.

Knows nothing of which server it loads.
"""

import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

AT_ONCE = 10_000
"""The number of records in one call."""


class Flow(NamedTuple):
    """The amount of data, and its cost."""

    bytes: int
    seconds: float
    cpu_s: float  #: CPU time of the server

    @property
    def mb_per_s(self) -> float:
        return self.bytes / self.seconds / 1e6

    @property
    def cpu_s_per_gb(self) -> float:
        return self.cpu_s / (self.bytes / 1e9)


Settings = Mapping[str, str | float]
NOTHING: Settings = {}


def produce(
    bootstrap: str,
    cpu_s: Callable[[], float],
    topic: str,
    record_bytes: int,
    total_bytes: int,
    settings: Settings = NOTHING,
) -> Flow:
    """Produces records of one size until the bytes are acknowledged; ``settings`` are added to the client's."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "acks": 1,
            "linger.ms": 5,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 2_000_000,
            "queue.buffering.max.kbytes": 1_000_000,
            **settings,
        }
    )
    count = total_bytes // record_bytes
    messages = [{"value": b"v" * record_bytes}] * min(AT_ONCE, max(10_000_000 // record_bytes, 100))
    producer.list_topics(topic, timeout=10)
    before, began, sent = cpu_s(), time.perf_counter(), 0
    while sent < count:
        queued = producer.produce_batch(topic, messages, partition=0)
        sent += queued
        if queued < len(messages):
            producer.poll(0.01)
    assert producer.flush(120) == 0, "not everything was acknowledged"
    seconds = time.perf_counter() - began
    return Flow(sent * record_bytes, seconds, cpu_s() - before)


def consume(
    bootstrap: str,
    cpu_s: Callable[[], float],
    topic: str,
    record_bytes: int,
    total_bytes: int,
    settings: Settings = NOTHING,
) -> Flow:
    """Reads one partition from its start until the bytes have been received."""
    consumer = Consumer(
        {
            **settings,
            "bootstrap.servers": bootstrap,
            "group.id": "bench",
            "enable.auto.commit": False,
            "fetch.message.max.bytes": 1_048_576,
            "queued.max.messages.kbytes": 2_000_000,
            # With its defaults the client pauses for a second whenever a fast broker has filled its queue.
            "queued.min.messages": 10_000_000,
            "fetch.queue.backoff.ms": 5,
            "check.crcs": False,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        assert consumer.consume(1, timeout=30), "nothing came"
        wanted = total_bytes // record_bytes - 1
        before, began, received = cpu_s(), time.perf_counter(), 0
        while received < wanted:
            messages = consumer.consume(min(AT_ONCE, wanted - received), timeout=30)
            assert messages, f"{received} of {wanted} records came, then nothing"
            received += len(messages)
        return Flow(received * record_bytes, time.perf_counter() - began, cpu_s() - before)
    finally:
        consumer.close()


def latency(bootstrap: str, topic: str, per_second: int, seconds: float, acks: int | str = 1) -> list[float]:
    """Returns milliseconds from produce() to the consumer, for a small constant load; linger 0."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "fetch.wait.max.ms": 500})
    consumer.assign([TopicPartition(topic, 0, 0)])
    producer = Producer({"bootstrap.servers": bootstrap, "acks": acks, "linger.ms": 0})
    count, warm_up = int(per_second * seconds), per_second // 2
    found: list[float] = []

    def receive() -> None:
        while len(found) < count + warm_up:
            message = consumer.poll(10)
            if message is None:
                return
            if message.error():
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                continue
            found.append((time.perf_counter() - float(message.value())) * 1000)

    receiver = threading.Thread(target=receive)
    receiver.start()
    due = time.perf_counter() + 1
    for _ in range(count + warm_up):
        while (wait := due - time.perf_counter()) > 0:
            time.sleep(wait)
        due += 1 / per_second
        producer.produce(topic, repr(time.perf_counter()).encode())
        producer.poll(0)
    producer.flush(10)
    receiver.join()
    consumer.close()
    return sorted(found[warm_up:])
