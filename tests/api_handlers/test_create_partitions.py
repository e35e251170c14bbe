import pytest

from barnabas.api_handlers.create_partitions import create_partitions
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest

Topic = CreatePartitionsRequest.CreatePartitionsTopic


def request(*topics, validate_only=False):
    return CreatePartitionsRequest(
        topics=[
            Topic(
                name=name,
                count=count,
                assignments=None
                if assignments is None
                else [Topic.CreatePartitionsAssignment(broker_ids=brokers) for brokers in assignments],
            )
            for name, count, assignments in topics
        ],
        timeout_ms=1000,
        validate_only=validate_only,
    )


@pytest.mark.parametrize("version", range(4))
def test_partitions_can_be_written_to_the_moment_they_are_made(node, version):
    node.create_topic("orders")
    (result,) = node.ask(create_partitions, request(("orders", 3, None)), version).results
    assert (result.name, result.error_code, result.error_message) == ("orders", 0, None)
    assert node.append(node.broker.partition("orders", 2), 1).base_offset == 0


@pytest.mark.parametrize(
    ("requested", "error_code", "says_why"),
    [
        (("nope", 3, None), 3, False),
        (("orders", 1, None), 37, True),
        (("orders", 0, None), 37, True),
        (("orders", 3, [[1]]), 39, True),
        (("orders", 2, [[2]]), 39, True),
        (("orders", 20_000, None), -1, False),
    ],
)
def test_what_is_refused(node, requested, error_code, says_why):
    node.create_topic("orders")
    (result,) = node.ask(create_partitions, request(requested), 3).results
    assert (result.error_code, result.error_message is not None) == (error_code, says_why)


def test_by_hand_and_only_asking_whether(node):
    node.create_topic("orders")
    (result,) = node.ask(create_partitions, request(("orders", 2, [[1]]), validate_only=True), 3).results
    assert result.error_code == 0
    assert len(node.broker.image.topics_by_name["orders"].partitions) == 1
