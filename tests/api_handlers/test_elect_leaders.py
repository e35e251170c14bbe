import pytest

from barnabas.api_handlers.elect_leaders import elect_leaders
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest as Request
from barnabas.wire.messages.metadata_records import PartitionChangeRecord
from tests.submitting import append


def request(partitions, kind=0):
    topics = None
    if partitions is not None:
        topics = [Request.TopicPartitions(topic=name, partitions=indexes) for name, indexes in partitions]
    return Request(election_type=kind, topic_partitions=topics)


def outcomes(response):
    return [
        (topic.topic, each.partition_id, each.error_code)
        for topic in response.replica_election_results
        for each in topic.partition_result
    ]


@pytest.mark.parametrize("version", range(3))
def test_nothing_to_elect(node, version):
    node.create_topic("orders")
    response = node.ask(elect_leaders, request([("orders", [0, 9]), ("nope", [0])]), version)
    assert response.error_code == 0
    assert outcomes(response) == [("orders", 0, 84), ("orders", 9, 3), ("nope", 0, 3)]
    assert all(each.error_message for topic in response.replica_election_results for each in topic.partition_result)


@pytest.mark.parametrize(
    ("partitions", "error_code", "expected"),
    [([("orders", [0])], 7, [("orders", 0, 7)]), (None, 7, []), ([], 0, [])],
)
def test_without_any_time_nobody_is_elected(node, partitions, error_code, expected):
    node.create_topic("orders")
    requested = request(partitions)
    requested.timeout_ms = 0
    response = node.ask(elect_leaders, requested, 2)
    assert response.error_code == error_code
    assert outcomes(response) == expected


@pytest.mark.parametrize("version", range(3))
def test_all_topics_are_named_without_what_needs_no_election(node, version):
    node.create_topic("orders")
    (topic,) = node.ask(elect_leaders, request(None), version).replica_election_results
    assert (topic.topic, topic.partition_result) == ("orders", [])


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("kind", [2, -1])
def test_no_such_election(node, version, kind):
    node.create_topic("orders")
    response = node.ask(elect_leaders, request([("orders", [0]), ("nope", [1])], kind), version)
    assert response.error_code == 42
    assert outcomes(response) == [("orders", 0, 42), ("nope", 1, 42)]
    response = node.ask(elect_leaders, request(None, kind), version)
    assert (response.error_code, response.replica_election_results) == (42, [])


@pytest.mark.parametrize("kind", [0, 1])
def test_a_partition_without_a_leader_gets_one(node, kind):
    node.create_topic("orders")
    topic_id = node.broker.image.topics_by_name["orders"].id
    left = PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=-1)
    append(node.broker, left)
    assert outcomes(node.ask(elect_leaders, request([("orders", [0])], kind), 2)) == [("orders", 0, 0)]
    assert node.broker.partition("orders", 0).leader_epoch == 2
