"""ISRs that leaders propose, and the reassignments that they complete."""

import pytest

from barnabas.cluster.controller.commands.replicas import AlterPartition, AlterPartitionReassignments, IsrChange
from barnabas.cluster.controller.commands.topics import NewTopic
from barnabas.errors import (
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidRequest,
    InvalidUpdateVersion,
    NewLeaderElected,
    NotController,
    StaleBrokerEpoch,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.wire.messages.metadata_records import PartitionChangeRecord


@pytest.fixture
def four(make_cluster):
    """Four brokers, and a partition on the first three."""
    cluster = make_cluster(brokers=(1, 2, 3, 4))
    configs = [("min.insync.replicas", "2")]
    cluster.create(NewTopic("orders", assignments=[(0, [1, 2, 3])], configs=configs))
    return cluster


def alter(cluster, *isr, by=1, index=0, **fields):
    """Proposes an ISR, by default with the current epochs. Returns the result."""
    partition, topic_id = cluster.partition("orders"), fields.pop("topic_id", cluster.topic("orders").id)
    epochs = {broker.id: broker.epoch for broker in cluster.image.brokers.values()}
    own = fields.pop("epoch", epochs.get(by, -1))
    members = [each if isinstance(each, tuple) else (each, epochs.get(each, -1)) for each in isr]
    known = {"leader_epoch": partition.leader_epoch, "partition_epoch": partition.partition_epoch}
    change = IsrChange(index, members, **known | fields)
    ((_, (result,)),) = cluster.submit(AlterPartition(by, own, [(topic_id, [change])]))
    return result


def refusal(cluster, *isr, **fields):
    result = alter(cluster, *isr, **fields)
    assert cluster.records == []
    return type(result.error)


def move(cluster, *target):
    ((_, (result,)),) = cluster.submit(AlterPartitionReassignments([("orders", [(0, target)])]))
    assert result.error is None


def test_an_isr_shrinks_and_grows(four):
    result = alter(four, 1, 2)
    assert (result.error, result.image) == (None, four.partition("orders"))
    partition = four.partition("orders")
    assert (partition.isr, partition.leader_epoch, partition.partition_epoch) == ((1, 2), 0, 1)
    alter(four, 1, 2, 3)
    assert four.partition("orders").isr == (1, 2, 3)


def test_who_leaves_an_isr_below_the_minimum_is_eligible(four):
    alter(four, 1, 2)
    assert four.partition("orders").elr == ()
    alter(four, 1)
    assert four.partition("orders").elr == (2,)
    alter(four, 1, 3)
    assert four.partition("orders").elr == ()


def test_what_is_as_it_should_be_is_not_recorded(four):
    assert alter(four, 1, 2, 3).image == four.partition("orders")
    assert four.records == []


@pytest.mark.parametrize(
    ("isr", "fields", "error"),
    [
        ((1, 2), {"topic_id": bytes(16)}, UnknownTopicId),
        ((1, 2), {"index": 9}, UnknownTopicOrPartition),
        ((1, 2), {"leader_epoch": 1}, NotController),
        ((1, 2), {"partition_epoch": 1}, NotController),
        ((1, 2), {"leader_epoch": -1}, FencedLeaderEpoch),
        ((1, 2), {"partition_epoch": -1}, InvalidUpdateVersion),
        ((1, 2), {"by": 2}, InvalidRequest),
        ((2, 3), {}, InvalidRequest),
        ((), {}, InvalidRequest),
        ((1, 4), {}, InvalidRequest),
        ((1, 2, 2), {}, InvalidRequest),
        ((1,), {"leader_recovery_state": 1}, InvalidRequest),
        ((1, 2), {"leader_recovery_state": 7}, InvalidRequest),
        ((1, (2, 5)), {}, IneligibleReplica),
    ],
)
def test_what_cannot_be(four, isr, fields, error):
    assert refusal(four, *isr, **fields) is error


@pytest.mark.parametrize("fields", [{"epoch": 3}, {"by": 9}])
def test_another_incarnation_of_the_leader(four, fields):
    with pytest.raises(StaleBrokerEpoch):
        alter(four, 1, 2, **fields)


def test_an_epoch_that_the_leader_does_not_know_is_not_checked(four):
    assert alter(four, 1, (2, -1)).error is None


def test_a_fenced_broker_is_not_in_sync(four):
    four.fence(3)
    assert refusal(four, 1, 2, 3) is IneligibleReplica


def test_a_broker_that_stops_is_not_in_sync(four):
    four.create(NewTopic("others", assignments=[(0, [3, 1])]))
    four.heartbeat(3, want_shut_down=True)
    assert not four.image.brokers[3].fenced
    assert refusal(four, 1, 2, 3) is IneligibleReplica


def test_a_leader_of_an_unclean_election_recovers(make_cluster):
    cluster = make_cluster(brokers=(1, 2), **{"unclean.leader.election.enable": "true"})
    cluster.create(NewTopic("orders", assignments=[(0, [1, 2])]))
    alter(cluster, 1)
    cluster.fence(1)
    partition = cluster.partition("orders")
    assert (partition.leader, partition.isr, partition.leader_recovery_state) == (2, (2,), 1)
    assert alter(cluster, 2, by=2, leader_recovery_state=1).error is None
    assert refusal(cluster, 2, 1, by=2, leader_recovery_state=1) is InvalidRequest
    alter(cluster, 2, by=2)
    assert cluster.partition("orders").leader_recovery_state == 0


# ---------------------------------------------------------------- reassignments


def test_a_reassignment_ends_with_the_last_new_replica(four):
    move(four, 1, 4)
    partition = four.partition("orders")
    assert (partition.replicas, partition.adding, partition.removing) == ((1, 4, 2, 3), (4,), (2, 3))
    assert alter(four, 1, 2, 3, 4).error is None
    partition = four.partition("orders")
    assert (partition.replicas, partition.isr, partition.is_reassigning) == ((1, 4), (1, 4), False)
    assert partition.leader_epoch == 1  # those that have left are fenced


def test_a_reassignment_that_the_leader_does_not_survive(four):
    move(four, 4, 2)
    result = alter(four, 1, 2, 3, 4)
    assert (type(result.error), result.image) == (NewLeaderElected, None)
    partition = four.partition("orders")
    assert (partition.replicas, partition.isr, partition.leader) == ((4, 2), (2, 4), 4)


def test_a_reassignment_without_new_replicas_ends_at_once(four):
    move(four, 2, 3)
    partition = four.partition("orders")
    assert (partition.replicas, partition.isr, partition.leader, partition.is_reassigning) == ((2, 3), (2, 3), 2, False)


def test_a_reassignment_goes_elsewhere(four):
    """Without new replicas Apache Kafka keeps those that were being added, until the reassignment is cancelled."""
    move(four, 4, 1)
    move(four, 2, 3)
    partition = four.partition("orders")
    assert (partition.replicas, partition.adding, partition.removing) == ((2, 3, 1, 4), (4,), (1, 4))


def test_a_removed_replica_is_not_eligible(four):
    """Apache Kafka's controller leaves it in the ELR: added again, with an empty log, it would be elected."""
    move(four, 3)
    assert (four.partition("orders").isr, four.partition("orders").elr) == ((3,), ())


def test_a_replica_that_another_controller_has_left_eligible_is_not_when_it_is_added_again(four):
    move(four, 3)
    orders = PartitionChangeRecord(partition_id=0, topic_id=four.topic("orders").id, eligible_leader_replicas=[1, 2])
    four.apply([orders])
    move(four, 3, 1)
    partition = four.partition("orders")
    assert (partition.replicas, partition.adding, partition.elr) == ((3, 1), (1,), ())
