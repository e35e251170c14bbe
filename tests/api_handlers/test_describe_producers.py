"""DescribeProducers: the producers of a partition, with the results of Apache Kafka 4.3.1."""

import pytest

from barnabas.api_handlers.describe_producers import describe_producers
from barnabas.broker.markers import write_markers
from barnabas.cluster.controller.commands.configs import ConfigChange, ConfigResource, IncrementalAlterConfigs
from barnabas.errors import NONE, InvalidTopicException, UnknownTopicOrPartition
from barnabas.transactions.messages import Marker, TopicPartition
from barnabas.wire.messages.describe_producers import DescribeProducersRequest
from tests.submitting import submitted

Topic = DescribeProducersRequest.TopicRequest


@pytest.fixture
def partition(node):
    made = node.create_topic("T", partitions=2)
    node.append(made, 900)
    node.append(made, 1000, producer_id=4000, producer_epoch=2, base_sequence=5)
    node.append(made, 1001, producer_id=4001, producer_epoch=0, base_sequence=0)
    node.append(made, 1002, 1003, producer_id=4001, producer_epoch=0, base_sequence=1)
    return made


def ask(node, *topics):
    question = [Topic(name=name, partition_indexes=indexes) for name, indexes in topics]
    return node.ask(describe_producers, DescribeProducersRequest(topics=question), 0).topics


def test_producers_and_their_last_batches(node, partition):
    (topic,) = ask(node, ("T", [0, 1]))
    first, second = topic.partitions
    assert (first.partition_index, first.error_code, second.partition_index, second.error_code) == (0, NONE, 1, NONE)
    assert {
        producer.producer_id: (producer.producer_epoch, producer.last_sequence, producer.last_timestamp)
        for producer in first.active_producers
    } == {4000: (2, 5, 1000), 4001: (0, 2, 1003)}
    assert {(p.coordinator_epoch, p.current_txn_start_offset) for p in first.active_producers} == {(-1, -1)}
    assert second.active_producers == []


def test_an_open_transaction(node, partition):
    node.append(partition, 1004, producer_id=7, producer_epoch=1, base_sequence=0, is_transactional=True)
    (topic,) = ask(node, ("T", [0]))
    starts = {p.producer_id: p.current_txn_start_offset for p in topic.partitions[0].active_producers}
    assert starts == {4000: -1, 4001: -1, 7: 5}


@pytest.mark.parametrize(
    ("name", "index", "error", "explained"),
    [
        ("T", 9, UnknownTopicOrPartition, False),
        ("T", -1, UnknownTopicOrPartition, False),
        ("nope", 0, UnknownTopicOrPartition, True),
        ("a b", 0, InvalidTopicException, True),
        ("", 0, InvalidTopicException, True),
    ],
)
def test_refusals(node, partition, name, index, error, explained):
    (topic,) = ask(node, (name, [index]))
    (answer,) = topic.partitions
    assert (topic.name, answer.partition_index, answer.error_code, answer.active_producers) == (
        name,
        index,
        error.code,
        [],
    )
    assert bool(answer.error_message) == explained


def test_a_follower_knows_them_too(node, partition):
    expected = ask(node, ("T", [0]))
    partition.become_follower(partition.image._replace(leader=7))
    assert ask(node, ("T", [0])) == expected


def test_duplicates_in_the_request(node, partition):
    found = ask(node, ("T", [1, 1]), ("T", []), ("T", [1]))
    assert [[p.partition_index for p in topic.partitions] for topic in found] == [[1, 1], [], [1]]
    assert ask(node) == []


def test_a_transaction_from_its_first_record_to_its_end(node, partition):
    identity = {"producer_id": 4001, "producer_epoch": 0, "is_transactional": True}
    for sequence in (3, 4):
        node.append(partition, node.clock.time_ms(), base_sequence=sequence, **identity)

    def known():
        (found,) = ask(node, ("T", [0]))[0].partitions
        (producer,) = (each for each in found.active_producers if each.producer_id == 4001)
        return (
            producer.producer_epoch,
            producer.last_sequence,
            producer.coordinator_epoch,
            producer.current_txn_start_offset,
        )

    assert known() == (0, 4, -1, 5)
    marker = Marker(4001, 1, coordinator_epoch=6, is_commit=True, transaction_version=2)
    write_markers(node.broker, marker, [TopicPartition("T", 0)], lambda errors: None)
    assert known() == (1, -1, 6, -1)


def test_several(node, partition):
    for producer_id in (64, 1, 33, 2**32):
        node.append(partition, 1004, producer_id=producer_id, producer_epoch=0, base_sequence=0)
    (found,) = ask(node, ("T", [0]))[0].partitions
    assert sorted(each.producer_id for each in found.active_producers) == [1, 33, 64, 4000, 4001, 2**32]


def test_how_long_they_are_remembered_can_be_changed(node, partition):
    change = ConfigChange("producer.id.expiration.ms", 0, "5000")
    (altered,) = submitted(node.broker.controller, IncrementalAlterConfigs([(ConfigResource(4, ""), [change])]))
    assert altered.error is None
    node.append(partition, node.clock.time_ms(), producer_id=7, producer_epoch=0, base_sequence=0)
    node.clock.advance(700)  # beyond producer.id.expiration.check.interval.ms
    assert ask(node, ("T", [0]))[0].partitions[0].active_producers == []
