"""All of three brokers are restarted one after the other under load: no client sees an error.

Knows nothing of how leadership moves. Clients have acks=all, and otherwise their libraries' defaults, also for retries.
``BARNABAS_ROUNDS`` is the number of restarts of each broker.
"""

import contextlib
import os
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError as PythonError

from compat_tests.apache_kafka.mixed import APACHE, BARNABAS, Combined

pytestmark = [pytest.mark.long, pytest.mark.timeout(600), pytest.mark.xdist_group("rolling_restart")]

ROUNDS = int(os.environ.get("BARNABAS_ROUNDS", "2"))
KIND = APACHE if os.environ.get("BARNABAS_COMPAT_BROKER") == "apache" else BARNABAS
PARTITIONS, COPIES = 6, 3
WITHIN_S = 60.0
TOPIC = "orders"
PAUSE_S = 0.004  #: between two records of a producer


class Client(threading.Thread):
    """A client that works until it is stopped; ``values`` were acknowledged, or read."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self.bootstrap = bootstrap
        self.values: set[bytes] = set()
        self.errors: list[str] = []
        self.ends = threading.Event()
        self.start()

    @abstractmethod
    def work(self) -> None:
        """Works until the client is stopped."""

    def run(self) -> None:
        try:
            self.work()
        except (KafkaException, PythonError) as error:
            self.errors.append(repr(error))

    def end(self) -> None:
        self.ends.set()
        self.join(WITHIN_S)
        assert not self.is_alive(), f"{type(self).__name__} does not end"


class OfLibrdkafka(Client):
    """Its producer."""

    def work(self) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "acks": "all"})
        for number in self.numbers():
            producer.produce(TOPIC, b"librdkafka %d" % number, on_delivery=self._on_delivery)
            producer.poll(0)
        if producer.flush(WITHIN_S):
            self.errors.append("records are not answered for")

    def numbers(self) -> Iterator[int]:
        number = 0
        while not self.ends.wait(PAUSE_S):
            yield number
            number += 1

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append(error.str())
        else:
            self.values.add(message.value() or b"")


class OfKafkaPython(OfLibrdkafka):
    """Its producer."""

    def work(self) -> None:
        producer = KafkaProducer(bootstrap_servers=self.bootstrap, acks="all")
        for number in self.numbers():
            value = b"kafka-python %d" % number
            sent = producer.send(TOPIC, value)
            sent.add_callback(lambda _, value=value: self.values.add(value))
            sent.add_errback(lambda error: self.errors.append(repr(error)))
        producer.flush(WITHIN_S)
        producer.close()


class GroupOfLibrdkafka(Client):
    """A member of a group that commits what it has read."""

    def work(self) -> None:
        consumer = Consumer({
            "bootstrap.servers": self.bootstrap, "group.id": "of-librdkafka", "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 500, "on_commit": self._committed,
        })  # fmt: skip
        consumer.subscribe([TOPIC])
        while not self.ends.is_set():
            message = consumer.poll(0.1)
            if message is None:
                continue
            error = message.error()
            if error is not None:
                self.errors.append(error.str())
            else:
                self.values.add(message.value() or b"")
        consumer.close()

    def _committed(self, error: KafkaError | None, _: object) -> None:
        """Records errors of commits, except that the new coordinator is loading: librdkafka commits again soon.

        Apache Kafka's brokers return that error, too; an application sees it only with a callback for commits.
        """
        if error is not None and error.code() != KafkaError.COORDINATOR_LOAD_IN_PROGRESS:
            self.errors.append(f"commit: {error.str()}")


class GroupOfKafkaPython(Client):
    """A member of a group that commits what it has read."""

    def work(self) -> None:
        consumer = KafkaConsumer(
            TOPIC, bootstrap_servers=self.bootstrap, group_id="of-kafka-python", auto_offset_reset="earliest",
            enable_auto_commit=False,
        )  # fmt: skip
        while not self.ends.is_set():
            for records in consumer.poll(timeout_ms=100).values():
                self.values.update(record.value for record in records)
            consumer.commit()
        consumer.close()


def until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < end, f"not within {WITHIN_S} s: {what}"
        time.sleep(0.05)


def is_whole(admin: AdminClient) -> bool:
    """Returns whether all replicas of all topics are in sync."""
    with contextlib.suppress(KafkaException):
        topics = admin.list_topics(timeout=5).topics.values()
        return all(len(each.isrs) == COPIES for topic in topics for each in topic.partitions.values())
    return False


def test_no_client_sees_an_error(tmp_path: Path) -> None:
    with Combined(tmp_path, [KIND] * COPIES) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, COPIES)])[TOPIC].result(WITHIN_S)
        producers = [OfLibrdkafka(cluster.bootstrap), OfKafkaPython(cluster.bootstrap)]
        groups = [GroupOfLibrdkafka(cluster.bootstrap), GroupOfKafkaPython(cluster.bootstrap)]
        clients: list[Client] = [*producers, *groups]
        until(lambda: all(len(each.values) > 100 for each in clients), "all clients work")
        for _ in range(ROUNDS):
            for node in cluster.brokers.values():
                before = [len(each.values) for each in clients]
                node.stop()
                until(
                    lambda before=before: all(len(c.values) > n + 20 for c, n in zip(clients, before, strict=True)),
                    f"all clients go on without {node.home.name}",
                )
                node.start()
                until(lambda: is_whole(admin), f"all replicas are in sync again after {node.home.name} was restarted")
        for producer in producers:
            producer.end()
        acknowledged = set[bytes]().union(*(each.values for each in producers))
        until(lambda: all(acknowledged <= each.values for each in groups), "the groups have read everything")
        for group in groups:
            group.end()
        assert {type(each).__name__: each.errors for each in clients if each.errors} == {}
        assert [line for node in cluster.brokers.values() for line in node.errors()] == []
