"""Produce 0 to 2 and Fetch 0 to 3 with message sets. Their conversion is tested in tests/records."""

import pytest

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.fetch import fetch
from barnabas.api_handlers.message_sets import CONVERTED_BYTES, MAX_READS
from barnabas.api_handlers.produce import produce
from barnabas.errors import CloseConnection, CorruptMessage, MessageTooLarge
from barnabas.records.batch import Compression, RecordBatch, batches
from barnabas.records.builder import build_batch, sign
from barnabas.records.control import ControlRecordType, control_key
from barnabas.records.message_set import build_message, build_wrapper, messages_in, records_of_message
from barnabas.records.record import Record, records_of
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from tests.asking import context_of

Topic = ProduceRequest.TopicProduceData
FetchTopic = FetchRequest.FetchTopic


def send(node, records, version, *, acks=1):
    """Returns the response for the partition, decoded from its bytes; None without a response."""
    partition = Topic.PartitionProduceData(index=0, records=records)
    request = ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[Topic(name="t", partition_data=[partition])])
    frame = memoryview(bytearray(request.encode(version=version)))
    response = produce(ProduceRequest.decode(frame, version=version), context_of(node.broker, version))
    if response is None:
        return None
    (topic,) = ProduceResponse.decode(response.encode(version=version), version=version).responses
    return topic.partition_responses[0]


def ask(node, offset, version, *, topics=("t",), max_wait_ms=0, **fields):
    limits = {"partition_max_bytes": fields.pop("partition_max_bytes", 1 << 20)}
    request = FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        topics=[
            FetchTopic(topic=name, partitions=[FetchTopic.FetchPartition(partition=0, fetch_offset=offset, **limits)])
            for name in topics
        ],
        **fields,
    )
    return fetch(
        FetchRequest.decode(request.encode(version=version), version=version), context_of(node.broker, version)
    )


def answered(response, version):
    response = FetchResponse.decode(response.encode(version=version), version=version)
    return [topic.partitions[0] for topic in response.responses]


def read(node, offset, version, **fields):
    """Returns the only partition."""
    (partition,) = answered(ask(node, offset, version, **fields), version)
    assert partition.error_code == 0
    return offsets(partition)


def offsets(partition):
    messages = messages_in(bytes(partition.records))
    return [record.offset for message in messages for record in records_of_message(message)]


@pytest.fixture
def partition(node):
    return node.create_topic("t")


def stored(partition):
    log = partition.log
    data = log.read(log.log_start_offset, 1 << 20, up_to=log.log_end_offset, minimum_one=True)
    return [(batch, list(records_of(batch))) for batch in batches(data)]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_messages_become_batches(node, partition, version):
    magic = 1 if version == 2 else 0
    now = node.clock.time_ms()
    plain = build_message(magic, 0, now, b"k", b"v") + build_message(magic, 1, now, None, None)
    wrapped = build_wrapper([Record(0, now, None, b"w")], magic, Compression.GZIP)
    answers = [send(node, data, version) for data in (plain, wrapped)]
    assert [(each.error_code, each.base_offset, each.log_append_time_ms) for each in answers] == [
        (0, 0, -1),
        (0, 2, -1),
    ]
    (one, records), (two, more) = stored(partition)
    time = now if magic else -1
    assert records == [Record(0, time, b"k", b"v"), Record(1, time, None, None)]
    assert more == [Record(2, time, None, b"w")]
    assert (one.compression, two.compression) == (Compression.NONE, Compression.GZIP)


def test_the_logs_time_is_told(node):
    partition = node.create_topic("t", message_timestamp_type="LogAppendTime")
    now = node.clock.time_ms()
    assert send(node, build_message(0, 0, -1, None, b"v"), 2).log_append_time_ms == now
    ((batch, (record,)),) = stored(partition)
    assert batch.is_log_append_time and record.timestamp == now


@pytest.mark.parametrize("version", [0, 1, 2])
def test_no_message_is_no_error(node, partition, version):
    answer = send(node, b"", version)
    assert (answer.error_code, answer.base_offset) == (0, -1)
    assert partition.log.log_end_offset == 0


@pytest.mark.parametrize("version", [0, 1, 2])
def test_acks_0(node, partition, version):
    assert send(node, build_message(0, 0, -1, None, b"v"), version, acks=0) is None
    assert partition.log.log_end_offset == 1
    with pytest.raises(CloseConnection):
        send(node, bytes(14), version, acks=0)


def test_what_is_refused(node, partition):
    node.create_topic("c", cleanup_policy="compact")
    assert send(node, build_message(0, 0, -1, None, b"v")[:-1] + b"x", 0).error_code == 2
    assert send(node, build_message(1, 0, 2**50, None, b"v"), 2).error_code == 32
    assert partition.log.log_end_offset == 0


@pytest.fixture
def log(node, partition):
    """Writes five batches of two records: plain, gzip, plain, snappy, plain."""
    for codec in (0, 1, 0, 2, 0):
        node.append(partition, node.clock.time_ms(), node.clock.time_ms() + 1, compression=Compression(codec))
    return partition


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_batches_become_messages(node, log, version):
    (partition,) = answered(ask(node, 0, version), version)
    messages = list(messages_in(bytes(partition.records)))
    assert {message.magic for message in messages} == {0 if version < 2 else 1}
    assert [message.codec for message in messages] == [0, 0, 1, 0, 0, 2, 0, 0]
    assert offsets(partition) == list(range(10))
    assert partition.high_watermark == 10


@pytest.mark.parametrize(("offset", "first"), [(0, 0), (1, 1), (2, 2), (3, 2), (5, 5), (7, 6), (9, 9)])
def test_from_the_middle(node, log, offset, first):
    """As many records as fit into the size of their batches."""
    found = read(node, offset, 3)
    assert found == list(range(first, first + len(found)))
    assert offset in found


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_limits(node, log, version):
    size = build_batch([(b"key", b"value", 0), (b"key", b"value", 1)])
    assert read(node, 0, version, partition_max_bytes=len(size)) == [0, 1]
    (cut,) = answered(ask(node, 0, version, partition_max_bytes=20), version)
    if version < 3:
        assert len(cut.records) == 20
        assert offsets(cut) == []
    else:
        assert offsets(cut) == [0, 1]


def test_a_limit_of_all(node, log):
    node.create_topic("u")
    node.append(node.broker.partition("u", 0), node.clock.time_ms())
    one, other = answered(ask(node, 0, 3, topics=("t", "u"), max_bytes=1), 3)
    assert (offsets(one), offsets(other)) == ([0, 1], [])


def test_no_request_keeps_the_loop_for_long(node, partition):
    """The conversion is limited per turn, for any size of a request."""
    for _ in range(40):
        big = build_batch([(None, bytes(60_000), node.clock.time_ms())])
        partition.append(RecordBatch.parse(big), node.clock.time_ms())
    (found,) = answered(ask(node, 0, 3, partition_max_bytes=1 << 30), 3)
    assert CONVERTED_BYTES // 2 < len(found.records) <= CONVERTED_BYTES
    names = [f"t{n}" for n in range(20)]
    for name in names:
        node.create_topic(name)
    for name in names:
        for _ in range(4):
            node.broker.partition(name, 0).append(RecordBatch.parse(bytearray(big)), node.clock.time_ms())
    found = answered(ask(node, 0, 1, topics=names), 1)
    assert [offsets(each) for each in found] == [[0]] * 20


def marker(node, partition):
    records = [(control_key(ControlRecordType.ABORT), bytes(6), node.clock.time_ms())]
    batch = build_batch(records, is_control=True, is_transactional=True, producer_id=1, producer_epoch=0)
    partition.log.append_as_leader(RecordBatch.parse(batch), leader_epoch=0, now_ms=node.clock.time_ms())
    partition.log.maybe_set_high_watermark(partition.log.log_end_offset)


def test_markers_are_passed_over(node, partition):
    for _ in range(3):
        marker(node, partition)
    assert read(node, 0, 3, partition_max_bytes=80) == []
    node.append(partition, node.clock.time_ms())
    assert read(node, 0, 3, partition_max_bytes=80) == [3]
    assert read(node, 0, 0, partition_max_bytes=80) == [3]
    for _ in range(MAX_READS + 1):
        marker(node, partition)
    assert read(node, 4, 3, partition_max_bytes=1) == []


@pytest.mark.parametrize("version", [0, 3])
def test_zstd(node, partition, version):
    node.append(partition, node.clock.time_ms())
    node.append(partition, node.clock.time_ms(), compression=Compression.ZSTD)
    assert read(node, 0, version) == [0]
    (refused,) = answered(ask(node, 1, version), version)
    assert (refused.error_code, refused.records) == (76, b"")
    node.create_topic("z", compression_type="zstd")
    (refused,) = answered(ask(node, 0, version, topics=["z"]), version)
    assert (refused.error_code, refused.records) == (76, b"")


def test_batches_that_cannot_be_read(node, partition):
    """Records that a current producer got past the broker; messages before them are returned first."""
    node.append(partition, node.clock.time_ms())
    broken = build_batch([(None, b"v", node.clock.time_ms())])
    broken[-3] = 98  # the value's length, 49
    sign(broken)
    partition.log.append_as_leader(RecordBatch.parse(broken), leader_epoch=0, now_ms=node.clock.time_ms())
    bomb = build_batch([(None, bytes(1 << 20), node.clock.time_ms())] * 20, compression=Compression.GZIP)
    partition.append(RecordBatch.parse(bomb), node.clock.time_ms())
    assert read(node, 0, 1) == [0]
    assert [each.error_code for each in answered(ask(node, 1, 1), 1)] == [CorruptMessage.code]
    assert [each.error_code for each in answered(ask(node, 2, 1), 1)] == [MessageTooLarge.code]


@pytest.mark.parametrize("version", [0, 3])
def test_an_append_ends_the_waiting(node, partition, version):
    later = ask(node, 0, version, max_wait_ms=500)
    assert isinstance(later, Later)
    node.append(partition, node.clock.time_ms())
    node.clock.advance(0)
    (found,) = answered(later.response, version)
    assert offsets(found) == [0]


@pytest.mark.parametrize(("version", "error"), [(0, 6), (3, 6), (5, 6), (6, 56), (11, 56)])
def test_a_disk_that_failed(node, partition, version, error):
    """KAFKA_STORAGE_ERROR was added with version 6; older clients look for another leader."""
    partition.log.go_offline("gone")
    (answer,) = answered(ask(node, 0, version), version)
    assert answer.error_code == error
