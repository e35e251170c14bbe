"""Builds the Arrow tables of records, with the columns of Apache Spark's Kafka source.

Knows nothing of how records are parsed: the caller passes the positions of their keys and values.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from barnabas.columnar.fields import Headers, Pieces
from barnabas.columnar.varints import Numbers
from barnabas.errors import InvalidRecord
from barnabas.records.record import Record

NO_TIMESTAMP_TYPE: Final = -1  # of messages of format v0; 0 is CreateTime, 1 is LogAppendTime
LATEST_TIMESTAMP: Final = (2**63 - 1) // 1000  # ms; the latest time whose microseconds fit into 64 bits

_HEADER: Final = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
_HEADERS: Final = pa.list_(pa.field("element", _HEADER))
_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
_COLUMNS: Final = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", _TIMESTAMP),
        pa.field("timestampType", pa.int32()),
    ]
)
_WITH_HEADERS: Final = _COLUMNS.append(pa.field("headers", _HEADERS))


def schema(*, headers: bool) -> pa.Schema:
    """Returns the schema of Spark's own connector, with or without ``includeHeaders``."""
    return _WITH_HEADERS if headers else _COLUMNS


class Rows(NamedTuple):
    """Records by column. `timestamps` are in ms. `headers` is None if there are none, or they are not wanted."""

    keys: Pieces
    values: Pieces
    offsets: Numbers
    timestamps: Numbers
    timestamp_types: npt.NDArray[np.int32]
    headers: Headers | None

    def keep(self, mask: np.ndarray) -> "Rows":
        return Rows(
            self.keys.keep(mask),
            self.values.keep(mask),
            self.offsets[mask],
            self.timestamps[mask],
            self.timestamp_types[mask],
            None if self.headers is None else self.headers.keep(mask),
        )

    def part(self, first: int, end: int) -> "Rows":
        """Returns the rows from `first` up to, but not including, `end`."""
        if first == 0 and end >= len(self.offsets):
            return self
        mask = np.zeros(len(self.offsets), dtype=np.bool_)
        mask[first:end] = True
        return self.keep(mask)


def table_of(data: bytes | memoryview, rows: Rows, topic: str, partition: int, *, headers: bool) -> pa.RecordBatch:
    """Returns the table of `rows`, whose keys, values and headers are copied from `data`.

    :raises InvalidRecord: a timestamp in microseconds does not fit into 64 bits.
    """
    count = len(rows.offsets)
    bytes_ = pa.py_buffer(data)
    columns = [
        *_cut_out(bytes_, (rows.keys, rows.values)),
        _topics(topic, count),
        _partitions(partition, count),
        pa.array(rows.offsets),
        _timestamps(rows.timestamps),
        pa.array(rows.timestamp_types),
    ]
    if headers:
        columns.append(_headers(bytes_, rows.headers, count))
    return pa.RecordBatch.from_arrays(columns, schema=schema(headers=headers))


def table_of_records(
    records: Sequence[Record], types: Sequence[int], topic: str, partition: int, *, headers: bool
) -> pa.RecordBatch:
    """Returns the table of records that were parsed one by one.

    :raises InvalidRecord: a timestamp in microseconds does not fit into 64 bits.
    """
    count = len(records)
    columns = [
        pa.array([record.key for record in records], pa.binary()),
        pa.array([record.value for record in records], pa.binary()),
        _topics(topic, count),
        _partitions(partition, count),
        pa.array([record.offset for record in records], pa.int64()),
        _timestamps(np.array([record.timestamp for record in records], dtype=np.int64)),
        pa.array(types, pa.int32()),
    ]
    if headers:
        lists = [[{"key": key, "value": value} for key, value in record.headers] or None for record in records]
        columns.append(pa.array(lists, _HEADERS))
    return pa.RecordBatch.from_arrays(columns, schema=schema(headers=headers))


def _cut_out(data: pa.Buffer, columns: Sequence[Pieces]) -> list[pa.Array]:
    """Copies each column's pieces of `data` into an array of its own.

    Arrow's strings lie end to end. So the pieces of all columns are declared as one array of strings over `data`, in
    which every second string is the gap between two pieces. Each column then takes its strings.
    """
    count, wide = len(columns[0].at), 2 * len(columns)
    offsets = np.empty(count * wide, dtype=np.int32)
    for index, (at, sizes) in enumerate(columns):
        offsets[2 * index :: wide] = at
        offsets[2 * index + 1 :: wide] = at + np.maximum(sizes, 0)
    strings = pa.Array.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), data])
    arrays = []
    for index, (_, sizes) in enumerate(columns):
        taken = strings.take(pa.array(np.arange(2 * index, len(offsets), wide, dtype=np.int32)))
        arrays.append(_with_nulls(taken, sizes < 0))
    return arrays


def _with_nulls(strings: pa.Array, nulls: npt.NDArray[np.bool_]) -> pa.Array:
    if not nulls.any():
        return strings
    valid = pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    return pa.Array.from_buffers(strings.type, len(strings), [valid, *strings.buffers()[1:]])


def _headers(data: pa.Buffer, headers: Headers | None, count: int) -> pa.Array:
    """Returns lists of headers; null instead of an empty list for a record without headers."""
    if headers is None or not len(headers.keys.at):
        return pa.nulls(count, _HEADERS)
    keys, values = _cut_out(data, (headers.keys, headers.values))
    entries = pa.StructArray.from_arrays([_text(keys), values], fields=list(_HEADER))
    offsets = np.zeros(count + 1, dtype=np.int32)
    np.cumsum(headers.counts, out=offsets[1:])
    valid = pa.py_buffer(np.packbits(headers.counts > 0, bitorder="little"))
    return pa.Array.from_buffers(_HEADERS, count, [valid, pa.py_buffer(offsets)], children=[entries])


def _text(keys: pa.Array) -> pa.Array:
    """Returns keys as text, with the replacement character in place of invalid UTF-8."""
    try:
        return keys.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([str(key, "utf-8", "replace") for key in keys.to_pylist()], pa.string())


def _timestamps(milliseconds: Numbers) -> pa.Array:
    if len(milliseconds) and int(max(milliseconds.max(), -milliseconds.min())) > LATEST_TIMESTAMP:
        raise InvalidRecord("A record's timestamp in microseconds has more than 64 bits.")
    return pa.Array.from_buffers(_TIMESTAMP, len(milliseconds), [None, pa.py_buffer(milliseconds * 1000)])


def _topics(topic: str, count: int) -> pa.Array:
    return _same_text(topic, _rounded(count)).slice(0, count)


def _partitions(partition: int, count: int) -> pa.Array:
    return _same_number(partition, _rounded(count)).slice(0, count)


def _rounded(count: int) -> int:
    """Returns the next power of two, so that few distinct columns are created and cached."""
    return 1 << max(count - 1, 0).bit_length()


@lru_cache(maxsize=64)
def _same_text(text: str, count: int) -> Any:
    encoded = text.encode()
    offsets = np.arange(count + 1, dtype=np.int64) * len(encoded)
    return pa.Array.from_buffers(
        pa.string(), count, [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(encoded * count)]
    )


@lru_cache(maxsize=64)
def _same_number(number: int, count: int) -> Any:
    return pa.array(np.full(count, number, dtype=np.int32))
