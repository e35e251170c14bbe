"""Records that members of share groups have acquired, in a recording and in a run."""

import pytest

from barnabas.replay.acquired import Acquired
from barnabas.replay.meanings import Meaning
from barnabas.replay.translation import Scope, Translation
from barnabas.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse

BEFORE, NOW = b"b" * 16, b"n" * 16
Topic = ShareFetchResponse.ShareFetchableTopicResponse
Partition = Topic.PartitionData
REQUEST = ShareFetchRequest(
    group_id="g", member_id="m", share_session_epoch=1, max_wait_ms=1, min_bytes=1, max_records=5, batch_size=5,
    topics=[], forgotten_topics_data=[],
)  # fmt: skip


@pytest.fixture
def acquired():
    translation = Translation()
    translation.topics[BEFORE] = "orders"
    translation.learn(Meaning.TOPIC_ID, Scope(), BEFORE, NOW)
    translation.learn(Meaning.OFFSET, Scope("orders", 1), 0, 10)
    return Acquired(translation)


def response(topic_id, **places):
    """A response with offsets by partition: ``p0=(0, 2)``, and 10 bytes for each record."""
    partitions = [
        Partition(
            partition_index=int(name[1:]),
            acknowledge_error_code=0,
            current_leader=Partition.LeaderIdAndEpoch(leader_id=0, leader_epoch=0),
            records=bytes(10 * (last - first + 1)),
            acquired_records=[Partition.AcquiredRecords(first_offset=first, last_offset=last, delivery_count=1)],
        )
        for name, (first, last) in places.items()
    ]
    topics = [Topic(topic_id=topic_id, partitions=partitions)] if partitions else []
    return ShareFetchResponse(acquisition_lock_timeout_ms=1, responses=topics, node_endpoints=[])


def topic_of(topic_id):
    return "orders" if topic_id == NOW else None


def take(acquired, recorded, replayed):
    acquired.take_recorded(REQUEST, recorded)
    acquired.take_replayed(REQUEST, replayed, topic_of)
    acquired.level(REQUEST, recorded, replayed, topic_of)


def test_records_may_be_in_another_response(acquired):
    recorded, replayed = response(BEFORE, p0=(0, 2)), response(NOW, p0=(0, 2), p1=(10, 10))
    take(acquired, recorded, replayed)
    shapes = [[each.partition_index for each in found.responses[0].partitions] for found in (recorded, replayed)]
    assert shapes == [[0, 1], [0, 1]]
    assert not any(each.acquired_records for each in replayed.responses[0].partitions)
    assert acquired.surplus("g", ("orders", 1)) == 10
    assert [each[0] for each in acquired.differing()] == ["orders-1, share group g"]
    take(acquired, response(BEFORE, p1=(0, 0)), response(NOW))
    assert acquired.surplus("g", ("orders", 1)) == 0
    assert list(acquired.differing()) == []


def test_other_records_are_a_difference(acquired):
    take(acquired, response(BEFORE, p0=(0, 2)), response(NOW, p0=(1, 3)))
    assert list(acquired.differing()) == [("orders-0, share group g", "0 (delivery 1)", "3 (delivery 1)")]


def test_a_response_without_topics_has_those_of_the_other(acquired):
    recorded, replayed = response(BEFORE, p0=(0, 0)), response(NOW)
    take(acquired, recorded, replayed)
    (topic,) = replayed.responses
    assert (topic.topic_id, topic.partitions[0].partition_index) == (NOW, 0)
    assert [each[1:] for each in acquired.differing()] == [("0 (delivery 1)", "no others")]


def test_a_partition_is_behind_until_as_many_records_are_acquired(acquired):
    wanted = acquired.take_recorded(REQUEST, response(BEFORE, p0=(0, 2), p1=(0, 0)))
    assert wanted == [("orders", 0), ("orders", 1)]
    acquired.take_replayed(REQUEST, response(NOW, p0=(0, 0), p1=(10, 10)), topic_of)
    assert acquired.behind("g", wanted) == {("orders", 0): 2}
    acquired.take_replayed(REQUEST, response(NOW, p0=(1, 2)), topic_of)
    assert acquired.behind("g", wanted) == {}
    assert list(acquired.differing()) == []
