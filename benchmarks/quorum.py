"""The cost of a quorum of three controllers, beside Apache Kafka's: changes of the metadata, topics, and elections.

Knows nothing of elections. Each node is a broker and a controller, with the time-outs that are Kafka's defaults.
"""

import time
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from benchmarks.cluster import HEAP, beside
from benchmarks.measure import Row, median_ratio
from compat_tests.apache_kafka.mixed import APACHE, BARNABAS, Combined, Node
from tests.raw import Client

CHANGES, TOPICS, PARTITIONS = 300, 1000, 3
KILLS = 3


class Quorum:
    """Three nodes of one kind."""

    def __init__(self, cluster: Combined) -> None:
        self.cluster = cluster
        self.admin = self._client()

    def _client(self) -> AdminClient:
        running = ",".join(node.address for node in self.cluster.brokers.values() if node.process is not None)
        return AdminClient({
            "bootstrap.servers": running, "log_level": 0, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 100,
        })  # fmt: skip

    def forget(self) -> None:
        """Makes a new client, which has no state about failed nodes."""
        self.admin = self._client()

    def change(self, value: int, timeout: float = 30.0) -> None:
        """Sets a config of a topic; the response comes after its commit."""
        entry = ConfigEntry("retention.ms", str(value), incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, "changed", incremental_configs=[entry])
        (future,) = self.admin.incremental_alter_configs([resource], request_timeout=timeout).values()
        future.result(timeout + 1)

    def create(self, names: list[str]) -> None:
        for future in self.admin.create_topics([NewTopic(name, PARTITIONS, 3) for name in names]).values():
            future.result(120)

    def active(self) -> Node:
        """Returns the active controller."""
        kind = DescribeQuorumRequest.TopicData
        partition = kind.PartitionData(partition_index=0)
        request = DescribeQuorumRequest(topics=[kind(topic_name="__cluster_metadata", partitions=[partition])])
        with Client(next(iter(self.cluster.brokers.values())).port, timeout=30) as client:
            response = client.ask(request, 2)
        assert isinstance(response, DescribeQuorumResponse)
        return self.cluster.brokers[response.topics[0].partitions[0].leader_id]


def beside_apache(folder: Path, rounds: int) -> Iterator[Row]:
    """Sequential changes, concurrent creations of topics, and the time until the next controller commits a change."""
    rates: list[tuple[float, float]] = []
    made: list[tuple[float, float]] = []
    outages: list[tuple[float, float]] = []
    for index in range(rounds):
        of_round: list[tuple[float, float, list[float]]] = []
        for kind in (BARNABAS, APACHE):
            with Combined(folder / f"{kind}-{index}", [kind] * 3, jvm=HEAP) as cluster:
                of_round.append(measured(Quorum(cluster)))
        ours, theirs = of_round
        rates.append((ours[0], theirs[0]))
        made.append((ours[1], theirs[1]))
        outages += zip(ours[2], theirs[2], strict=True)
    ratio = median_ratio(rates)
    found = [f"{sum(each) / len(each):,.0f}" for each in zip(*rates, strict=True)]
    what = "three controllers: changes of a config one after the other, a second"
    yield Row(what, found[0], f"Apache {found[1]}", ratio, ">= 1x", ratio >= 1)
    yield beside(f"three controllers: {TOPICS:,} topics of {PARTITIONS} x 3 replicas created, s", made)
    yield beside("three controllers: kill -9 of the active one to the first committed change, s", outages)


def measured(quorum: Quorum) -> tuple[float, float, list[float]]:
    """Returns changes a second, the seconds to create topics, and those without an active controller."""
    quorum.create(["changed"])
    for value in range(CHANGES):  # a JVM warms up
        quorum.change(value)
    began = time.perf_counter()
    for value in range(CHANGES):
        quorum.change(value)
    rate = CHANGES / (time.perf_counter() - began)
    began = time.perf_counter()
    quorum.create([f"topic-{number}" for number in range(TOPICS)])
    created = time.perf_counter() - began
    return rate, created, [outage(quorum) for _ in range(KILLS)]


def outage(quorum: Quorum) -> float:
    """Kills the active controller; returns the seconds until a change is committed."""
    node = quorum.active()
    node.kill()
    began = time.perf_counter()
    while True:
        quorum.forget()
        try:
            quorum.change(1, timeout=1.0)
            break
        except KafkaException:
            if time.perf_counter() - began > 60:
                raise
    lasted = time.perf_counter() - began
    node.start()
    quorum.forget()
    return lasted
