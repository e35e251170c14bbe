"""Apache Kafka and Barnabas beside each other, started alike, once for all tests in this folder.

Must not say what either should answer.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen

import pytest

from .apache import ApacheKafka, KafkaUnavailable, await_answers, free_port, jars
from .play import Play
from .steps import ask

ALIKE = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "group.max.size": "2",
    "log.retention.ms": "-1",
    "num.partitions": "2",
    "offset.metadata.max.bytes": "200",
    "max.request.partition.size.limit": "3",
}
"""What both are told: nothing is deleted for its age, and a table's time-outs and limits are within reach."""


class Barnabas:
    """Barnabas as a process of its own, told what Apache Kafka was told."""

    def __init__(self, home: Path, properties: dict[str, str]) -> None:
        self.home, self.properties = home, properties
        self.port = free_port()
        self.process: Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> "Barnabas":
        self.home.mkdir(parents=True, exist_ok=True)
        settings = {
            "node.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(self.home / "data"),
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            **self.properties,
        }
        file, log = self.home / "server.properties", self.home / "broker.log"
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        with log.open("ab") as out:
            self.process = Popen([sys.executable, "-m", "barnabas", "serve", str(file)], stdout=out, stderr=out)
        await_answers(self.port, self.process, log, seconds=20)
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(15)
            finally:
                self.process.kill()


def wake_coordinators(port: int) -> None:
    """Have the topic of the groups' offsets made, and wait until all its partitions are served."""
    groups = [ask("OffsetFetch", quiet=True, v=7, GroupId=f"wake-{n}", Topics=[]) for n in range(200)]
    play = Play(("127.0.0.1", port), "", {})
    play.run([ask("FindCoordinator", quiet=True, v=3, Key="wake"), *groups])
    assert not play.transcript, play.transcript


@pytest.fixture(scope="session")
def kafka_jars() -> Path:
    """The folder with Apache Kafka's jars; tests that want it skip where they cannot be had."""
    try:
        return jars()
    except KafkaUnavailable as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def apache_kafka(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    """A running Apache Kafka."""
    with ApacheKafka(tmp_path_factory.mktemp("apache-kafka"), ALIKE) as broker:
        wake_coordinators(broker.port)
        yield broker


@pytest.fixture(scope="session")
def beside(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Barnabas | ApacheKafka]":
    """Barnabas, told the same; ``BARNABAS_COMPAT_BESIDE=apache`` puts a second Apache Kafka there, to try the table."""
    home = tmp_path_factory.mktemp("beside")
    second = ApacheKafka(home, ALIKE) if os.environ.get("BARNABAS_COMPAT_BESIDE") == "apache" else Barnabas(home, ALIKE)
    with second as broker:
        wake_coordinators(broker.port)
        yield broker
