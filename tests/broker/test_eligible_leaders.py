"""Eligible leader replicas (KIP-966) in a cluster: who may lead after both replicas were gone."""

import pytest

from barnabas.testing import Cluster


@pytest.fixture
def cluster():
    with Cluster(3, min_insync_replicas=2) as cluster:
        yield cluster


def of(cluster):
    """Returns the partition as the controller knows it."""
    return cluster._active.image.partition("t", 0)


def lose_both(cluster, end):
    """Ends the follower, then kills the leader. Returns their ids, when nobody leads."""
    cluster.create_topic("t", replicas=2)
    leader = cluster.leader("t")
    (follower,) = set(cluster.partition("t").replicas) - {leader}
    end(follower)
    cluster.wait_until(lambda: of(cluster).isr == (leader,) and of(cluster).elr == (follower,))
    cluster.kill(leader)
    cluster.wait_until(lambda: of(cluster).leader == -1)
    return leader, follower


def test_a_replica_that_was_stopped_cleanly_leads(cluster):
    leader, follower = lose_both(cluster, cluster.stop)
    cluster.start(follower)
    cluster.wait_until(lambda: of(cluster).leader == follower)
    cluster.start(leader)
    cluster.wait_in_sync("t")


def test_a_replica_that_was_killed_waits_for_the_last_leader(cluster):
    leader, follower = lose_both(cluster, cluster.kill)
    cluster.start(follower)
    cluster.wait_until(lambda: not cluster._active.image.brokers[follower].fenced)
    assert of(cluster).leader == -1
    cluster.start(leader)
    cluster.wait_until(lambda: of(cluster).leader == leader)
    cluster.wait_in_sync("t")
