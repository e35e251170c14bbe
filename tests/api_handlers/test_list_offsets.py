"""ListOffsets: timestamps and special timestamps, with the results of Apache Kafka 4.3.1 (version 0: 3.9.1)."""

import pytest

from barnabas.api_handlers.list_offsets import list_offsets
from barnabas.errors import (
    NONE,
    FencedLeaderEpoch,
    InvalidRequest,
    KafkaStorageError,
    NotLeaderOrFollower,
    UnknownLeaderEpoch,
    UnknownServerError,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from barnabas.wire.messages.list_offsets import ListOffsetsRequest

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = range(-1, -7, -1)
NOTHING = (NONE, -1, -1, -1)

Topic = ListOffsetsRequest.ListOffsetsTopic
Partition = Topic.ListOffsetsPartition


@pytest.fixture
def partition(node):
    """Eight records, offsets 0 to 7, the latest of them at 3."""
    made = node.create_topic("T", partitions=2)
    for timestamp in (4000, 4500, 4500, 3000):
        node.append(made, timestamp, timestamp + 1)
    return made


def requested(timestamp, index=0, epoch=-1, count=1):
    return Partition(partition_index=index, timestamp=timestamp, current_leader_epoch=epoch, max_num_offsets=count)


def request(*partitions, topic="T", replica_id=-1, isolation_level=0):
    topics = [Topic(name=topic, partitions=list(partitions))]
    return ListOffsetsRequest(replica_id=replica_id, isolation_level=isolation_level, topics=topics)


def tell(node, timestamp, version=11, topic="T", replica_id=-1, isolation_level=0, **options):
    """Returns error code, timestamp, offset and leader epoch of the one requested partition."""
    question = request(
        requested(timestamp, **options), topic=topic, replica_id=replica_id, isolation_level=isolation_level
    )
    (answered,) = node.ask(list_offsets, question, version).topics
    assert answered.name == topic
    (answer,) = answered.partitions
    return answer.error_code, answer.timestamp, answer.offset, answer.leader_epoch


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (LATEST, (-1, 8, 0)),
        (EARLIEST, (-1, 0, 0)),
        (MAX_TIMESTAMP, (4501, 3, 0)),
        (EARLIEST_LOCAL, (-1, 0, 0)),
        (LATEST_TIERED, (-1, -1, -1)),
        (PENDING_UPLOAD, (-1, -1, -1)),
        (0, (4000, 0, 0)),
        (4000, (4000, 0, 0)),
        (4001, (4001, 1, 0)),
        (4500, (4500, 2, 0)),
        (4501, (4501, 3, 0)),
        (4502, (-1, -1, -1)),
        (2**63 - 1, (-1, -1, -1)),
    ],
)
def test_times_and_places(node, partition, timestamp, expected):
    assert tell(node, timestamp) == (NONE, *expected)


@pytest.mark.parametrize("timestamp", [LATEST, EARLIEST, EARLIEST_LOCAL])
def test_an_empty_partition_starts_and_ends_at_0(node, partition, timestamp):
    assert tell(node, timestamp, index=1) == (NONE, -1, 0, 0)


@pytest.mark.parametrize("timestamp", [MAX_TIMESTAMP, LATEST_TIERED, PENDING_UPLOAD, 5])
def test_there_is_nothing_else_in_an_empty_partition(node, partition, timestamp):
    assert tell(node, timestamp, index=1) == NOTHING


@pytest.mark.parametrize(
    ("timestamp", "since"),
    [(LATEST, 1), (EARLIEST, 1), (MAX_TIMESTAMP, 7), (EARLIEST_LOCAL, 8), (LATEST_TIERED, 9), (PENDING_UPLOAD, 11)],
)
def test_what_each_version_knows(node, partition, timestamp, since):
    for version in range(1, 12):
        expected = NONE if version >= since else UnsupportedVersion.code
        assert tell(node, timestamp, version)[0] == expected


@pytest.mark.parametrize("timestamp", [-7, -(2**63)])
def test_no_version_knows_other_places(node, partition, timestamp):
    assert tell(node, timestamp) == (UnsupportedVersion.code, -1, -1, -1)


def test_leader_epochs_are_told_from_version_4_on(node, partition):
    assert [tell(node, LATEST, version)[3] for version in (1, 3, 4, 11)] == [-1, -1, 0, 0]


def test_the_start_moves(node, partition):
    partition.log.delete_records_before(3)
    assert tell(node, EARLIEST) == (NONE, -1, 3, 0)
    assert tell(node, 0) == (NONE, 4501, 3, 0)


def test_the_epoch_of_the_start_is_the_one_that_wrote_it(node, partition):
    partition.log.assign_leader_epoch(5)
    node.append(partition, 9000)
    assert tell(node, EARLIEST)[3] == 0
    partition.log.delete_records_before(8)
    assert tell(node, EARLIEST) == (NONE, -1, 8, 5)


@pytest.mark.parametrize(
    ("epoch", "error"), [(-1, NONE), (0, NONE), (1, UnknownLeaderEpoch.code), (-2, FencedLeaderEpoch.code)]
)
def test_the_epoch_that_the_client_believes_in(node, partition, epoch, error):
    assert tell(node, LATEST, epoch=epoch)[0] == error
    assert tell(node, 4500, epoch=epoch)[0] == error


@pytest.mark.parametrize("topic", ["nope", "a b", ""])
def test_unknown_topics(node, partition, topic):
    assert tell(node, LATEST, topic=topic) == (UnknownTopicOrPartition.code, -1, -1, -1)


@pytest.mark.parametrize("index", [2, -1])
def test_unknown_partitions(node, partition, index):
    assert tell(node, LATEST, index=index) == (UnknownTopicOrPartition.code, -1, -1, -1)


def test_somebody_else_leads(node, partition):
    partition.become_follower(partition.image._replace(leader=7))
    assert tell(node, LATEST)[0] == NotLeaderOrFollower.code


def test_the_disk_failed(node, partition):
    partition.log.go_offline("of a test")
    assert tell(node, LATEST)[0] == KafkaStorageError.code


@pytest.mark.parametrize("isolation_level", [-1, 2, 3])
@pytest.mark.parametrize("timestamp", [LATEST, 4500, -20])
def test_isolation_levels_that_there_are_none(node, partition, isolation_level, timestamp):
    assert tell(node, timestamp, isolation_level=isolation_level) == (UnknownServerError.code, -1, -1, -1)


def test_only_a_consumer_has_an_isolation_level(node, partition):
    assert tell(node, LATEST, replica_id=1, isolation_level=9) == (NONE, -1, 8, 0)


@pytest.mark.parametrize(("isolation_level", "end"), [(0, 6), (1, 4)])
def test_a_consumer_sees_what_is_committed(node, partition, isolation_level, end):
    partition.log.producers.transactions.begin(4, producer_id=7)
    partition.log._set_offsets(0, 6, 8)
    assert tell(node, LATEST, isolation_level=isolation_level) == (NONE, -1, end, 0)
    assert tell(node, 4501, isolation_level=isolation_level) == (NONE, 4501, 3, 0)
    partition.log.delete_records_before(4)
    found = (NONE, 4500, 4, 0) if end > 4 else NOTHING
    assert tell(node, 4400, isolation_level=isolation_level) == found


@pytest.mark.parametrize("replica_id", [-2, 0, 1, 99])
def test_replicas_and_tools_see_the_whole_log(node, partition, replica_id):
    partition.log.high_watermark = 6
    assert tell(node, LATEST, replica_id=replica_id) == (NONE, -1, 8, 0)


def test_a_partition_twice_is_refused_wherever_it_stands(node, partition):
    topics = [
        Topic(name="T", partitions=[requested(LATEST), requested(EARLIEST, index=1)]),
        Topic(name="nope", partitions=[requested(LATEST)]),
        Topic(name="T", partitions=[requested(EARLIEST)]),
    ]
    answer = node.ask(list_offsets, ListOffsetsRequest(replica_id=-1, topics=topics), 7)
    found = {topic.name: {p.partition_index: p.error_code for p in topic.partitions} for topic in answer.topics}
    assert len(answer.topics) == 2
    assert found == {"T": {0: InvalidRequest.code, 1: NONE}, "nope": {0: UnknownTopicOrPartition.code}}


def test_an_empty_request(node):
    assert node.ask(list_offsets, ListOffsetsRequest(replica_id=-1, topics=[]), 11).topics == []


# ---------------------------------------------------------------- version 0


def starts(node, *partitions, topic="T"):
    (answered,) = node.ask(list_offsets, request(*partitions, topic=topic), 0).topics
    return [(entry.error_code, entry.old_style_offsets) for entry in answered.partitions]


@pytest.fixture
def five_segments(node):
    """Writes one record per segment, each a second after the one before; the first at the clock's start."""
    made = node.create_topic("S", segment_bytes="1048576")
    for _ in range(5):
        made.log.roll(node.clock.time_ms())
        node.append(made, node.clock.time_ms())
        node.clock.advance(1)
    return made


@pytest.mark.parametrize(
    ("timestamp", "count", "offsets"),
    [
        (LATEST, 1, [5]),
        (LATEST, 3, [5, 4, 3]),
        (LATEST, 10, [5, 4, 3, 2, 1, 0]),
        (LATEST, 0, []),
        (EARLIEST, 1, [0]),
        (EARLIEST, 10, [0]),
        (EARLIEST, 0, []),
    ],
)
def test_the_starts_of_segments(node, five_segments, timestamp, count, offsets):
    assert starts(node, requested(timestamp, count=count), topic="S") == [(NONE, offsets)]


@pytest.mark.parametrize(
    ("seconds", "offsets"), [(-1, []), (0, [0]), (2.5, [2, 1, 0]), (4, [4, 3, 2, 1, 0]), (5, [5, 4, 3, 2, 1, 0])]
)
def test_the_starts_of_segments_that_were_there_at_a_time(node, five_segments, seconds, offsets):
    began = node.clock.time_ms() - 5000
    assert starts(node, requested(began + int(seconds * 1000), count=10), topic="S") == [(NONE, offsets)]


def test_starts_are_within_the_log(node, five_segments):
    five_segments.log.delete_records_before(1)
    assert starts(node, requested(EARLIEST), topic="S") == [(NONE, [1])]
    five_segments.log.high_watermark = 3
    assert starts(node, requested(LATEST, count=3), topic="S") == [(NONE, [3, 3, 2])]


def test_the_start_of_nothing(node, partition):
    assert starts(node, requested(LATEST, index=1, count=9), requested(EARLIEST, index=1)) == [(NONE, [0]), (NONE, [0])]


def test_version_0_returns_duplicates(node, partition):
    assert starts(node, requested(LATEST), requested(EARLIEST)) == [(NONE, [8]), (NONE, [0])]


def test_what_version_0_refuses(node, partition):
    refused = [requested(MAX_TIMESTAMP), requested(LATEST, count=-1), requested(LATEST, index=9)]
    codes = [UnsupportedVersion.code, UnknownServerError.code, UnknownTopicOrPartition.code]
    assert starts(node, *refused) == [(code, []) for code in codes]
