"""OffsetForLeaderEpoch: the end offsets of epochs, with the results of Apache Kafka 4.3.1 (versions 0 and 1: 3.9.1)."""

import pytest

from barnabas.api_handlers.offset_for_leader_epoch import offset_for_leader_epoch
from barnabas.errors import (
    NONE,
    FencedLeaderEpoch,
    KafkaStorageError,
    NotLeaderOrFollower,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
)
from barnabas.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest

Topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
Partition = Topic.OffsetForLeaderPartition


@pytest.fixture
def partition(node):
    """Epoch 0 has offsets 0 and 1, epoch 3 has 2 to 4, epoch 5 has none."""
    made = node.create_topic("T", partitions=2)
    node.append(made, 1000, 1000)
    made.leader_epoch = 3
    node.append(made, 1000, 1000, 1000)
    made.leader_epoch = 5
    made.log.assign_leader_epoch(5)
    return made


def tell(node, *epochs, version=4, topic="T", index=0, current=-1):
    """Returns error code, leader epoch and end offset for each epoch."""
    requested = [Partition(partition=index, leader_epoch=epoch, current_leader_epoch=current) for epoch in epochs]
    request = OffsetForLeaderEpochRequest(replica_id=-1, topics=[Topic(topic=topic, partitions=requested)])
    (answered,) = node.ask(offset_for_leader_epoch, request, version).topics
    assert answered.topic == topic
    assert {entry.partition for entry in answered.partitions} == {index}
    return [(entry.error_code, entry.leader_epoch, entry.end_offset) for entry in answered.partitions]


@pytest.mark.parametrize(
    ("epoch", "known", "end"),
    [(0, 0, 2), (1, 0, 2), (2, 0, 2), (3, 3, 5), (4, 3, 5), (5, 5, 5), (6, -1, -1), (-1, -1, -1), (-5, -5, 0)],
)
def test_where_epochs_end(node, partition, epoch, known, end):
    for version in (1, 2, 3, 4):
        assert tell(node, epoch, version=version) == [(NONE, known, end)]
    assert tell(node, epoch, version=0) == [(NONE, -1, end)]


def test_an_empty_partition(node, partition):
    assert tell(node, 0, 1, index=1) == [(NONE, 0, 0), (NONE, -1, -1)]


def test_duplicates_in_the_request(node, partition):
    assert tell(node, 0, 3, 0) == [(NONE, 0, 2), (NONE, 3, 5), (NONE, 0, 2)]


@pytest.mark.parametrize(
    ("current", "error"),
    [(5, NONE), (-1, NONE), (4, FencedLeaderEpoch), (-2, FencedLeaderEpoch), (6, UnknownLeaderEpoch)],
)
def test_the_epoch_that_the_client_believes_in(node, partition, current, error):
    code, *_ = tell(node, 0, current=current)[0]
    assert code == (error if error == NONE else error.code)


@pytest.mark.parametrize(("topic", "index"), [("nope", 0), ("", 0), ("T", 9), ("T", -1)])
def test_unknown(node, partition, topic, index):
    assert tell(node, 0, topic=topic, index=index) == [(UnknownTopicOrPartition.code, -1, -1)]


def test_somebody_else_leads_or_the_disk_failed(node, partition):
    partition.become_follower(partition.image._replace(leader=7))
    assert tell(node, 0) == [(NotLeaderOrFollower.code, -1, -1)]
    partition.log.go_offline("of a test")
    assert tell(node, 0) == [(KafkaStorageError.code, -1, -1)]


def test_an_empty_request(node):
    assert node.ask(offset_for_leader_epoch, OffsetForLeaderEpochRequest(topics=[]), 4).topics == []
