"""A cluster of three brokers in this process, as tests of other projects use it."""

import pytest
from kafka import KafkaAdminClient

from barnabas.errors import TopicAlreadyExists, UnknownTopicOrPartition
from barnabas.testing import Cluster
from barnabas.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from tests.raw import Client

# Fencing takes a session's time, so shorter sessions make these tests faster.
SESSIONS = {"broker.heartbeat.interval.ms": 100, "broker.session.timeout.ms": 1000}


@pytest.fixture(scope="module")
def running():
    with Cluster(3, SESSIONS) as cluster:
        yield cluster


@pytest.fixture
def cluster(running):
    yield running
    for node in running.node_ids:
        running.heal(node)
        running.start(node)


def brokers_seen_by(cluster, node):
    admin = KafkaAdminClient(bootstrap_servers=cluster.address(node))
    try:
        return sorted(broker["broker_id"] for broker in admin.describe_cluster()["brokers"])
    finally:
        admin.close()


def test_clients_see_all_brokers_on_each_of_them(cluster):
    assert [brokers_seen_by(cluster, node) for node in cluster.node_ids] == [[1, 2, 3]] * 3


def test_a_topic_has_three_replicas_in_sync(cluster):
    cluster.create_topic("made", partitions=6)
    assert {cluster.leader("made", index) for index in range(6)} == {1, 2, 3}
    assert all(sorted(cluster.partition("made", index).isr) == [1, 2, 3] for index in range(6))
    with pytest.raises(TopicAlreadyExists):
        cluster.create_topic("made")
    with pytest.raises(UnknownTopicOrPartition):
        cluster.leader("never made")


def test_leadership_moves_on_demand(cluster):
    cluster.create_topic("moving")
    for node in (3, 1, 2):
        cluster.move_leader("moving", 0, node)
        assert cluster.leader("moving") == node


def test_a_broker_that_stops_hands_over_first(cluster):
    cluster.create_topic("handed")
    leader = cluster.leader("handed")
    cluster.stop(leader)
    assert cluster.leader("handed") not in (leader, -1)
    cluster.start(leader)
    cluster.wait_in_sync("handed")


def test_another_broker_leads_after_a_kill(cluster):
    cluster.create_topic("killed")
    leader = cluster.leader("killed")
    cluster.kill(leader)
    cluster.wait_until(lambda: cluster._active.image.partition("killed", 0).leader not in (leader, -1))
    cluster.start(leader)
    cluster.wait_in_sync("killed")


def test_a_broker_that_was_cut_off_comes_back(cluster):
    cluster.create_topic("cut")
    leader = cluster.leader("cut")
    cluster.isolate(leader)
    cluster.wait_until(lambda: cluster._active.image.partition("cut", 0).leader not in (leader, -1))
    cluster.heal(leader)
    cluster.wait_until(lambda: not cluster._active.image.brokers[leader].fenced)
    cluster.wait_in_sync("cut")


def test_two_clusters_know_nothing_of_one_another(cluster):
    with Cluster(1) as other:
        other.create_topic("alone")
        assert brokers_seen_by(other, 1) == [1]
        assert other.partition("alone").replicas == (1,)
        with pytest.raises(UnknownTopicOrPartition):
            cluster.leader("alone")


def test_the_active_controller_is_killed():
    with Cluster(2, controllers=3) as cluster:
        cluster.create_topic("before", partitions=2)
        killed = cluster.active_controller
        assert killed in cluster.controller_ids
        cluster.kill(killed)
        cluster.wait_until(lambda: cluster._controlling() != [])
        assert cluster.active_controller not in (killed, -1)
        cluster.create_topic("after")
        cluster.start(killed)
        cluster.stop(cluster.active_controller)
        cluster.wait_until(lambda: cluster._controlling() != [])
        cluster.create_topic("at-last")
        names = [set(cluster.broker(node).image.topics_by_name) for node in cluster.node_ids]
        assert names == [{"before", "after", "at-last"}] * 2


def test_a_reassignment_goes_on_under_another_controller():
    with Cluster(3, controllers=3) as cluster:
        ask(cluster, CreateTopicsRequest(topics=[moved(1, 2)], timeout_ms=5000, validate_only=False), 7)
        cluster.kill(3)  # so that it cannot be done
        ask(cluster, AlterPartitionReassignmentsRequest(timeout_ms=5000, topics=[to(1, 3)]), 0)
        begun, killed = cluster.partition("moved"), cluster.active_controller
        assert (begun.adding, begun.removing) == ((3,), (2,))
        cluster.kill(killed)
        cluster.wait_until(lambda: cluster._controlling() != [])
        assert cluster.active_controller != killed
        assert cluster.partition("moved").is_reassigning
        cluster.start(3)
        cluster.wait_until(lambda: not cluster._active.image.partition("moved", 0).is_reassigning)
        assert cluster.partition("moved").replicas == (1, 3)
        assert set(cluster.partition("moved").isr) == {1, 3}


def ask(cluster, request, version):
    """Sends a request to broker 1."""
    with Client(int(cluster.address(1).rpartition(":")[2])) as client:
        return client.ask(request, version)


def moved(*replicas):
    kind = CreateTopicsRequest.CreatableTopic
    placed = [kind.CreatableReplicaAssignment(partition_index=0, broker_ids=list(replicas))]
    return kind(name="moved", num_partitions=-1, replication_factor=-1, assignments=placed, configs=[])


def to(*replicas):
    kind = AlterPartitionReassignmentsRequest.ReassignableTopic
    return kind(name="moved", partitions=[kind.ReassignablePartition(partition_index=0, replicas=list(replicas))])
