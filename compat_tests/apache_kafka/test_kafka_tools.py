"""Our kafka-topics, kafka-configs and so on beside Apache Kafka's: the same calls, line by line.

Holds no expected output. Scenarios are files of calls; beside each is the recorded output of Apache Kafka's tools.
"""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from barnabas.cli.kafka_tools import table
from compat_tests.running import BarnabasProcess

from .apache import ApacheKafka
from .test_console_tools import Tools
from .tools_beside import CLASSES, Ours, Outcome, Theirs, calls_of, settled

SCENARIOS = sorted((Path(__file__).parent / "tool_calls").glob("*.txt"))
EACH = pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda path: path.stem)
PROPERTIES = {
    "node.id": "1",
    "num.partitions": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "log.cleaner.enable": "false",
    "broker.session.timeout.ms": "9000",
}


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[Ours]:
    """Barnabas with its tools."""
    broker = BarnabasProcess(tmp_path / "ours", PROPERTIES | {"barnabas.compatible.with": "4.3"}).start()
    try:
        yield Ours(broker, tmp_path)
    finally:
        broker.stop()
    assert not broker.complaints()


@pytest.fixture
def theirs(kafka_jars: Path, tmp_path: Path) -> Iterator[Theirs]:
    """Apache Kafka with its tools."""
    with ApacheKafka(tmp_path / "theirs", PROPERTIES) as broker:
        tools = Tools(broker.bootstrap)
        yield Theirs(broker, tools, tmp_path)
        assert tools.process.stdin is not None
        tools.process.stdin.close()
        tools.process.wait(10)


def compare(scenario: Path, expected: Sequence[Outcome], ours: Ours) -> None:
    """Checks that each call of a scenario has the expected result."""
    differences = []
    for call, wanted in zip(calls_of(scenario.read_text()), expected, strict=True):
        found = ours.run(call)
        if found != wanted:
            differences.append(f"{' '.join(call.words)}\n  theirs: {wanted}\n  ours:   {found}")
    assert not differences, "\n".join(differences)


@EACH
def test_calls_as_recorded(scenario: Path, ours: Ours) -> None:
    """Our tools print what Apache Kafka's have printed."""
    recorded = json.loads(scenario.with_suffix(".json").read_text())
    compare(scenario, [Outcome(**each) for each in recorded], ours)


@pytest.mark.long
@pytest.mark.timeout(300)  # Apache Kafka's console consumer may take as long as a session to leave its group
@EACH
def test_calls(scenario: Path, theirs: Theirs, ours: Ours) -> None:
    """Runs both. With BARNABAS_RECORD the output of Apache Kafka's tools becomes the expected one."""
    record = scenario.with_suffix(".json")
    calls = list(calls_of(scenario.read_text()))
    if os.environ.get("BARNABAS_RECORD"):
        recorded = [theirs.run(call) for call in calls]
        record.write_text(json.dumps([each._asdict() for each in recorded], indent=1) + "\n")
        expected = recorded
    else:
        recorded = [Outcome(**each) for each in json.loads(record.read_text())]
        expected = [
            settled(theirs, call, theirs.run(call), wanted) for call, wanted in zip(calls, recorded, strict=True)
        ]
    compare(scenario, recorded, ours)
    assert expected == recorded


def test_every_tool_that_is_compared_is_one_of_ours() -> None:
    """The tools without a scenario: all tests start and stop nodes, and modules of their own compare the others:
    :mod:`test_dump_beside` and :mod:`test_metadata_shell`.
    """
    assert set(table.MODULES) - {"server-start", "server-stop", "dump-log", "metadata-shell"} == set(CLASSES)
