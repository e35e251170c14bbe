"""Encodes Arrow columns as record batches (format v2): numpy computes lengths and varints, Arrow joins the bytes.

Knows nothing of topics and connections. The writer of a batch adds the producer id.

A record consists of a few small integers around two byte strings. The integers of all records are written as three
arrays: of prefixes (length, attributes, deltas, length of the key), middles (length of the value) and suffixes
(headers). Arrow then joins prefix, key, middle, value and suffix of each record with one ``memcpy`` each. The buffer of
the joined array contains all batches: the prefix of a batch's first record has room for the batch's header.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.records.batch import (
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    Compression,
)
from barnabas.records.builder import sign

Integers = npt.NDArray[np.int64]
Writable = bytearray | memoryview

MAX_JOINED: Final = 4 << 20  # bytes joined at once, unless a batch is larger; allocators reuse blocks of this size
RECORD_OVERHEAD: Final = 7  # a byte each: length, attributes, two deltas, lengths of key and value, header count
NO_HEADERS: Final = b"\0"  # a header count of 0
_SEQUENCES: Final = 1 << 31
_PRODUCER_AT: Final = 43


class ProducerStamp(NamedTuple):
    """The producer of a batch, which makes it idempotent or part of a transaction (KIP-98)."""

    producer_id: int
    epoch: int
    sequence: int  # of the first record
    transactional: bool = False


@dataclass(slots=True)
class Encoded:
    """A writable record batch, and its number of records."""

    data: Writable
    count: int


class Columns(NamedTuple):
    """Records by column; all columns have the same length.

    `key` and `value` are arrays of bytes or strings, `headers` lists of structs (key: string, value: binary), and
    `timestamps` are in ms since the epoch. A column that is None is null for every record.
    """

    key: pa.Array | None
    value: pa.Array | None
    headers: pa.Array | None
    timestamps: Integers

    def take(self, order: Integers) -> "Columns":
        """Returns the records in another order."""
        rows = pa.array(order)
        key, value, headers = (column if column is None else column.take(rows) for column in self[:3])
        return Columns(key, value, headers, self.timestamps[order])


class _Pieces(NamedTuple):
    """The parts that records are joined from; `suffix` has their encoded headers."""

    key: pa.Array | None
    value: pa.Array | None
    suffix: pa.Array | None
    timestamps: Integers

    def slice(self, start: int, stop: int) -> "_Pieces":
        key, value, suffix = (column if column is None else column.slice(start, stop - start) for column in self[:3])
        return _Pieces(key, value, suffix, self.timestamps[start:stop])


def encode_runs(
    columns: Columns,
    bounds: Sequence[int],
    *,
    max_batch_bytes: int,
    compression: Compression = Compression.NONE,
    level: int | None = None,
) -> list[tuple[int, Encoded]]:
    """Encodes several runs of records, each in batches of its own; returns each batch with the number of its run.

    Run i is the records from ``bounds[i]`` to ``bounds[i + 1]``; a writer has one run for each partition. Batches are
    in order, and have at most `max_batch_bytes` before compression. A larger record has a batch of its own.

    :raises ValueError: a header has no key; Java's producer refuses that, too.
    """
    made: list[tuple[int, Encoded]] = []
    if not len(columns.timestamps):
        return made
    headers = None if columns.headers is None else _suffixes(columns.headers)
    pieces = _Pieces(binary(columns.key), binary(columns.value), headers, columns.timestamps)
    ends = np.cumsum(_largest_sizes(pieces))
    cuts = [
        (run, *cut)
        for run in range(len(bounds) - 1)
        for cut in _cuts(ends, bounds[run], bounds[run + 1], max_batch_bytes)
    ]
    at = 0
    while at < len(cuts):
        until = _joinable(cuts, at, ends)
        start, stop = cuts[at][1], cuts[until - 1][2]
        starts = np.array([cut[1] for cut in cuts[at:until]]) - start
        joined, record_ends = _join(pieces.slice(start, stop), starts)
        for run, first, last in cuts[at:until]:
            begin = 0 if first == start else int(record_ends[first - start - 1])
            batch: Writable = joined[begin : int(record_ends[last - start - 1])]
            if compression is not Compression.NONE:
                batch = _compressed(batch, compression, level)
            _write_header(batch, columns.timestamps[first:last], compression)
            made.append((run, Encoded(batch, last - first)))
        at = until
    return made


def record_sizes(columns: Columns) -> Integers:
    """Returns the approximate size of each record in bytes: its key, value and headers, and a small overhead."""
    sizes = np.full(len(columns.timestamps), RECORD_OVERHEAD, np.int64)
    for column in (binary(columns.key), binary(columns.value)):
        if column is not None:
            sizes += np.diff(_offsets(column))
    if columns.headers is not None:
        bounds, entries = _entries(columns.headers)
        ends = np.zeros(len(entries) + 1, np.int64)
        for index in (0, 1):
            ends[1:] += np.diff(_offsets(pc.struct_field(entries, index).cast(pa.binary())))
        sizes += np.diff(np.cumsum(ends)[bounds])
    return sizes


def stamp(batch: Writable, producer: ProducerStamp) -> None:
    """Writes the producer into a batch, in place, and updates the CRC."""
    attributes = int.from_bytes(batch[21:23], "big") & ~TRANSACTIONAL_BIT | TRANSACTIONAL_BIT * producer.transactional
    batch[21:23] = attributes.to_bytes(2, "big")
    batch[_PRODUCER_AT : _PRODUCER_AT + 14] = (
        producer.producer_id.to_bytes(8, "big", signed=True)
        + producer.epoch.to_bytes(2, "big", signed=True)
        + producer.sequence.to_bytes(4, "big", signed=True)
    )
    sign(batch)


def after(sequence: int, count: int) -> int:
    """Returns the sequence number `count` records later; 2**31 - 1 is followed by 0."""
    return (sequence + count) % _SEQUENCES


def binary(column: pa.Array | None) -> pa.Array | None:
    """Returns a column of strings or bytes as bytes with 32-bit offsets, or None if all of it is null."""
    if column is None or column.null_count == len(column):
        return None
    if column.type != pa.binary():
        column = column.cast(pa.binary())
    return column


def _cuts(ends: Integers, start: int, stop: int, limit: int) -> list[tuple[int, int]]:
    """Returns the bounds of batches, each with as many records as fit into `limit` bytes, at least one."""
    cuts = []
    room = max(limit - HEADER_SIZE, 1)
    while start < stop:
        before = int(ends[start - 1]) if start else 0
        last = int(np.searchsorted(ends[start:stop], before + room, side="right")) + start
        last = max(last, start + 1)
        cuts.append((start, last))
        start = last
    return cuts


def _joinable(cuts: list[tuple[int, int, int]], at: int, ends: Integers) -> int:
    """Returns the number of the cut up to which the batches from cut `at` on are joined together."""
    before = int(ends[cuts[at][1] - 1]) if cuts[at][1] else 0
    until = at + 1
    while until < len(cuts) and ends[cuts[until][2] - 1] - before <= MAX_JOINED:
        until += 1
    return until


def _compressed(batch: Writable, compression: Compression, level: int | None) -> bytearray:
    """Returns the batch with compressed records, and room for its header."""
    from barnabas.records.compression import compress

    packed = compress(compression, memoryview(batch)[HEADER_SIZE:], level)
    return bytearray(HEADER_SIZE) + packed


def _write_header(batch: Writable, timestamps: Integers, compression: Compression) -> None:
    """Writes the header of the records behind it, without a producer, and the CRC."""
    HEADER.pack_into(
        batch,
        0,
        0,
        len(batch) - LOG_OVERHEAD,
        NO_LEADER_EPOCH,
        MAGIC,
        0,
        compression,
        len(timestamps) - 1,
        int(timestamps[0]),
        int(timestamps.max()),
        NO_PRODUCER_ID,
        NO_PRODUCER_EPOCH,
        NO_SEQUENCE,
        len(timestamps),
    )
    sign(batch)


def _largest_sizes(columns: _Pieces) -> Integers:
    """Returns an upper bound of each record's size in bytes, whatever its deltas will be."""
    timestamps = columns.timestamps
    count = len(timestamps)
    sizes = (
        np.diff(_offsets(columns.suffix)).astype(np.int64) if columns.suffix is not None else np.ones(count, np.int64)
    )
    numbers = [int(timestamps.max()) - int(timestamps.min()), count]
    for column in (columns.key, columns.value):
        if column is not None:
            lengths = np.diff(_offsets(column))
            sizes += lengths
            numbers.append(int(lengths.max()))
        else:
            numbers.append(0)
    integers = 1 + sum(_varint_size(number) for number in numbers)
    sizes += integers + _varint_size(int(sizes.max()) + integers)
    return sizes


def _varint_size(number: int) -> int:
    """Returns the number of bytes of varints for numbers of at most this absolute value."""
    return max((2 * number).bit_length() + 6, 7) // 7


def _join(columns: _Pieces, starts: Integers) -> tuple[memoryview, npt.NDArray[np.int32]]:
    """Returns the batches that begin with the records at `starts`, without headers, and the records' ends in them."""
    timestamps = columns.timestamps
    count = len(timestamps)
    first = np.repeat(starts, np.diff(starts, append=count))
    key_lengths, value_lengths = _lengths(columns.key, count), _lengths(columns.value, count)
    numbers = [zigzag(timestamps - timestamps[first]), zigzag(np.arange(count) - first), zigzag(key_lengths)]
    value_length = zigzag(value_lengths)
    sizes = [varint_sizes(number) for number in numbers]
    value_length_size = varint_sizes(value_length)
    lengths = 1 + sum(sizes) + value_length_size + np.maximum(key_lengths, 0) + np.maximum(value_lengths, 0)
    lengths += 1 if columns.suffix is None else np.diff(_offsets(columns.suffix))
    length = zigzag(lengths)
    numbers = [length, np.zeros(count, np.uint64), *numbers]
    sizes = [varint_sizes(length), np.ones(count, np.int64), *sizes]
    header_room = np.zeros(count, np.int64)
    header_room[starts] = HEADER_SIZE
    if columns.key is None:  # prefix and middle are adjacent, and are joined as one piece
        pieces = [_varints([*numbers, value_length], [*sizes, value_length_size], header_room)]
    else:
        pieces = [_varints(numbers, sizes, header_room), columns.key, _varints([value_length], [value_length_size])]
    if columns.value is not None:
        pieces.append(columns.value)
    joined = _joined(*pieces, NO_HEADERS if columns.suffix is None else columns.suffix)
    return memoryview(joined.buffers()[2]).cast("B"), _offsets(joined)[1:]


def _lengths(column: pa.Array | None, count: int) -> Integers:
    """Returns the length of each value as a record encodes it: -1 for null."""
    if column is None:
        return np.full(count, -1, np.int64)
    lengths = np.diff(_offsets(column)).astype(np.int64)
    if column.null_count:
        lengths[column.is_null().to_numpy(zero_copy_only=False)] = -1
    return lengths


def _offsets(column: pa.Array) -> npt.NDArray[np.int32]:
    """Returns where the values of a binary or list array start and end: one more number than there are values."""
    buffer = column.buffers()[1]
    if buffer is None or not len(column):
        return np.zeros(len(column) + 1, np.int32)
    return np.frombuffer(buffer, np.int32, len(column) + 1, column.offset * 4)


def zigzag(numbers: Integers) -> npt.NDArray[np.uint64]:
    """Maps small signed numbers to small unsigned ones (protobuf's zigzag encoding)."""
    signed: Integers = (numbers << 1) ^ (numbers >> 63)
    return signed.view(np.uint64)


def varint_sizes(numbers: npt.NDArray[np.uint64]) -> Integers:
    """Returns the number of bytes of each number as a varint."""
    sizes = np.ones(len(numbers), np.int64)
    largest = int(numbers.max()) if len(numbers) else 0
    for shift in range(7, 64, 7):
        if not largest >> shift:
            break
        sizes += numbers >= np.uint64(1 << shift)
    return sizes


def _varints(
    columns: Sequence[npt.NDArray[np.uint64]], sizes: Sequence[Integers], room: Integers | None = None
) -> pa.Array:
    """Returns, for each record, the varints of its numbers as one value, with `room` bytes before them."""
    ends = np.zeros(len(columns[0]) + 1, np.int32)
    np.cumsum(sum(sizes) if room is None else sum(sizes) + room, out=ends[1:])
    data = np.empty(int(ends[-1]), np.uint8)
    at = ends[:-1].astype(np.int64)
    if room is not None:
        at += room
    for numbers, taken in zip(columns, sizes, strict=True):
        _put_varints(data, at, numbers, taken)
        at += taken
    return _binary_array(data, ends)


def _put_varints(data: npt.NDArray[np.uint8], at: Integers, numbers: npt.NDArray[np.uint64], sizes: Integers) -> None:
    """Writes each number to its position, with as many passes as the longest varint has bytes."""
    longest = int(sizes.max()) if len(sizes) else 0
    if longest == 1:
        data[at] = numbers
        return
    for index in range(longest):
        byte = (numbers >> np.uint64(7 * index)).astype(np.uint8) & 0x7F
        byte |= (sizes > index + 1).astype(np.uint8) << 7
        if index == 0:
            data[at] = byte
            continue
        long = np.flatnonzero(sizes > index)
        data[at[long] + index] = byte[long]


def _binary_array(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int32]) -> pa.Array:
    return pa.BinaryArray.from_buffers(pa.binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _suffixes(headers: pa.Array) -> pa.Array:
    """Returns the bytes after each record's value: the number of headers, then the key and value of each.

    A null list means no headers, as for Spark's connector.
    """
    if headers.null_count:
        headers = pc.if_else(headers.is_valid(), headers, pa.scalar([], headers.type))
    bounds, entries = _entries(headers)
    counts = zigzag(np.diff(bounds).astype(np.int64))
    suffixes = _varints([counts], [varint_sizes(counts)])
    if not len(entries):
        return suffixes
    names, values = (pc.struct_field(entries, index).cast(pa.binary()) for index in (0, 1))
    if names.null_count:
        raise ValueError("a header has no name (its key is null)")
    name_lengths, value_lengths = zigzag(_lengths(names, len(names))), zigzag(_lengths(values, len(values)))
    written = _joined(
        _varints([name_lengths], [varint_sizes(name_lengths)]),
        names,
        _varints([value_lengths], [varint_sizes(value_lengths)]),
        values,
    )
    lists = pa.ListArray.from_arrays(pa.array(bounds), written)
    return _joined(suffixes, pc.binary_join(lists, b""))


def _entries(lists: pa.Array) -> tuple[npt.NDArray[np.int32], pa.Array]:
    """Returns all entries of the lists, and the bounds of each list among them."""
    bounds = _offsets(lists)
    return bounds - bounds[0], lists.values.slice(bounds[0], bounds[-1] - bounds[0])


def _joined(*pieces: pa.Array | bytes) -> pa.Array:
    """Returns the pieces of each record joined; null is empty."""
    return pc.binary_join_element_wise(*pieces, b"", null_handling="replace", null_replacement=b"")
