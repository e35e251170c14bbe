"""Coordinators and leaders on different nodes, which connect over the network."""

import pytest
from confluent_kafka import Consumer, Producer

from barnabas.broker.latest_offsets import latest_offsets
from barnabas.errors import LeaderNotAvailable
from barnabas.testing import Cluster

PARTITIONS = 6
CONFIGS = {
    "offsets.topic.num.partitions": PARTITIONS,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.num.partitions": PARTITIONS,
    "transaction.state.log.replication.factor": 1,
    "group.initial.rebalance.delay.ms": 0,
}


@pytest.fixture(scope="module")
def cluster():
    with Cluster(3, CONFIGS) as running:
        yield running


def created(cluster, name):
    """Creates a topic with partitions on all three nodes."""
    cluster.create_topic(name, partitions=PARTITIONS, replicas=1)
    assert {cluster.leader(name, index) for index in range(PARTITIONS)} == {1, 2, 3}
    return name


def fill(cluster, topic, count):
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for number in range(count):
        producer.produce(topic, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(20) == 0


def consumer(cluster, group, topic):
    made = Consumer({
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
    })  # fmt: skip
    made.subscribe([topic])
    return made


def read(consumer, count):
    """Returns this number of records, or those that arrive in time."""
    found = []
    for _ in range(40):
        found += consumer.consume(count - len(found), timeout=0.5)
        if len(found) >= count:
            break
    assert all(each.error() is None for each in found)
    return found


@pytest.mark.parametrize("commits", [True, False])
def test_transactions_of_all_nodes(cluster, commits):
    """Each transaction writes to partitions and groups of all nodes, wherever its coordinator is."""
    source, target = created(cluster, f"from-{commits}"), created(cluster, f"to-{commits}")
    fill(cluster, source, 60)
    for number in range(PARTITIONS):  # so that all nodes coordinate some of these transactions and groups
        identity = f"{commits}-{number}"
        producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "transactional.id": identity})
        producer.init_transactions(20)
        reader = consumer(cluster, identity, source)
        records = read(reader, 60)
        producer.begin_transaction()
        for record in records:
            producer.produce(target, b"%d:%s" % (number, record.value()), partition=record.partition())
        positions = reader.position(reader.assignment())
        producer.send_offsets_to_transaction(positions, reader.consumer_group_metadata(), 20)
        if commits:
            producer.commit_transaction(20)
        else:
            producer.abort_transaction(20)
        offsets = [each.offset for each in reader.committed(reader.assignment(), 20)]
        assert offsets == ([10] * PARTITIONS if commits else [-1001] * PARTITIONS)
        reader.close()
    fill(cluster, target, 6)
    expected = 60 * PARTITIONS * commits + 6
    check = consumer(cluster, f"check-{commits}", target)
    assert len({(each.partition(), each.offset()) for each in read(check, expected)}) == expected
    check.close()


@pytest.mark.parametrize("node", [1, 2, 3])
def test_latest_offsets(cluster, node):
    topic = created(cluster, f"ends-{node}")
    fill(cluster, topic, 8)
    broker, results = cluster.broker(node), []
    wanted = [(topic, index) for index in range(PARTITIONS)] + [("missing", 0)]
    cluster._call(lambda: latest_offsets(broker.peers, broker.image, wanted, results.append))
    cluster.wait_until(lambda: results)
    ends = dict(results[0])
    assert isinstance(ends.pop(("missing", 0)), LeaderNotAvailable)
    assert [ends[topic, index] for index in range(PARTITIONS)] == [2, 2, 1, 1, 1, 1]
