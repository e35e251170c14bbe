import pytest

from barnabas.api_handlers.list_partition_reassignments import list_partition_reassignments
from barnabas.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest as Request
from barnabas.wire.messages.metadata_records import PartitionChangeRecord
from tests.submitting import append


def requested(topics):
    if topics is not None:
        topics = [
            Request.ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes) for name, indexes in topics
        ]
    return Request(topics=topics)


@pytest.fixture
def ask(node):
    node.create_topic("orders", 2)
    node.create_topic("others", 1)

    def ask(topics):
        response = node.ask(list_partition_reassignments, requested(topics), 0)
        assert (response.error_code, response.error_message) == (0, None)
        return [
            (topic.name, each.partition_index, each.replicas, each.adding_replicas, each.removing_replicas)
            for topic in response.topics
            for each in topic.partitions
        ]

    return ask


@pytest.mark.parametrize("topics", [None, [], [("orders", [0, 9])], [("nope", [0])], [("", [])]])
def test_nothing_is_under_way(ask, topics):
    assert ask(topics) == []


def test_what_is_under_way(node, ask):
    moving = PartitionChangeRecord(
        partition_id=1, topic_id=node.broker.image.topics_by_name["orders"].id, replicas=[2, 1], adding_replicas=[2],
        removing_replicas=[1],
    )  # fmt: skip
    append(node.broker, moving)
    expected = [("orders", 1, [2, 1], [2], [1])]
    assert ask(None) == ask([("orders", [0, 1]), ("others", [0])]) == expected
    assert ask([("orders", [0])]) == ask([]) == []
