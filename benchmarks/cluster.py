"""The cost of three replicas: three brokers and a controller of Barnabas beside Apache Kafka's, in turns.

Knows nothing of replication. Both kinds of nodes have the same properties (``compat_tests.apache_kafka.mixed``).
"""

import contextlib
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic, PartitionMetadata

from benchmarks import librdkafka
from benchmarks.measure import MIB, Row, compared, median_ratio
from compat_tests.apache_kafka.mixed import APACHE, BARNABAS, Mixed, Node

SIZES = {100: 48 * MIB, 1024: 192 * MIB, 10_240: 384 * MIB}
"""Bytes to send, by the size of a record."""

HEAP = ("-Xms512m", "-Xmx512m")
"""The heap of each node of Apache Kafka: four of them run at once."""

ALL = {"acks": "all"}
A_SECOND, SECONDS = 1000, 10
KILLS = 5
"""In a round: each falls somewhere between two heartbeats of the broker."""


class Nodes:
    """A running cluster of one kind."""

    def __init__(self, cluster: Mixed) -> None:
        self.cluster = cluster
        self.bootstrap = cluster.bootstrap
        self.admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})

    def cpu_s(self) -> float:
        """Returns the CPU seconds of all nodes so far."""
        return sum(self._cpu_s(node.process.pid) for node in self._running() if node.process is not None)

    @staticmethod
    def _cpu_s(pid: int) -> float:
        times = psutil.Process(pid).cpu_times()
        return float(times.user + times.system)

    def _running(self) -> list[Node]:
        return [self.cluster.controller, *self.cluster.brokers.values()]

    def create(self, topic: str) -> None:
        for future in self.admin.create_topics([NewTopic(topic, 1, 3)]).values():
            future.result(30)

    def leader(self, topic: str) -> int:
        """Returns the leader of the topic's partition; waits until the brokers know it."""
        while not (found := self._partition(topic)) or found.leader < 0:
            time.sleep(0.05)
        return int(found.leader)

    def in_sync(self, topic: str) -> list[int]:
        """Returns the ISR of the topic's partition; none if no broker answers."""
        found = self._partition(topic)
        return list(found.isrs) if found else []

    def _partition(self, topic: str) -> PartitionMetadata | None:
        with contextlib.suppress(KafkaException):
            return self.admin.list_topics(topic, timeout=5).topics[topic].partitions.get(0)
        return None


@contextlib.contextmanager
def running(kind: str, folder: Path) -> Iterator[Nodes]:
    with Mixed(folder, kind, [kind] * 3, jvm=HEAP) as cluster:
        yield Nodes(cluster)


def beside_apache(folder: Path, rounds: int) -> Iterator[Row]:
    """Producing with acks=all, a small constant load, and the time until the next leader answers."""
    flows: dict[int, list[tuple[librdkafka.Flow, librdkafka.Flow]]] = {size: [] for size in SIZES}
    trickles: list[tuple[list[float], list[float]]] = []
    outages: list[tuple[float, float]] = []
    for index in range(rounds):
        of_round: dict[int, list[librdkafka.Flow]] = {size: [] for size in SIZES}
        found, lasted = [], []
        for kind in (BARNABAS, APACHE):
            with running(kind, folder / f"{kind}-{index}") as nodes:
                for size, total in SIZES.items():
                    for topic, share in ((f"warm-{size}", 8), (f"bench-{size}", 1)):
                        nodes.create(topic)
                        flow = librdkafka.produce(nodes.bootstrap, nodes.cpu_s, topic, size, total // share, ALL)
                    of_round[size].append(flow)
                nodes.create("trickle")
                found.append(librdkafka.latency(nodes.bootstrap, "trickle", A_SECOND, SECONDS, "all"))
                lasted.append(statistics.median([outage(nodes, f"killed-{number}") for number in range(KILLS)]))
        for size, (ours, theirs) in of_round.items():
            flows[size].append((ours, theirs))
        trickles.append((found[0], found[1]))
        outages.append((lasted[0], lasted[1]))
    for size, pairs in flows.items():
        yield from compared(f"three copies: produce {size} B, acks=all", pairs, 1.3, 0.6)
    for name, part in (("p50", 50), ("p99", 99)):
        pairs_ms = [(percentile(ours, part), percentile(theirs, part)) for ours, theirs in trickles]
        yield beside(f"three copies: {A_SECOND:,} records/s, acks=all, {name}, ms", pairs_ms)
    yield beside("three copies: kill -9 of the leader to the first acknowledged record, s", outages)


def percentile(times: list[float], part: int) -> float:
    return statistics.quantiles(times, n=100)[part - 1]


def beside(what: str, pairs: list[tuple[float, float]]) -> Row:
    ours, theirs = (statistics.median(each) for each in zip(*pairs, strict=True))
    ratio = median_ratio(pairs)
    return Row(what, f"{ours:,.2f}", f"Apache {theirs:,.2f}", ratio, "<= 1x", ratio <= 1)


def outage(nodes: Nodes, topic: str) -> float:
    """Kills the leader of a new topic's partition, and starts it again. Returns the seconds from the kill to the next
    acknowledged record.
    """
    nodes.create(topic)
    leader = nodes.cluster.brokers[nodes.leader(topic)]
    producer = Producer({
        "bootstrap.servers": nodes.bootstrap, "acks": "all", "linger.ms": 0, "retry.backoff.ms": 20, "log_level": 0,
        "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 100, "topic.metadata.refresh.fast.interval.ms": 50,
    })  # fmt: skip
    acknowledged = threading.Event()
    producer.produce(topic, b"before")
    producer.flush(30)
    leader.kill()
    began = time.perf_counter()
    producer.produce(topic, b"after", callback=lambda error, _: acknowledged.set() if error is None else None)
    while not acknowledged.is_set():
        producer.poll(0.005)
        if time.perf_counter() - began > 60:
            raise RuntimeError("no other broker leads within a minute")
    lasted = time.perf_counter() - began
    leader.start()
    while len(nodes.in_sync(topic)) < len(nodes.cluster.brokers):
        time.sleep(0.1)
    return lasted
