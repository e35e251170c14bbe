"""Batches for the tests of decoding, among them those of compacted logs, and invalid ones.

Knows nothing of the decoder except that it may return parts, which :func:`decode` joins.
"""

from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

from barnabas.columnar.decoding import Decoded, decode_each
from barnabas.records.batch import (
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL_BIT,
    Compression,
)
from barnabas.records.builder import sign
from barnabas.records.compression import compress
from barnabas.records.varint import write_varint

Headers = tuple[tuple[str, bytes | None], ...]


class Raw(NamedTuple):
    """A record of a batch."""

    offset_delta: int
    timestamp_delta: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


def record_bytes(record: Raw) -> bytes:
    body = bytearray(1)
    write_varint(record.timestamp_delta, body)
    write_varint(record.offset_delta, body)
    for piece in (record.key, record.value):
        _put(piece, body)
    write_varint(len(record.headers), body)
    for key, value in record.headers:
        _put(key.encode(), body)
        _put(value, body)
    whole = bytearray()
    write_varint(len(body), whole)
    return bytes(whole + body)


def batch_bytes(
    records: list[Raw],
    *,
    base_offset: int = 0,
    last_delta: int | None = None,
    base_timestamp: int = 1_700_000_000_000,
    max_timestamp: int | None = None,
    codec: Compression = Compression.NONE,
    append_time: bool = False,
    producer_id: int = -1,
    count: int | None = None,
    body: bytes | None = None,
    attributes: int = 0,
) -> bytes:
    """Returns one batch; other arguments than ``records`` are written unchanged, valid or not."""
    if body is None:
        body = b"".join(map(record_bytes, records))
    packed = compress(codec, body)
    attributes |= codec | LOG_APPEND_TIME_BIT * append_time | TRANSACTIONAL_BIT * (producer_id >= 0)
    latest = base_timestamp + max((each.timestamp_delta for each in records), default=0)
    head = HEADER.pack(
        base_offset,
        HEADER_SIZE - LOG_OVERHEAD + len(packed),
        0,
        MAGIC,
        0,
        attributes,
        (records[-1].offset_delta if records else 0) if last_delta is None else last_delta,
        base_timestamp,
        latest if max_timestamp is None else max_timestamp,
        producer_id,
        0 if producer_id >= 0 else -1,
        0 if producer_id >= 0 else -1,
        len(records) if count is None else count,
    )
    whole = bytearray(head + packed)
    sign(whole)
    return bytes(whole)


def _put(piece: bytes | None, out: bytearray) -> None:
    if piece is None:
        out.append(1)
        return
    write_varint(len(piece), out)
    out += piece


def decode(data: bytes | memoryview, *, start: int, **options: Any) -> Decoded:
    """Returns all records of ``decode_each`` in one table; None if there are none."""
    parts = list(decode_each(data, start=start, **options))
    tables = [part.batch for part in parts if part.batch is not None]
    whole = pa.Table.from_batches(tables).combine_chunks().to_batches()[0] if tables else None
    return Decoded(whole, parts[-1].next_offset if parts else start)


PIECES = st.none() | st.binary(max_size=20) | st.integers(0, 300).map(bytes) | st.just(b"x" * 9000)
HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=9)), max_size=4).map(tuple)
DELTAS = st.integers(0, 3) | st.integers(-200, 20_000) | st.integers(-(2**40), 2**40)


@st.composite
def records(draw: st.DrawFn, max_size: int = 12) -> list[Raw]:
    """Records of a batch, possibly after compaction."""
    count = draw(st.integers(0, max_size))
    steps = draw(st.lists(st.sampled_from([1, 1, 1, 1, 2, 9000]), min_size=count, max_size=count))
    result, at = [], draw(st.sampled_from([0, 0, 0, 5])) - 1
    for step in steps:
        at += step
        result.append(Raw(at, draw(DELTAS), draw(PIECES), draw(PIECES), draw(st.just(()) | HEADERS)))
    return result


@st.composite
def logs(draw: st.DrawFn, max_batches: int = 5) -> list[bytes]:
    """Consecutive batches, of all codecs and both kinds of timestamps."""
    result, offset = [], draw(st.sampled_from([0, 7, 2**40]))
    for _ in range(draw(st.integers(0, max_batches))):
        made = draw(records())
        last_delta = (made[-1].offset_delta if made else 0) + draw(st.sampled_from([0, 0, 3]))
        result.append(
            batch_bytes(
                made,
                base_offset=offset,
                last_delta=last_delta,
                codec=draw(st.sampled_from([Compression.NONE, Compression.NONE, *Compression])),
                append_time=draw(st.booleans()),
                base_timestamp=draw(st.integers(0, 2**43)),
                max_timestamp=draw(st.none() | st.integers(0, 2**43)),
            )
        )
        offset += last_delta + 1 + draw(st.sampled_from([0, 0, 100]))
    return result
