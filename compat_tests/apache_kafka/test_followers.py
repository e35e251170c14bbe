"""A broker of Barnabas as a follower of Apache Kafka's, in a cluster with a controller of Apache Kafka.

The follower stays in sync under load; its segments are the leader's, byte for byte, also after kill -9 and restarts.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.cli import commands
from compat_tests.ports import free_port
from compat_tests.running import BarnabasProcess

from .apache import ApacheKafka, errors_of

pytestmark = pytest.mark.xdist_group("several_brokers")  # it starts its own brokers

WITHIN = 30.0
TOPIC = "copied"
SETTINGS = {"log.segment.bytes": "1048576", "replica.lag.time.max.ms": "3000", "replica.fetch.backoff.ms": "200"}


@pytest.fixture
def apache(kafka_jars: Path, tmp_path: Path) -> Iterator[ApacheKafka]:
    """Yields Apache Kafka, broker and controller 1."""
    sessions = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
    with ApacheKafka(tmp_path / "apache", SETTINGS | sessions) as running:
        yield running


@pytest.fixture
def ours(apache: ApacheKafka, tmp_path: Path) -> Iterator[BarnabasProcess]:
    """Yields Barnabas, broker 2."""
    home = tmp_path / "barnabas"
    home.mkdir()
    properties = {
        **SETTINGS,
        "process.roles": "broker",
        "node.id": "2",
        "controller.quorum.voters": apache.properties["controller.quorum.voters"],
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listeners": f"PLAINTEXT://127.0.0.1:{free_port()}",
        "log.dirs": str(home / "data"),
    }
    broker = BarnabasProcess(home, properties)
    config = home / "server.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    words = ["storage", "format", "-c", str(config), "-t", apache.cluster_id]
    assert CliRunner().invoke(commands.barnabas, words).exit_code == 0
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture
def admin(apache: ApacheKafka, ours: BarnabasProcess) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": apache.bootstrap})
    topic = NewTopic(TOPIC, 2, replica_assignment=[[1, 2], [1, 2]])
    for created in admin.create_topics([topic]).values():
        created.result()
    return admin


def until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + WITHIN
    while not condition():
        assert time.monotonic() < deadline, "it takes too long"
        time.sleep(0.05)


def in_sync(admin: AdminClient, topic: str = TOPIC) -> bool:
    found = admin.list_topics(topic).topics[topic].partitions.values()
    return bool(found) and all(sorted(each.isrs) == [1, 2] for each in found)


class Load:
    """Returns a producer with acks=all that has sent this number of records."""

    def __init__(self, apache: ApacheKafka) -> None:
        self.errors: list[Any] = []
        self.producer = Producer({"bootstrap.servers": apache.bootstrap, "acks": "all", "enable.idempotence": True})

    def send(self, count: int, size: int = 200) -> None:
        for number in range(count):
            while True:
                try:
                    self.producer.produce(TOPIC, b"%d" % number * size, on_delivery=self._delivered)
                    break
                except BufferError:
                    self.producer.poll(0.1)
            self.producer.poll(0)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.errors.append(error)

    def finish(self) -> None:
        assert self.producer.flush(WITHIN) == 0
        assert self.errors == []


def segments(home: Path, partition: int, topic: str = TOPIC) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in sorted((home / "data" / f"{topic}-{partition}").glob("*.log"))}


def equal(apache: ApacheKafka, ours: BarnabasProcess) -> bool:
    return all(segments(apache.home, index) == segments(ours.home, index) != {} for index in (0, 1))


def test_a_follower_of_an_apache_leader(apache: ApacheKafka, ours: BarnabasProcess, admin: AdminClient) -> None:
    load = Load(apache)
    load.send(20_000)
    load.finish()
    assert in_sync(admin)
    until(lambda: equal(apache, ours))
    assert any(len(segments(ours.home, index)) > 1 for index in (0, 1))  # the producer prefers one at times

    # It is killed under load, and restarted.
    load.send(2000)
    ours.kill()
    load.send(2000)
    load.finish()  # once it is not in sync any more
    assert not in_sync(admin)
    ours.start()
    until(lambda: in_sync(admin))
    load.send(2000)
    load.finish()
    until(lambda: equal(apache, ours))

    # Deletions: of records, which completes when the follower has confirmed it, and of the topic.
    (deleted,) = admin.delete_records([TopicPartition(TOPIC, 0, 1000)]).values()
    assert deleted.result(WITHIN).low_watermark == 1000
    (gone,) = admin.delete_topics([TOPIC]).values()
    gone.result()
    data = ours.home / "data"
    until(lambda: not (data / f"{TOPIC}-0").exists() and not (data / f"{TOPIC}-1").exists())

    assert ours.complaints() == []
    assert errors_of(apache.log.read_text()) == []
