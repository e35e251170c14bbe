"""A log directory of a broker fails: the leaders then, and after its return."""

import pytest

from barnabas.cluster.controller.commands.nodes import AssignReplicasToDirs
from barnabas.cluster.controller.commands.replicas import ElectLeaders
from barnabas.cluster.controller.commands.topics import NewTopic
from barnabas.errors import EligibleLeadersNotAvailable, StaleBrokerEpoch
from tests.registering import heartbeat

A, B = b"a" * 16, b"b" * 16
UNCLEAN = 1


@pytest.fixture
def cluster(make_cluster):
    """Brokers 1, with two directories, and 2; "mine" is only on broker 1, "ours" on both; in A and in B."""
    cluster = make_cluster(())
    cluster.start(1, log_dirs=[A, B])
    cluster.start(2)
    cluster.create(NewTopic("mine", assignments=[(0, [1]), (1, [1])]), NewTopic("ours", assignments=[(0, [1, 2])]))
    mine, ours = cluster.topic("mine").id, cluster.topic("ours").id
    cluster.submit(AssignReplicasToDirs(1, cluster.image.brokers[1].epoch, [(mine, 0, A), (mine, 1, B), (ours, 0, B)]))
    return cluster


def test_what_was_in_the_directory_others_lead_or_nobody(cluster):
    cluster.heartbeat(1, offline_log_dirs=[B])
    assert cluster.image.brokers[1].log_dirs == (A,)
    kept, lost, shared = cluster.partition("mine", 0), cluster.partition("mine", 1), cluster.partition("ours")
    assert (kept.leader, kept.isr, kept.leader_epoch) == (1, (1,), 0)
    assert (lost.leader, lost.isr, lost.elr, lost.leader_epoch) == (-1, (), (1,), 1)
    assert (shared.leader, shared.isr) == (2, (2,))


def test_it_is_said_once(cluster):
    cluster.heartbeat(1, offline_log_dirs=[B])
    cluster.heartbeat(1, offline_log_dirs=[B])
    assert cluster.records == []


def test_a_broker_that_is_back_without_the_directory_leads_nothing_of_it(cluster):
    cluster.heartbeat(1, offline_log_dirs=[B])
    epoch = cluster.image.brokers[1].epoch
    cluster.register(1, log_dirs=[A], previous_epoch=epoch)
    cluster.heartbeat(1)
    assert cluster.partition("mine", 1).leader == -1
    ((_, (result,)),) = cluster.submit(ElectLeaders(UNCLEAN, [("mine", [1])]))
    assert isinstance(result.error, EligibleLeadersNotAvailable)


def test_a_broker_that_is_back_with_it_leads_again(cluster):
    cluster.heartbeat(1, offline_log_dirs=[B])
    epoch = cluster.image.brokers[1].epoch
    cluster.register(1, log_dirs=[A, B], previous_epoch=epoch)
    cluster.heartbeat(1)
    partition = cluster.partition("mine", 1)
    assert (partition.leader, partition.isr, partition.elr) == (1, (1,), ())


def test_a_broker_that_nobody_knows(cluster):
    with pytest.raises(StaleBrokerEpoch):
        cluster.submit(heartbeat(7, 1, metadata_offset=0, offline_log_dirs=[A]))
