"""Decoded columns, compared with the same bytes read record by record, by us and by other libraries."""

import io
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kafka.record import MemoryRecords

from barnabas.cli.layouts.batches import BATCH, RECORD
from barnabas.columnar import boundaries, decoding, fields
from barnabas.columnar.decoding import Aborted, decode_each, schema
from barnabas.records.batch import CONTROL_BIT, TRANSACTIONAL_BIT, Compression, batches
from barnabas.records.control import ControlRecordType, control_key
from barnabas.records.message_set import build_messages, build_wrapper
from barnabas.records.record import Record, records_of
from tests.columnar.batches import Raw, batch_bytes, decode, logs, record_bytes, records

WAYS = pytest.mark.parametrize("few", [boundaries.FEW, 0], ids=["loop", "side by side"])
"""Few records are read by a loop, many in parallel: the same tests for both."""


@contextmanager
def in_small(few: int) -> Iterator[None]:
    """Uses the algorithms for thousands of records with the few records of a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boundaries, "FEW", few)
        if not few:
            patch.setattr(boundaries, "SEGMENT", 2)
            patch.setattr(boundaries, "COMPANY", 0)
            patch.setattr(fields, "FEW", 0)
        yield


def found(data: bytes, **options) -> list[Record]:
    decoded = decode(data, topic="t", partition=3, headers=True, **{"start": 0, **options})
    return as_records(decoded.batch)


def as_records(batch: pa.RecordBatch | None) -> list[Record]:
    if batch is None:
        return []
    assert batch.schema.equals(schema(headers=True))
    batch.validate(full=True)
    assert set(batch["topic"].to_pylist()) <= {"t"}
    assert set(batch["partition"].to_pylist()) <= {3}
    milliseconds = [micros // 1000 for micros in batch["timestamp"].cast(pa.int64()).to_pylist()]
    assert all(lists is None or lists for lists in batch["headers"].to_pylist())
    return [
        Record(offset, timestamp, key, value, tuple((each["key"], each["value"]) for each in headers or ()))
        for offset, timestamp, key, value, headers in zip(
            batch["offset"].to_pylist(),
            milliseconds,
            batch["key"].to_pylist(),
            batch["value"].to_pylist(),
            batch["headers"].to_pylist(),
            strict=True,
        )
    ]


def one_by_one(data: bytes) -> list[Record]:
    return [record for batch in batches(data) for record in records_of(batch)]


@WAYS
@given(log=logs(), inside=st.data())
def test_the_same_as_record_by_record(few, log, inside) -> None:
    data = b"".join(log)
    every = one_by_one(data)
    offsets = [record.offset for record in every] or [0]
    start = inside.draw(st.integers(offsets[0] - 2, offsets[-1] + 2)) if inside.draw(st.booleans()) else 0
    end = inside.draw(st.none() | st.integers(offsets[0] - 2, offsets[-1] + 2))
    with in_small(few):
        assert found(data, start=start, end=end) == [
            record for record in every if record.offset >= start and (end is None or record.offset < end)
        ]


@settings(max_examples=40)
@given(log=logs())
def test_which_kind_of_time_it_is(log) -> None:
    kinds = [int(batch.is_log_append_time) for batch in batches(b"".join(log)) for _ in records_of(batch)]
    decoded = decode(b"".join(log), topic="t", partition=3, start=0)
    assert (decoded.batch["timestampType"].to_pylist() if decoded.batch else []) == kinds


@settings(max_examples=40)
@given(log=logs(max_batches=3), inside=st.data())
def test_what_is_cut_off_is_left_out(log, inside) -> None:
    data = b"".join(log)
    cut = inside.draw(st.integers(0, len(data)))
    whole = list(batches(data[:cut]))
    decoded = decode(memoryview(data)[:cut], topic="t", partition=3, start=0, headers=True)
    assert as_records(decoded.batch) == one_by_one(data[:cut])
    assert decoded.next_offset == (whole[-1].next_offset if whole else 0)


@settings(max_examples=40)
@given(log=logs(), rows=st.integers(1, 5), size=st.integers(1, 2000))
def test_in_parts_it_is_the_same(log, rows, size) -> None:
    data = b"".join(log)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "MAX_ROWS", rows)
        patch.setattr(decoding, "GROUP_BYTES", size)
        parts = list(decode_each(data, topic="t", partition=3, start=0, headers=True))
        whole = decode(data, topic="t", partition=3, start=0, headers=True)
    assert [record for part in parts for record in as_records(part.batch)] == one_by_one(data)
    assert as_records(whole.batch) == one_by_one(data)
    assert all(part.batch is None or 0 < part.batch.num_rows <= rows for part in parts)
    for before, after in pairwise(parts):
        assert after.batch is None or before.next_offset <= after.batch["offset"][0].as_py()


@given(records(), st.sampled_from(list(Compression)))
def test_kafka_python_reads_the_same(made, codec) -> None:
    assume(made or codec is not Compression.SNAPPY)  # it cannot decompress an empty body
    data = batch_bytes(made, codec=codec)
    theirs = [
        Record(each.offset, each.timestamp, each.key, each.value, tuple(each.headers))
        for batch in iter(MemoryRecords(data).next_batch, None)
        for each in batch
    ]
    assert found(data) == theirs


def test_the_layout_of_dump_log_says_the_same() -> None:
    """An independent decoder of the bytes, declared with construct, for fields that the others do not return."""
    made = [Raw(0, -5, b"k", None, (("a", None), ("", b"x"))), Raw(7, 2**40, None, b"", ()), Raw(70_000, 0, b"", b"v")]
    data = batch_bytes(made, base_offset=2**40, base_timestamp=10)
    header = BATCH.parse(data)
    body = io.BytesIO(data[BATCH.sizeof() :])
    laid_out = [RECORD.parse_stream(body) for _ in made]
    assert found(data) == [
        Record(
            header.base_offset + each.offset_delta,
            header.base_timestamp + each.timestamp_delta,
            each.key,
            each.value,
            tuple((named.key.decode(), named.value) for named in each.headers),
        )
        for each in laid_out
    ]


def test_thousands_of_all_sizes() -> None:
    """Large batches, which are walked from inner positions; with zeros, and with bytes that resemble records, as
    values.
    """
    sizes = [(7 * at * at) % 211 for at in range(3000)]
    decoys = [b"\x0e\x00\x00\x00\x01\x01\x00" * 20, bytes(400), record_bytes(Raw(3, 0, b"k", b"v" * 40)) * 5]
    plain = [Raw(at, at // 9, None if at % 5 else b"%d" % at, b"v" * size) for at, size in enumerate(sizes)]
    tricky = [raw._replace(value=decoys[at % 3] if at % 4 == 0 else raw.value) for at, raw in enumerate(plain)]
    long = [raw._replace(value=b"w" * 9000) if at % 500 == 1 else raw for at, raw in enumerate(plain)]
    wide = [raw._replace(value=b"w" * 5000) for raw in plain[:200]]
    headed = [raw._replace(headers=(("a", b"1"),) * (at % 3)) for at, raw in enumerate(plain)]
    for made in (plain, tricky, long, wide, headed):
        for codec in (Compression.NONE, Compression.LZ4):
            data = batch_bytes(made, codec=codec) + batch_bytes(plain[:100], base_offset=5000)
            assert found(data) == one_by_one(data)


def test_guesses_inside_a_batch_are_good() -> None:
    """Otherwise the loop would read everything slowly, without a failing test."""
    made = [Raw(at, 0, b"k", b"v" * (at * at % 97)) for at in range(5000)]
    data = batch_bytes(made)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boundaries, "_walked", None)
        assert found(data) == one_by_one(data)


def test_holes_are_no_place_to_guess() -> None:
    """If no record is at the guessed positions, numpy would take ten thousand steps for one walk."""
    made = [Raw(3 * at, 0, b"k", b"v" * (at * at % 97)) for at in range(5000)]
    data = batch_bytes(made) + batch_bytes(made, base_offset=20_000)
    in_order = boundaries._in_order

    def nothing_side_by_side(walked, blocks, tails):
        assert not blocks
        return in_order(walked, blocks, tails)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boundaries, "_in_order", nothing_side_by_side)
        assert found(data) == one_by_one(data)


def test_header_names_that_are_no_text() -> None:
    body = record_bytes(Raw(0, 0, None, None, (("ab", b"c"),)))
    data = batch_bytes([Raw(0, 0, None, None)], body=body.replace(b"ab", b"a\xff"))
    assert found(data)[0].headers == (("a\N{REPLACEMENT CHARACTER}", b"c"),) == one_by_one(data)[0].headers


def test_no_headers_where_none_are_wanted() -> None:
    decoded = decode(batch_bytes([Raw(0, 0, b"k", b"v", (("a", b"b"),))]), topic="t", partition=3, start=0)
    assert decoded.batch.schema.equals(schema(headers=False))
    assert decoded.batch.num_rows == 1


def test_the_columns_are_those_of_spark() -> None:
    from pyspark.sql import types as t
    from pyspark.sql.pandas.types import to_arrow_schema

    header = t.StructType().add("key", t.StringType()).add("value", t.BinaryType())
    spark = (
        t.StructType()
        .add("key", t.BinaryType())
        .add("value", t.BinaryType())
        .add("topic", t.StringType())
        .add("partition", t.IntegerType())
        .add("offset", t.LongType())
        .add("timestamp", t.TimestampType())
        .add("timestampType", t.IntegerType())
    )
    assert to_arrow_schema(spark, timezone="UTC").equals(schema(headers=False))
    spark.add("headers", t.ArrayType(header))
    assert to_arrow_schema(spark, timezone="UTC").equals(schema(headers=True))


# ---------------------------------------------------------------- transactions


def marker(kind: ControlRecordType, producer_id: int, offset: int) -> bytes:
    body = [Raw(0, 0, control_key(kind), b"\0\0\0\0\0\0")]
    return batch_bytes(body, base_offset=offset, producer_id=producer_id, attributes=CONTROL_BIT | TRANSACTIONAL_BIT)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(["write", "write", "commit", "abort", "plain"])), max_size=40
    ),
    st.sampled_from([Compression.NONE, Compression.ZSTD]),
)
def test_aborted_transactions_of_several_producers(events, codec) -> None:
    log, committed, aborted, offset = [], [], [], 0
    running: dict[int, list[int]] = {}
    for producer, event in events:
        if event == "plain":
            log.append(batch_bytes([Raw(0, 0, None, b"plain")], base_offset=offset, codec=codec))
            committed.append(offset)
        elif event == "write":
            made = [Raw(0, 0, b"%d" % producer, b"a"), Raw(1, 0, None, b"b")]
            log.append(batch_bytes(made, base_offset=offset, producer_id=producer, codec=codec))
            running.setdefault(producer, []).extend((offset, offset + 1))
            offset += 1
        elif producer in running:
            written = running.pop(producer)
            kind = ControlRecordType.COMMIT if event == "commit" else ControlRecordType.ABORT
            log.append(marker(kind, producer, offset))
            if event == "commit":
                committed += written
            else:
                aborted.append(Aborted(producer, written[0]))
        else:
            continue
        offset += 1
    stable = min((written[0] for written in running.values()), default=offset)
    data = b"".join(log)
    shown = [record.offset for record in found(data, end=stable, aborted=aborted)]
    assert shown == sorted(at for at in committed if at < stable)
    every = [record.offset for record in found(data)]
    assert every == [each.offset for batch in batches(data) if not batch.is_control for each in records_of(batch)]


def test_nothing_but_markers_moves_on() -> None:
    data = marker(ControlRecordType.COMMIT, 1, 5) + marker(ControlRecordType.ABORT, 2, 6)
    for aborted in (None, []):
        assert decode(data, topic="t", partition=3, start=5, aborted=aborted) == (None, 7)


def test_a_marker_that_compaction_has_emptied() -> None:
    emptied = batch_bytes([], base_offset=6, producer_id=1, attributes=CONTROL_BIT, last_delta=0)
    assert decode(emptied, topic="t", partition=3, start=5, aborted=[Aborted(1, 5)]) == (None, 7)


# ---------------------------------------------------------------- message sets


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [None, Compression.GZIP, Compression.SNAPPY, Compression.LZ4])
@pytest.mark.parametrize("append_time", [False, True])
def test_what_was_written_before_record_batches(magic, codec, append_time) -> None:
    time = 1_500_000_000_000
    old = [Record(at, time + at, b"k%d" % at if at % 2 else None, b"v" * at) for at in range(10, 15)]
    if codec is None:
        sets = build_messages(old, magic, log_append_time=append_time)
    else:
        sets = [build_wrapper(old, magic, codec, log_append_time=append_time)]
    new = batch_bytes([Raw(0, 0, b"new", None)], base_offset=15)
    decoded = decode(b"".join([*sets, new]), topic="t", partition=3, start=12, end=16, headers=True)
    times = [-1 if magic == 0 else time + (14 if append_time and codec else each.offset) for each in old]
    expected = [each._replace(timestamp=at) for each, at in zip(old, times, strict=True)][2:]
    assert as_records(decoded.batch) == [*expected, Record(15, 1_700_000_000_000, b"new", None)]
    kind = -1 if magic == 0 else int(append_time)
    assert decoded.batch["timestampType"].to_pylist() == [kind, kind, kind, 0]
    assert decoded.next_offset == 16
