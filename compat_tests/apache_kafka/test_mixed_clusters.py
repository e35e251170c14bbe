"""Brokers of Barnabas and of Apache Kafka in one cluster, under a controller of either: nothing acknowledged is lost.

Each cluster has the same events under load: leaders move to every broker, each broker is killed and comes back,
partitions are reassigned, and all brokers are restarted in turn. Afterwards every acknowledged record is there once and
in order, and all replicas hold the same batches.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, ElectionType, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from kafka import KafkaAdminClient

from barnabas.records.batch import batches
from barnabas.records.record import records_of

from .load import PARTITIONS, WITHIN, Group, JavaLoad, Load, until
from .mixed import APACHE, BARNABAS, Combined, Mixed, Node

pytestmark = pytest.mark.xdist_group("mixed_clusters")  # it starts its own brokers

TOPIC, TRANSACTED, OF_JAVA, MOVED, GROUP = "orders", "transacted", "of-java", "moved", "readers"
MOVED_BYTES, RATE = 2_400_000, 1_000_000  #: of the moved topic; and the throttle in bytes a second

CLUSTERS = {
    "two of ours and one of Apache's, under Apache's controller": (APACHE, [BARNABAS, BARNABAS, APACHE]),
    "ours under Apache's controller": (APACHE, [BARNABAS, BARNABAS, BARNABAS]),
    "Apache's under our controller": (BARNABAS, [APACHE, APACHE, APACHE]),
}


class Story:
    """The events in a cluster."""

    def __init__(self, cluster: Mixed | Combined) -> None:
        self.cluster = cluster
        self.admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
        self.ids = list(cluster.brokers)

    def leaders(self, topic: str = TOPIC) -> list[int]:
        found = self.admin.list_topics(topic, timeout=5).topics[topic]
        return [found.partitions[index].leader for index in sorted(found.partitions)]

    def is_whole(self, topic: str = TOPIC) -> bool:
        """Returns whether all replicas of a topic are in sync."""
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
        """Makes each broker lead partition 0 once, by reassignments that only reorder the replicas."""
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
    def _partition(index: int, topic: str = TOPIC) -> object:
        from kafka.structs import TopicPartition as Place

        return Place(topic, index)

    def reassign(self) -> None:
        """Moves a topic with one replica from each broker to the next, throttled, while records are written."""
        first, *others = self.ids
        new = NewTopic(MOVED, 1, replica_assignment=[[first]], config={"min.insync.replicas": "1"})
        self.admin.create_topics([new])[MOVED].result(WITHIN)
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap, "enable.idempotence": True, "log_level": 0})
        for number in range(MOVED_BYTES // 10_000):
            producer.produce(MOVED, b"%010d" % number * 1000)
        assert producer.flush(WITHIN) == 0
        self._throttle(AlterConfigOpType.SET)
        kafka = KafkaAdminClient(bootstrap_servers=self.cluster.bootstrap)
        try:
            for node in (*others, first):
                begun = time.monotonic()
                kafka.alter_partition_reassignments({self._partition(0, MOVED): [node]})
                producer.produce(MOVED, b"to %d" % node)
                until(lambda node=node: self._replicas(MOVED) == [node], f"{MOVED} is moved to broker {node}")
                assert time.monotonic() - begun > 0.9, "the throttle slows nothing down"
        finally:
            kafka.close()
        assert producer.flush(WITHIN) == 0
        self._throttle(AlterConfigOpType.DELETE)

    def _throttle(self, operation: AlterConfigOpType) -> None:
        """Sets or removes the throttle of the topic's replication."""
        configs = {
            (ResourceType.BROKER, str(node)): {
                f"{side}.replication.throttled.rate": str(RATE) for side in ("leader", "follower")
            }
            for node in self.ids
        }
        sides = ("leader", "follower")
        configs[ResourceType.TOPIC, MOVED] = {f"{side}.replication.throttled.replicas": "*" for side in sides}
        for resource, entries in configs.items():
            changes = [ConfigEntry(name, value, incremental_operation=operation) for name, value in entries.items()]
            wanted = ConfigResource(*resource, incremental_configs=changes)
            for future in self.admin.incremental_alter_configs([wanted]).values():
                future.result(WITHIN)

    def _replicas(self, topic: str) -> list[int]:
        found = self.admin.list_topics(topic, timeout=5).topics[topic].partitions[0]
        return list(found.replicas) if found.leader == found.replicas[0] and found.leader in found.isrs else []

    def transact(self, number: int) -> None:
        """Commits one transaction, and aborts another."""
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

    def read(self, topic: str, *, committed: bool = False, partitions: int = PARTITIONS) -> dict[int, list[bytes]]:
        """Returns the values of each partition, up to its end."""
        consumer = Consumer({
            "bootstrap.servers": self.cluster.bootstrap, "group.id": "check", "enable.auto.commit": False,
            "isolation.level": "read_committed" if committed else "read_uncommitted", "enable.partition.eof": True,
            "log_level": 0,
        })  # fmt: skip
        found: dict[int, list[bytes]] = {partition: [] for partition in range(partitions)}
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in found])
        at_end, end = set[int](), time.monotonic() + WITHIN
        while len(at_end) < partitions:
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
        """Commits an offset of the group, and reads it back; its coordinator may have moved."""
        consumer = Consumer({"bootstrap.servers": self.cluster.bootstrap, "group.id": GROUP, "log_level": 0})
        place = TopicPartition(TOPIC, 0, offset)

        def committed() -> bool:
            consumer.commit(offsets=[place], asynchronous=False)
            (found,) = consumer.committed([TopicPartition(TOPIC, 0)], timeout=5)
            return bool(found.offset == offset)

        until(committed, f"the group has committed {offset}")
        consumer.close()


LONG = dict.fromkeys(list(CLUSTERS)[1:], pytest.mark.long)  # a minute each: the gate runs the first


@pytest.fixture(params=[pytest.param(name, marks=LONG.get(name, ())) for name in CLUSTERS])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Mixed]:
    with Mixed(tmp_path, *CLUSTERS[request.param]) as cluster:
        yield cluster


def test_nothing_acknowledged_is_lost(cluster: Mixed, tmp_path: Path) -> None:
    story = Story(cluster)
    story.create(TOPIC, TRANSACTED, OF_JAVA)
    load, of_java = Load(cluster.bootstrap, TOPIC), JavaLoad(cluster.bootstrap, OF_JAVA, tmp_path)
    group = Group(cluster.bootstrap, TOPIC, "followers")
    try:
        load.goes_on()
        story.move_leaders()
        story.reassign()
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
        load.stop()
        wanted = {b"%d" % number for numbers in load.acknowledged for number in numbers}
        until(lambda: wanted <= group.seen, "the group has read everything")
    finally:
        load.stop()
        group.end()
        acknowledged, failures = of_java.stop()
    check(story, load)
    assert failures == []
    written = {int(value) for values in story.read(OF_JAVA).values() for value in values}
    assert acknowledged and acknowledged <= written, "records of the Java producer are lost"
    (moved, *_) = story.read(MOVED, partitions=1).values()
    assert [value[:10] for value in moved if value[:3] != b"to "] == [
        b"%010d" % n for n in range(MOVED_BYTES // 10_000)
    ]
    for partition, values in story.read(TRANSACTED, committed=True).items():
        assert values == [b"kept %d" % number for number in (0, 1, 2, 99)], partition
    for node in cluster.brokers.values():
        node.stop()
    for topic in (TOPIC, TRANSACTED, OF_JAVA):
        for partition in range(PARTITIONS):
            assert topic == TRANSACTED or repeated(next(iter(cluster.brokers.values())), topic, partition) == []
            logs = {node.home.name: contents(node.data / f"{topic}-{partition}") for node in cluster.brokers.values()}
            assert len(set(logs.values())) == 1, {name: len(log) for name, log in logs.items()}
    assert [error for node in (*cluster.brokers.values(), cluster.controller) for error in node.errors()] == []


def check(story: Story, load: Load) -> None:
    """Checks that acknowledged records are there, once and in order."""
    assert load.failures == []
    for partition, values in story.read(TOPIC).items():
        assert set(load.acknowledged[partition]) <= set(map(int, values)), f"partition {partition} has lost records"
    for node in story.cluster.brokers.values():
        for partition in range(PARTITIONS):
            assert repeated(node, TOPIC, partition) == []


def repeated(node: Node, topic: str, partition: int) -> list[str]:
    """Returns the batches of a log whose sequence number is not above the last one of the same producer epoch.

    A restarted broker knows only the last batch of a producer. A producer that repeats an earlier one gets
    OUT_OF_ORDER_SEQUENCE_NUMBER, begins a new epoch, and repeats all batches without a response (KIP-360). Such
    duplicates are not the brokers' fault.
    """
    found, last = [], dict[tuple[int, int], int]()
    for batch in batches(contents(node.data / f"{topic}-{partition}")):
        writer = batch.producer_id, batch.producer_epoch
        numbers = [int(record.value or b"") for record in records_of(batch)]
        if numbers != sorted(numbers) or numbers[0] <= last.get(writer, -1):
            found.append(
                f"{node.home.name}, {topic}-{partition}: {numbers} at offset {batch.base_offset} in leader epoch "
                f"{batch.partition_leader_epoch}, producer and epoch {writer}, sequence {batch.base_sequence}, after "
                f"{last.get(writer)}"
            )
        last[writer] = max([*numbers, last.get(writer, -1)])
    return found


def contents(directory: Path) -> bytes:
    """Returns the batches of a log, regardless of its segments."""
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
