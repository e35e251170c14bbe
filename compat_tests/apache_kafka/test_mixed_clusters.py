"""Brokers of Barnabas and of Apache Kafka in one cluster, under a controller of either: nothing acknowledged is lost.

Each cluster goes through the same story under load: leaders move to every broker, each broker is killed and comes back,
partitions are reassigned, and all brokers are restarted in turn. Afterwards every acknowledged record is there once and
in order, and all replicas hold the same batches.
"""

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, ElectionType, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient

from barnabas.records.batch import batches

from .load import PARTITIONS, WITHIN, Load, until
from .mixed import APACHE, BARNABAS, Combined, Mixed, Node

pytestmark = pytest.mark.xdist_group("mixed_clusters")  # it has brokers of its own

TOPIC, TRANSACTED, GROUP = "orders", "transacted", "readers"

CLUSTERS = {
    "two of ours and one of Apache's, under Apache's controller": (APACHE, [BARNABAS, BARNABAS, APACHE]),
    "ours under Apache's controller": (APACHE, [BARNABAS, BARNABAS, BARNABAS]),
    "Apache's under our controller": (BARNABAS, [APACHE, APACHE, APACHE]),
}


class Story:
    """What happens to a cluster."""

    def __init__(self, cluster: Mixed | Combined) -> None:
        self.cluster = cluster
        self.admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        self.ids = list(cluster.brokers)

    def leaders(self, topic: str = TOPIC) -> list[int]:
        found = self.admin.list_topics(topic, timeout=5).topics[topic]
        return [found.partitions[index].leader for index in sorted(found.partitions)]

    def is_whole(self, topic: str = TOPIC) -> bool:
        """Whether all replicas of a topic are in sync."""
        found = self.admin.list_topics(topic, timeout=5).topics[topic]
        return bool(found.partitions) and all(
            len(each.isrs) == len(each.replicas) == len(self.ids) for each in found.partitions.values()
        )

    def create(self, *names: str) -> None:
        wanted = [NewTopic(name, PARTITIONS, len(self.ids)) for name in names]
        for future in self.admin.create_topics(wanted).values():
            future.result(WITHIN)
        for name in names:
            until(lambda name=name: self.is_whole(name), f"{name} is in sync")

    def move_leaders(self) -> None:
        """Has each broker lead partition 0 once, by reassignments that only reorder the replicas."""
        kafka = KafkaAdminClient(bootstrap_servers=self.cluster.bootstrap)
        try:
            for node in self.ids:
                replicas = [node, *(each for each in self.ids if each != node)]
                kafka.alter_partition_reassignments({self._partition(0): replicas})
                self.admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition(TOPIC, 0)]).result(WITHIN)
                until(lambda node=node: self.leaders()[0] == node, f"broker {node} leads")
        finally:
            kafka.close()

    @staticmethod
    def _partition(index: int) -> object:
        from kafka.structs import TopicPartition as Place

        return Place(TOPIC, index)

    def transact(self, number: int) -> None:
        """Writes one transaction, and another one that is aborted."""
        producer = Producer({
            "bootstrap.servers": self.cluster.bootstrap, "transactional.id": "teller", "log_level": 0,
            "transaction.timeout.ms": 20_000,
        })  # fmt: skip
        producer.init_transactions(WITHIN)
        for value, commits in ((b"kept %d" % number, True), (b"lost %d" % number, False)):
            producer.begin_transaction()
            for partition in range(PARTITIONS):
                producer.produce(TRANSACTED, value, partition=partition)
            producer.flush(WITHIN)
            if commits:
                producer.commit_transaction(WITHIN)
            else:
                producer.abort_transaction(WITHIN)

    def read(self, topic: str, *, committed: bool = False) -> dict[int, list[bytes]]:
        """Returns the values of each partition, up to its end."""
        consumer = Consumer({
            "bootstrap.servers": self.cluster.bootstrap, "group.id": "check", "enable.auto.commit": False,
            "isolation.level": "read_committed" if committed else "read_uncommitted", "enable.partition.eof": True,
            "log_level": 0,
        })  # fmt: skip
        found: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in found])
        at_end, end = set[int](), time.monotonic() + WITHIN
        while len(at_end) < PARTITIONS:
            assert time.monotonic() < end, f"{topic} cannot be read to its end"
            message = consumer.poll(1)
            if message is None:
                continue
            if message.error() is not None:
                at_end.add(message.partition())
            else:
                found[message.partition()].append(message.value())
        consumer.close()
        return found

    def commit(self, offset: int) -> None:
        """Commits an offset of the group, wherever its coordinator is now, and reads it again."""
        consumer = Consumer({"bootstrap.servers": self.cluster.bootstrap, "group.id": GROUP, "log_level": 0})
        place = TopicPartition(TOPIC, 0, offset)

        def committed() -> bool:
            consumer.commit(offsets=[place], asynchronous=False)
            (found,) = consumer.committed([TopicPartition(TOPIC, 0)], timeout=5)
            return bool(found.offset == offset)

        until(committed, f"the group has committed {offset}")
        consumer.close()


LONG = dict.fromkeys(list(CLUSTERS)[1:], pytest.mark.long)  # a minute each: the gate has the first


@pytest.fixture(params=[pytest.param(name, marks=LONG.get(name, ())) for name in CLUSTERS])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Mixed]:
    with Mixed(tmp_path, *CLUSTERS[request.param]) as cluster:
        yield cluster


def test_nothing_acknowledged_is_lost(cluster: Mixed) -> None:
    story = Story(cluster)
    story.create(TOPIC, TRANSACTED)
    load = Load(cluster.bootstrap, TOPIC)
    try:
        load.goes_on()
        story.move_leaders()
        for number, node in enumerate(story.ids):
            story.transact(number)
            story.commit(number)
            cluster.brokers[node].kill()
            load.goes_on()
            cluster.brokers[node].start()
            until(story.is_whole, f"all replicas are in sync after broker {node} was killed")
        for node in story.ids:
            cluster.brokers[node].stop()
            load.goes_on()
            cluster.brokers[node].start()
            until(story.is_whole, f"all replicas are in sync after broker {node} was restarted")
        story.transact(99)
        story.commit(99)
    finally:
        load.stop()
    check(story, load)
    for partition, values in story.read(TRANSACTED, committed=True).items():
        assert values == [b"kept %d" % number for number in (0, 1, 2, 99)], partition
    for node in cluster.brokers.values():
        node.stop()
    for topic in (TOPIC, TRANSACTED):
        for partition in range(PARTITIONS):
            logs = {node.home.name: contents(node.data / f"{topic}-{partition}") for node in cluster.brokers.values()}
            assert len(set(logs.values())) == 1, {name: len(log) for name, log in logs.items()}
    assert [error for node in (*cluster.brokers.values(), cluster.controller) for error in node.errors()] == []


def check(story: Story, load: Load) -> None:
    """Checks that what was acknowledged is there, once and in order."""
    assert load.failures == []
    for partition, values in story.read(TOPIC).items():
        numbers = list(map(int, values))
        places = [at for at, (one, other) in enumerate(pairwise(numbers), 1) if other <= one]
        around = {at + step for at in places[:3] for step in range(-9, 10)}
        assert places == [], "\n".join([
            f"partition {partition} has records twice or out of order at {places}: {sorted(around & {*numbers})}",
            *(line for node in story.cluster.brokers.values() for line in said_of(node, partition, around)),
        ])  # fmt: skip
        assert set(load.acknowledged[partition]) <= set(numbers), f"partition {partition} has lost records"


def said_of(node: Node, partition: int, offsets: set[int]) -> list[str]:
    """Returns what a node's log has at these offsets: who wrote it, and who led."""
    return [
        f"{node.home.name}: offsets {each.base_offset} to {each.last_offset}, leader epoch "
        f"{each.partition_leader_epoch}, producer {each.producer_id} in epoch {each.producer_epoch}, "
        f"sequence {each.base_sequence}"
        for each in batches(contents(node.data / f"{TOPIC}-{partition}"))
        if offsets & {*range(each.base_offset, each.last_offset + 1)}
    ]


def contents(directory: Path) -> bytes:
    """Returns the batches of a log, wherever its segments end."""
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
