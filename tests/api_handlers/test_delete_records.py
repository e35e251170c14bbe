"""DeleteRecords: the log start offset of partitions, with the results of Apache Kafka 4.3.1."""

import pytest

from barnabas.api_handlers.delete_records import delete_records
from barnabas.errors import (
    NONE,
    InvalidTopicException,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    PolicyViolation,
    UnknownTopicOrPartition,
)
from barnabas.wire.messages.delete_records import DeleteRecordsRequest

Topic = DeleteRecordsRequest.DeleteRecordsTopic
Partition = Topic.DeleteRecordsPartition


@pytest.fixture
def partition(node):
    """A partition with eight records."""
    made = node.create_topic("T", partitions=2)
    for _ in range(4):
        node.append(made, 1000, 1001)
    return made


def ask(node, *topics, version=2):
    """Returns error code and low watermark by topic and partition."""
    question = [
        Topic(name=name, partitions=[Partition(partition_index=index, offset=offset) for index, offset in partitions])
        for name, *partitions in topics
    ]
    answer = node.ask(delete_records, DeleteRecordsRequest(topics=question, timeout_ms=1000), version)
    found = [
        ((topic.name, partition.partition_index), (partition.error_code, partition.low_watermark))
        for topic in answer.topics
        for partition in topic.partitions
    ]
    assert len(dict(found)) == len(found), "told twice"
    return dict(found)


def tell(node, offset, topic="T", index=0, version=2):
    (found,) = ask(node, (topic, (index, offset)), version=version).values()
    return found


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize(("offset", "start"), [(0, 0), (3, 3), (8, 8), (-1, 8)])
def test_the_start_moves(node, partition, offset, start, version):
    assert tell(node, offset, version=version) == (NONE, start)
    assert partition.log.log_start_offset == start


def test_it_never_moves_back(node, partition):
    assert tell(node, 5) == (NONE, 5)
    assert tell(node, 2) == (NONE, 5)


@pytest.mark.parametrize("offset", [9, 2**63 - 1, -2, -(2**63)])
def test_out_of_range(node, partition, offset):
    assert tell(node, offset) == (OffsetOutOfRange.code, -1)
    assert partition.log.log_start_offset == 0


def test_only_what_is_committed_goes(node, partition):
    partition.log.high_watermark = 6
    assert tell(node, 7) == (OffsetOutOfRange.code, -1)
    assert tell(node, -1) == (NONE, 6)


@pytest.mark.parametrize(("topic", "index"), [("nope", 0), ("", 0), ("a b", 0), ("T", 9), ("T", -1)])
def test_unknown(node, partition, topic, index):
    assert tell(node, 0, topic, index) == (UnknownTopicOrPartition.code, -1)


@pytest.mark.parametrize(
    ("policy", "expected"),
    [("compact", (PolicyViolation.code, -1)), ("compact,delete", (NONE, 1)), ("delete", (NONE, 1))],
)
def test_compaction_alone_decides_what_goes(node, policy, expected):
    node.append(node.create_topic("C", cleanup_policy=policy), 1000, 1001)
    assert tell(node, 1, "C") == expected


def test_internal_topics_are_the_brokers_own(node, partition):
    assert tell(node, 0, "__transaction_state") == (UnknownTopicOrPartition.code, -1)
    node.create_topic("__transaction_state")
    assert tell(node, 0, "__transaction_state") == (InvalidTopicException.code, -1)
    assert tell(node, 0, "__cluster_metadata") == (UnknownTopicOrPartition.code, -1)


def test_somebody_else_leads(node, partition):
    partition.become_follower(partition.image._replace(leader=7))
    assert tell(node, 1) == (NotLeaderOrFollower.code, -1)


def test_the_last_naming_counts_and_one_failure_spares_the_rest(node, partition):
    assert ask(node, ("nope", (0, 7)), ("T", (0, 5), (1, 0)), ("T", (0, 6), (1, 99))) == {
        ("nope", 0): (UnknownTopicOrPartition.code, -1),
        ("T", 0): (NONE, 6),
        ("T", 1): (OffsetOutOfRange.code, -1),
    }


def test_an_empty_request(node):
    assert ask(node) == {}
