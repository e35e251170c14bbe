"""Decodes the records in a batch.

Knows nothing of where the batch comes from, nor of who reads it.

A record is a varint length and then: int8 attributes (unused), varlong timestamp delta, varint offset delta, key and
value (each a varint length, -1 for null, and the bytes), a varint count of headers, and each header's key and value
(Apache Kafka's ``DefaultRecord``; KIP-82, KIP-98).
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from barnabas.errors import InvalidRecord
from barnabas.integers import MAX_LONG, MIN_LONG
from barnabas.records.batch import Compression, RecordBatch
from barnabas.records.varint import SHORT_VARINTS, read_varint, read_varlong

#: The default limit of the size of a batch's decompressed records, in bytes.
UNPACKED_LIMIT: Final = 256 << 20

RECORD_MIN_SIZE: Final = 7  # a length, attributes, two deltas, null key, null value, no headers: one byte each

Header = tuple[str, bytes | None]


class Record(NamedTuple):
    """A record, with its absolute offset and timestamp (ms)."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


def body_of(batch: RecordBatch, limit: int = UNPACKED_LIMIT) -> bytes:
    """Returns the decompressed body of a batch.

    :raises CorruptMessage: it cannot be decompressed
    :raises MessageTooLarge: it decompresses to more than ``limit`` bytes
    """
    codec = batch.compression
    if codec is Compression.NONE:
        return bytes(batch.body)
    from barnabas.records.compression import decompress

    return decompress(codec, batch.body, limit)


def records_of(batch: RecordBatch, *, limit: int = UNPACKED_LIMIT) -> Iterator[Record]:
    """Yields the records of ``batch``. In header keys, the replacement character stands for bytes that are not UTF-8.

    :raises InvalidRecord: count, lengths or varints do not fit the bytes; the records before have been yielded
    :raises CorruptMessage, MessageTooLarge: as :func:`body_of`
    """
    return records_in(batch, body_of(batch, limit))


def records_in(batch: RecordBatch, data: bytes) -> Iterator[Record]:
    """Yields the records of ``batch``, whose decompressed body is ``data``. See :func:`records_of`."""
    base_offset, base_timestamp = batch.base_offset, batch.base_timestamp
    append_time = batch.max_timestamp if batch.is_log_append_time else None
    at = 0
    for _ in range(_count(batch, len(data))):
        try:
            size, at = read_varint(data, at)
            end = at + size
            if size < 0 or end > len(data):
                raise InvalidRecord(f"A record of {size} bytes does not fit into its batch.")
            delta, at = read_varlong(data, at + 1)
            offset_delta, at = read_varint(data, at)
            key, at = _read_bytes(data, at)
            value, at = _read_bytes(data, at)
            headers, at = _read_headers(data, at, end)
        except IndexError:
            raise InvalidRecord("A batch ends in the middle of a record.") from None
        if at != end:
            raise InvalidRecord(f"A record has {at - end + size} bytes and says {size}.")
        timestamp = base_timestamp + delta if append_time is None else append_time
        if not MIN_LONG <= timestamp <= MAX_LONG:
            raise InvalidRecord("A record's timestamp has more than 64 bits.")
        yield Record(base_offset + offset_delta, timestamp, key, value, headers)
    if at != len(data):
        raise InvalidRecord(f"{len(data) - at} bytes are left behind the last record of a batch.")


def _count(batch: RecordBatch, size: int) -> int:
    """Returns the count of records in the header. :raises InvalidRecord: ``size`` bytes cannot contain so many"""
    if not 0 <= batch.count <= size // RECORD_MIN_SIZE:
        raise InvalidRecord(f"A batch claims {batch.count} records in {size} bytes.")
    return batch.count


def _read_bytes(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = read_varint(data, at)
    if size < 0:
        return None, at
    return data[at : at + size], at + size


def _read_headers(data: bytes, at: int, end: int) -> tuple[tuple[Header, ...], int]:
    count, at = read_varint(data, at)
    if count == 0:
        return (), at
    if not 0 < count <= end - at:
        raise InvalidRecord(f"A record claims {count} headers.")
    headers = []
    for _ in range(count):
        size, at = read_varint(data, at)
        if size < 0:
            raise InvalidRecord("A header's key is null.")
        key = str(data[at : at + size], "utf-8", "replace")
        value, at = _read_bytes(data, at + size)
        headers.append((key, value))
    return tuple(headers), at


def walk(data: bytes, count: int) -> tuple[int, int, bool, int]:
    """Walks over ``count`` records, one or more, which must fill ``data``, without decoding them.

    Returns the minimum and the maximum timestamp delta, whether the offset deltas are 0, 1, 2 ..., and how many keys
    are null. Produce does this for each small batch. So varints of one byte, the most frequent, are decoded inline.

    :raises InvalidRecord: as :func:`records_of`
    """
    at, total, keyless, in_order, short = 0, len(data), 0, True, SHORT_VARINTS
    if not 0 < count <= total // RECORD_MIN_SIZE:
        raise InvalidRecord(f"A batch claims {count} records in {total} bytes.")
    earliest, latest = MAX_LONG, MIN_LONG
    try:
        for index in range(count):
            number = short[data[at]]
            at += 1
            if number is None:
                if data[at] < 0x80 and not data[at - 1] & 1:  # two bytes, which are frequent in lengths
                    number = (data[at - 1] & 0x7F | data[at] << 7) >> 1
                    at += 1
                else:
                    number, at = read_varint(data, at - 1)
            end = at + number
            if number <= 0 or end > total:
                raise InvalidRecord(f"A record of {number} bytes does not fit into its batch.")
            number = short[data[at + 1]]  # at is the position of the attributes
            at += 2
            if number is None:
                number, at = read_varlong(data, at - 1)
            if number < earliest:
                earliest = number
            if number > latest:
                latest = number
            number = short[data[at]]
            at += 1
            if number is None:
                number, at = read_varint(data, at - 1)
            if number != index:
                in_order = False
            number = short[data[at]]  # the key's length
            at += 1
            if number is None:
                number, at = read_varint(data, at - 1)
            if number < 0:
                keyless += 1
            else:
                at += number
            number = short[data[at]]  # the value's
            at += 1
            if number is None:
                if data[at] < 0x80 and not data[at - 1] & 1:
                    number = (data[at - 1] & 0x7F | data[at] << 7) >> 1
                    at += 1
                else:
                    number, at = read_varint(data, at - 1)
            if number > 0:
                at += number
            at = at + 1 if data[at] == 0 else _skip_headers(data, at, end)
            if at != end:
                raise InvalidRecord(f"A record ends at byte {end} and its headers at {at}.")
    except IndexError:
        raise InvalidRecord("A batch ends in the middle of a record.") from None
    if at != total:
        raise InvalidRecord(f"{total - at} bytes are left behind the last record of a batch.")
    return earliest, latest, in_order, keyless


def first_timestamp_delta(data: bytes, at: int = 0) -> int:
    """Returns the timestamp delta of the record ``at`` a position in ``data``."""
    _, at = read_varint(data, at)
    return read_varlong(data, at + 1)[0]


def _skip_headers(data: bytes, at: int, end: int) -> int:
    count, at = read_varint(data, at)
    if not 0 <= count <= end - at:
        raise InvalidRecord(f"A record claims {count} headers.")
    for _ in range(count):
        size, at = read_varint(data, at)
        if size < 0:
            raise InvalidRecord("A header's key is null.")
        size, at = read_varint(data, at + size)
        if size > 0:
            at += size
    return at
