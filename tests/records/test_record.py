"""Records read from batches: of real programs, of other libraries, and invalid ones."""

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as TheirBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as TheirBuilder
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from barnabas.errors import CorruptMessage, InvalidRecord, MessageTooLarge
from barnabas.records.batch import HEADER_SIZE, Compression, RecordBatch, batches
from barnabas.records.builder import build_batch, sign
from barnabas.records.control import ControlRecordType, control_key, control_record_type
from barnabas.records.record import Record, records_in, records_of, walk
from barnabas.records.varint import write_varint

CODECS = list(Compression)

NEW_RECORDS = st.lists(
    st.tuples(
        st.none() | st.binary(max_size=200),
        st.none() | st.binary(max_size=2000),
        st.integers(0, 2**48),
        st.lists(st.tuples(st.text(max_size=10), st.none() | st.binary(max_size=10)), max_size=3),
    ),
    min_size=1,
    max_size=20,
)


def as_records(new) -> list[Record]:
    return [
        Record(at, timestamp, key, value, tuple(headers)) for at, (key, value, timestamp, headers) in enumerate(new)
    ]


@given(NEW_RECORDS, st.sampled_from(CODECS))
def test_round_trip(new, codec) -> None:
    batch = RecordBatch.parse(build_batch(new, compression=codec))
    assert list(records_of(batch)) == as_records(new)
    assert batch.max_timestamp == max(record[2] for record in new)
    if codec == Compression.NONE:
        deltas = [record[2] - new[0][2] for record in new]
        keyless = sum(record[0] is None for record in new)
        assert walk(bytes(batch.body), len(new)) == (min(deltas), max(deltas), True, keyless)


@pytest.mark.parametrize(
    ("builder", "reader"),
    [(DefaultRecordBatchBuilder, DefaultRecordBatch), (TheirBuilder, TheirBatch)],
    ids=["kafka-python", "aiokafka"],
)
@given(new=NEW_RECORDS, codec=st.sampled_from(CODECS))
def test_other_libraries_both_ways(builder, reader, new, codec) -> None:
    theirs = builder(2, int(codec), False, -1, -1, -1, 1 << 30)
    for at, (key, value, timestamp, headers) in enumerate(new):
        theirs.append(at, timestamp, key, value, headers)
    batch = RecordBatch.parse(theirs.build())
    batch.check_crc()
    assert list(records_of(batch)) == as_records(new)

    ours = build_batch(new, compression=codec)
    if codec == Compression.NONE:
        assert RecordBatch.parse(ours).body == batch.body
    read = reader(bytes(ours))
    assert read.validate_crc()
    assert [
        Record(record.offset, record.timestamp, record.key, record.value, tuple(record.headers)) for record in read
    ] == as_records(new)


# ---------------------------------------------------------------- golden batches


def test_golden_batches_hold_together(golden, golden_name, layout) -> None:
    data = golden(golden_name)
    found = list(batches(data))
    assert sum(batch.size_in_bytes for batch in found) == len(data)
    for batch in found:
        batch.check_crc()
        assert layout.parse(bytes(batch.buffer)).count == batch.count == len(list(records_of(batch)))
        assert [record.offset for record in records_of(batch)] == list(range(batch.base_offset, batch.next_offset))


CLIENTS = ["kafka_python", "aiokafka", "librdkafka", "broker"]
HEADERS = (("h", b"\xc3\xbc"), ("empty", b""))
SENT = [
    Record(0, 1_700_000_000_000, b"key", b"value" * 20, HEADERS),
    Record(1, 1_700_000_000_005, None, b""),
    Record(2, 1_699_999_999_995, b"", None),
]


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name.lower())
@pytest.mark.parametrize("client", CLIENTS)
def test_what_clients_sent(golden, client, codec) -> None:
    (batch,) = batches(golden(f"{client}-{codec.name.lower()}"))
    expected = list(SENT)
    if client == "librdkafka":
        expected[0] = expected[0]._replace(headers=(*HEADERS, ("null", None)))
    assert batch.compression is codec
    assert list(records_of(batch)) == expected
    assert batch.max_timestamp == 1_700_000_000_005


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name.lower())
def test_what_the_java_producer_sent(golden, codec) -> None:
    (batch,) = batches(golden(f"jvm-{codec.name.lower()}"))
    assert batch.compression is codec
    assert batch.has_producer_id and batch.base_sequence == 0
    assert [record._replace(timestamp=0) for record in records_of(batch)] == [
        Record(0, 0, b"key", b"value" * 6, (("h", b"value"), ("n", b"x"))),
        Record(1, 0, b"k2", b"second", (("a", b"1"),)),
        Record(2, 0, b"k3", b"", (("b", b"2"),)),
    ]


def test_log_append_time_is_every_records(golden) -> None:
    (batch,) = batches(golden("append_time"))
    assert batch.is_log_append_time
    assert {record.timestamp for record in records_of(batch)} == {batch.max_timestamp}
    assert batch.base_timestamp == 1_700_000_000_000


def test_transactions_and_their_markers(golden) -> None:
    found = list(batches(golden("transactions")))
    assert [batch.is_control for batch in found] == [False, True, False, True]
    assert all(batch.is_transactional for batch in found)
    markers = [control_record_type(record.key) for batch in found if batch.is_control for record in records_of(batch)]
    assert markers == [ControlRecordType.COMMIT, ControlRecordType.ABORT]


def test_a_leader_change_as_apache_writes_it(golden) -> None:
    data = golden("leader_change")
    (batch,) = batches(data)
    (record,) = records_of(batch)
    assert control_record_type(record.key) is ControlRecordType.LEADER_CHANGE
    ours = build_batch(
        [(control_key(ControlRecordType.LEADER_CHANGE), record.value, record.timestamp)],
        is_control=True,
        leader_epoch=1,
    )
    assert ours == data


@pytest.mark.parametrize("key", [None, b"", b"\0\0\0", b"\xff\xff\0\1"])
def test_no_control_key(key) -> None:
    with pytest.raises(InvalidRecord):
        control_record_type(key)


def test_a_control_record_of_the_future() -> None:
    assert control_record_type(b"\0\1\0\x63extra") is None


# ---------------------------------------------------------------- lies


def record(*, size=None, attributes=0, timestamp=0, offset=0, key=b"k", value=b"v", count=0, rest=b"") -> bytes:
    """Returns one record, with the given invalid fields."""
    out = bytearray([attributes])
    write_varint(timestamp, out)
    write_varint(offset, out)
    for part in (key, value):
        write_varint(-1 if part is None else len(part), out)
        out += part or b""
    write_varint(count, out)
    out += rest
    length = bytearray()
    write_varint(len(out) if size is None else size, length)
    return bytes(length + out)


def batch_of(body: bytes, count: int) -> RecordBatch:
    buffer = build_batch([(b"k", b"v", 1000)])[:HEADER_SIZE] + body
    buffer[8:12] = (len(buffer) - 12).to_bytes(4, "big")
    buffer[57:61] = (count & 0xFFFFFFFF).to_bytes(4, "big")
    sign(buffer)
    return RecordBatch.parse(buffer)


LIES = {
    "a count too high": (record(), 2),
    "a count too low": (record() * 2, 1),
    "a count beyond all bytes": (record(), 2**31 - 1),
    "a count below zero": (record(), -1),
    "bytes left over": (record() + b"\0", 1),
    "a size beyond the batch": (record(size=100), 1),
    "a size that is too small": (record(size=7), 1),
    "a size of zero": (record(size=0), 1),
    "a size below zero": (record(size=-1), 1),
    "a size of three bytes": (record(size=1 << 20), 1),
    "a key beyond the batch": (b"\x0e\0\0\0\x7e\x01\0\0", 1),
    "a value beyond the batch": (b"\x0e\0\0\0\x01\x7e\0\0", 1),
    "a value that ends at the batch's end": (b"\x0e\0\0\0\x01\x06abc", 1),
    "headers below zero": (record(count=-1), 1),
    "more headers than bytes": (record(count=1000, rest=b"\0\0\0"), 1),
    "headers that are not there": (record(count=2, rest=b"\0\0"), 1),
    "a null header key": (record(count=1, rest=b"\x01\0"), 1),
    "a varint without an end": (b"\xff" * 12, 1),
    "a timestamp without an end": (b"\x18\0" + b"\xff" * 11, 1),
    "an offset without an end": (b"\x18\0\0" + b"\xff" * 10, 1),
}


@pytest.mark.parametrize("lie", LIES)
def test_lies(lie) -> None:
    body, count = LIES[lie]
    batch = batch_of(body, count)
    with pytest.raises(InvalidRecord):
        list(records_of(batch))
    with pytest.raises(InvalidRecord):
        walk(body, count)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (record(attributes=0x55), Record(0, 1000, b"k", b"v")),
        (record(timestamp=-1100, offset=-3), Record(-3, -100, b"k", b"v")),
        (b"\x0c\0\0\0\x09\x01\0", Record(0, 1000, None, None)),  # a length of -5 is null, too
        (record(count=1, rest=b"\x04\xff\xfe\x00"), Record(0, 1000, b"k", b"v", (("\ufffd\ufffd", b""),))),
    ],
)
def test_taken_all_the_same(body, expected) -> None:
    assert list(records_of(batch_of(body, 1))) == [expected]
    walk(body, 1)


@pytest.mark.parametrize("timestamp", [2**63 - 1, -(2**63)])
def test_a_timestamp_beyond_64_bits(timestamp) -> None:
    body = record(timestamp=timestamp)
    batch = batch_of(body, 1)
    batch.base_timestamp = timestamp  # as in the header
    with pytest.raises(InvalidRecord):
        list(records_of(batch))


@given(st.data(), st.sampled_from(CODECS))
def test_mutations_give_records_or_an_error_of_the_protocol(data, codec) -> None:
    new = [(b"key", b"value" * at, 1000 + at, [("header", b"x")]) for at in range(5)]
    buffer = build_batch(new, compression=codec)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(57, len(buffer) - 1))
        buffer[at] = data.draw(st.integers(0, 255))
    sign(buffer)
    batch = RecordBatch.parse(buffer)
    try:
        found = list(records_of(batch, limit=1 << 20))
    except (CorruptMessage, InvalidRecord, MessageTooLarge):
        return
    assert len(found) == batch.count


@given(st.binary(max_size=60), st.integers(-1, 5))
def test_walking_and_reading_agree_on_what_is_a_record(body, count) -> None:
    def fails(function) -> bool:
        try:
            function()
        except InvalidRecord:
            return True
        return False

    batch = batch_of(body, count)
    if count > 0:
        assert fails(lambda: walk(body, count)) == fails(lambda: list(records_in(batch, body)))
