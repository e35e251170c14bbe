"""Builds record batches for internal topics, and recompresses batches.

Knows nothing of the log; the leader stamps offset and epoch when it appends a batch.
"""

from collections.abc import Iterable, Sequence
from struct import Struct
from typing import Final

from barnabas.records.batch import (
    CHECKED_FROM,
    CONTROL_BIT,
    CRC_AT,
    HEADER,
    HEADER_SIZE,
    LOG_APPEND_TIME_BIT,
    LOG_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    Compression,
    RecordBatch,
)
from barnabas.records.checksum import crc32c
from barnabas.records.varint import write_varint

Headers = Sequence[tuple[str, bytes | None]]

#: Key, value, timestamp (ms) and optional headers.
NewRecord = tuple[bytes | None, bytes | None, int] | tuple[bytes | None, bytes | None, int, Headers]

KEPT_BITS: Final = TRANSACTIONAL_BIT | CONTROL_BIT | LOG_APPEND_TIME_BIT

_NO_HEADERS: Final[Headers] = ()

_CRC: Final = Struct(">I")


def build_batch(
    records: Iterable[NewRecord],
    *,
    base_offset: int = 0,
    compression: Compression = Compression.NONE,
    compression_level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    leader_epoch: int = NO_LEADER_EPOCH,
    is_control: bool = False,
    is_transactional: bool = False,
    log_append_time_ms: int | None = None,
) -> bytearray:
    """Builds a batch of ``records`` with consecutive offsets; the base timestamp is that of the first record.

    :param log_append_time_ms: if given, the timestamp type is LogAppendTime, and this is the timestamp of all records
    """
    batch = bytearray(HEADER_SIZE)
    base_timestamp = max_timestamp = NO_TIMESTAMP
    count = 0
    for key, value, timestamp, *rest in records:
        if count == 0:
            base_timestamp = timestamp
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        write_record(batch, timestamp - base_timestamp, count, key, value, rest[0] if rest else _NO_HEADERS)
        count += 1
    attributes = compression | CONTROL_BIT * is_control | TRANSACTIONAL_BIT * is_transactional
    if log_append_time_ms is not None:
        attributes |= LOG_APPEND_TIME_BIT
        max_timestamp = log_append_time_ms
    if compression is not Compression.NONE:
        batch[HEADER_SIZE:] = _pack(compression, batch[HEADER_SIZE:], compression_level)
    HEADER.pack_into(
        batch,
        0,
        base_offset,
        len(batch) - LOG_OVERHEAD,
        leader_epoch,
        MAGIC,
        0,
        attributes,
        max(count - 1, 0),
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    sign(batch)
    return batch


def recompress(batch: RecordBatch, body: bytes, compression: Compression, level: int | None = None) -> RecordBatch:
    """Returns a copy of ``batch`` whose decompressed ``body`` is compressed with another codec."""
    packed = _pack(compression, body, level)
    buffer = bytearray(HEADER_SIZE + len(packed))
    buffer[:HEADER_SIZE] = batch.buffer[:HEADER_SIZE]
    buffer[HEADER_SIZE:] = packed
    buffer[8:12] = (len(buffer) - LOG_OVERHEAD).to_bytes(4, "big")
    buffer[21:23] = (batch.attributes & KEPT_BITS | compression).to_bytes(2, "big")
    sign(buffer)
    return RecordBatch.parse(buffer)


def sign(batch: bytearray | memoryview) -> None:
    """Computes the CRC of the batch that fills the buffer, and writes it there."""
    _CRC.pack_into(batch, CRC_AT, crc32c(memoryview(batch)[CHECKED_FROM:]))


def _pack(compression: Compression, body: bytes | bytearray, level: int | None) -> bytes | bytearray:
    if compression is Compression.NONE:
        return body
    from barnabas.records.compression import compress

    return compress(compression, body, level)


def write_record(
    out: bytearray, timestamp_delta: int, offset_delta: int, key: bytes | None, value: bytes | None, headers: Headers
) -> None:
    """Appends a record to the body of a batch."""
    if 0 <= timestamp_delta < 64 and offset_delta < 64:  # usual in internal topics: each varint is a byte
        record = bytearray((0, timestamp_delta << 1, offset_delta << 1))
    else:
        record = bytearray(1)  # attributes
        write_varint(timestamp_delta, record)
        write_varint(offset_delta, record)
    _write_bytes(key, record)
    _write_bytes(value, record)
    if headers:
        write_varint(len(headers), record)
        for name, content in headers:
            _write_bytes(name.encode(), record)
            _write_bytes(content, record)
    else:
        record.append(0)
    write_varint(len(record), out)
    out += record


def _write_bytes(value: bytes | None, out: bytearray) -> None:
    if value is None:
        out.append(1)  # -1
        return
    write_varint(len(value), out)
    out += value
