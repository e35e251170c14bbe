"""The broker under test, behind a proxy that is its advertised address: Barnabas, or Apache Kafka to test the checker.

Knows nothing of faults.
"""

import signal
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

from compat_tests.apache_kafka.apache import ApacheKafka
from compat_tests.apache_kafka.mixed import APACHE, BARNABAS, Combined, Node
from compat_tests.network import CALLER, Network
from compat_tests.running import ALONE, BarnabasProcess
from tests.history import clocks
from tests.history.clocks import Clock
from tests.history.proxy import Proxy

REPLICATION_PORT = 9094  #: in a namespace of its own every port is free

HASTE = {
    "auto.create.topics.enable": "false",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.assignment.interval.ms": "0",
}


class Broker(ABC):
    """A broker that clients reach by ``bootstrap``, whatever its own port is."""

    copies = 1

    def __init__(self, proxy: Proxy, process: "BarnabasProcess | ApacheKafka") -> None:
        self.proxy, self.process = proxy, process
        self.bootstrap = address(proxy)

    def start(self) -> None:
        self.process.start()
        self.proxy.target = self.process.port

    def stop(self) -> None:
        self.process.stop()

    @abstractmethod
    def kill(self) -> None: ...

    def pause(self) -> None:
        assert self.process.process is not None
        self.process.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        if self.process.process is not None:
            self.process.process.send_signal(signal.SIGCONT)

    def complaints(self) -> list[str]:
        """Returns the errors in its log."""
        return []

    def choose(self, random: Random) -> int:
        """Returns the id of the broker for the next fault; here there is only one."""
        return 1

    def calm(self) -> None:
        """Ends the faults of the network."""
        self.proxy.calm()

    def end(self) -> None:
        self.resume()
        self.kill()


def address(proxy: Proxy) -> str:
    return f"127.0.0.1:{proxy.port}"


def controller_port(node: Node) -> int:
    return int(node.properties["listeners"].rpartition(":")[2])


class Planted(BarnabasProcess):
    """A process of Barnabas, optionally with a planted mistake (planted.py)."""

    mistake: str | None = None

    def command(self) -> list[str]:
        command = super().command()
        if self.mistake is not None:
            program = command.index("-m")
            command[program : program + 2] = [str(Path(__file__).with_name("planted.py")), self.mistake]
        return command


class Barnabas(Broker):
    """``barnabas serve`` with its data in ``home``."""

    process: Planted

    def __init__(self, home: Path, proxy: Proxy, level: int, mistake: str | None = None) -> None:
        advertised = {"advertised.listeners": f"PLAINTEXT://{address(proxy)}"}
        super().__init__(proxy, Planted(home, {**HASTE, **advertised}, {"transaction.version": level}))
        self.process.mistake = mistake

    def kill(self) -> None:
        self.process.kill()

    def complaints(self) -> list[str]:
        return self.process.complaints()


class Apache(Broker):
    """Apache Kafka with its data in ``home``, without planted mistakes."""

    process: ApacheKafka

    def __init__(self, home: Path, proxy: Proxy, level: int, mistake: str | None = None) -> None:
        assert mistake is None
        settings = {
            **ALONE,
            **HASTE,
            "advertised.listeners": f"PLAINTEXT://{address(proxy)}",
            "broker.session.timeout.ms": "4000",
            "broker.heartbeat.interval.ms": "1000",
            "offsets.topic.num.partitions": "5",
            "transaction.state.log.num.partitions": "5",
        }
        super().__init__(proxy, ApacheKafka(home, settings, features={"transaction.version": level}))

    def kill(self) -> None:
        self.process.stop(kill=True)


class Cluster(Broker):
    """Three nodes of Barnabas, each a broker and a controller. Faults apply to the node that was chosen last.

    Each broker has a proxy, which is its advertised address for clients and for the other brokers.
    """

    copies = 3
    kind = BARNABAS

    def __init__(self, home: Path, proxy: Proxy, level: int, mistake: str | None = None) -> None:
        assert mistake is None, "mistakes are for one broker"
        self.cluster = Combined(home, [self.kind] * 3)
        self._proxies = [proxy, Proxy(), Proxy()]
        for each in self._proxies[1:]:
            each.__enter__()
        self.nodes = list(self.cluster.brokers.values())
        for each, node in zip(self._proxies, self.nodes, strict=True):
            advertised = f"PLAINTEXT://{address(each)},CONTROLLER://127.0.0.1:{controller_port(node)}"
            node.properties |= HASTE | {"advertised.listeners": advertised}
            node.format_options = ("--feature", f"transaction.version={level}")
        self.clocks: list[Clock] = []
        if self.kind == BARNABAS and clocks.library() is not None:
            self.clocks = [Clock(home / f"clock-{node_id}") for node_id in self.cluster.brokers]
            for node, clock in zip(self.nodes, self.clocks, strict=True):
                node.prefix = clock.prefix
        self.bootstrap = ",".join(map(address, self._proxies))
        self._chosen = 0

    @property
    def node(self) -> Node:
        return self.nodes[self._chosen]

    @property
    def proxy(self) -> Proxy:  # type: ignore[override]
        return self._proxies[self._chosen]

    def choose(self, random: Random) -> int:
        self._chosen = random.randrange(len(self.nodes))
        return self._chosen + 1

    def start(self) -> None:
        """Starts the nodes that do not run."""
        with ThreadPoolExecutor() as starting:
            list(starting.map(Node.start, self.nodes))
        for each, node in zip(self._proxies, self.nodes, strict=True):
            each.target = node.port

    def stop(self) -> None:
        self.node.stop()

    def kill(self) -> None:
        self.node.kill()

    def pause(self) -> None:
        assert self.node.process is not None
        self.node.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        for node in self.nodes:
            if node.process is not None:
                node.process.send_signal(signal.SIGCONT)

    def skew(self, seconds: float) -> None:
        """Sets the node's clock to so many seconds after the machine's."""
        self.clocks[self._chosen].set(seconds)

    def calm(self) -> None:
        for each in self._proxies:
            each.calm()

    def end(self) -> None:
        self.resume()
        self.cluster.__exit__()
        for each in self._proxies[1:]:
            each.__exit__(None, None, None)

    def complaints(self) -> list[str]:
        return [line for node in self.nodes for line in node.errors()]


class Networked(Cluster):
    """Three such nodes, each in a network namespace, so that packets between them, and those of clients, can be lost.

    Nodes connect to each other directly, and clients through the proxies.
    """

    def __init__(self, home: Path, proxy: Proxy, level: int, mistake: str | None = None) -> None:
        super().__init__(home, proxy, level, mistake)
        ids = list(self.cluster.brokers)
        self.network = Network(ids).__enter__()
        voters = ",".join(
            f"{node_id}@{self.network.host(node_id)}:{controller_port(node)}"
            for node_id, node in self.cluster.brokers.items()
        )
        for each, (node_id, node) in zip(self._proxies, self.cluster.brokers.items(), strict=True):
            host = each.host = node.host = self.network.host(node_id)
            node.prefix = (*self.network.command(node_id), *node.prefix)
            between = f"REPLICATION://{host}:{REPLICATION_PORT},CONTROLLER://{host}:{controller_port(node)}"
            node.properties |= {
                "listeners": f"PLAINTEXT://{host}:{node.port},{between}",
                "advertised.listeners": f"PLAINTEXT://{address(each)},{between}",
                "listener.security.protocol.map": ",".join(
                    f"{name}:PLAINTEXT" for name in ("PLAINTEXT", "REPLICATION", "CONTROLLER")
                ),
                "inter.broker.listener.name": "REPLICATION",
                "controller.quorum.voters": voters,
            }

    @property
    def _id(self) -> int:
        return self._chosen + 1

    @property
    def _others(self) -> list[int]:
        return [each for each in self.network.nodes if each != self._id]

    def isolate(self) -> None:
        """Drops all packets to and from the node."""
        self.network.isolate(self._id)

    def mute(self) -> None:
        """Drops all packets from the node."""
        self.network.lose(self._id, [*self._others, CALLER])

    def deafen(self) -> None:
        """Drops all packets from the other nodes to the node."""
        for each in self._others:
            self.network.lose(each, [self._id])

    def part(self) -> None:
        """Drops all packets between the node and the next one. Both reach the third."""
        other = self._others[0]
        self.network.lose(self._id, [other])
        self.network.lose(other, [self._id])

    def slow(self) -> None:
        """Delays the packets from the node, and loses some."""
        self.network.slow(self._id)

    def calm(self) -> None:
        super().calm()
        self.network.heal()

    def end(self) -> None:
        super().end()
        self.network.__exit__()


class NetworkedApache(Networked):
    """Three nodes of Apache Kafka."""

    kind = APACHE


BROKERS: dict[str, type[Barnabas] | type[Apache] | type[Cluster]] = {
    "barnabas": Barnabas,
    "apache": Apache,
    "cluster": Cluster,
    "network": Networked,
    "apache-network": NetworkedApache,
}
NETWORKED = {name for name, kind in BROKERS.items() if issubclass(kind, Networked)}
CLOCKED = {name for name, kind in BROKERS.items() if issubclass(kind, Cluster) and kind.kind == BARNABAS}
"""Those whose clocks can be set, where there is libfaketime."""
