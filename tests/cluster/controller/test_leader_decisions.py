"""Elections and reassignments, as Apache Kafka 4.3.1 decides them."""

import pytest

from barnabas.cluster.controller.commands.replicas import PREFERRED, UNCLEAN, AlterPartitionReassignments, ElectLeaders
from barnabas.cluster.controller.commands.topics import NewTopic
from barnabas.errors import (
    ElectionNotNeeded,
    EligibleLeadersNotAvailable,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    NoReassignmentInProgress,
    PreferredLeaderNotAvailable,
    UnknownTopicOrPartition,
)
from barnabas.wire.messages.metadata_records import FenceBrokerRecord, PartitionChangeRecord


def outcomes(results):
    return {
        (name, each.partition): type(each.error) if each.error else None
        for name, partitions in results
        for each in partitions
    }


def elect(cluster, kind, partitions):
    return outcomes(cluster.submit(ElectLeaders(kind, partitions)))


@pytest.fixture
def three(make_cluster):
    """Three brokers; partition 0 of orders prefers 1, partition 1 prefers 2."""
    cluster = make_cluster(brokers=(1, 2, 3))
    cluster.create(NewTopic("orders", assignments=[(0, [1, 2]), (1, [2, 3])]))
    return cluster


def set_partition(cluster, index=0, **fields):
    cluster.apply([PartitionChangeRecord(partition_id=index, topic_id=cluster.topic("orders").id, **fields)])


def fence(cluster, broker_id):
    cluster.apply([FenceBrokerRecord(id=broker_id, epoch=cluster.image.brokers[broker_id].epoch)])


# ---------------------------------------------------------------- elections


def test_a_preferred_leader_that_leads_needs_no_election(three):
    assert elect(three, PREFERRED, [("orders", [0])]) == {("orders", 0): ElectionNotNeeded}


def test_the_preferred_leader_gets_its_partition_back(three):
    set_partition(three, leader=2)
    assert elect(three, PREFERRED, [("orders", [0, 1])]) == {("orders", 0): None, ("orders", 1): ElectionNotNeeded}
    assert (three.partition("orders").leader, three.partition("orders").leader_epoch) == (1, 2)


@pytest.mark.parametrize("isr", [[2], [1, 2]], ids=["not in sync", "fenced"])
def test_a_preferred_leader_that_cannot(three, isr):
    set_partition(three, leader=2, isr=isr)
    fence(three, 1)
    assert elect(three, PREFERRED, [("orders", [0])]) == {("orders", 0): PreferredLeaderNotAvailable}


def test_all_partitions_at_once_name_only_what_was_to_do(three):
    set_partition(three, leader=2)
    results = three.submit(ElectLeaders(PREFERRED, None))
    assert [(name, [each.partition for each in partitions]) for name, partitions in results] == [("orders", [0])]
    results = three.submit(ElectLeaders(PREFERRED, None))
    assert results == [("orders", [])]


def test_partitions_that_are_not_there(three):
    assert elect(three, PREFERRED, [("nope", [0]), ("orders", [9, -1])]) == dict.fromkeys(
        [("nope", 0), ("orders", 9), ("orders", -1)], UnknownTopicOrPartition
    )


def test_a_duplicate_partition_has_two_results(three):
    ((name, results),) = three.submit(ElectLeaders(PREFERRED, [("orders", [0, 0])]))
    assert (name, [each.partition for each in results]) == ("orders", [0, 0])


@pytest.mark.parametrize("kind", [2, -1])
def test_no_such_election(three, kind):
    with pytest.raises(InvalidRequest):
        three.submit(ElectLeaders(kind, None))


def test_an_unclean_election_is_for_partitions_without_a_leader(three):
    assert elect(three, UNCLEAN, [("orders", [0])]) == {("orders", 0): ElectionNotNeeded}


def test_an_unclean_election_takes_any_replica_that_is_there(three):
    set_partition(three, leader=-1, isr=[1])
    fence(three, 1)
    assert elect(three, UNCLEAN, [("orders", [0])]) == {("orders", 0): None}
    partition = three.partition("orders")
    assert (partition.leader, partition.isr) == (2, (2,))


def test_an_unclean_election_without_anybody(three):
    set_partition(three, leader=-1)
    fence(three, 1)
    fence(three, 2)
    assert elect(three, UNCLEAN, [("orders", [0])]) == {("orders", 0): EligibleLeadersNotAvailable}


# ---------------------------------------------------------------- who may lead when a broker comes back


@pytest.mark.parametrize(
    ("isr", "elr", "last_known", "leader"),
    [
        ([1], None, None, 1),
        ([], [1], [1], 1),
        ([], [1, 2], [2], 1),
        ([], None, [1], 1),
        ([], None, [2], -1),
        ([], None, None, -1),
        ([2], [1], None, -1),  # the ISR has records that the eligible replica may lack
        ([2], None, None, -1),
    ],
)
def test_a_partition_without_a_leader_gets_one_that_has_everything(three, isr, elr, last_known, leader):
    set_partition(three, leader=-1, isr=isr, eligible_leader_replicas=elr, last_known_elr=last_known)
    for broker_id in (1, 2):
        fence(three, broker_id)
    three.heartbeat(1)
    assert three.partition("orders").leader == leader


def test_a_leader_out_of_the_eligible_ones_is_in_sync_alone(three):
    """The state after a clean shutdown of a single node of Apache Kafka (KIP-966)."""
    set_partition(three, leader=-1, isr=[], eligible_leader_replicas=[1], last_known_elr=[1], leader_recovery_state=1)
    fence(three, 1)
    three.heartbeat(1)
    partition = three.partition("orders")
    assert (partition.isr, partition.elr, partition.last_known_elr) == ((1,), (), ())
    assert partition.leader_epoch == 2
    assert partition.leader_recovery_state == 1  # until the leader has recovered


# ---------------------------------------------------------------- reassignment


def reassign(cluster, *partitions, topic="orders", allow_replication_factor_change=True):
    command = AlterPartitionReassignments([(topic, partitions)], allow_replication_factor_change)
    return [type(each.error) if each.error else None for each in cluster.submit(command)[0][1]]


def test_a_partition_that_is_where_it_should_be_does_not_move(three):
    assert reassign(three, (0, [1, 2])) == [None]
    assert three.records == []


def test_replicas_are_put_into_another_order_at_once(three):
    assert reassign(three, (0, [2, 1])) == [None]
    partition = three.partition("orders")
    assert (partition.replicas, partition.is_reassigning) == ((2, 1), False)


def test_a_partition_begins_to_move(three):
    before = three.partition("orders")
    assert reassign(three, (0, [3, 2])) == [None]
    partition = three.partition("orders")
    assert (partition.replicas, partition.adding, partition.removing) == ((3, 2, 1), (3,), (1,))
    assert partition.isr == before.isr
    assert partition.directories[1:] == before.directories[::-1]


def test_a_move_is_called_off(three):
    reassign(three, (0, [3, 2]))
    assert reassign(three, (0, None)) == [None]
    partition = three.partition("orders")
    assert (sorted(partition.replicas), partition.adding, partition.removing) == ([1, 2], (), ())
    assert reassign(three, (0, None)) == [NoReassignmentInProgress]


@pytest.mark.parametrize("target", [[], [9], [1, 1], [-1], [1, 9]])
def test_brokers_that_cannot_hold_it(three, target):
    assert reassign(three, (0, target), (1, [2, 3])) == [InvalidReplicaAssignment, None]


def test_partitions_that_are_not_there_do_not_move(three):
    assert reassign(three, (9, [1]), (9, None)) == [UnknownTopicOrPartition] * 2
    assert reassign(three, (0, [1]), topic="nope") == [UnknownTopicOrPartition]


def test_the_number_of_replicas_may_be_kept(three):
    assert reassign(three, (0, [1]), allow_replication_factor_change=False) == [InvalidReplicationFactor]
    assert reassign(three, (0, [3, 1]), allow_replication_factor_change=False) == [None]
    assert reassign(three, (1, [2]), allow_replication_factor_change=True) == [None]
