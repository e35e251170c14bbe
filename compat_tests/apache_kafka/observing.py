"""Observers of the metadata log for tests: ours of Apache Kafka's controllers, and the other way round.

Knows nothing of the expected content of the logs.
"""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any

from click.testing import CliRunner

from barnabas.cli import commands
from barnabas.clock import SystemClock
from barnabas.cluster.image.loader import MetadataLoader
from barnabas.cluster.quorum.controllers import Address, Controllers
from barnabas.cluster.quorum.fetching import Identity
from barnabas.cluster.quorum.metadata_log import MetadataLog, topic_config
from barnabas.cluster.quorum.observer import Observer
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
from compat_tests.ports import free_port
from compat_tests.running import BarnabasProcess

from .apache import ApacheController

BROKER_RESOURCE, SET = 4, 0
NOT_CONTROLLER = 41
CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
LOG = "__cluster_metadata-0"
WITHIN = 20.0


class Node:
    """A node with an observer, in this process, with real files and sockets."""

    node_id = 7

    def __init__(self, home: Path, *controllers: ApacheController, bootstrap: bool = False) -> None:
        self.cluster_clock, self.files, self.fatal = SystemClock(), DiskFiles(), list[str]()
        self.config = BrokerConfig.from_properties({"node.id": "7"})
        self.cluster_scheduler = asyncio.get_running_loop()
        directory = home / LOG
        directory.mkdir(parents=True, exist_ok=True)
        self.log = open_log(
            LogServices(LogDirectory(self.files, str(home))), str(directory), "__cluster_metadata", 0, topic_config(),
            clean=False, recovery_point=0, now_ms=self.cluster_clock.time_ms(),
        )  # fmt: skip
        where = {number: Address("127.0.0.1", each.port) for number, each in enumerate(controllers, start=1)}
        book = Controllers(
            "CONTROLLER",
            "PLAINTEXT",
            voters={} if bootstrap else where,
            bootstrap=list(where.values()) if bootstrap else [],
        )
        self.peers = NetworkPeers(self, lambda node_id: self.observer.endpoint_of(node_id))
        formatted = read_meta_properties(self.files, str(controllers[0].home / "data"))
        assert formatted is not None
        self.observer = Observer(
            MetadataLog(self.log, str(directory), self.files, clock=self.cluster_clock, background=Inline()),
            Identity(self.node_id, formatted.cluster_id, bytes([7]) * 16),
            book,
            self.peers,
            files=self.files,
            clock=self.cluster_clock,
            scheduler=self.cluster_scheduler,
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
        """Sets a config of all brokers."""
        change = AlterConfigs.AlterConfigsResource.AlterableConfig(name=name, config_operation=SET, value=value)
        resource = AlterConfigs.AlterConfigsResource(resource_type=BROKER_RESOURCE, resource_name="", configs=[change])
        code = NOT_CONTROLLER
        while code == NOT_CONTROLLER:  # a controller that was just elected is not yet active
            answered: asyncio.Future[tuple[Any, Any]] = self.cluster_scheduler.create_future()
            request = AlterConfigs(resources=[resource], validate_only=False)
            leader_id = self.observer.leadership.leader_id
            self.peers.send(leader_id, request, lambda *answer, to=answered: to.set_result(answer))
            response, error = await answered
            assert error is None
            (code,) = [each.error_code for each in response.responses]
        assert code == 0

    async def has(self, name: str, value: str) -> None:
        """Returns when the node has the config."""
        await until(lambda: dict(self.loader.image.configs_of(BROKER_RESOURCE, "")).get(name) == value)


async def until(holds: Callable[..., bool]) -> None:
    async with asyncio.timeout(WITHIN):
        while not holds():
            await asyncio.sleep(0.02)


def play(scene: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scene)


def content(directory: Path, since: int = 0) -> bytes:
    """Returns the batches of a log from an offset on."""
    whole = b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
    return b"".join(bytes(each.buffer) for each in batches(whole) if each.base_offset >= since)


async def same(node: Node, home: Path, controller: ApacheController) -> None:
    """Returns when both logs are equal."""
    theirs = controller.home / "data" / LOG
    start = node.log.log_start_offset
    await until(lambda: content(home / LOG) == content(theirs, start) != b"")


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
