"""Which records of a batch stay, and the batch that they make.

Knows nothing of segments and files, nor of why a transaction's batch goes as a whole.

Nothing is decoded but what decides: lengths, the key, whether there is a value, and timestamps where records go. What
stays is cut out of the unpacked body and joined; a batch that stays whole is not even that. The bytes that come out are
those that Apache Kafka 4.3 writes (``MemoryRecords.filterTo``; KIP-534), but for what its compressors make of them:

- the first record that stays gives the new base timestamp, and all timestamp deltas change with it;
- when a tombstone or a marker may go some day, the base timestamp is that day, and an attribute bit says so;
- base offset, last offset, producer and first sequence stay, so that offsets and sequences go on as they did;
- the latest timestamp is that of the records that are left.
"""

from typing import Final

from barnabas.errors import InvalidRecord
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
from barnabas.records.varint import read_varint, read_varlong, write_varint

_KEPT_BITS: Final = LOG_APPEND_TIME_BIT | TRANSACTIONAL_BIT | CONTROL_BIT
_CODECS: Final = tuple(Compression)


def sift(
    body: bytes, count: int, base_offset: int, known: OffsetMap, *, drops_tombstones: bool
) -> tuple[list[int], bool]:
    """Where those records start that are the latest of their keys, or newer than what is known.

    Also whether there is a tombstone among them.

    Raises InvalidRecord when the records do not fill the body.
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
                end = at + 1 + (number >> 1)
            elif body[at + 1] < 0x80:
                end = at + 2 + ((number & 0x7F | body[at + 1] << 7) >> 1)
                at += 1
            else:
                number, at = read_varint(body, at)
                end = at + number
                at -= 1
            at += 2
            while body[at] >= 0x80:
                at += 1
            number = body[at + 1]
            if number < 0x80:
                offset = base_offset + (number >> 1 ^ -(number & 1))
                at += 2
            else:
                number, at = read_varint(body, at + 1)
                offset = base_offset + number
            number = body[at]
            if number < 0x80:
                at += 1
                number = number >> 1 ^ -(number & 1)
            else:
                number, at = read_varint(body, at)
            if number >= 0:
                key = body[at : at + number]
                at += number
                if latest(key if number < DIGEST_SIZE else digest(key), -1) <= offset:
                    if body[at] != 1:  # a length of -1: no value
                        keep(start)
                    elif not drops_tombstones or offset > latest_offset:
                        has_tombstones = True
                        keep(start)
            elif offset > latest_offset:
                has_tombstones = has_tombstones or body[at] == 1
                keep(start)
            at = end
    except IndexError:
        raise InvalidRecord("A batch ends in the middle of a record.") from None
    if at != total:
        raise InvalidRecord(f"{count} records have {at} bytes, and their batch {total}.")
    return starts, has_tombstones


def record_starts(body: bytes, count: int) -> list[int]:
    """Where each record starts. Raises InvalidRecord."""
    starts, at = [], 0
    for _ in range(count):
        if not at < len(body):
            raise InvalidRecord("A batch ends before its last record.")
        starts.append(at)
        size, at = read_varint(body, at)
        at += size
    return starts


def rebuild(batch: RecordBatch, body: bytes, starts: list[int], delete_horizon_ms: int | None) -> tuple[bytes, int]:
    """``batch`` with only the records, one at least, that start at these places of its unpacked body.

    Also the latest timestamp of these. With a delete horizon, that is the new base timestamp.
    """
    codec = batch.attributes & CODEC_MASK
    attributes = batch.attributes & _KEPT_BITS | codec
    if batch.attributes & LOG_APPEND_TIME_BIT:
        base_timestamp = max_timestamp = batch.max_timestamp
        deltas = None
    else:
        deltas = _timestamp_deltas(body, starts)
        base_timestamp = batch.base_timestamp + deltas[0]
        max_timestamp = max(batch.base_timestamp + max(deltas), NO_TIMESTAMP)
    if delete_horizon_ms is not None:
        base_timestamp = delete_horizon_ms
        attributes |= DELETE_HORIZON_BIT
    shift = None if deltas is None else batch.base_timestamp - base_timestamp
    kept = _cut(body, starts, shift, max_timestamp - base_timestamp)
    if codec:
        from barnabas.records.compression import compress

        kept = compress(_CODECS[codec], kept)
    return _written(batch, attributes, base_timestamp, max_timestamp, len(starts), kept), max_timestamp


def emptied(batch: RecordBatch) -> bytes:
    """``batch`` without any record: its offsets and its producer's last sequence are all that it is kept for."""
    return _written(batch, batch.attributes & _KEPT_BITS, NO_TIMESTAMP, batch.max_timestamp, 0, b"")


def _timestamp_deltas(body: bytes, starts: list[int]) -> list[int]:
    deltas = []
    for at in starts:
        while body[at] >= 0x80:
            at += 1
        number = body[at + 2]
        deltas.append(number >> 1 ^ -(number & 1) if number < 0x80 else read_varlong(body, at + 2)[0])
    return deltas


def _cut(body: bytes, starts: list[int], shift: int | None, same_delta: int) -> bytes:
    """The records that start there, each with ``shift`` added to its timestamp delta.

    Where ``shift`` is None the log gave them all one timestamp, and ``same_delta`` is everybody's.
    """
    pieces: list[bytes] = []
    prefixes: dict[tuple[int, int], bytes] = {}
    for start in starts:
        size, at = read_varint(body, start)
        end = at + size
        if shift == 0:
            pieces.append(body[start:end])
            continue
        delta, at = read_varlong(body, at + 1)
        what = (end - at, same_delta if shift is None else delta + shift)
        prefix = prefixes.get(what)
        if prefix is None:
            prefix = prefixes[what] = _prefix(*what)
        pieces.append(prefix)
        pieces.append(body[at:end])
    return b"".join(pieces)


def _prefix(rest: int, timestamp_delta: int) -> bytes:
    """How a record begins: length, attributes (none), timestamp delta; ``rest`` is what else it has."""
    delta = bytearray(1)
    write_varint(timestamp_delta, delta)
    prefix = bytearray()
    write_varint(len(delta) + rest, prefix)
    return bytes(prefix + delta)


def _written(
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
