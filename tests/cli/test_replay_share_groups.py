"""``barnabas replay`` of share groups: sessions and acknowledgements, if the recorded cluster or the target has several
brokers.
"""

import pytest
from confluent_kafka import AcknowledgeType, Producer, ShareConsumer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.cli.proxying import Proxying
from tests.cli.test_replay_nodes import cluster_of, replay

PARTITIONS = 4
RECORDS = 3


def traffic(bootstrap):
    """Records in all partitions, and a group that accepts, releases and rejects them."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("orders", PARTITIONS)])["orders"].result(30)
    earliest = ConfigEntry("share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET)
    group = ConfigResource(ResourceType.GROUP, "cooks", incremental_configs=[earliest])
    admin.incremental_alter_configs([group])[group].result(30)
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "1"})
    for partition in range(PARTITIONS):
        for number in range(RECORDS):
            producer.produce("orders", f"{partition}-{number}", partition=partition)
            assert producer.flush(30) == 0
    consumer = ShareConsumer(
        {"bootstrap.servers": bootstrap, "group.id": "cooks", "share.acknowledgement.mode": "explicit"}
    )
    consumer.subscribe(["orders"])
    left = {(partition, number) for partition in range(PARTITIONS) for number in range(RECORDS)}
    while left:
        for message in consumer.poll(timeout=1):
            place = message.partition(), message.offset()
            if message.offset() == 1 and message.delivery_count() == 1:
                consumer.acknowledge(message, AcknowledgeType.RELEASE)
            else:
                rejects = message.offset() == 2
                consumer.acknowledge(message, AcknowledgeType.REJECT if rejects else AcknowledgeType.ACCEPT)
                left.discard(place)
        consumer.commit_sync()
    consumer.close()


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """The recordings by the number of brokers."""
    home = tmp_path_factory.mktemp("recordings")
    found = {}
    for brokers in (1, 3):
        found[brokers] = home / f"{brokers}.jsonl"
        with cluster_of(brokers) as cluster:
            bootstrap = cluster.bootstrap_servers.split(",")[0]
            with Proxying(bootstrap, "--record", str(found[brokers])) as proxying:
                traffic(proxying.bootstrap_servers)
                proxying.stop()
    return found


@pytest.mark.parametrize(("before", "now"), [(1, 1), (1, 3), (3, 1), (3, 3), (3, 4)])
def test_a_share_group_is_replayed_at_its_nodes(recordings, capsys, before, now):
    with cluster_of(now) as cluster:
        code, printed = replay(capsys, recordings[before], cluster.bootstrap_servers)
    assert printed.splitlines()[1:] == []
    assert code == 0
