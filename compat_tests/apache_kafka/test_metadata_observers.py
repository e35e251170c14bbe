"""Observers of the metadata log: ours of Apache Kafka's controller, and Apache Kafka's broker of our controller.

What is copied is equal, byte for byte; the node that copies it stops, starts, and goes on.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner

from barnabas.cli import commands
from barnabas.clock import SystemClock
from barnabas.cluster.image.loader import MetadataLoader
from barnabas.cluster.quorum.client import Leadership
from barnabas.cluster.quorum.controllers import Address, Controllers
from barnabas.cluster.quorum.fetching import Identity
from barnabas.cluster.quorum.metadata_log import MetadataLog, topic_config
from barnabas.cluster.quorum.observer import Observer
from barnabas.cluster.quorum.quorum_state import FILE_NAME
from barnabas.config import BrokerConfig
from barnabas.log.background import Inline
from barnabas.log.files import DiskFiles
from barnabas.log.log_directory import LogDirectory
from barnabas.log.meta_properties import read as read_meta_properties
from barnabas.log.partition_log import LogServices
from barnabas.log.recovery import open_log
from barnabas.peers.network import NetworkPeers
from barnabas.records.batch import batches
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest as AlterConfigs
from compat_tests.running import BarnabasProcess

from .apache import CURRENT, ApacheBroker, ApacheController, free_port, run_java

BROKER_RESOURCE, SET = 4, 0
CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
LOG = "__cluster_metadata-0"
WITHIN = 20.0


class Node:
    """A node with an observer, in this process, on the disk and the network."""

    node_id = 7

    def __init__(self, home: Path, controller: ApacheController, *, bootstrap: bool = False) -> None:
        self.clock, self.files, self.fatal = SystemClock(), DiskFiles(), list[str]()
        self.config = BrokerConfig.from_properties({"node.id": "7"})
        self.scheduler = asyncio.get_running_loop()
        directory = home / LOG
        directory.mkdir(parents=True, exist_ok=True)
        self.log = open_log(
            LogServices(LogDirectory(self.files, str(home))), str(directory), "__cluster_metadata", 0, topic_config(),
            clean=False, recovery_point=0, now_ms=self.clock.time_ms(),
        )  # fmt: skip
        where = Address("127.0.0.1", controller.port)
        controllers = Controllers(
            "CONTROLLER", "PLAINTEXT", voters={} if bootstrap else {1: where}, bootstrap=[where] if bootstrap else []
        )
        self.peers = NetworkPeers(self, lambda node_id: self.observer.endpoint_of(node_id))
        formatted = read_meta_properties(self.files, str(controller.home / "data"))
        assert formatted is not None
        self.observer = Observer(
            MetadataLog(self.log, str(directory), self.files, clock=self.clock, background=Inline()),
            Identity(self.node_id, formatted.cluster_id, bytes([7]) * 16),
            controllers,
            self.peers,
            files=self.files,
            clock=self.clock,
            scheduler=self.scheduler,
            random=Random(1),
            on_fatal=self.fatal.append,
        )
        self.loader = MetadataLoader()
        self.observer.listeners.append(self.loader)
        self.observer.load()
        self.observer.start()

    def stop(self) -> None:
        self.observer.stop()
        self.peers.close()
        self.log.close()
        assert self.fatal == []

    async def alter(self, name: str, value: str) -> None:
        """Has the controller set a config of all brokers."""
        change = AlterConfigs.AlterConfigsResource.AlterableConfig(name=name, config_operation=SET, value=value)
        resource = AlterConfigs.AlterConfigsResource(resource_type=BROKER_RESOURCE, resource_name="", configs=[change])
        answered: asyncio.Future[tuple[Any, Any]] = self.scheduler.create_future()
        self.peers.send(
            1,
            AlterConfigs(resources=[resource], validate_only=False),
            lambda response, error: answered.set_result((response, error)),
        )
        response, error = await answered
        assert error is None
        assert [each.error_code for each in response.responses] == [0]

    async def has(self, name: str, value: str) -> None:
        """Returns when the config has come."""
        await until(lambda: dict(self.loader.image.configs_of(BROKER_RESOURCE, "")).get(name) == value)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(WITHIN):
        while not holds():
            await asyncio.sleep(0.02)


def play(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scene)


def content(directory: Path, since: int = 0) -> bytes:
    """The batches of a log from an offset on."""
    whole = b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
    return b"".join(bytes(each.buffer) for each in batches(whole) if each.base_offset >= since)


async def same(node: Node, home: Path, controller: ApacheController) -> None:
    """Returns when both logs hold the same."""
    theirs = controller.home / "data" / LOG
    start = node.log.log_start_offset
    await until(lambda: content(home / LOG) == content(theirs, start) != b"")


@pytest.fixture(params=[False, True], ids=["static", "dynamic"])
def controller(request: pytest.FixtureRequest, kafka_jars: Path, tmp_path: Path) -> Iterator[ApacheController]:
    properties = {"metadata.log.max.record.bytes.between.snapshots": "1500"}
    with ApacheController(tmp_path / "controller", properties, standalone=request.param) as running:
        yield running


def test_our_observer_follows_apaches_controller(controller: ApacheController, tmp_path: Path) -> None:
    home = tmp_path / "first"

    async def scene() -> None:
        node = Node(home, controller, bootstrap=controller.standalone)
        caught_up = asyncio.Event()
        node.observer.when_caught_up(caught_up.set)
        async with asyncio.timeout(WITHIN):
            await caught_up.wait()
        for number in range(5):
            await node.alter("log.retention.ms", str(number))
            await node.has("log.retention.ms", str(number))
        await same(node, home, controller)
        epoch = node.observer.leadership.epoch
        assert node.observer.leadership == Leadership(1, epoch)
        assert node.observer.kraft.version == int(controller.standalone)
        node.stop()

        # A restart on what it has, while more is written.
        node = Node(home, controller, bootstrap=controller.standalone)
        await node.alter("log.retention.ms", "100")
        await node.has("log.retention.ms", "100")
        await same(node, home, controller)

        # A new leader, in another epoch.
        controller.stop(kill=True)
        controller.start()
        await until(lambda: node.observer.leadership.epoch > epoch and node.observer.leadership.leader_id == 1)
        await node.alter("log.retention.ms", "200")
        await node.has("log.retention.ms", "200")
        await same(node, home, controller)

        # Another observer begins with a snapshot.
        theirs = controller.home / "data" / LOG
        for number in range(100):
            if any(not path.name.startswith("00000000000000000000-") for path in theirs.glob("*.checkpoint")):
                break
            await node.alter("log.retention.ms", str(1000 + number))
            await asyncio.sleep(0.02)
        second_home = tmp_path / "second"
        second = Node(second_home, controller, bootstrap=controller.standalone)
        await node.alter("log.retention.ms", "300")
        await second.has("log.retention.ms", "300")
        await node.has("log.retention.ms", "300")
        assert second.log.log_start_offset > 0
        await same(second, second_home, controller)
        assert second.loader.image == node.loader.image
        (snapshot,) = (second_home / LOG).glob("*.checkpoint")
        assert snapshot.read_bytes() == (theirs / snapshot.name).read_bytes()
        for each in (node, second):
            each.stop()

    play(scene())


# ---------------------------------------------------------------- Apache Kafka's observer


class Controller(BarnabasProcess):
    """Our controller, and the whole quorum, in a process of its own."""

    def __init__(self, home: Path, *, standalone: bool) -> None:
        address = f"127.0.0.1:{free_port()}"
        self.quorum = ("bootstrap.servers", address) if standalone else ("voters", f"1@{address}")
        self.quorum = (f"controller.quorum.{self.quorum[0]}", self.quorum[1])
        properties = {
            "process.roles": "controller",
            "node.id": "1",
            "listeners": f"CONTROLLER://{address}",
            "controller.listener.names": "CONTROLLER",
            "metadata.log.max.record.bytes.between.snapshots": "1500",
            "metadata.max.retention.bytes": "3000",
            "log.dirs": str(home / "data"),
            **dict([self.quorum]),
        }
        super().__init__(home, properties)
        home.mkdir()
        config = home / "server.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        words = ["storage", "format", "-c", str(config), "-t", CLUSTER_ID, *["-s"][:standalone]]
        assert CliRunner().invoke(commands.barnabas, words).exit_code == 0


def alter(broker: ApacheBroker, value: int) -> None:
    """Sets a config of all brokers by way of one, which forwards it."""
    words = ["configs", "--bootstrap-server", broker.bootstrap, "--alter", "--entity-type", "brokers"]
    ran = CliRunner().invoke(
        commands.barnabas, [*words, "--entity-default", "--add-config", f"log.retention.ms={value}"]
    )
    assert ran.exit_code == 0, ran.output


async def equal(broker: ApacheBroker, controller: Controller) -> None:
    """Returns when both logs hold the same from where the broker's begins."""
    ours, theirs = (each.home / "data" / LOG for each in (controller, broker))

    def start() -> int:
        return max([int(each.name[:20]) for each in theirs.glob("*.checkpoint")], default=0)

    await until(lambda: content(ours, start()) == content(theirs, start()) != b"")


@pytest.mark.parametrize("standalone", [False, True], ids=["static", "dynamic"])
def test_apaches_broker_follows_our_controller(kafka_jars: Path, tmp_path: Path, standalone: bool) -> None:
    controller = Controller(tmp_path / "controller", standalone=standalone)
    first = ApacheBroker(tmp_path / "first", 2, CLUSTER_ID, controller.quorum)
    second = ApacheBroker(tmp_path / "second", 3, CLUSTER_ID, controller.quorum)

    async def scene() -> None:
        controller.start()
        first.start()
        alter(first, 1)
        await equal(first, controller)
        states = [(each.home / "data" / LOG / FILE_NAME).read_text() for each in (controller, first)]
        assert (
            states[0] == states[1] or standalone
        )  # before it has the log, it does not know that this names the voters

        # A restart of the one that copies, and then of the one that leads.
        first.stop()
        first.start()
        alter(first, 2)
        await equal(first, controller)
        controller.kill()
        controller.start()
        for value in range(30, 60):
            alter(first, value)
        await equal(first, controller)

        # One that begins with a snapshot.
        second.start()
        assert list((second.home / "data" / LOG).glob("*.checkpoint"))
        alter(second, 4)
        await equal(second, controller)
        await equal(first, controller)
        words = ("--bootstrap-server", second.bootstrap, "describe", "--replication")
        told = run_java(CURRENT, "org.apache.kafka.tools.MetadataQuorumCommand", *words)
        rows = [line.split() for line in told.stdout.splitlines()[1:]]
        assert {(row[0], row[3], row[-1]) for row in rows} == {
            ("1", "0", "Leader"),
            ("2", "0", "Observer"),
            ("3", "0", "Observer"),
        }

    try:
        play(scene())
        assert controller.complaints() == []
        said = [line for each in (first, second) for line in each.log.read_text().splitlines()]
        complaints = [line for line in said if "] WARN " in line or "] ERROR " in line]
        assert [line for line in complaints if "could not be established" not in line] == []  # while it was down
    finally:
        for each in (first, second):
            each.stop(kill=True)
        controller.kill()
