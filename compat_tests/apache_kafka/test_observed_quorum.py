"""Nodes of Barnabas under a quorum of three controllers of Apache Kafka, whose leaders are killed.

The copy is equal byte for byte under each leader, and brokers serve all the time.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

from barnabas.cli import commands
from barnabas.uuids import uuid_text
from compat_tests.running import BarnabasProcess

from .apache import CURRENT, ApacheController, quick
from .observing import CLUSTER_ID, Node, play, same, until

pytestmark = pytest.mark.xdist_group("quorum")  # it starts its own brokers

HEAP = ("-Xms64m", "-Xmx256m")


def barnabas(*words: str) -> str:
    ran = CliRunner().invoke(commands.barnabas, words)
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def as_file(home: Path, properties: dict[str, str]) -> str:
    home.mkdir()
    path = home / "to-format.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return str(path)


class Quorum:
    """Three controllers. Barnabas formats the directories of a dynamic quorum."""

    def __init__(self, home: Path, *, dynamic: bool) -> None:
        self.controllers = {number: ApacheController(home / f"controller-{number}") for number in (1, 2, 3)}
        addresses = {number: f"127.0.0.1:{each.port}" for number, each in self.controllers.items()}
        named = [f"{number}@{address}:{uuid_text(bytes([number]) * 16)}" for number, address in addresses.items()]
        static = ",".join(f"{number}@{address}" for number, address in addresses.items())
        self.dynamic = dynamic
        self.property = ("controller.quorum.voters", static)
        if dynamic:
            self.property = ("controller.quorum.bootstrap.servers", ",".join(addresses.values()))
        for number, each in self.controllers.items():
            del each.properties["controller.quorum.voters"]
            each.properties |= {"node.id": str(number), **dict([self.property])}
            each.options, each.cluster_id = (*HEAP, *quick(CURRENT)), CLUSTER_ID
            if dynamic:
                config = as_file(each.home, each.properties)
                barnabas("storage", "format", "-c", config, "-t", CLUSTER_ID, "-I", ",".join(named))

    def start(self) -> None:
        with ThreadPoolExecutor() as starting:
            list(starting.map(ApacheController.start, self.controllers.values()))

    def stop(self) -> None:
        for each in self.controllers.values():
            each.stop(kill=True)


@pytest.fixture(params=[False, True], ids=["static", "dynamic"])
def quorum(request: pytest.FixtureRequest, kafka_jars: Path, tmp_path: Path) -> Iterator[Quorum]:
    made = Quorum(tmp_path, dynamic=request.param)
    try:
        made.start()
        yield made
    finally:
        made.stop()


def test_our_observer_and_our_brokers_follow_each_leader(quorum: Quorum, tmp_path: Path) -> None:
    brokers = [Broker(tmp_path / f"broker-{number}", number, quorum) for number in (4, 5)]

    async def scene() -> None:
        home = tmp_path / "ours"
        node = Node(home, *quorum.controllers.values(), bootstrap=quorum.dynamic)
        for each in brokers:
            each.start()
        for value in range(2):
            await until(lambda: node.observer.leadership.leader_id in quorum.controllers)
            leader_id, _ = before = node.observer.leadership
            await node.alter("log.retention.ms", str(value))
            await node.has("log.retention.ms", str(value))
            barnabas(*brokers[value].create(f"topic-{value}"))
            await same(node, home, quorum.controllers[leader_id])
            quorum.controllers[leader_id].stop(kill=True)
            await until(lambda known=before: node.observer.leadership != known)
            await until(lambda: node.observer.leadership.leader_id in quorum.controllers)
            assert node.observer.leadership.leader_id != leader_id
            if value == 0:
                quorum.controllers[leader_id].start()  # two of three are a majority
        assert node.observer.kraft.version == int(quorum.dynamic)
        node.stop()
        await until(lambda: brokers[0].topics() == brokers[1].topics() == ["topic-0", "topic-1"])

    try:
        play(scene())
        for each in brokers:
            each.stop()
            assert each.complaints() == []
    finally:
        for each in brokers:
            each.kill()


class Broker(BarnabasProcess):
    """A broker of Barnabas, in its own process."""

    def __init__(self, home: Path, number: int, quorum: Quorum) -> None:
        properties = {
            "process.roles": "broker",
            "node.id": str(number),
            "controller.listener.names": "CONTROLLER",
            **dict([quorum.property]),
        }
        super().__init__(home, properties)
        config = as_file(home, {**properties, "log.dirs": str(home / "data")})
        barnabas("storage", "format", "-c", config, "-t", CLUSTER_ID)

    def create(self, topic: str) -> tuple[str, ...]:
        """Returns the command that creates a topic with a replica on either broker."""
        where = ("topics", "--bootstrap-server", self.bootstrap, "--create", "--topic", topic)
        return (*where, "--partitions", "2", "--replication-factor", "2")

    def topics(self) -> list[str]:
        found = barnabas("topics", "--bootstrap-server", self.bootstrap, "--list", "--json")
        return sorted(each if isinstance(each, str) else each["topic"] for each in json.loads(found))
