"""A broker and a controller, each Barnabas or Apache Kafka, in their own processes and directories.

Knows nothing of the tests.
"""

import asyncio
import base64
import contextlib
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType

from barnabas.config import BrokerConfig
from barnabas.log.files import DiskFiles
from barnabas.log.meta_properties import MetaProperties, write
from barnabas.server.server import Server
from compat_tests.ports import free_port

from .apache import ApacheController, ApacheKafka

CLUSTER_ID = base64.urlsafe_b64encode(b"a whole cluster.").decode().rstrip("=")
CONTROLLER_ID, BROKER_ID = 1, 2
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
START_S = 40.0


def broker_properties(controller_port: int, port: int, data: Path) -> dict[str, str]:
    """Returns the configs of a node that is only a broker, of either kind."""
    return {
        "process.roles": "broker",
        "node.id": str(BROKER_ID),
        "controller.quorum.voters": f"{CONTROLLER_ID}@127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": str(data),
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }


def with_users(port: int, secured: int) -> dict[str, str]:
    """Returns the configs of a listener where alice and bob log in; their passwords are their names."""
    listeners = f"PLAINTEXT://127.0.0.1:{port},USERS://127.0.0.1:{secured}"
    return {
        "listeners": listeners,
        "advertised.listeners": listeners,
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,USERS:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.users.plain.sasl.jaas.config": f'{PLAIN} required user_alice="alice" user_bob="bob";',
    }


class Ours:
    """A node of Barnabas in a thread of this process; a context manager."""

    def __init__(self, home: Path, properties: Mapping[str, str], node_id: int) -> None:
        self.data = home / "data"
        self.data.mkdir(parents=True)
        write(DiskFiles(), str(self.data), MetaProperties(CLUSTER_ID, node_id, bytes([node_id]) * 16))
        self.server = Server(BrokerConfig.from_properties({**properties, "log.dirs": str(self.data)}))
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> "Ours":
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.server.start(), self._loop).result(START_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self.server.stop(), self._loop).result(START_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class ApacheBroker(ApacheKafka):
    """A process of Apache Kafka that is only a broker."""

    def __init__(self, home: Path, controller_port: int, properties: Mapping[str, str], port: int) -> None:
        super().__init__(home)
        self.port = port
        self.properties = {**broker_properties(controller_port, self.port, (home / "data").resolve()), **properties}
        self.cluster_id = CLUSTER_ID


@contextlib.contextmanager
def controller(kind: str, home: Path, properties: Mapping[str, str]) -> Iterator[int]:
    """Starts a node that is only a controller; yields its port."""
    if kind == "apache":
        apache = ApacheController(home, properties)
        apache.cluster_id = CLUSTER_ID
        with apache:
            yield apache.port
        return
    port = free_port()
    own = {
        "process.roles": "controller",
        "node.id": str(CONTROLLER_ID),
        "controller.quorum.voters": f"{CONTROLLER_ID}@127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CONTROLLER://127.0.0.1:{port}",
    }
    with Ours(home, {**own, **properties}, CONTROLLER_ID):
        yield port


@contextlib.contextmanager
def broker(kind: str, home: Path, controller_port: int, properties: Mapping[str, str]) -> Iterator[tuple[int, int]]:
    """Starts a node that is only a broker; yields the ports of its listeners: one without authentication, one with
    SASL.
    """
    port, secured = free_port(), free_port()
    properties = {**with_users(port, secured), **properties}
    if kind == "apache":
        with ApacheBroker(home, controller_port, properties, port):
            yield port, secured
        return
    with Ours(home, {**broker_properties(controller_port, port, home / "data"), **properties}, BROKER_ID):
        yield port, secured
