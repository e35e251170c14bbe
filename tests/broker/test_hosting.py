"""The partitions of a node: the effect of a topic's configs, and when new ones get their logs."""

import pytest

import barnabas.testing
from barnabas.broker import Broker
from barnabas.broker.hosting import AT_ONCE
from barnabas.clock import ManualClock
from barnabas.cluster.controller.commands.topics import CreateTopics, DeleteTopics, NewTopic
from barnabas.cluster.image.image import MetadataDelta
from barnabas.cluster.topic_names import CONSUMER_OFFSETS
from barnabas.config import BrokerConfig
from barnabas.errors import NotLeaderOrFollower, UnknownTopicOrPartition
from barnabas.log.files import MemoryFiles
from barnabas.testing.faults import FaultyFiles
from tests.broker.opening import opened
from tests.registering import heartbeat, registration

TOTAL = 3 * AT_ONCE


def notices(caplog):
    return [record.getMessage() for record in caplog.records if "has no effect" in record.getMessage()]


def test_a_config_of_a_topic_without_effect_is_said_so_when_it_is_set(caplog):
    with barnabas.testing.Broker() as broker:
        broker.create_topic("big", configs={"preallocate": True, "retention.ms": 5, "local.retention.ms": -2})
    assert notices(caplog) == [
        "preallocate is set for topic big, but has no effect in this version of Barnabas",
    ]


def test_a_config_without_effect_that_has_its_default_is_no_news(caplog):
    with barnabas.testing.Broker() as broker:
        broker.create_topic("small", configs={"preallocate": False})
    assert notices(caplog) == []


class Hosting:
    """A broker whose loop turns only when the clock advances."""

    def __init__(self):
        self.clock = ManualClock()
        self.files = MemoryFiles(self.clock)
        self.broker = self.open()

    def open(self):
        self.broker = opened(BrokerConfig.from_properties({"log.dirs": "/a,/b"}), self.files, self.clock)
        return self.broker

    def submit(self, command):
        errors = []
        self.broker.controller.submit(command, lambda result, error: errors.append(error))
        assert errors == [None]

    def create(self, *topics):
        """Creates topics by one command, so that they come in one change of the metadata."""
        self.submit(CreateTopics([NewTopic(name, partitions, 1) for name, partitions in topics]))

    def count(self, topic):
        return sum(name == topic for name, _ in self.broker.partitions)

    def turn(self):
        self.clock.advance(0.0001)


@pytest.fixture
def hosting():
    return Hosting()


def test_the_first_of_many_new_replicas_get_their_logs_before_the_answer(hosting):
    hosting.create(("many", TOTAL))
    assert hosting.count("many") == AT_ONCE
    assert hosting.broker.partition("many", AT_ONCE - 1).leads
    for index in (AT_ONCE, TOTAL - 1):
        with pytest.raises(NotLeaderOrFollower):
            hosting.broker.partition("many", index)


def test_the_others_get_theirs_in_later_turns(hosting):
    hosting.create(("some", 10), ("many", TOTAL))
    assert (hosting.count("some"), hosting.count("many")) == (10, AT_ONCE - 10)
    hosting.turn()
    assert hosting.count("many") == TOTAL
    assert all(hosting.broker.partition("many", index).leads for index in range(TOTAL))
    assert {"many-0", f"many-{TOTAL - 1}"} <= {*hosting.files.list("/a"), *hosting.files.list("/b")}


def test_the_metadata_gets_the_directories_of_all(hosting):
    hosting.create(("many", TOTAL))
    hosting.turn()
    used = {directory.directory_id for directory in hosting.broker.log_manager.online_directories}
    image = hosting.broker.image.topics_by_name["many"]
    assert {each.directories[0] for each in image.partitions.values()} == used
    assert hosting.broker.hosting.misplaced(hosting.broker.image) == []


def test_internal_topics_do_not_wait(hosting):
    hosting.create(("many", TOTAL), (CONSUMER_OFFSETS, 50))
    assert hosting.count(CONSUMER_OFFSETS) == 50


def test_a_topic_that_is_created_meanwhile_does_not_wait(hosting):
    hosting.create(("many", TOTAL))
    hosting.create(("later", 1))
    assert hosting.broker.partition("later", 0).leads


def test_a_change_of_replicas_that_wait_does_not_host_them_sooner(hosting):
    hosting.create(("many", TOTAL))
    broker = hosting.broker
    delta = MetadataDelta()
    delta.partitions[broker.image.topics_by_name["many"].id] = set(range(TOTAL))
    broker.hosting.follow(broker.image, delta, broker.config, all_changed=False)
    assert hosting.count("many") == AT_ONCE
    hosting.turn()
    assert hosting.count("many") == TOTAL


def test_a_topic_that_is_deleted_meanwhile_gets_no_more_logs(hosting):
    hosting.create(("many", TOTAL))
    hosting.submit(DeleteTopics([("many", bytes(16))]))
    hosting.turn()
    assert hosting.count("many") == 0
    with pytest.raises(UnknownTopicOrPartition):
        hosting.broker.partition("many", AT_ONCE)


def test_replicas_that_wait_when_the_node_stops_get_their_logs_at_its_start(hosting):
    hosting.create(("many", TOTAL))
    hosting.broker.close()
    hosting.turn()
    assert hosting.count("many") < TOTAL
    hosting.open()
    assert hosting.count("many") == TOTAL


def test_what_an_earlier_process_led_is_not_led_before_the_registration(hosting, monkeypatch):
    """Its log may have lost records, and the epoch would begin at another offset. Nobody else has a sole replica."""
    hosting.files = FaultyFiles(clock=hosting.clock)
    hosting.open()
    hosting.submit(registration(2, cluster_id=hosting.broker.cluster_id))
    hosting.submit(heartbeat(2, hosting.broker.image.brokers[2].epoch, metadata_offset=1 << 40))
    hosting.submit(
        CreateTopics([NewTopic("pair", assignments=[(0, (1, 2))]), NewTopic("sole", assignments=[(0, (1,))])])
    )
    assert hosting.broker.partition("pair", 0).leads
    hosting.files = hosting.files.survivor()
    monkeypatch.setattr(Broker, "register", lambda *_: None)
    broker = hosting.open()
    pair = broker.partition("pair", 0)
    assert (pair.image.leader, pair.leads, pair.log.leader_epochs.entries) == (1, False, [])
    assert {each.topic: each.leads for each in broker.partitions.values()}["sole"]
    monkeypatch.undo()
    broker.register({"PLAINTEXT": 9092})
    assert pair.leads == (pair.image.leader == 1)
    assert pair.image.leader_epoch > 0
