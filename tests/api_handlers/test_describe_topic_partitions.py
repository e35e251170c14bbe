"""DescribeTopicPartitions, as Apache Kafka 4.3.1 answers it."""

import pytest

from barnabas.api_handlers.describe_topic_partitions import describe_topic_partitions
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest as Request
from barnabas.wire.messages.metadata_records import PartitionChangeRecord
from tests.submitting import append


@pytest.fixture
def ask(node):
    for name, partitions in (("t3", 3), ("u5", 5), ("t10", 10)):
        node.create_topic(name, partitions)

    def ask(*names, limit=2000, cursor=None):
        requested = Request(
            topics=[Request.TopicRequest(name=name) for name in names],
            response_partition_limit=limit,
            cursor=None if cursor is None else Request.Cursor(topic_name=cursor[0], partition_index=cursor[1]),
        )
        response = node.ask(describe_topic_partitions, requested, 0)
        following = response.next_cursor
        found = [
            (topic.name, topic.error_code, [each.partition_index for each in topic.partitions])
            for topic in response.topics
        ]
        return found, None if following is None else (following.topic_name, following.partition_index)

    return ask


def up_to(count, first=0):
    return list(range(first, count))


def test_topics_come_in_the_order_of_their_names(ask):
    assert ask("u5", "t3", "t3", "nope", "t10", "a b") == (
        [("a b", 17, []), ("nope", 3, []), ("t10", 0, up_to(10)), ("t3", 0, up_to(3)), ("u5", 0, up_to(5))],
        None,
    )


def test_no_names_are_all_topics(ask):
    assert ask() == ([("t10", 0, up_to(10)), ("t3", 0, up_to(3)), ("u5", 0, up_to(5))], None)
    assert ask(cursor=("t2", 7)) == ([("t3", 0, up_to(3)), ("u5", 0, up_to(5))], None)
    assert ask(cursor=("t3", 2), limit=3) == ([("t3", 0, [2]), ("u5", 0, [0, 1])], ("u5", 2))


@pytest.mark.parametrize(
    ("limit", "expected", "following"),
    [
        (4, [("t10", 0, up_to(4))], ("t10", 4)),
        (10, [("t10", 0, up_to(10))], ("t3", 0)),
        (12, [("t10", 0, up_to(10)), ("t3", 0, [0, 1])], ("t3", 2)),
        (13, [("t10", 0, up_to(10)), ("t3", 0, up_to(3))], None),
        (0, [("t10", 0, [0])], ("t10", 1)),
        (-1, [("t10", 0, [0])], ("t10", 1)),
    ],
)
def test_a_page_ends_where_its_limit_is(ask, limit, expected, following):
    assert ask("t10", "t3", limit=limit) == (expected, following)


def test_topics_that_are_not_there_take_no_room_but_need_some(ask):
    assert ask("a", "t3", limit=3) == ([("a", 3, []), ("t3", 0, up_to(3))], None)
    assert ask("t3", "z", limit=3) == ([("t3", 0, up_to(3))], ("z", 0))


def test_a_cursor_goes_on(ask):
    assert ask("t10", "t3", cursor=("t10", 8)) == ([("t10", 0, [8, 9]), ("t3", 0, up_to(3))], None)
    assert ask("t10", "t3", cursor=("t3", 1)) == ([("t3", 0, [1, 2])], None)
    assert ask("t10", "t3", cursor=("t10", 10)) == ([("t10", 0, []), ("t3", 0, up_to(3))], None)
    assert ask("nope", "t3", cursor=("nope", 2)) == ([("nope", 3, []), ("t3", 0, up_to(3))], None)


@pytest.mark.parametrize("cursor", [("t10", -1), ("a", 0), ("zz", 0), ("", 0)])
def test_a_cursor_that_cannot_be(ask, cursor):
    assert ask("t10", "t3", cursor=cursor) == ([("t10", 42, []), ("t3", 42, [])], None)


def test_an_empty_name_spoils_them_all(ask):
    assert ask("t3", "") == ([("t3", -1, []), ("", -1, [])], None)
    assert ask("", "t3", cursor=("t3", 0)) == ([("t3", 0, up_to(3))], None)


def test_the_broker_has_a_limit_too(quiet_node):
    node = quiet_node(**{"max.request.partition.size.limit": "2"})
    node.create_topic("orders", 3)
    requested = Request(topics=[Request.TopicRequest(name="orders")])
    response = node.ask(describe_topic_partitions, requested, 0)
    assert [each.partition_index for each in response.topics[0].partitions] == [0, 1]


def test_a_partition_whole(node):
    node.create_topic("orders")
    image = node.broker.image
    topic_id = image.topics_by_name["orders"].id
    change = PartitionChangeRecord(
        partition_id=0, topic_id=topic_id, leader=-1, isr=[], eligible_leader_replicas=[1], last_known_elr=[1]
    )
    append(node.broker, change)
    requested = Request(topics=[Request.TopicRequest(name="orders")])
    (topic,) = node.ask(describe_topic_partitions, requested, 0).topics
    assert (topic.topic_id, topic.is_internal, topic.topic_authorized_operations) == (topic_id, False, 3576)
    (partition,) = topic.partitions
    assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (0, -1, 1)
    assert (partition.replica_nodes, partition.isr_nodes, partition.offline_replicas) == ([1], [], [])
    assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([1], [1])


def test_internal_topics_are_marked(node):
    requested = Request(topics=[Request.TopicRequest(name="__consumer_offsets")])
    (topic,) = node.ask(describe_topic_partitions, requested, 0).topics
    assert (topic.error_code, topic.is_internal, topic.topic_authorized_operations) == (3, True, 3576)
