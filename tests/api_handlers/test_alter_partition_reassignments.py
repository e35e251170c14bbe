import pytest

from barnabas.api_handlers.alter_partition_reassignments import alter_partition_reassignments
from barnabas.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest as Request


def request(*topics, **fields):
    return Request(
        topics=[
            Request.ReassignableTopic(
                name=name,
                partitions=[
                    Request.ReassignableTopic.ReassignablePartition(partition_index=index, replicas=replicas)
                    for index, replicas in partitions
                ],
            )
            for name, partitions in topics
        ],
        **fields,
    )


@pytest.fixture(params=[0, 1])
def ask(node, request):
    node.create_topic("orders", 2)
    return lambda requested: node.ask(alter_partition_reassignments, requested, request.param)


def test_outcomes_partition_by_partition(ask):
    response = ask(request(("orders", [(0, [1]), (1, None), (0, []), (0, [2]), (9, [1])]), ("nope", [(0, [1])])))
    assert (response.error_code, response.error_message) == (0, None)
    assert [
        (topic.name, each.partition_index, each.error_code, each.error_message is None)
        for topic in response.responses
        for each in topic.partitions
    ] == [
        ("orders", 0, 0, True),
        ("orders", 1, 85, True),
        ("orders", 0, 39, False),
        ("orders", 0, 39, False),
        ("orders", 9, 3, False),
        ("nope", 0, 3, False),
    ]


def test_an_empty_request(ask):
    response = ask(request())
    assert (response.error_code, response.error_message, response.responses) == (0, "", [])


def test_the_response_repeats_the_request(node):
    for allowed in (True, False):
        requested = request(("orders", []), allow_replication_factor_change=allowed)
        response = node.ask(alter_partition_reassignments, requested, 1)
        assert response.allow_replication_factor_change is allowed
