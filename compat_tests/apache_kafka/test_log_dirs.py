"""Two log directories, beside Apache Kafka: placement of partitions, their metadata, and moves.

Apache Kafka's own tools describe the directories and move partitions, with the same calls at both brokers.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

from compat_tests import test_moving as moving
from compat_tests.running import BarnabasProcess
from compat_tests.test_kill import create, everything
from compat_tests.test_moving import arrive, move, places

from .apache import CURRENT, ApacheKafka, run_java
from .hand_over import apache_on, barnabas_on, play, running
from .steps import ask
from .test_console_tools import TOOLS, Tools

LOG_DIRS = f"{TOOLS}.LogDirsCommand"
REASSIGN = f"{TOOLS}.reassign.ReassignPartitionsCommand"
TOPIC, PARTITIONS = "orders", 5
RECORDS = 2000
THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"
DUMP = "org.apache.kafka.tools.DumpLogSegments"
CHOSEN_BY_THE_BROKER = "AAAAAAAAAAAAAAAAAAAAAQ"


class Node:
    """One of the two brokers, with its directories ``a`` and ``b``, and the tools with its address."""

    def __init__(self, broker: Any, directories: list[Path], tools: Tools) -> None:
        self.broker = broker
        self.directories = directories
        self.tools = tools

    def places(self) -> dict[int, list[tuple[str, bool]]]:
        """Returns each partition's directories by the tool, and which are future replicas; checks sizes and lags."""
        text = self.tools(LOG_DIRS, "--describe", "--topic-list", TOPIC, "--broker-list", "1")
        started = json.loads(next(line for line in text.splitlines() if line.startswith("{")))
        found: dict[int, list[tuple[str, bool]]] = {}
        for directory in started["brokers"][0]["logDirs"]:
            assert directory["error"] is None
            for each in directory["partitions"]:
                assert each["size"] >= 0
                assert each["offsetLag"] >= 0
                place = Path(directory["logDir"]).name, each["isFuture"]
                found.setdefault(int(each["partition"].rpartition("-")[2]), []).append(place)
        return {index: sorted(found[index]) for index in sorted(found)}

    def await_places(self, expected: dict[int, list[tuple[str, bool]]]) -> None:
        deadline = time.monotonic() + 60
        while self.places() != expected:
            assert time.monotonic() < deadline, self.places()
            time.sleep(0.05)

    def reassign(self, plan: Path, target: str, indexes: list[int], *more: str) -> str:
        path = str(next(each for each in self.directories if each.name == target))
        wishes = [{"topic": TOPIC, "partition": index, "replicas": [1], "log_dirs": [path]} for index in indexes]
        plan.write_text(json.dumps({"version": 1, "partitions": wishes}))
        return self.tools(REASSIGN, "--reassignment-json-file", str(plan), *more)

    def in_metadata(self) -> list[tuple[str, int, list[str]]]:
        """Returns kind, partition and directories, by name, of the metadata records that name directories."""
        log = self.directories[0] / "__cluster_metadata-0" / f"{0:020d}.log"
        dumped = run_java(CURRENT, DUMP, "--cluster-metadata-decoder", "--files", str(log))
        assert dumped.returncode == 0, dumped.stderr
        names = {CHOSEN_BY_THE_BROKER: "?"}
        for directory in self.directories:
            properties = (directory / "meta.properties").read_text().splitlines()
            names[dict(line.split("=", 1) for line in properties if "=" in line)["directory.id"]] = directory.name
        found = []
        for line in dumped.stdout.splitlines():
            record = json.loads(line.partition("payload: ")[2] or "{}")
            data = record.get("data", {})
            if "partitionId" in data and data.get("directories"):
                found.append((record["type"], data["partitionId"], [names[each] for each in data["directories"]]))
        return found


@contextmanager
def started(kind: str, home: Path) -> Iterator[Node]:
    directories = [home / "a", home / "b"]
    settings = {"log.dirs": ",".join(map(str, directories)), "node.id": "1", "auto.create.topics.enable": "false"}
    with ExitStack() as stack:
        broker: Any
        if kind == "apache":
            broker = stack.enter_context(ApacheKafka(home / "home", settings))
        else:
            broker = BarnabasProcess(home / "home", settings).start()
            stack.callback(broker.kill)
        tools = Tools(broker.bootstrap)
        stack.callback(tools.process.kill)
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(30)
        yield Node(broker, directories, tools)


def kinds() -> list[str]:
    """``BARNABAS_COMPAT_BESIDE=apache`` runs Apache Kafka as well."""
    return ["barnabas", "apache"] if os.environ.get("BARNABAS_COMPAT_BESIDE") == "apache" else ["barnabas"]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("kind", kinds())
def test_partitions_move_by_apache_kafkas_tools(kafka_jars: Path, tmp_path: Path, kind: str) -> None:
    with started(kind, tmp_path) as one:
        before = one.places()
        assert sorted(place for ((place, _),) in before.values()) == ["a", "a", "a", "b", "b"]
        producer = Producer({"bootstrap.servers": one.broker.bootstrap})
        for number in range(RECORDS):
            producer.produce(TOPIC, b"%d" % number * 20, partition=number % PARTITIONS)
        assert producer.flush(30) == 0
        moving = [index for index, ((place, _),) in before.items() if place == "a"]
        plan = tmp_path / "plan.json"
        said = one.reassign(plan, "b", moving, "--execute", "--replica-alter-log-dirs-throttle", "1000")
        assert said.count("Successfully started moving log directory to") == len(moving), said
        both = {index: [("a", False), ("b", True)] if index in moving else [("b", False)] for index in before}
        assert one.places() == both
        assert "is still in progress" in one.reassign(plan, "b", moving, "--verify", "--preserve-throttles")
        one.reassign(plan, "b", moving, "--execute", "--additional", "--replica-alter-log-dirs-throttle", "10000000")
        one.await_places({index: [("b", False)] for index in before})
        assert "completed successfully" in one.reassign(plan, "b", moving, "--verify")
        assert one.tools.offsets(TOPIC, "--time", "latest") == [
            f"{TOPIC}:{index}:{RECORDS // PARTITIONS}" for index in range(PARTITIONS)
        ]
        one.reassign(plan, "a", [0], "--execute")
        one.await_places({index: [("a" if index == 0 else "b", False)] for index in before})
        one.broker.stop()
        records = one.in_metadata()
    assert records[:PARTITIONS] == [("PARTITION_RECORD", index, ["?"]) for index in range(PARTITIONS)]
    assert sorted(records[PARTITIONS : 2 * PARTITIONS]) == [
        ("PARTITION_CHANGE_RECORD", index, [place]) for index, ((place, _),) in before.items()
    ]
    arrived = [(index, place) for _, index, (place,) in records[2 * PARTITIONS :]]
    assert set(arrived) == {(index, "b") for index in moving} | {(0, "a")}  # Apache Kafka writes some records twice
    assert arrived[-1] == (0, "a")


def interrupted(broker: Any, target: Path) -> None:
    """Starts throttled moves of all partitions that do not end; returns once the future replicas exist."""
    move(broker, str(target))
    deadline = time.monotonic() + 60
    while len(list(target.glob(f"{moving.TOPIC}-*-future"))) < moving.PARTITIONS:
        assert time.monotonic() < deadline, places(broker)
        time.sleep(0.05)


def throttle(bootstrap: str, value: str | None) -> None:
    operation = AlterConfigOpType.SET if value else AlterConfigOpType.DELETE
    entry = ConfigEntry(THROTTLE, value, incremental_operation=operation)
    resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(30)


def written(bootstrap: str, count: int) -> dict[int, list[tuple[int, str, int]]]:
    """Writes numbers to each partition; returns the expected contents."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(count):
        for partition in range(moving.PARTITIONS):
            producer.produce(moving.TOPIC, b"%d" % number, key=bytes(400), partition=partition)
    assert producer.flush(60) == 0
    return everything(bootstrap)


def epochs(bootstrap: str) -> list[tuple[int, int]]:
    """Returns epoch and end offset of each epoch of partition 0, up to the last one."""
    entries = [{"Partition": 0, "LeaderEpoch": epoch, "CurrentLeaderEpoch": -1} for epoch in range(-1, 30)]
    topics = [{"Topic": moving.TOPIC, "Partitions": entries}]
    (answer,) = play(bootstrap, ask("OffsetForLeaderEpoch", v=4, ReplicaId=-1, Topics=topics))
    started = [(each["LeaderEpoch"], each["EndOffset"]) for each in answer["Topics"][0]["Partitions"]]
    assert started[0] == (-1, -1)
    known = [each for each in started if each != (-1, -1)]
    assert started[1:] == known + [(-1, -1)] * (30 - len(known))
    return known


@pytest.mark.timeout(300)
def test_each_continues_a_move_that_the_other_began(kafka_jars: Path, tmp_path: Path) -> None:
    """A broker is killed while partitions move; the other one starts on its directories, and completes the moves."""
    one, two = tmp_path / "data", tmp_path / "data2"
    directories = {"log.dirs": f"{one},{two}"}
    ours = barnabas_on(tmp_path, directories)
    theirs = apache_on(tmp_path, directories)
    with running(ours) as bootstrap:
        create(ours)
        before = written(bootstrap, 500)
        move(ours, str(one))
        arrive(ours, str(one))
        throttle(bootstrap, "1000")
        interrupted(ours, two)
        started = epochs(bootstrap)
        ours.kill()
    assert not [index for index in range(moving.PARTITIONS) if (two / f"{moving.TOPIC}-{index}").exists()]
    with running(theirs, kill=True) as bootstrap:
        throttle(bootstrap, None)
        arrive(theirs, str(two))
        assert everything(bootstrap) == before
        assert epochs(bootstrap)[: len(started)] == started
        before = written(bootstrap, 10)
        started = epochs(bootstrap)
        throttle(bootstrap, "1000")
        interrupted(theirs, one)
    with running(ours) as bootstrap:
        throttle(bootstrap, None)
        arrive(ours, str(one))
        assert everything(bootstrap) == before
        assert epochs(bootstrap)[: len(started)] == started
