"""OffsetDelete, with the results of Apache Kafka 4.3.1."""

import pytest

from barnabas.errors import (
    NONE,
    CoordinatorNotAvailable,
    GroupIdNotFound,
    GroupSubscribedToTopic,
    InvalidGroupId,
    NonEmptyGroup,
    NotCoordinator,
    UnknownTopicOrPartition,
)
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest

Topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
Partition = Topic.OffsetDeleteRequestPartition

MISSING = UnknownTopicOrPartition.code
SUBSCRIBED = GroupSubscribedToTopic.code

READS_T = b"\0\0" + b"\0\0\0\1" + b"\0\1t" + b"\xff\xff\xff\xff"


def request_for(*topics, group_id="g"):
    requested = [
        Topic(name=name, partitions=[Partition(partition_index=index) for index in indexes]) for name, indexes in topics
    ]
    return OffsetDeleteRequest(group_id=group_id, topics=requested)


def delete(node, *topics, group_id="g"):
    """Returns the error code, and topics with (partition, error code)s."""
    answer = node.call(request_for(*topics, group_id=group_id), 0)
    found = [(each.name, [(row.partition_index, row.error_code) for row in each.partitions]) for each in answer.topics]
    return answer.error_code, found


def committed(node):
    return {name: set(rows) for name, rows in node.broker.groups.fetch_offsets("g").items()}


def test_of_an_empty_group(group_node):
    group_node.commit(p0=1, p1=2)
    found = delete(group_node, ("t", [0, 0, 2, 99]), ("v", [0]), ("u", [0]), ("u", []))
    assert found == (
        NONE,
        [("t", [(99, MISSING), (0, NONE), (0, NONE), (2, NONE)]), ("v", [(0, MISSING)]), ("u", [(0, NONE)])],
    )
    assert committed(group_node) == {"t": {1}}
    assert delete(group_node, ("t", [1]), ("t", [1])) == (NONE, [("t", [(1, NONE)]), ("t", [(1, NONE)])])
    assert committed(group_node) == {}


def test_of_topics_that_its_consumers_read(group_node):
    group_node.commit(p0=1)
    group_node.commit(topic="u", p0=1)
    group_node.stable(protocols=(("range", READS_T),))
    found = delete(group_node, ("t", [0, 77]), ("u", [0]))
    assert found == (NONE, [("t", [(77, MISSING), (0, SUBSCRIBED)]), ("u", [(0, NONE)])])
    assert committed(group_node) == {"t": {0}}


def test_of_a_group_of_something_else(group_node):
    group_node.commit(p0=1)
    group_node.stable(protocol_type="connect")
    assert delete(group_node, ("t", [0])) == (NonEmptyGroup.code, [])


@pytest.mark.parametrize(
    ("group_id", "error"), [("nobody's", GroupIdNotFound), ("", InvalidGroupId)], ids=["unknown", "empty"]
)
def test_the_group_is_looked_at_first(group_node, group_id, error):
    for topics in ([], [("t", [0])], [("v", [0])]):
        assert delete(group_node, *topics, group_id=group_id) == (error.code, [])


def test_without_its_topic_there_is_no_coordinator(quiet_group_node):
    assert delete(quiet_group_node, ("t", [0])) == (NotCoordinator.code, [])


@pytest.mark.parametrize("index", [0, 1], ids=["an offset", "nothing to delete"])
def test_a_coordinator_without_followers_deletes_nothing(group_node, index):
    """It may have a successor, of which it does not know. One error is that of the whole request."""
    group_node.commit(p0=1)
    group_node.lose_followers()
    response = group_node.after_the_time_out(group_node.send(request_for(("t", [index]), ("t", [99])), 0), 0)
    assert (response.error_code, response.topics) == (CoordinatorNotAvailable.code, [])
    assert committed(group_node) == {"t": {0}}
