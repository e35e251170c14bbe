"""Replicas move between the log directories of each of three nodes, of which one is the active controller.

Knows nothing of how a log is moved. kafka-python's admin client starts the moves, and describes them.
"""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient

from .mixed import APACHE, BARNABAS, Combined

TOPIC, PARTITIONS, RECORDS = "orders", 2, 500


@pytest.fixture(params=[BARNABAS, pytest.param(APACHE, marks=pytest.mark.long)])
def cluster(request: pytest.FixtureRequest, kafka_jars: Path, tmp_path: Path) -> Iterator[Combined]:
    """Three nodes with the log directories ``data`` and ``b``."""
    cluster = Combined(tmp_path, [request.param] * 3, {"auto.create.topics.enable": "false"})
    for node in cluster.brokers.values():
        node.properties["log.dirs"] = f"{node.data},{node.home / 'b'}"
    with cluster:
        yield cluster


def send(cluster: Combined) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    for number in range(RECORDS):
        producer.produce(TOPIC, b"%d" % number, partition=number % PARTITIONS)
    assert producer.flush(30) == 0


def places(admin: KafkaAdminClient, node_id: int) -> set[tuple[int, str, bool]]:
    """Returns partition, directory and whether it is a future replica, of all replicas on a node."""
    (found,) = admin.describe_log_dirs({TOPIC: list(range(PARTITIONS))}, brokers=[node_id])
    return {
        (each["partition_index"], directory["log_dir"], each["is_future_key"])
        for directory in found["log_dirs"]
        for topic in directory["topics"]
        for each in topic["partitions"]
    }


def move(admin: KafkaAdminClient, node_id: int, target: str) -> None:
    """Moves all replicas of a node to a directory, and returns when they are there."""
    answers = admin.alter_replica_log_dirs({(TOPIC, index, node_id): target for index in range(PARTITIONS)})
    assert {answer.errno for answer in answers.values()} == {0}
    wanted, deadline = {(index, target, False) for index in range(PARTITIONS)}, time.monotonic() + 30
    while (found := places(admin, node_id)) != wanted:
        assert time.monotonic() < deadline, found
        time.sleep(0.05)


def test_replicas_move_on_each_node(cluster: Combined) -> None:
    clients = {"bootstrap.servers": cluster.bootstrap}
    creator = AdminClient(clients)
    creator.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(30)
    send(cluster)
    with closing(KafkaAdminClient(bootstrap_servers=cluster.bootstrap.split(","))) as admin:
        for node_id, node in cluster.brokers.items():
            for target in (node.home / "b", node.data):
                move(admin, node_id, str(target))
            move(admin, node_id, str(node.home / "b"))
    send(cluster)
    consumer = Consumer(clients | {"group.id": "reader", "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, index, 0) for index in range(PARTITIONS)])
    values = [int(message.value()) for message in consumer.consume(2 * RECORDS, 30)]
    consumer.close()
    assert sorted(values) == sorted([*range(RECORDS)] * 2)
