"""What members of groups know after their heartbeats, in a recording and in a run."""

import pytest

from barnabas.replay.heartbeats import Heartbeats
from barnabas.replay.meanings import Meaning
from barnabas.replay.translation import Scope, Translation
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

BEFORE, NOW = b"b" * 16, b"n" * 16
Assignment = ShareGroupHeartbeatResponse.Assignment


@pytest.fixture
def translation():
    made = Translation()
    made.learn(Meaning.TOPIC_ID, Scope(), BEFORE, NOW)
    return made


@pytest.fixture
def heartbeats(translation):
    return Heartbeats(translation)


def request(epoch=0):
    return ShareGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=epoch)


def response(epoch, topic_id, *partitions, error=0):
    topics = (
        [ShareGroupHeartbeatResponse.TopicPartitions(topic_id=topic_id, partitions=list(partitions))]
        if partitions
        else []
    )
    assignment = None if topic_id is None else Assignment(topic_partitions=topics)
    return ShareGroupHeartbeatResponse(
        error_code=error, member_id="m", member_epoch=epoch, heartbeat_interval_ms=1, assignment=assignment
    )


def test_a_member_waits_for_its_assignment(heartbeats):
    recorded = response(2, BEFORE, 0, 1)
    assert heartbeats.is_behind(request(), recorded, response(1, NOW))
    assert heartbeats.is_behind(request(), recorded, response(2, NOW, 0))
    last = response(3, NOW, 0, 1)
    assert not heartbeats.is_behind(request(), recorded, last)
    assert recorded.assignment is last.assignment is None
    assert list(heartbeats.differing()) == []


def test_an_assignment_may_come_earlier_than_it_did(heartbeats):
    recorded, early = response(1, BEFORE), response(2, NOW, 0)
    assert not heartbeats.is_behind(request(), recorded, early)
    assert early.assignment is None
    assert [each[1:] for each in heartbeats.differing()] == [(frozenset(), frozenset({(NOW, 0)}))]
    assert not heartbeats.is_behind(request(1), response(2, BEFORE, 0), response(2, None))
    assert list(heartbeats.differing()) == []


def test_another_assignment_is_compared(heartbeats):
    recorded, other = response(1, BEFORE, 0), response(1, NOW, 1)
    assert not heartbeats.is_behind(request(), recorded, other)
    assert recorded.assignment is not None
    assert other.assignment is not None


def test_a_request_has_the_epoch_of_this_run(heartbeats, translation):
    heartbeats.is_behind(request(), response(2, BEFORE, 0), response(4, NOW, 0))
    sent = request(2)
    assert heartbeats.renew(sent, request(2))
    assert sent.member_epoch == 4
    assert not heartbeats.renew(request(-1), request(-1))
    assert translation.value(Meaning.GENERATION, Scope(group="g"), 2) == 4


def test_a_member_that_joins_again_knows_nothing(heartbeats):
    heartbeats.is_behind(request(), response(2, BEFORE, 0), response(2, NOW, 0))
    assert heartbeats.is_behind(request(), response(3, BEFORE, 0), response(3, NOW))


def test_errors_and_other_requests_are_no_heartbeats(heartbeats):
    assert not heartbeats.is_behind(request(), response(1, BEFORE, 0), response(0, None, error=25))
    classic = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    assert not heartbeats.is_behind(classic, HeartbeatResponse(), HeartbeatResponse())
    assert not heartbeats.renew(classic, classic)
