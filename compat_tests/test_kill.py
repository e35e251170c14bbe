"""kill -9 under load: all acknowledged records and commits are there, once, in order.

``BARNABAS_SOAK_ROUNDS`` sets a higher number of rounds than the gate has time for.
"""

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.running import Running

ROUNDS = int(os.environ.get("BARNABAS_SOAK_ROUNDS", "10"))
PARTITIONS = 4
LOAD_SECONDS = 0.4
TOPIC = "under-fire"


class Load:
    """A producer of numbered records for each partition, thousands a second, on its own thread.

    ``sent[partition]`` is the next number; ``acknowledged[partition]`` maps numbers to their offsets.
    """

    def __init__(self, bootstrap: str, name: str, codec: str) -> None:
        self.name = name
        self.producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "log_level": 2,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 2,
                "compression.type": codec,
                "retry.backoff.ms": 20,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 50,
                "queue.buffering.max.messages": 20_000,
                "message.timeout.ms": 60_000,
                "topic.metadata.refresh.fast.interval.ms": 50,
            },
        )
        self.sent = [0] * PARTITIONS
        self.acknowledged: list[dict[int, int]] = [{} for _ in range(PARTITIONS)]
        self.failures: list[str] = []
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self._run, name="load")

    def _run(self) -> None:
        while not self.ending.is_set():
            for partition in range(PARTITIONS):
                number = self.sent[partition]
                try:
                    self.producer.produce(
                        TOPIC, b"%d" % number, key=self.name, partition=partition, on_delivery=self._delivered
                    )
                except BufferError:
                    self.producer.poll(0.01)
                else:
                    self.sent[partition] += 1
            self.producer.poll(0.001)  # some are always in flight, and all of them can be read again

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(error.str())
        else:
            self.acknowledged[message.partition()][int(message.value())] = message.offset()

    def __enter__(self) -> "Load":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.set()
        self.thread.join()

    def drain(self) -> None:
        """Sends no more records; waits until all are acknowledged or failed."""
        self.ending.set()
        self.thread.join()
        assert self.producer.flush(60) == 0

    def acknowledged_count(self) -> int:
        return sum(map(len, self.acknowledged))


def everything(bootstrap: str) -> dict[int, list[tuple[int, str, int]]]:
    """Returns offset, producer and number of all records, by partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False})
    ends = {}
    for partition in range(PARTITIONS):
        ends[partition] = consumer.get_watermark_offsets(TopicPartition(TOPIC, partition), 20)[1]
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    found: dict[int, list[tuple[int, str, int]]] = defaultdict(list)
    deadline = time.monotonic() + 60
    while any(len(found[partition]) < end for partition, end in ends.items()):
        assert time.monotonic() < deadline, {partition: (len(found[partition]), end) for partition, end in ends.items()}
        for message in consumer.consume(5000, 0.1):
            if message.error():
                raise KafkaException(message.error())
            place = message.offset(), message.key().decode(), int(message.value())
            found[message.partition()].append(place)
            deadline = time.monotonic() + 60  # until there are no more
    consumer.close()
    return found


def judge(found: dict[int, list[tuple[int, str, int]]], load: Load) -> None:
    for partition in range(PARTITIONS):
        records = found[partition]
        assert [offset for offset, _, _ in records] == list(range(len(records))), "offsets have no holes"
        numbers = [number for _, name, number in records if name == load.name]
        assert numbers == sorted(set(numbers)), "once, in order"
        at = {number: offset for offset, name, number in records if name == load.name}
        promised = load.acknowledged[partition]
        lost = {number: offset for number, offset in promised.items() if at.get(number) != offset}
        assert not lost, (
            f"{len(lost)} of {len(promised)} are not where they were promised to be: {sorted(lost.items())[:5]}"
        )


class Commits:
    """A consumer that commits 1, 2, 3 … to each partition in turn; ``promised`` has the last acknowledged commits."""

    def __init__(self, bootstrap: str) -> None:
        configs = {"bootstrap.servers": bootstrap, "group.id": "committer", "enable.auto.commit": False}
        self.consumer = Consumer(
            {**configs, "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50, "log_level": 2}
        )
        self.promised = [0] * PARTITIONS
        self.ending = threading.Event()
        self.thread = threading.Thread(target=self._run, name="commits")

    def _run(self) -> None:
        number = 0
        while not self.ending.is_set():
            number += 1
            for partition in range(PARTITIONS):
                place = TopicPartition(TOPIC, partition, number)
                try:
                    (answer,) = self.consumer.commit(offsets=[place], asynchronous=False)
                except KafkaException:  # the broker is down
                    self.ending.wait(0.01)
                else:
                    if answer.error is None:
                        self.promised[partition] = number

    def __enter__(self) -> "Commits":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.set()
        self.thread.join()
        self.consumer.close()


def committed(bootstrap: str) -> list[int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "committer"})
    places = consumer.committed([TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)], 20)
    consumer.close()
    return [place.offset for place in places]


def create(broker: Running) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(20)


@pytest.mark.timeout(180)
def test_every_acknowledged_commit_survives_kill_9(own_broker: Callable[..., Running]) -> None:
    broker = own_broker({"auto.create.topics.enable": "false"})
    create(broker)
    for _ in range(5):
        with Commits(broker.bootstrap) as commits:
            deadline = time.monotonic() + 30
            while min(commits.promised) < 20:
                assert time.monotonic() < deadline, "nothing is acknowledged any more"
                time.sleep(0.01)
            broker.kill()
            commits.ending.set()
            promised = list(commits.promised)
            broker.start()  # requests that were in flight when the broker died may succeed or fail
        for found, number in zip(committed(broker.bootstrap), promised, strict=True):
            assert found in (number, number + 1)


@pytest.mark.timeout(120 + 5 * ROUNDS)
def test_every_acknowledged_record_survives_kill_9(own_broker: Callable[..., Running]) -> None:
    broker = own_broker({"log.segment.bytes": str(1 << 20), "auto.create.topics.enable": "false"})
    create(broker)
    with Load(broker.bootstrap, "first", "lz4") as first, Load(broker.bootstrap, "second", "none") as second:
        loads = [first, second]
        for _ in range(ROUNDS):
            before = [load.acknowledged_count() for load in loads]
            until = time.monotonic() + LOAD_SECONDS
            deadline = time.monotonic() + 30
            while time.monotonic() < until or any(
                load.acknowledged_count() == count for load, count in zip(loads, before, strict=True)
            ):
                assert time.monotonic() < deadline, "nothing is acknowledged any more"
                time.sleep(0.01)
            broker.kill()
            broker.start()
        for load in loads:
            load.drain()
    found = everything(broker.bootstrap)
    for load in loads:
        assert load.failures == []
        assert [len(acknowledged) for acknowledged in load.acknowledged] == load.sent
        judge(found, load)
