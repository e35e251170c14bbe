"""Admin requests to a cluster, against a broker in this process."""

import pytest

from barnabas.errors import InvalidConfig, InvalidReplicationFactor
from barnabas.pipelines.client.cluster import Cluster, TopicPartition
from barnabas.pipelines.client.settings import ClientSettings
from barnabas.pipelines.jobs.mirroring.administration import (
    NewTopic,
    alter_configs,
    cluster_id,
    create_partitions,
    create_topic,
    groups,
    topic_configs,
)
from barnabas.pipelines.jobs.mirroring.configs import Changes
from barnabas.testing import Broker


def _cluster(broker: Broker) -> Cluster:
    return Cluster.of(ClientSettings.parse({"bootstrap.servers": broker.bootstrap_servers}))


def test_topics_partitions_and_configs() -> None:
    with Broker() as broker:
        cluster = _cluster(broker)
        assert create_topic(cluster, NewTopic("orders", 2, -1, {"cleanup.policy": "compact"}))
        assert not create_topic(cluster, NewTopic("orders", 7, -1, {})), "it is there already"
        create_partitions(cluster, "orders", 5)
        assert len(cluster.describe(["orders"])["orders"].leaders) == 5
        assert topic_configs(cluster, ["orders", "nowhere"]) == {"orders": {"cleanup.policy": "compact"}}

        alter_configs(cluster, {"orders": Changes({"retention.ms": "1000"}, ("cleanup.policy",))})
        assert topic_configs(cluster, ["orders"]) == {"orders": {"retention.ms": "1000"}}
        with pytest.raises(InvalidConfig, match=r"cannot change the configs of topic orders.*retention\.ms"):
            alter_configs(cluster, {"orders": Changes({"retention.ms": "soon"}, ())})
        assert cluster_id(cluster)
        cluster.close()


def test_refusals_name_the_topic() -> None:
    with Broker() as broker:
        cluster = _cluster(broker)
        with pytest.raises(InvalidReplicationFactor, match="cannot make topic orders"):
            create_topic(cluster, NewTopic("orders", 1, -3, {}))
        cluster.close()


def test_groups() -> None:
    with Broker() as broker:
        cluster = _cluster(broker)
        create_topic(cluster, NewTopic("orders", 1, -1, {}))
        cluster.commit("shop", {TopicPartition("orders", 0): 0})
        assert [(group.name, group.protocol, group.has_members) for group in groups(cluster)] == [("shop", "", False)]
        cluster.close()
