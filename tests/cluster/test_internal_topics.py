import pytest

from barnabas.cluster.internal_topics import new_internal_topic
from barnabas.cluster.topic_names import INTERNAL
from barnabas.config import BrokerConfig


def test_the_offsets_of_groups():
    topic = new_internal_topic("__consumer_offsets", BrokerConfig({}))
    assert topic == (
        "__consumer_offsets", 50, 3, (),
        [("segment.bytes", "104857600"), ("cleanup.policy", "compact"), ("compression.type", "producer")],
    )  # fmt: skip


def test_the_state_of_transactions():
    topic = new_internal_topic("__transaction_state", BrokerConfig({}))
    assert (topic.num_partitions, topic.replication_factor) == (50, 3)
    assert dict(topic.configs) == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "2",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }


def test_the_state_of_share_groups():
    topic = new_internal_topic("__share_group_state", BrokerConfig({}))
    assert (topic.num_partitions, topic.replication_factor) == (50, 3)
    assert dict(topic.configs) == {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "min.insync.replicas": "2",
        "retention.ms": "-1",
        "segment.bytes": "104857600",
    }


@pytest.mark.parametrize("name", sorted(INTERNAL))
def test_they_can_be_made(make_cluster, name):
    settings = {
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "share.coordinator.state.topic.replication.factor": 1,
    }
    cluster = make_cluster(**settings)
    assert cluster.create(new_internal_topic(name, cluster.settings)) == {name: None}
