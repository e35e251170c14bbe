"""Fetch by a follower: authorization, limits, the position that the leader records, and requests that wait for it."""

import pytest

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.delete_records import delete_records
from barnabas.api_handlers.list_offsets import list_offsets
from barnabas.broker.isr_changes import IsrChanges
from barnabas.broker.nodes import Node, Nodes
from barnabas.cluster.image.image import BrokerImage
from barnabas.errors import (
    FencedLeaderEpoch,
    LeaderNotAvailable,
    NotLeaderOrFollower,
    OffsetNotAvailable,
    OffsetOutOfRange,
    RequestTimedOut,
    UnknownLeaderEpoch,
    UnknownTopicId,
)
from barnabas.wire.messages.delete_records import DeleteRecordsRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from tests.api_handlers.test_fetch import answered, offsets_in, only, requested, send
from tests.asking import context_of

FOLLOWER, FOLLOWER_EPOCH = 8, 70


@pytest.fixture
def log(node):
    """A topic of one partition with a follower in the ISR, and five batches of one record."""
    partition = node.create_topic("t", 1)
    image = partition.image
    me = partition.node_id
    image = image._replace(replicas=(me, FOLLOWER, 9), isr=(me, FOLLOWER), directories=(bytes(16),) * 3)
    partition.become_leader(image._replace(leader_epoch=1, partition_epoch=1))
    for _ in range(5):
        node.append(partition, node.clock.time_ms())
    return partition


@pytest.fixture(autouse=True)
def alive(monkeypatch):
    brokers = {each: BrokerImage(each, FOLLOWER_EPOCH, bytes(16), {}, fenced=False) for each in (FOLLOWER, 9)}
    monkeypatch.setattr(IsrChanges, "brokers", property(lambda self: brokers))
    return brokers


def fetched(
    node,
    log,
    offset,
    *,
    log_start_offset=0,
    epoch=1,
    last_epoch=-1,
    replica=FOLLOWER,
    broker_epoch=FOLLOWER_EPOCH,
    **options,
):
    request = requested([offset], **options)
    topic = request.topics[0]
    topic.topic_id = options.get("topic_id", log.topic_id)
    topic.partitions[0].current_leader_epoch = epoch
    topic.partitions[0].last_fetched_epoch = last_epoch
    topic.partitions[0].log_start_offset = log_start_offset
    request.replica_state = FetchRequest.ReplicaState(replica_id=replica, replica_epoch=broker_epoch)
    return send(node, request, 17)


def read(response):
    partition = only(answered(response, 17))
    return partition.error_code, offsets_in(partition), partition.high_watermark


def test_a_follower_reads_up_to_the_log_end(node, log):
    assert log.log.high_watermark == 0
    assert read(fetched(node, log, 0)) == (0, [0, 1, 2, 3, 4], 0)
    assert only(answered(send(node, requested([0])))).records == b""


def test_the_leader_learns_where_its_follower_is(node, log):
    # The response has the high watermark before the fetch, as in Apache Kafka.
    assert read(fetched(node, log, 3)) == (0, [3, 4], 0)
    assert log.log.high_watermark == 3
    assert read(fetched(node, log, 5)) == (0, [], 3)
    assert log.log.high_watermark == 5
    assert offsets_in(only(answered(send(node, requested([0]))))) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"epoch": 0}, FencedLeaderEpoch),
        ({"epoch": 2}, UnknownLeaderEpoch),
        ({"replica": 77}, UnknownLeaderEpoch),
        ({"replica": 77, "epoch": -1}, NotLeaderOrFollower),
        ({"broker_epoch": FOLLOWER_EPOCH - 1}, NotLeaderOrFollower),
        ({"offset": 6}, OffsetOutOfRange),
    ],
    ids=str,
)
def test_a_fetch_that_is_refused_says_nothing_of_its_sender(node, log, wrong, error):
    assert read(fetched(node, log, **{"offset": 5} | wrong)) == (error.code, [], -1)
    assert log.log.high_watermark == 0


def test_an_unknown_topic(node, log):
    request = requested([0])
    request.topics[0].topic_id = bytes([9] * 16)
    request.replica_state = FetchRequest.ReplicaState(replica_id=FOLLOWER, replica_epoch=FOLLOWER_EPOCH)
    assert read(send(node, request, 17)) == (UnknownTopicId.code, [], -1)


def test_where_logs_diverge_the_leader_learns_nothing(node, log):
    diverging = only(answered(fetched(node, log, 5, last_epoch=0), 17)).diverging_epoch
    assert (diverging.epoch, diverging.end_offset) == (0, 0)
    assert log.log.high_watermark == 0


def test_an_append_ends_the_wait_of_a_follower(node, log):
    fetched(node, log, 5)
    waiting = fetched(node, log, 5, max_wait_ms=500)
    assert isinstance(waiting, Later)
    node.append(log, node.clock.time_ms())
    node.clock.advance(0)
    assert read(waiting.response) == (0, [5], 5)
    assert log.log.high_watermark == 5


def test_a_consumer_waits_for_the_high_watermark(node, log):
    fetched(node, log, 5)
    waiting = send(node, requested([5], max_wait_ms=500))
    node.append(log, node.clock.time_ms())
    node.clock.advance(0.1)
    assert waiting.response is None
    fetched(node, log, 6)
    node.clock.advance(0)
    assert offsets_in(only(answered(waiting.response))) == [5]


def test_another_epoch_ends_all_waits(node, log):
    fetched(node, log, 5)
    waiting = [fetched(node, log, 5, max_wait_ms=500), send(node, requested([5], max_wait_ms=500))]
    log.become_follower(log.image._replace(leader=FOLLOWER, leader_epoch=2))
    node.clock.advance(0)
    assert read(waiting[0].response)[0] == FencedLeaderEpoch.code
    assert only(answered(waiting[1].response)).error_code == 0  # it may read from a follower (KIP-392)


def test_consumers_read_from_followers_since_version_11(node, log):
    fetched(node, log, 3)
    log.become_follower(log.image._replace(leader=FOLLOWER, leader_epoch=2))
    assert offsets_in(only(answered(send(node, requested([0]), 11)))) == [0, 1, 2]
    assert only(answered(send(node, requested([0]), 10), 10)).error_code == NotLeaderOrFollower.code


# ---------------------------------------------------------------- what waits for followers


def deleted(node, offset):
    topics = [
        DeleteRecordsRequest.DeleteRecordsTopic(
            name="t",
            partitions=[
                DeleteRecordsRequest.DeleteRecordsTopic.DeleteRecordsPartition(partition_index=0, offset=offset)
            ],
        )
    ]
    return delete_records(DeleteRecordsRequest(topics=topics, timeout_ms=1000), context_of(node.broker, 2))


def told_of(response):
    (topic,) = response.responses if hasattr(response, "responses") else response.topics
    (partition,) = topic.partitions
    return partition


@pytest.fixture
def replicated(node, log, alive):
    """Makes both followers catch up."""
    for replica in (FOLLOWER, 9):
        fetched(node, log, 5, replica=replica)
    assert log.log.high_watermark == 5
    return log


def test_deleted_records_are_gone_when_no_replica_has_them(node, replicated):
    later = deleted(node, 3)
    fetched(node, replicated, 5, log_start_offset=3)
    node.clock.advance(0)
    assert later.response is None
    fetched(node, replicated, 5, replica=9, log_start_offset=3)
    node.clock.advance(0)
    answer = told_of(later.response)
    assert (answer.error_code, answer.low_watermark) == (0, 3)


def test_a_fenced_follower_is_not_waited_for(node, replicated, alive):
    alive[9] = alive[9]._replace(fenced=True)
    later = deleted(node, 3)
    fetched(node, replicated, 5, log_start_offset=3)
    node.clock.advance(0)
    assert told_of(later.response).error_code == 0


def test_followers_that_do_not_delete_in_time(node, replicated):
    later = deleted(node, 3)
    node.clock.advance(1)
    answer = told_of(later.response)
    assert (answer.error_code, answer.low_watermark) == (RequestTimedOut.code, 0)


def test_leadership_lost_while_followers_delete(node, replicated):
    later = deleted(node, 3)
    replicated.become_follower(replicated.image._replace(leader=FOLLOWER, leader_epoch=2))
    node.clock.advance(0)
    answer = told_of(later.response)
    assert (answer.error_code, answer.low_watermark) == (NotLeaderOrFollower.code, -1)


def listed(node, timestamp, version=7, replica_id=-1):
    topic = ListOffsetsRequest.ListOffsetsTopic
    partitions = [topic.ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
    request = ListOffsetsRequest(replica_id=replica_id, topics=[topic(name="t", partitions=partitions)])
    answer = told_of(node.ask(list_offsets, request, version))
    return answer.error_code, answer.offset


def test_offsets_after_an_election(node, log):
    """Offsets that an earlier leader may have returned do not decrease (KIP-207)."""
    log.become_leader(log.image._replace(leader_epoch=2, partition_epoch=2))
    assert log.followers.epoch_start_offset == 5
    assert listed(node, -1) == (OffsetNotAvailable.code, -1)
    assert listed(node, -1, version=4) == (LeaderNotAvailable.code, -1)
    assert listed(node, -2) == (0, 0)
    assert listed(node, 0) == (OffsetNotAvailable.code, -1)
    assert listed(node, 2**62) == (0, -1)
    assert listed(node, -1, replica_id=FOLLOWER) == (0, 5)
    fetched(node, log, 5, epoch=2)
    assert listed(node, -1) == (0, 5)


def test_tools_may_ask_any_replica(node, log):
    log.become_follower(log.image._replace(leader=FOLLOWER, leader_epoch=2))
    assert listed(node, -1, replica_id=-2) == (0, 5)
    assert listed(node, -1) == (NotLeaderOrFollower.code, -1)


# ---------------------------------------------------------------- racks and throttles


@pytest.fixture
def racks(node, monkeypatch):
    """Nodes 8 and 9 are in rack b, and consumers in racks read from there."""
    override(node, "replica.selector.class", "org.apache.kafka.common.replica.RackAwareReplicaSelector", monkeypatch)
    nodes = {each: Node(each, "host", 9092, "b", False) for each in (FOLLOWER, 9)}
    nodes[node.broker.node_id] = Node(node.broker.node_id, "host", 9092, "a", False)
    monkeypatch.setattr(Nodes, "of", lambda self, listener, **options: nodes)


def override(node, name, value, monkeypatch):
    monkeypatch.setitem(node.broker.config._values, name, value)


def preferred_by(node, offset, rack, version=11):
    partition = only(answered(send(node, requested([offset], rack_id=rack), version), version))
    return partition.preferred_read_replica, offsets_in(partition)


def test_consumers_are_sent_to_their_rack(node, replicated, racks):
    fetched(node, replicated, 4)
    assert preferred_by(node, 4, "b") == (FOLLOWER, [])
    assert preferred_by(node, 4, "a") == (-1, [4])
    assert preferred_by(node, 4, "c") == (-1, [4])
    assert preferred_by(node, 4, "") == (-1, [4])


def test_who_is_not_in_sync_or_has_not_got_so_far_is_not_preferred(node, log, racks):
    fetched(node, log, 2)
    assert preferred_by(node, 2, "b") == (FOLLOWER, [])
    assert preferred_by(node, 3, "b") == (-1, [])


def test_without_a_selector_everyone_reads_from_the_leader(node, replicated, monkeypatch):
    assert preferred_by(node, 4, "b") == (-1, [4])


def test_a_throttled_replica_that_is_not_in_sync_waits(node, log, monkeypatch):
    log.log.update_config(log.log.config._replace(leader_replication_throttled_replicas=["*"]))
    override(node, "leader.replication.throttled.rate", 1, monkeypatch)
    assert read(fetched(node, log, 0, replica=9))[1] == [0, 1, 2, 3, 4]
    node.clock.advance(1)
    assert read(fetched(node, log, 0, replica=9))[1] == []
    assert read(fetched(node, log, 0, replica=FOLLOWER))[1] == [0, 1, 2, 3, 4]
    override(node, "leader.replication.throttled.rate", None, monkeypatch)
    assert read(fetched(node, log, 0, replica=9))[1] == [0, 1, 2, 3, 4]
