"""The internal topics: partitions, replicas and configs; and what a cluster of one node makes of them."""

import logging

import pytest

from barnabas.cluster.internal_topics import new_internal_topic
from barnabas.cluster.single_node import is_single_node, log_single_node_defaults
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


ONE = BrokerConfig({}).with_single_node(True)


@pytest.mark.parametrize("name", sorted(INTERNAL))
def test_a_cluster_of_one_node_can_create_them(make_cluster, name):
    cluster = make_cluster()
    assert is_single_node(cluster.image, 1)
    assert cluster.create(new_internal_topic(name, ONE)) == {name: None}


@pytest.mark.parametrize("name", ["__transaction_state", "__share_group_state"])
def test_one_replica_in_sync_is_enough_on_one_node(name):
    assert dict(new_internal_topic(name, ONE).configs)["min.insync.replicas"] == "1"


def test_a_factor_that_is_set_stays(make_cluster):
    config = BrokerConfig({"offsets.topic.replication.factor": "3"}).with_single_node(True)
    (error,) = make_cluster().create(new_internal_topic("__consumer_offsets", config)).values()
    assert error is not None
    assert error.code == 38


def test_another_broker_makes_a_cluster_of_two(make_cluster):
    cluster = make_cluster(brokers=(1, 2))
    assert not is_single_node(cluster.image, 1)


def test_the_defaults_of_one_node_are_logged_without_those_that_are_set(caplog):
    caplog.set_level(logging.INFO)
    log_single_node_defaults(BrokerConfig({"transaction.state.log.min.isr": "1"}).with_single_node(True))
    (line,) = caplog.messages
    assert "offsets.topic.replication.factor" in line
    assert "transaction.state.log.min.isr" not in line


def test_nothing_is_logged_of_several_nodes(caplog):
    caplog.set_level(logging.INFO)
    log_single_node_defaults(BrokerConfig({}))
    assert not caplog.messages
