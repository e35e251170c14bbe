"""Produce: appended batches, refused ones and their errors, and acks."""

import pytest

from barnabas.api_handlers.produce import produce
from barnabas.errors import CloseConnection, NotEnoughReplicas, NotLeaderOrFollower, RequestTimedOut
from barnabas.records.batch import RecordBatch, batches
from barnabas.records.builder import build_batch
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from tests.asking import context_of
from tests.held import Held

Topic = ProduceRequest.TopicProduceData


def batch(*values, **options):
    return bytes(build_batch([(b"k", value, 1_700_000_000_000) for value in values or (b"v",)], **options))


def requested(records, *, topic="t", index=0, acks=1, **fields):
    partition = Topic.PartitionProduceData(index=index, records=records)
    return ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=[Topic(name=topic, partition_data=[partition], **fields)]
    )


def send(node, request, version=9, client_id="test"):
    """Returns the response for the only partition, decoded from its bytes; None without a response."""
    context = context_of(node.broker, version, client_id=client_id)
    frame = memoryview(bytearray(request.encode(version=version)))
    response = produce(ProduceRequest.decode(frame, version=version), context)
    if response is None:
        return None
    (topic,) = ProduceResponse.decode(response.encode(version=version), version=version).responses
    (partition,) = topic.partition_responses
    return partition


@pytest.fixture
def partition(node):
    return node.create_topic("t")


def stored(partition):
    log = partition.log
    data = log.read(log.log_start_offset, 1 << 20, up_to=log.log_end_offset, minimum_one=True)
    return list(batches(data))


@pytest.mark.parametrize("version", range(3, 13))
def test_offsets_go_on(node, partition, version):
    answers = [send(node, requested(batch(b"a", b"b")), version) for _ in range(3)]
    assert [(answer.error_code, answer.base_offset) for answer in answers] == [(0, 0), (0, 2), (0, 4)]
    assert answers[0].log_append_time_ms == -1
    assert answers[0].log_start_offset == (0 if version >= 5 else -1)


def test_by_topic_id(node, partition):
    assert send(node, requested(batch(), topic="", topic_id=partition.topic_id), 13).base_offset == 0
    assert send(node, requested(batch(), topic="", topic_id=b"\7" * 16), 13).error_code == 100


def test_the_bytes_are_kept_but_for_offset_and_epoch(node, partition):
    sent = batch(b"one", b"two")
    send(node, requested(batch()))
    send(node, requested(sent))
    kept = bytes(stored(partition)[1].buffer)
    assert kept[16:] == sent[16:] and kept[8:12] == sent[8:12]
    assert RecordBatch.parse(kept).base_offset == 1


@pytest.mark.parametrize("acks", [-1, 0, 1])
def test_every_way_of_acks_appends(node, partition, acks):
    answer = send(node, requested(batch(), acks=acks))
    assert (answer is None) == (acks == 0)
    assert partition.log.high_watermark == 1


@pytest.mark.parametrize("acks", [2, -2, 32767])
def test_acks_that_are_none(node, partition, acks):
    answer = send(node, requested(batch(), acks=acks))
    assert (answer.error_code, answer.base_offset, answer.log_start_offset) == (21, -1, -1)


def test_acks_0_hangs_up_when_something_is_wrong(node, partition):
    with pytest.raises(CloseConnection, match="acks=0"):
        send(node, requested(batch(), topic="nobody", acks=0))


def test_acks_0_of_nothing_is_silence(node):
    context = context_of(node.broker)
    assert produce(ProduceRequest(acks=0, timeout_ms=1, topic_data=[]), context) is None


REFUSED = {
    "an unknown topic": ({"topic": "nobody"}, 3, -1),
    "an unknown partition": ({"index": 5}, 3, -1),
    "no batch": ({"records": None}, 87, 0),
    "half a batch": ({"records": batch()[:40]}, 87, -1),
    "two batches": ({"records": batch() + batch()}, 87, -1),
    "a bad CRC": ({"records": batch()[:-1] + b"\1"}, 2, -1),
    "an internal topic": ({"topic": "__consumer_offsets"}, 17, -1),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(node, partition, what):
    fields, error, log_start_offset = REFUSED[what]
    if fields.get("topic") == "__consumer_offsets":
        node.create_topic("__consumer_offsets")
    answer = send(node, requested(**({"records": batch()} | fields)))
    assert (answer.error_code, answer.base_offset, answer.log_start_offset) == (error, -1, log_start_offset)
    assert partition.log.log_end_offset == 0


def test_the_admin_client_may_write_to_internal_topics(node):
    node.create_topic("__consumer_offsets")
    request = requested(batch(), topic="__consumer_offsets")
    assert send(node, request, client_id="__admin_client").error_code == 0


def test_a_record_that_is_refused_is_named(node):
    node.create_topic("t", cleanup_policy="compact")
    keyless = bytes(build_batch([(b"k", b"v", 0), (None, b"v", 0)]))
    answer = send(node, requested(keyless))
    assert (answer.error_code, [each.batch_index for each in answer.record_errors]) == (87, [1])
    assert answer.error_message
    assert send(node, requested(keyless), 7).error_code == 87


def test_too_large(node):
    node.create_topic("t", max_message_bytes="100")
    answer = send(node, requested(batch(b"v" * 200)))
    assert (answer.error_code, answer.error_message) == (10, None)


def test_the_time_of_the_log(node):
    node.create_topic("t", message_timestamp_type="LogAppendTime")
    assert send(node, requested(batch())).log_append_time_ms == node.clock.time_ms()


def test_sequences(node, partition):
    def of(sequence, epoch=0):
        return requested(batch(producer_id=7, producer_epoch=epoch, base_sequence=sequence))

    assert [send(node, of(sequence)).base_offset for sequence in (0, 1, 1, 0)] == [0, 1, 1, 0]
    assert send(node, of(5)).error_code == 45
    assert send(node, of(0, epoch=1)).error_code == 0
    assert send(node, of(2, epoch=0)).error_code == 47
    assert partition.log.log_end_offset == 3


def test_a_transactional_batch_finds_no_coordinator(node, partition):
    transactional = batch(producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    request = requested(transactional)
    request.transactional_id = "tx"
    assert send(node, request).error_code == 19
    assert partition.log.log_end_offset == 0


def of_many(*topics, acks=1):
    data = [
        Topic(name=name, partition_data=[Topic.PartitionProduceData(index=index, records=bytearray(batch(value)))])
        for name, index, value in topics
    ]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=data)


def send_many(node, request):
    context = context_of(node.broker, 9, client_id="test")
    response = produce(request, context)
    assert response is not None
    return [
        (topic.name, each.index, each.error_code, each.base_offset)
        for topic in response.responses
        for each in topic.partition_responses
    ]


def test_of_a_partition_named_twice_the_later_batch_stands(node):
    node.create_topic("orders", 2)
    answers = send_many(node, of_many(("orders", 0, b"first"), ("orders", 1, b"other"), ("orders", 0, b"second")))
    assert answers == [("orders", 0, 0, 0), ("orders", 1, 0, 0)]
    log = node.broker.partition("orders", 0).log
    (stored,) = batches(log.read(0, 1000, up_to=1, minimum_one=True))
    assert b"second" in bytes(stored.buffer)


def test_a_topic_without_partitions_is_not_returned(node):
    node.create_topic("orders", 1)
    request = of_many(("orders", 0, b"one"))
    request.topic_data = [Topic(name="empty", partition_data=[]), *request.topic_data]
    assert send_many(node, request) == [("orders", 0, 0, 0)]


def test_a_transactional_batch_without_a_transactional_id_is_nobodys(node, partition):
    transactional = batch(producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    answer = send(node, requested(transactional[:-1] + b"\1"))  # damaged, too, which is checked later
    assert (answer.error_code, answer.log_start_offset, answer.error_message) == (53, -1, None)


def flushing(quiet_node, messages):
    """A node with slow flushes, and its topic."""
    node = quiet_node()
    partition = node.create_topic("t", flush_messages=str(messages))
    node.broker.log_manager.housekeeping._background = held = Held()
    return node, held, partition


def promised(node, request):
    context = context_of(node.broker, 9)
    return produce(ProduceRequest.decode(memoryview(bytearray(request.encode(version=9))), version=9), context)


def test_the_answer_waits_for_the_disk_when_flush_messages_says_so(quiet_node):
    node, held, partition = flushing(quiet_node, 2)
    assert isinstance(promised(node, requested(batch())), ProduceResponse)
    later = promised(node, requested(batch()))
    assert later.response is None
    held.go_on()
    assert later.response.responses[0].partition_responses[0].base_offset == 1
    assert partition.log.recovery_point == 2


def test_a_disk_that_fails_meanwhile_is_reported(quiet_node):
    node, held, _ = flushing(quiet_node, 1)
    later = promised(node, requested(batch()))
    held.go_on(failing=OSError(5, "Input/output error"))
    (answer,) = later.response.responses[0].partition_responses
    assert (answer.error_code, answer.base_offset) == (56, -1)


# ---------------------------------------------------------------- followers


@pytest.fixture
def followed(partition):
    """Adds a follower in the ISR to the partition."""
    image = partition.image
    partition.become_leader(
        image._replace(
            replicas=(*image.replicas, 8), isr=(*image.isr, 8), directories=(bytes(16),) * 2, partition_epoch=1
        )
    )
    return partition


def fetched_to(partition, offset):
    followers = partition.followers
    followers.fetched(followers.replica(8, has_epoch=True), offset, 0, partition.log.log_end_offset, -1)


def replicated(later):
    (answer,) = later.response.responses[0].partition_responses
    return answer.error_code, answer.base_offset


def test_acks_all_are_answered_when_followers_have_it(node, followed):
    later = promised(node, requested(batch(), acks=-1))
    assert later.response is None
    fetched_to(followed, 1)
    assert replicated(later) == (0, 0)
    node.clock.advance(2)
    assert replicated(later) == (0, 0)


def test_acks_1_need_no_follower(node, followed):
    assert send(node, requested(batch(), acks=1)).error_code == 0


def test_followers_that_do_not_get_it_in_time(node, followed):
    later = promised(node, requested(batch(), acks=-1))
    node.clock.advance(0.9)
    assert later.response is None
    node.clock.advance(0.1)
    assert replicated(later) == (RequestTimedOut.code, 0)  # the offset is returned, as in Apache Kafka's DelayedProduce
    fetched_to(followed, 1)
    assert replicated(later) == (RequestTimedOut.code, 0)


def test_leadership_is_lost_while_followers_are_waited_for(node, followed):
    later = promised(node, requested(batch(), acks=-1))
    followed.become_follower(followed.image._replace(leader=8, leader_epoch=1))
    assert replicated(later) == (NotLeaderOrFollower.code, 0)


def test_too_few_are_in_sync(node, followed):
    followed.become_leader(followed.image._replace(isr=followed.image.isr[:1], partition_epoch=2))
    followed.log.update_config(followed.log.config._replace(min_insync_replicas=2))
    answer = send(node, requested(batch(), acks=-1))
    assert (answer.error_code, answer.base_offset) == (NotEnoughReplicas.code, -1)
