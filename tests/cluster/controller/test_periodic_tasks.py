"""The periodic tasks of the active controller, with a manual clock."""

import itertools

import pytest

from barnabas.cluster.controller.commands.topics import CreateTopics, NewTopic
from barnabas.cluster.quorum.client import LastLeader, Leadership
from barnabas.errors import StaleBrokerEpoch
from barnabas.wire.messages.metadata_records import BrokerRegistrationChangeRecord, NoOpRecord, PartitionChangeRecord
from tests.registering import heartbeat, registration


class Node:
    """The metadata of a combined node, broker 1, with brokers 2 and 3 whose heartbeats the test sends."""

    def __init__(self, opener, batches_of, **settings):
        self.clock = opener.clock
        self.metadata = opener.started(scheduler=self.clock, settings=settings)
        self._batches_of = batches_of
        self.epochs = {}
        self._incarnations = itertools.count(10)

    def start(self, broker_id):
        self.epochs[broker_id] = self.metadata.submit(registration(broker_id, next(self._incarnations)))
        self.beat(broker_id)

    def beat(self, broker_id, **fields):
        command = heartbeat(broker_id, self.epochs[broker_id], metadata_offset=self.metadata.image.offset, **fields)
        return self.metadata.submit(command)

    def live(self, seconds, *broker_ids):
        """Advances the clock, with heartbeats of these brokers."""
        for _ in range(round(seconds)):
            self.clock.advance(1)
            for broker_id in broker_ids:
                self.beat(broker_id)

    def create(self, *replicas, **configs):
        command = CreateTopics([NewTopic("orders", assignments=[(0, replicas)], configs=list(configs.items()))])
        self.metadata.submit(command)

    @property
    def fenced(self):
        return {broker.id for broker in self.metadata.image.brokers.values() if broker.fenced}

    @property
    def partition(self):
        return self.metadata.image.topics_by_name["orders"].partitions[0]

    def change(self, **fields):
        topic_id = self.metadata.image.topics_by_name["orders"].id
        controller = self.metadata.controller
        controller._append(controller._encoded([PartitionChangeRecord(partition_id=0, topic_id=topic_id, **fields)]))

    def count(self, cls):
        return sum(isinstance(each, cls) for _, records in self._batches_of(self.metadata.log) for each in records)


@pytest.fixture
def make_node(open_metadata, batches_of):
    return lambda **settings: Node(open_metadata, batches_of, **settings)


@pytest.fixture
def three(make_node):
    node = make_node()
    node.start(2)
    node.start(3)
    return node


def test_a_silent_broker_is_fenced_when_its_session_is_over(three):
    three.create(2, 3)
    three.live(8, 3)
    assert three.fenced == set()
    three.live(2, 3)
    assert three.fenced == {2}
    assert (three.partition.leader, three.partition.isr) == (3, (3,))


def test_brokers_that_fall_silent_together_are_fenced_one_after_the_other(three):
    three.clock.advance(10)
    assert three.fenced == {2, 3}
    assert three.count(BrokerRegistrationChangeRecord) == 5  # three were unfenced


def test_a_broker_that_speaks_again_is_unfenced(three):
    three.clock.advance(10)
    assert not three.beat(2).is_fenced
    assert three.fenced == {3}
    three.live(20, 2)
    assert three.fenced == {3}


def test_a_fenced_broker_that_starts_again_is_no_duplicate(three):
    three.clock.advance(10)
    old = three.epochs[2]
    three.start(2)
    three.epochs[2], new = old, three.epochs[2]
    assert new > old
    with pytest.raises(StaleBrokerEpoch):
        three.beat(2)


def test_the_broker_of_this_process_lives_as_long_as_its_controller(three):
    three.live(3600, 2, 3)
    assert three.fenced == set()


def test_a_process_that_did_not_run_takes_nobody_for_silent(three):
    three.clock.skip(60)
    three.clock.advance(0)
    assert three.fenced == set()
    three.live(5, 2)
    assert three.fenced == set()
    three.live(5, 2)
    assert three.fenced == {3}


def test_a_process_that_hardly_ran_waits_as_long_again(three):
    three.clock.skip(11)  # two seconds more than the session
    three.clock.advance(1.9)
    assert three.fenced == set()
    three.beat(2)
    three.clock.advance(0.2)
    assert three.fenced == {3}


def test_another_session_timeout(make_node):
    node = make_node(**{"broker.session.timeout.ms": "2000"})
    node.start(2)
    node.clock.advance(1.9)
    assert node.fenced == set()
    node.clock.advance(0.2)
    assert node.fenced == {2}


# ---------------------------------------------------------------- elections


@pytest.mark.parametrize(("enabled", "leader"), [("true", 2), ("false", 3)])
def test_preferred_leaders_lead_again(make_node, enabled, leader):
    node = make_node(**{"auto.leader.rebalance.enable": enabled, "leader.imbalance.check.interval.seconds": "20"})
    node.start(2)
    node.start(3)
    node.create(2, 3)
    node.change(leader=3)
    node.live(19, 2, 3)
    assert node.partition.leader == 3
    node.live(2, 2, 3)
    assert node.partition.leader == leader


@pytest.mark.parametrize(("enabled", "leader"), [("true", 3), ("false", -1)])
def test_what_nobody_in_sync_leads(make_node, enabled, leader):
    node = make_node(**{"unclean.leader.election.interval.ms": "20000"})
    node.start(2)
    node.start(3)
    node.create(2, 3, **{"unclean.leader.election.enable": enabled})
    node.clock.advance(5)
    node.beat(3)
    node.clock.advance(5)
    node.change(isr=[2], leader=-1)
    assert node.fenced == {2}
    node.live(20, 3)
    assert node.partition.leader == leader


# ---------------------------------------------------------------- idle times


def test_brokers_see_that_the_log_goes_on(three):
    before = three.count(NoOpRecord)
    three.live(5, 2, 3)
    assert 5 <= three.count(NoOpRecord) - before <= 10


@pytest.mark.parametrize("settings", [{}, {"metadata.max.idle.interval.ms": "0"}])
def test_a_lone_broker_writes_nothing_when_it_is_idle(make_node, settings):
    node = make_node(**settings)
    if settings:
        node.start(2)
    end = node.metadata.log.log_end_offset
    node.live(8)
    assert node.metadata.log.log_end_offset == end


def test_it_ends_when_another_controller_is_active(three):
    quorum, controller = three.metadata.quorum, three.metadata.controller
    quorum.leadership = Leadership(2, 5)
    controller.leadership_changed(quorum.leadership)
    end = three.metadata.log.log_end_offset
    three.clock.advance(3600)
    assert three.metadata.log.log_end_offset == end
    assert three.clock._due == []


def test_it_ends_with_the_node(three):
    three.metadata.stop()
    end = three.metadata.log.log_end_offset
    three.clock.advance(3600)
    assert three.metadata.log.log_end_offset == end


@pytest.mark.parametrize(("silent_s", "left_s"), [(0, 9), (3, 6), (60, 4.5)])
def test_the_session_on_the_node_that_was_active_runs_since_it_was_heard_of(three, silent_s, left_s):
    """With ``broker.session.timeout.ms`` of 9 s, at least half of which is left."""
    quorum, controller, clock = three.metadata.quorum, three.metadata.controller, three.clock
    quorum.leadership = Leadership(2, 5)
    controller.leadership_changed(quorum.leadership)
    quorum.last_leader = LastLeader(2, clock.monotonic())
    clock.advance(silent_s)
    quorum.leadership = Leadership(1, 6)
    controller.leadership_changed(quorum.leadership)
    clock.advance(left_s - 0.1)
    assert three.fenced == set()
    three.beat(3)
    clock.advance(0.2)
    assert three.fenced == {2}


def test_who_takes_over_gives_each_broker_a_sessions_time(open_metadata, three, batches_of):
    three.metadata.stop()
    again = open_metadata(scheduler=open_metadata.clock)
    open_metadata.clock.advance(8)
    assert not again.image.brokers[2].fenced
    open_metadata.clock.advance(2)
    assert again.image.brokers[2].fenced and again.image.brokers[3].fenced
    assert not again.image.brokers[1].fenced
