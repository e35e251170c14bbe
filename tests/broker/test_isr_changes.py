"""AlterPartition as a broker sends it: batched, one at a time, sent again after errors of the whole request."""

from types import SimpleNamespace

import pytest

from barnabas.broker.isr_changes import IsrChanges
from barnabas.clock import ManualClock
from barnabas.cluster.replication.followers import CommittedIsr, IsrChange
from barnabas.errors import FencedLeaderEpoch, NetworkException, OperationNotAttempted, StaleBrokerEpoch
from barnabas.wire.messages.alter_partition import AlterPartitionResponse
from tests.kinds import kind

Topic = AlterPartitionResponse.TopicData
ONE, TWO = bytes([1] * 16), bytes([2] * 16)


class Channel:
    def __init__(self):
        self.sent = []

    def send(self, request, done, *, timeout_ms=None, lane=""):
        self.sent.append((request, done))


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def channel():
    return Channel()


@pytest.fixture
def node(clock, channel):
    return SimpleNamespace(
        node_id=1,
        epoch=55,
        config={"replica.lag.time.max.ms": 10_000},
        cluster_clock=clock,
        cluster_scheduler=clock,
        image=SimpleNamespace(brokers={}),
        controller_channel=channel,
    )


@pytest.fixture
def changes(node):
    return IsrChanges(node)


@pytest.fixture
def outcomes():
    return []


def change(changes, outcomes, topic_id=ONE, partition=0, isr=((1, 55), (2, 66))):
    def done(committed, error):
        outcomes.append(((topic_id[0], partition), committed or kind(error)))

    changes.change_isr(IsrChange(topic_id, partition, 3, 7, dict(isr)), done)


def answered(*partitions, error=0):
    topics = {}
    for topic_id, partition, code in partitions:
        topics.setdefault(topic_id, []).append(
            Topic.PartitionData(
                partition_index=partition, error_code=code, leader_id=1, leader_epoch=3, isr=[1], partition_epoch=8
            )
        )
    return AlterPartitionResponse(
        error_code=error, topics=[Topic(topic_id=each, partitions=topics[each]) for each in topics]
    )


COMMITTED = CommittedIsr(3, 8, (1,))


def test_all_of_one_turn_go_in_one_request(changes, channel, clock, outcomes):
    change(changes, outcomes)
    change(changes, outcomes, partition=1)
    change(changes, outcomes, TWO)
    assert channel.sent == []
    clock.advance(0)
    [(request, done)] = channel.sent
    assert (request.broker_id, request.broker_epoch) == (1, 55)
    assert [(topic.topic_id, [each.partition_index for each in topic.partitions]) for topic in request.topics] == [
        (ONE, [0, 1]),
        (TWO, [0]),
    ]
    proposed = request.topics[0].partitions[0]
    assert (proposed.leader_epoch, proposed.partition_epoch, proposed.leader_recovery_state) == (3, 7, 0)
    assert [(each.broker_id, each.broker_epoch) for each in proposed.new_isr_with_epochs] == [(1, 55), (2, 66)]
    for version in (2, 3):
        assert request.encode(version=version)
    done(answered((ONE, 0, 0), (ONE, 1, FencedLeaderEpoch.code), (TWO, 0, 0)), None)
    assert outcomes == [((1, 0), COMMITTED), ((1, 1), FencedLeaderEpoch), ((2, 0), COMMITTED)]
    clock.advance(1)
    assert len(channel.sent) == 1


def test_what_comes_meanwhile_waits_for_the_answer(changes, channel, clock, outcomes):
    change(changes, outcomes)
    clock.advance(0)
    change(changes, outcomes, TWO)
    clock.advance(1)
    assert len(channel.sent) == 1
    channel.sent[0][1](answered((ONE, 0, 0)), None)
    clock.advance(0)
    assert [topic.topic_id for topic in channel.sent[1][0].topics] == [TWO]


def test_a_second_change_of_a_partition_is_not_attempted(changes, channel, clock, outcomes):
    change(changes, outcomes)
    change(changes, outcomes)
    clock.advance(0)
    assert outcomes == [((1, 0), OperationNotAttempted)]


@pytest.mark.parametrize(
    "failure", [(answered(error=StaleBrokerEpoch.code), None), (None, NetworkException())], ids=["stale", "lost"]
)
def test_an_error_of_the_whole_is_sent_again(changes, channel, clock, outcomes, failure):
    change(changes, outcomes)
    clock.advance(0)
    channel.sent[0][1](*failure)
    clock.advance(0.04)
    assert len(channel.sent) == 1
    clock.advance(0.01)
    channel.sent[1][1](answered((ONE, 0, 0)), None)
    assert outcomes == [((1, 0), COMMITTED)]


def test_what_the_answer_lacks_is_sent_again(changes, channel, clock, outcomes):
    change(changes, outcomes)
    clock.advance(0)
    channel.sent[0][1](answered(), None)
    clock.advance(0)
    assert len(channel.sent) == 2


def test_leaders_look_twice_in_the_time_of_the_lag(changes, clock):
    looks = []

    def look():
        looks.append(clock.monotonic())

    changes.look_at(look)
    clock.advance(12)
    assert looks == [5, 10]
    changes.look_no_more(look)
    clock.advance(20)
    assert len(looks) == 2


def test_nothing_happens_after_the_end(changes, channel, clock, outcomes):
    changes.look_at(lambda: outcomes.append("looked"))
    change(changes, outcomes)
    clock.advance(0)
    change(changes, outcomes, TWO)
    changes.close()
    channel.sent[0][1](answered((ONE, 0, 0)), None)
    clock.advance(60)
    assert (outcomes, len(channel.sent)) == ([], 1)
