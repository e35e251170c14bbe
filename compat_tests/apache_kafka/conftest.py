"""Apache Kafka and Barnabas with the same configuration, started once for all tests in this folder.

Holds no expected responses.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from compat_tests.running import BarnabasProcess

from .apache import ApacheKafka, JavaProgram, KafkaUnavailable, jars
from .play import Play, error_codes
from .share_state_steps import NOBODY, summary
from .share_state_steps import found as share_coordinator
from .steps import ask

ALIKE = {
    "node.id": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "group.max.size": "2",
    "group.consumer.max.size": "4",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.min.assignment.interval.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.max.size": "3",
    "log.retention.ms": "-1",
    "log.retention.check.interval.ms": "300000",
    "log.initial.task.delay.ms": "600000",
    "num.partitions": "2",
    "offset.metadata.max.bytes": "200",
    "max.request.partition.size.limit": "3",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "5",
}
"""The configs of both: no retention by time, and short time-outs and small limits."""

UNKNOWN_TOPIC = 3
UNKNOWN_ID = 105
"""The errors of a coordinator for an unused transactional id."""


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist looks for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs tests with shared brokers on one worker, since each would start its own; other tests have other groups."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("apache_kafka"))


@pytest.fixture(scope="module")
def java_program(request: pytest.FixtureRequest) -> Iterator[JavaProgram]:
    """Runs the module's ``PROGRAM`` with Apache Kafka's classes, in its own process."""
    try:
        program = JavaProgram(request.module.PROGRAM)
    except KafkaUnavailable as missing:
        pytest.skip(str(missing))
    yield program
    program.close()


def wake_coordinators(port: int) -> None:
    """Creates the coordinators' topics, and waits until all their partitions have leaders."""
    found = [ask("FindCoordinator", within=60, quiet=True, v=3, Key="wake", KeyType=kind) for kind in (0, 1)]
    found.append(share_coordinator(within=60))
    groups = [ask("OffsetFetch", within=60, quiet=True, v=7, GroupId=f"wake-{n}", Topics=[]) for n in range(200)]
    nobody = ask("DescribeTransactions", within=60, v=0, TransactionalIds=[f"wake-{n}" for n in range(200)])
    nowhere = summary(*((NOBODY, n) for n in range(200)), within=60, v=0)
    play = Play(("127.0.0.1", port), "", {})
    play.run([*found, *groups, nobody, nowhere])
    shown = [answer for _, _, answer in play.transcript]
    assert [error_codes(each) for each in shown] == [{UNKNOWN_ID}, {UNKNOWN_TOPIC}], f"{shown!s:.500}"


@pytest.fixture(scope="session")
def kafka_jars() -> Path:
    """Returns the folder with Apache Kafka's jars; skips the test if they cannot be fetched."""
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
def beside(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> "Iterator[BarnabasProcess | ApacheKafka]":
    """Barnabas with the same configs; ``BARNABAS_COMPAT_BESIDE=apache`` starts a second Apache Kafka."""
    home = tmp_path_factory.mktemp("beside")
    if os.environ.get("BARNABAS_COMPAT_BESIDE") == "apache":
        with ApacheKafka(home, ALIKE) as second:
            wake_coordinators(second.port)
            yield second
        return
    broker = BarnabasProcess(home, ALIKE).start()
    try:
        wake_coordinators(broker.port)
        yield broker
        assert broker.complaints() == []
    finally:
        broker.stop()


Pair = tuple[ApacheKafka, "BarnabasProcess | ApacheKafka"]


@pytest.fixture(scope="session")
def first_generation(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Both with the same configs, and with transactions as before KIP-890."""
    levels = {"transaction.version": 1}
    ours = BarnabasProcess(tmp_path_factory.mktemp("beside-first"), ALIKE, levels)
    with ApacheKafka(tmp_path_factory.mktemp("apache-first"), ALIKE, features=levels) as theirs:
        ours.start()
        try:
            for broker in (theirs, ours):
                wake_coordinators(broker.port)
            yield theirs, ours
            assert ours.complaints() == []
        finally:
            ours.stop()
