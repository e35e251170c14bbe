"""Clusters with nodes of Barnabas and of Apache Kafka, each a process with the same configs.

Knows nothing of the tests.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from compat_tests.ports import free_port
from compat_tests.running import environment

from .apache import CURRENT, FLAGS, await_answers, errors_of, java_command, quick, run_java

APACHE, BARNABAS = "apache", "barnabas"
CONTROLLER_ID = 100
CLUSTER_ID = "5L6g3nShT-eMCtK--X86sw"
SMALL_HEAP = ("-Xms96m", "-Xmx256m")

COPIES = 3

COMMON = {
    "controller.listener.names": "CONTROLLER",
    "default.replication.factor": str(COPIES),
    "offsets.topic.replication.factor": str(COPIES),
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.replication.factor": str(COPIES),
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.min.isr": "2",
    "share.coordinator.state.topic.replication.factor": str(COPIES),
    "share.coordinator.state.topic.num.partitions": "3",
    "min.insync.replicas": "2",
    "broker.heartbeat.interval.ms": "300",
    "broker.session.timeout.ms": "3000",
    "replica.lag.time.max.ms": "5000",
    "group.initial.rebalance.delay.ms": "0",
    "replication.quota.window.num": "2",  # a window of one second instead of ten limits what may be copied at once
}


class Node:
    """One node, of either kind, with its own folder."""

    def __init__(
        self, kind: str, home: Path, properties: Mapping[str, str], port: int, jvm: tuple[str, ...] | None = None
    ) -> None:
        self.kind, self.home, self.port, self.jvm = kind, home, port, jvm
        self.host = "127.0.0.1"
        self.prefix: tuple[str, ...] = ()  #: a prefix of its process's command
        self.data = home / "data"
        self.output = home / "output"
        self.properties = {**COMMON, **properties, "log.dirs": str(self.data)}
        self.format_options: tuple[str, ...] = ()  #: besides the cluster id and the properties
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    def start(self) -> None:
        """Formats the directory if it is new, and returns once the node answers. Has no effect on a running node."""
        if self.process is not None:
            return
        self.home.mkdir(parents=True, exist_ok=True)
        settings = self.home / "server.properties"
        settings.write_text("".join(f"{name}={value}\n" for name, value in self.properties.items()))
        if not (self.data / "meta.properties").exists():
            self._format(settings)
        if self.kind == APACHE:
            jvm = (*SMALL_HEAP, *quick(CURRENT)) if self.jvm is None else self.jvm
            command = java_command(CURRENT, "kafka.Kafka", [str(settings)], options=jvm, log_level="info")
        else:
            command = [*python(), "serve", "--config", str(settings)]
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                [*self.prefix, *command], stdout=output, stderr=output, env=environment(), start_new_session=True
            )
        try:
            listeners = self.properties["listeners"]
            await_answers(self.port, self.process, self.output, host=self.host, listeners=listeners)
        except BaseException:
            self.kill()
            raise

    def _format(self, settings: Path) -> None:
        words = ["format", "-t", CLUSTER_ID, "-c", str(settings), *self.format_options]
        if self.kind == APACHE:
            ran = run_java(CURRENT, "kafka.tools.StorageTool", *words, options=FLAGS)
        else:
            command = [*python(), "storage", *words]
            ran = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr

    def stop(self) -> None:
        """Sends SIGTERM: the node moves its leaderships before it stops."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def _end(self, number: signal.Signals) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.send_signal(number)
            try:
                code = process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise RuntimeError(f"{self.home.name} did not end within 60 s:\n{self.said()[-3000:]}") from None
            if number == signal.SIGTERM and code not in (0, 143):
                raise RuntimeError(f"{self.home.name} ended with {code}:\n{self.said()[-3000:]}")

    def said(self) -> str:
        return self.output.read_text(errors="replace")

    def errors(self) -> list[str]:
        """Returns the errors in its log."""
        if self.kind == APACHE:
            return errors_of(self.said())
        return [line for line in self.said().splitlines() if " ERROR " in line or line.startswith("Traceback")]


def python() -> list[str]:
    return [os.environ.get("BARNABAS_COMPAT_PYTHON") or sys.executable, "-m", "barnabas"]


class Mixed:
    """A controller and some brokers; a context manager. ``kinds`` are those of brokers 1, 2, 3 ...

    ``jvm`` replaces the options of Apache Kafka's JVMs for a fast start.
    """

    def __init__(self, home: Path, controller: str, kinds: list[str], *, jvm: tuple[str, ...] | None = None) -> None:
        port = free_port()
        voters = f"{CONTROLLER_ID}@127.0.0.1:{port}"
        self.controller = Node(
            controller,
            home / "controller",
            {
                "process.roles": "controller",
                "node.id": str(CONTROLLER_ID),
                "listeners": f"CONTROLLER://127.0.0.1:{port}",
                "controller.quorum.voters": voters,
            },
            port,
            jvm,
        )
        self.brokers: dict[int, Node] = {}
        for node_id, kind in enumerate(kinds, 1):
            port = free_port()
            self.brokers[node_id] = Node(
                kind,
                home / f"broker-{node_id}-{kind}",
                {
                    "process.roles": "broker",
                    "node.id": str(node_id),
                    "listeners": f"PLAINTEXT://127.0.0.1:{port}",
                    "controller.quorum.voters": voters,
                },
                port,
                jvm,
            )

    @property
    def bootstrap(self) -> str:
        return ",".join(node.address for node in self.brokers.values())

    def __enter__(self) -> "Mixed":
        try:
            self.controller.start()
            for node in self.brokers.values():
                node.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for node in (*self.brokers.values(), self.controller):
            node.kill()


class Combined:
    """Nodes that are brokers and controllers, all of them voters; a context manager."""

    def __init__(
        self,
        home: Path,
        kinds: list[str],
        properties: Mapping[str, str] | None = None,
        *,
        jvm: tuple[str, ...] | None = None,
    ) -> None:
        ports = {node_id: (free_port(), free_port()) for node_id in range(1, len(kinds) + 1)}
        voters = ",".join(f"{node_id}@127.0.0.1:{port}" for node_id, (_, port) in ports.items())
        self.brokers = {
            node_id: Node(
                kind,
                home / f"node-{node_id}-{kind}",
                {
                    "process.roles": "broker,controller",
                    "node.id": str(node_id),
                    "listeners": ",".join(
                        f"{name}://127.0.0.1:{port}"
                        for name, port in zip(("PLAINTEXT", "CONTROLLER"), ports[node_id], strict=True)
                    ),
                    "controller.quorum.voters": voters,
                    **(properties or {}),
                },
                ports[node_id][0],
                jvm,
            )
            for node_id, kind in enumerate(kinds, 1)
        }

    @property
    def bootstrap(self) -> str:
        return ",".join(node.address for node in self.brokers.values())

    def __enter__(self) -> "Combined":
        try:
            with ThreadPoolExecutor() as starting:
                list(starting.map(Node.start, self.brokers.values()))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.brokers.values():
            node.kill()
