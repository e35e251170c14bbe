"""The states of brokers between their registrations: fenced, unfenced, and controlled shutdown."""

import pytest

from barnabas.cluster.controller.commands.nodes import HeartbeatResult
from barnabas.cluster.controller.commands.topics import NewTopic
from barnabas.errors import DuplicateBrokerRegistration, StaleBrokerEpoch
from barnabas.wire.messages.metadata_records import BrokerRegistrationChangeRecord, PartitionChangeRecord
from tests.registering import heartbeat, registration


@pytest.fixture
def three(make_cluster):
    """Three brokers; partition 0 of orders prefers 1, partition 1 prefers 2."""
    cluster = make_cluster(brokers=(1, 2, 3))
    cluster.create(NewTopic("orders", assignments=[(0, [1, 2, 3]), (1, [2, 3, 1])]))
    return cluster


def leaders(cluster):
    return [cluster.partition("orders", index).leader for index in (0, 1)]


# ---------------------------------------------------------------- fenced and unfenced


def test_a_broker_is_unfenced_when_it_knows_of_its_registration(make_cluster):
    cluster = make_cluster(brokers=())
    cluster.register(1)
    before = cluster.image.offset - 1
    assert cluster.heartbeat(1, metadata_offset=before) == HeartbeatResult(False, True, False)
    assert cluster.heartbeat(1) == HeartbeatResult(True, False, False)
    assert cluster.heartbeat(1, metadata_offset=before) == HeartbeatResult(False, False, False)
    assert cluster.records == []


def test_a_broker_may_want_to_stay_fenced(make_cluster):
    cluster = make_cluster(brokers=())
    cluster.register(1)
    assert cluster.heartbeat(1, want_fence=True) == HeartbeatResult(True, True, False)
    assert cluster.records == []


@pytest.mark.parametrize(("broker_id", "epoch"), [(1, -1), (1, 10_000), (9, 1)])
def test_another_incarnation_has_no_heartbeats(three, broker_id, epoch):
    with pytest.raises(StaleBrokerEpoch):
        three.submit(heartbeat(broker_id, epoch, metadata_offset=10_000))


def test_a_fenced_broker_leads_nothing(three):
    assert three.fence(1).is_fenced
    assert leaders(three) == [2, 2]
    assert {three.partition("orders", index).isr for index in (0, 1)} == {(2, 3)}
    kinds = [type(record) for record in three.records]
    assert kinds == [PartitionChangeRecord, PartitionChangeRecord, BrokerRegistrationChangeRecord]


def test_who_is_unfenced_last_does_not_take_over(three):
    three.fence(1)
    three.heartbeat(1)
    assert leaders(three) == [2, 2]


def test_what_nobody_leads_the_first_eligible_broker_leads(three):
    for broker_id in (3, 1, 2):
        three.fence(broker_id)
    assert leaders(three) == [-1, -1]
    assert set(three.partition("orders").elr) == {2}  # the minimum is 1
    three.heartbeat(3)
    assert leaders(three) == [-1, -1]
    three.heartbeat(2)
    assert leaders(three) == [2, 2]


# ---------------------------------------------------------------- sessions


def test_nobody_takes_the_id_of_a_broker_that_lives(three):
    with pytest.raises(DuplicateBrokerRegistration):
        three.submit(registration(1, 99))
    three.clock.advance(9)
    three.submit(registration(1, 99))


def test_a_broker_that_was_let_go_registers_again_at_once(three):
    three.stop(1)
    three.submit(registration(1, 99))


def test_the_same_incarnation_registers_again_as_it_is(make_cluster):
    cluster = make_cluster(brokers=())
    epoch = cluster.submit(registration(1, 5))
    cluster.heartbeat(1)
    assert cluster.submit(registration(1, 5, rack="r")) == epoch
    broker = cluster.image.brokers[1]
    assert (broker.epoch, broker.rack, broker.fenced) == (epoch, "r", False)
    assert cluster.heartbeats.has_session(1, epoch)


# ---------------------------------------------------------------- controlled shutdown


def test_leaders_move_first_and_the_others_have_to_know(three):
    before = three.image.offset
    assert three.heartbeat(1, want_shut_down=True) == HeartbeatResult(True, False, False)
    broker = three.image.brokers[1]
    assert (broker.fenced, broker.in_controlled_shutdown) == (False, True)
    assert leaders(three) == [2, 2]
    three.heartbeat(2)
    three.heartbeat(3, metadata_offset=before)
    assert not three.heartbeat(1, want_shut_down=True).should_shut_down
    three.heartbeat(3)
    assert three.heartbeat(1, want_shut_down=True) == HeartbeatResult(True, True, True)
    assert three.image.brokers[1].fenced


def test_a_broker_that_leads_nothing_stops_at_once(three):
    assert three.heartbeat(3, want_shut_down=True).should_shut_down
    assert not three.image.brokers[3].in_controlled_shutdown


def test_the_last_broker_stops_at_once(three):
    three.stop(1)
    three.stop(3)
    assert leaders(three) == [2, 2]
    assert three.heartbeat(2, want_shut_down=True).should_shut_down
    assert leaders(three) == [-1, -1]


def test_a_fenced_broker_stops_at_once(three):
    three.fence(1)
    assert three.heartbeat(1, want_shut_down=True) == HeartbeatResult(True, True, True)
    assert three.records == []


def test_a_broker_that_stops_gets_no_new_replicas(three):
    three.heartbeat(1, want_shut_down=True)
    three.create(NewTopic("more", 6, 2))
    replicas = {each for partition in three.topic("more").partitions.values() for each in partition.replicas}
    assert replicas == {2, 3}


# ---------------------------------------------------------------- directories


def test_cordoned_directories_are_recorded_once(three):
    directory = three.image.brokers[1].log_dirs[0]
    three.heartbeat(1, cordoned_log_dirs=[directory])
    assert three.image.brokers[1].cordoned_log_dirs == (directory,)
    three.heartbeat(1, cordoned_log_dirs=[directory])
    assert three.records == []
    three.heartbeat(1)
    assert three.image.brokers[1].cordoned_log_dirs == (directory,)
    three.heartbeat(1, cordoned_log_dirs=[])
    assert three.image.brokers[1].cordoned_log_dirs == ()
