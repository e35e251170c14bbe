"""Selects the records of a batch that are retained, and builds the batch with only these.

Knows nothing of segments and files, nor of transactions.

Only the fields that decide are decoded: lengths, the key, whether there is a value, and timestamps where records are
removed. The retained records are cut out of the uncompressed body and joined. The result has the same bytes as that of
Apache Kafka 4.3 (``MemoryRecords.filterTo``; KIP-534), apart from differences between compressors:

- the base timestamp is that of the first retained record, and all timestamp deltas change accordingly;
- when a tombstone or a marker can be removed later, the base timestamp is the delete horizon, and an attribute bit is
  set;
- base offset, last offset, producer and base sequence are unchanged;
- the max timestamp is that of the retained records.
"""

from collections.abc import Sequence
from typing import Final

from barnabas.errors import InvalidRecord
from barnabas.integers import MIN_LONG
from barnabas.log.cleaning.offset_map import DIGEST_SIZE, OffsetMap, digest
from barnabas.records.batch import (
    CHECKED_FROM,
    CODEC_MASK,
    CONTROL_BIT,
    CRC_AT,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    Compression,
    RecordBatch,
)
from barnabas.records.checksum import crc32c
from barnabas.records.record import first_timestamp_delta
from barnabas.records.varint import read_varint, read_varlong, write_varint

_KEPT_BITS: Final = LOG_APPEND_TIME_BIT | TRANSACTIONAL_BIT | CONTROL_BIT
_CODECS: Final = tuple(Compression)


def retained_records(
    body: bytes, count: int, base_offset: int, known: OffsetMap, *, drops_tombstones: bool
) -> tuple[list[int], bool]:
    """Returns the starts of the records that are the latest of their keys or beyond the mapped range.

    Also returns whether there is a tombstone among them.

    :raises InvalidRecord: the records do not fill the body
    """
    latest, latest_offset = known.latest.get, known.latest_offset
    starts: list[int] = []
    keep, has_tombstones = starts.append, False
    at, total = 0, len(body)
    try:
        for _ in range(count):
            start = at
            number = body[at]
            if number < 0x80:
                at += 1
                end = at + (number >> 1)
            elif (upper := body[at + 1]) < 0x80:
                at += 2
                end = at + ((upper << 7 | number & 0x7F) >> 1)
            else:
                number, at = read_varint(body, at)
                end = at + number
            at += 1
            while body[at] >= 0x80:
                at += 1
            at += 1
            offset = body[at]
            if offset < 0x80:
                at += 1
                offset = base_offset + (offset >> 1)
            elif (upper := body[at + 1]) < 0x80:
                at += 2
                offset = base_offset + ((upper << 7 | offset & 0x7F) >> 1)
            else:
                number, at = read_varint(body, at)
                offset = base_offset + number
            number = body[at]
            if number < DIGEST_SIZE * 2:
                if number & 1:  # no key
                    if offset > latest_offset:
                        has_tombstones = has_tombstones or body[at + 1] == 1
                        keep(start)
                    at = end
                    continue
                at += 1
                number = at + (number >> 1)
                key = body[at:number]
            else:
                number, at = read_varint(body, at)
                number += at
                key = digest(body[at:number])
            if latest(key, -1) <= offset:
                if body[number] != 1:  # a length of -1: no value
                    keep(start)
                elif not drops_tombstones or offset > latest_offset:
                    has_tombstones = True
                    keep(start)
            at = end
    except IndexError:
        raise InvalidRecord("A batch ends in the middle of a record.") from None
    if at != total:
        raise InvalidRecord(f"{count} records have {at} bytes, and their batch {total}.")
    return starts, has_tombstones


def find_records(body: bytes, count: int, base_offset: int, offsets: Sequence[int]) -> list[int] | None:
    """Returns the starts of the records with these ascending offsets, in a batch without gaps between its offsets.

    Returns None if there are gaps.

    :raises InvalidRecord: the records do not fill the body
    """
    starts: list[int] = []
    at = 0
    wanted = iter(offsets)
    next_index = next(wanted) - base_offset
    try:
        for index in range(count):
            start = at
            number = body[at]
            if number < 0x80:
                at += 1 + (number >> 1)
            elif (upper := body[at + 1]) < 0x80:
                at += 2 + ((upper << 7 | number & 0x7F) >> 1)
            else:
                number, at = read_varint(body, at)
                at += number
            if index == next_index:
                if offset_delta_at(body, start) != index:
                    return None
                starts.append(start)
                next_index = next(wanted, -1 + base_offset) - base_offset
    except IndexError:
        raise InvalidRecord("A batch ends in the middle of a record.") from None
    if at != len(body):
        raise InvalidRecord(f"{count} records have {at} bytes, and their batch {len(body)}.")
    return starts


def offset_delta_at(body: bytes, at: int) -> int:
    """Returns the offset delta of the record that starts there."""
    while body[at] >= 0x80:
        at += 1
    at += 2
    while body[at] >= 0x80:
        at += 1
    delta = body[at + 1]
    return delta >> 1 if delta < 0x80 else read_varint(body, at + 1)[0]


def record_starts(body: bytes, count: int) -> list[int]:
    """Returns the start of each record.

    :raises InvalidRecord: the records do not fill the body
    """
    starts, at = [], 0
    try:
        for _ in range(count):
            starts.append(at)
            size, at = read_varint(body, at)
            at += size
    except IndexError:
        raise InvalidRecord("A batch ends in the middle of a record.") from None
    if at != len(body):
        raise InvalidRecord(f"{count} records have {at} bytes, and their batch {len(body)}.")
    return starts


def rebuild_batch(
    batch: RecordBatch, body: bytes, starts: Sequence[int], delete_horizon_ms: int | None
) -> tuple[bytes, int]:
    """Returns ``batch`` with only the one or more records that start at these positions, and their maximum timestamp.

    :param body: the uncompressed records of the batch
    :param delete_horizon_ms: the new base timestamp, if not None
    """
    codec = batch.attributes & CODEC_MASK
    attributes = batch.attributes & _KEPT_BITS | codec
    append_time = batch.max_timestamp if batch.attributes & LOG_APPEND_TIME_BIT else None
    if delete_horizon_ms is not None:
        base_timestamp = delete_horizon_ms
        attributes |= DELETE_HORIZON_BIT
    elif append_time is not None:
        base_timestamp = append_time
    else:
        base_timestamp = batch.base_timestamp + first_timestamp_delta(body, starts[0])
    if append_time is not None:
        kept, max_timestamp = _join_with_delta(body, starts, append_time - base_timestamp), append_time
    else:
        kept, latest = _join(body, starts, batch.base_timestamp - base_timestamp)
        max_timestamp = max(base_timestamp + latest, NO_TIMESTAMP)
    if codec:
        from barnabas.records.compression import compress

        kept = compress(_CODECS[codec], kept)
    return _encode(batch, attributes, base_timestamp, max_timestamp, len(starts), kept), max_timestamp


def empty_batch(batch: RecordBatch) -> bytes:
    """Returns ``batch`` without records. It keeps the offsets and the producer's last sequence."""
    return _encode(batch, batch.attributes & _KEPT_BITS, NO_TIMESTAMP, batch.max_timestamp, 0, b"")


class _Varints(dict[int, bytes]):
    """A cache of encoded varints with a prefix. Only small numbers, which are frequent, are kept."""

    def __init__(self, prefix: bytes) -> None:
        self._prefix = prefix

    def __missing__(self, number: int) -> bytes:
        data = bytearray(self._prefix)
        write_varint(number, data)
        encoded = bytes(data)
        if -_CACHED < number < _CACHED:
            self[number] = encoded
        return encoded


_CACHED: Final = 8192  # larger numbers have three bytes and are rare
_lengths = _Varints(b"")
_timestamps = _Varints(b"\0")  # the record's attributes, which are unused, precede the timestamp delta


def _join(body: bytes, starts: Sequence[int], shift: int) -> tuple[bytes, int]:
    """Returns the records that start there with ``shift`` added to their timestamp deltas, and the largest delta."""
    pieces: list[bytes] = []
    latest, lengths, timestamps = MIN_LONG, _lengths, _timestamps
    for start in starts:
        number = body[start]
        if number < 0x80:
            at = start + 1
            end = at + (number >> 1)
        elif (upper := body[start + 1]) < 0x80:
            at = start + 2
            end = at + ((upper << 7 | number & 0x7F) >> 1)
        else:
            number, at = read_varint(body, start)
            end = at + number
        delta = body[at + 1]
        if delta < 0x80:
            at += 2
            delta = delta >> 1 ^ -(delta & 1)
        else:
            delta, at = read_varlong(body, at + 1)
        delta += shift
        if delta > latest:
            latest = delta
        if shift:
            timestamp = timestamps[delta]
            pieces += lengths[len(timestamp) + end - at], timestamp, body[at:end]
        else:
            pieces.append(body[start:end])
    return b"".join(pieces), latest


def _join_with_delta(body: bytes, starts: Sequence[int], delta: int) -> bytes:
    """Returns the records that start there, all with the same timestamp delta, as LogAppendTime requires."""
    pieces: list[bytes] = []
    timestamp = _timestamps[delta]
    for start in starts:
        size, at = read_varint(body, start)
        end = at + size
        _, at = read_varlong(body, at + 1)
        pieces += _lengths[len(timestamp) + end - at], timestamp, body[at:end]
    return b"".join(pieces)


def _encode(
    batch: RecordBatch, attributes: int, base_timestamp: int, max_timestamp: int, count: int, body: bytes
) -> bytes:
    header = bytearray(HEADER_SIZE)
    HEADER.pack_into(
        header,
        0,
        batch.base_offset,
        HEADER_SIZE + len(body) - LOG_OVERHEAD,
        batch.partition_leader_epoch,
        MAGIC,
        0,
        attributes,
        batch.last_offset_delta,
        base_timestamp,
        max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        count,
    )
    header += body
    header[CRC_AT:CHECKED_FROM] = crc32c(memoryview(header)[CHECKED_FROM:]).to_bytes(4, "big")
    return bytes(header)
