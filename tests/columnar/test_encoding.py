"""Columns encoded as batches, and decoded in three ways: record by record, by column, and by a client."""

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record import MemoryRecords

from barnabas.columnar import encoding
from barnabas.columnar.encoding import (
    Columns,
    Encoded,
    ProducerStamp,
    after,
    encode_runs,
    record_sizes,
    stamp,
    varint_sizes,
    zigzag,
)
from barnabas.records.batch import HEADER_SIZE, Compression, RecordBatch
from barnabas.records.builder import build_batch
from barnabas.records.record import records_of
from barnabas.records.varint import write_varint
from tests.columnar.batches import decode

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
LARGE = 1 << 20

content = st.none() | st.binary(max_size=40) | st.binary(min_size=60, max_size=70) | st.just(b"x" * 9_000)
header = st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5))
sane = st.integers(0, 2**45) | st.just(-1)
times = sane | st.just(2**62)


def lists(times: st.SearchStrategy[int]) -> st.SearchStrategy[list["Made"]]:
    made = st.tuples(content, content, times, st.lists(header, max_size=3).map(tuple))
    return st.lists(made, min_size=1, max_size=30)


records = lists(times)
Made = tuple[bytes | None, bytes | None, int, tuple[tuple[str, bytes | None], ...]]


def columns(made: list[Made], *, padding: int = 0) -> Columns:
    """Returns the records as columns; with padding they are slices of longer arrays, as Spark's may be."""
    before: list[Made] = [(b"other", b"else", 5, (("x", b"y"),))] * padding
    key, value, timestamp, headers = zip(*before, *made, *before, strict=True)
    listed = [None if not each else [{"key": k, "value": v} for k, v in each] for each in headers]
    return Columns(
        pa.array(key, pa.binary()).slice(padding, len(made)),
        pa.array(value, pa.binary()).slice(padding, len(made)),
        pa.array(listed, HEADERS).slice(padding, len(made)),
        np.array(timestamp[padding : padding + len(made)], np.int64),
    )


def encode(
    key: pa.Array | None,
    value: pa.Array | None,
    headers: pa.Array | None,
    timestamps: np.ndarray,
    *,
    producer: ProducerStamp | None = None,
    **options: Any,
) -> list[Encoded]:
    """Returns the batches of one run, stamped as by a writer."""
    runs = encode_runs(Columns(key, value, headers, timestamps), [0, len(timestamps)], **options)
    for _, batch in runs:
        if producer is not None:
            stamp(batch.data, producer)
            producer = producer._replace(sequence=after(producer.sequence, batch.count))
    return [batch for _, batch in runs]


def read(batches: list[Encoded]) -> list[Made]:
    """Returns the content of the batches, after checking each."""
    found: list[Made] = []
    for batch in batches:
        parsed = RecordBatch.parse(batch.data)
        parsed.check_crc()
        assert parsed.count == batch.count == parsed.last_offset_delta + 1
        assert parsed.size_in_bytes == len(batch.data)
        those = list(records_of(parsed))
        assert [record.offset for record in those] == list(range(batch.count))
        assert parsed.max_timestamp == max(record.timestamp for record in those)
        found += [(record.key, record.value, record.timestamp, record.headers) for record in those]
    return found


@settings(max_examples=150, deadline=None)
@given(records, st.sampled_from(Compression), st.integers(100, 20_000), st.integers(0, 2))
def test_what_is_encoded_is_what_is_read(made: list[Made], compression: Compression, limit: int, padding: int) -> None:
    batches = encode(*columns(made, padding=padding), max_batch_bytes=limit, compression=compression)
    assert read(batches) == made
    if compression is Compression.NONE:
        assert all(len(batch.data) <= limit for batch in batches if batch.count > 1)


@settings(max_examples=50, deadline=None)
@given(records, st.integers(0, 2))
def test_a_record_s_size_counts_all_that_is_in_it(made: list[Made], padding: int) -> None:
    assert record_sizes(columns(made, padding=padding)).tolist() == [
        7
        + len(key or b"")
        + len(value or b"")
        + sum(len(name.encode()) + len(content or b"") for name, content in headers)
        for key, value, _, headers in made
    ]


@settings(max_examples=100, deadline=None)
@given(records)
def test_one_batch_is_byte_for_byte_that_of_the_builder(made: list[Made]) -> None:
    (batch,) = encode(*columns(made), max_batch_bytes=LARGE)
    assert batch.data == build_batch(made)


@settings(max_examples=100, deadline=None)
@given(lists(sane), st.sampled_from(Compression))
def test_other_readers_read_it(made: list[Made], compression: Compression) -> None:
    batches = encode(*columns(made), max_batch_bytes=5_000, compression=compression)
    theirs: list[Made] = []
    offset = 0
    data = bytearray()
    for batch in batches:
        RecordBatch.parse(batch.data).stamp(offset, 0)
        offset += batch.count
        data += batch.data
    reader = MemoryRecords(bytes(data))
    while reader.has_next():
        theirs += [
            (record.key, record.value, record.timestamp, tuple(record.headers)) for record in reader.next_batch()
        ]
    assert theirs == made
    decoded = decode(bytes(data), topic="t", partition=3, start=0, headers=True).batch
    assert decoded is not None
    assert decoded.column("key").to_pylist() == [record[0] for record in made]
    assert decoded.column("value").to_pylist() == [record[1] for record in made]
    ours = decoded.column("headers").to_pylist()
    assert [tuple((each["key"], each["value"]) for each in row or ()) for row in ours] == [row[3] for row in made]


@settings(max_examples=50, deadline=None)
@given(records, st.integers(100, 5_000), st.data())
def test_runs_are_batches_apart(made: list[Made], limit: int, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(1, len(made)), max_size=4)) | {0, len(made)})
    found: list[list[Made]] = [[] for _ in cuts[1:]]
    for run, batch in encode_runs(columns(made), cuts, max_batch_bytes=limit):
        found[run] += read([batch])
    assert found == [made[start:stop] for start, stop in itertools.pairwise(cuts)]


def test_what_is_too_much_is_joined_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Made] = [
        (b"%d" % number, b"v" * (number % 90), number, (("h", b"%d" % number),)) for number in range(300)
    ]
    for most in (1, 700, 5_000):
        monkeypatch.setattr(encoding, "MAX_JOINED", most)
        assert read(encode(*columns(made), max_batch_bytes=600)) == made
        runs = encode_runs(columns(made), [0, 10, 11, 200, 300], max_batch_bytes=600)
        assert [run for run, _ in runs] == sorted(run for run, _ in runs)
        assert read([batch for _, batch in runs]) == made


def test_columns_that_are_missing_are_null() -> None:
    times = np.array([7, 8])
    value = pa.array(["a", "bc"])
    assert read(encode(None, value, None, times, max_batch_bytes=LARGE)) == [(None, b"a", 7, ()), (None, b"bc", 8, ())]
    assert read(encode(value, None, None, times, max_batch_bytes=LARGE)) == [(b"a", None, 7, ()), (b"bc", None, 8, ())]
    assert read(encode(None, None, None, times, max_batch_bytes=LARGE)) == [(None, None, 7, ()), (None, None, 8, ())]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.large_binary(), pa.binary()])
def test_text_and_large_columns_are_bytes(kind: pa.DataType) -> None:
    column = pa.array(["größe", None, ""], pa.string()).cast(kind)
    batches = encode(None, column, None, np.zeros(3, np.int64), max_batch_bytes=LARGE)
    assert [value for _, value, _, _ in read(batches)] == ["größe".encode(), None, b""]


def test_nothing_makes_no_batch() -> None:
    empty = pa.array([], pa.binary())
    assert encode(empty, empty, None, np.zeros(0, np.int64), max_batch_bytes=LARGE) == []


def test_a_batch_takes_as_many_records_as_fit() -> None:
    """A record with a value of 100 bytes takes 109, so a batch of 1,000 bytes has eight."""
    value = pa.array([b"v" * 100] * 20)
    batches = encode(None, value, None, np.zeros(20, np.int64), max_batch_bytes=1_000)
    assert [batch.count for batch in batches] == [8, 8, 4]
    assert all(len(batch.data) == HEADER_SIZE + batch.count * 109 for batch in batches)


def test_a_header_without_a_name_is_refused() -> None:
    headers = pa.array([[{"key": None, "value": b"x"}]], HEADERS)
    with pytest.raises(ValueError, match="no name"):
        encode(None, pa.array([b"v"]), headers, np.zeros(1, np.int64), max_batch_bytes=LARGE)


def test_sequences_go_on_from_batch_to_batch_and_around() -> None:
    value = pa.array([b"v" * 100] * 20)
    producer = ProducerStamp(77, 3, 2**31 - 10, transactional=True)
    batches = encode(None, value, None, np.zeros(20, np.int64), max_batch_bytes=1_000, producer=producer)
    parsed = [RecordBatch.parse(batch.data) for batch in batches]
    assert [batch.base_sequence for batch in parsed] == [2**31 - 10, 2**31 - 2, 6]
    assert {(batch.producer_id, batch.producer_epoch, batch.is_transactional) for batch in parsed} == {(77, 3, True)}
    assert all(batch.is_intact() for batch in parsed)


def test_a_batch_can_be_stamped_again() -> None:
    (batch,) = encode(
        None, pa.array([b"v"]), None, np.zeros(1, np.int64), max_batch_bytes=LARGE, compression=Compression.LZ4
    )
    stamp(batch.data, ProducerStamp(1, 2, 3, transactional=True))
    stamp(batch.data, ProducerStamp(4, 5, 6))
    parsed = RecordBatch.parse(batch.data)
    assert (parsed.producer_id, parsed.producer_epoch, parsed.base_sequence) == (4, 5, 6)
    assert not parsed.is_transactional
    assert parsed.compression is Compression.LZ4
    assert parsed.is_intact()
    assert after(2**31 - 1, 1) == 0


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_varints_are_as_long_as_they_are_written(numbers: list[int]) -> None:
    written = []
    for number in numbers:
        out = bytearray()
        write_varint(number, out)
        written.append(len(out))
    assert varint_sizes(zigzag(np.array(numbers, np.int64))).tolist() == written
