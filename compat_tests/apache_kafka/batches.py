"""Builds valid and invalid record batches, and parses them.

Must not know ``barnabas.records``: it is a second, independent implementation of the format.
"""

import gzip
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import crc32c
import lz4.frame
import snappy
import zstandard

T0 = 1_700_000_000_000
"""The first record's timestamp, in ms: long past, and the same in every run."""

HEAD = struct.Struct(">qiibIhiqqqhii")
CRC_FROM = 21  # attributes and everything after them

COMPRESS: dict[int, Callable[[bytes], bytes]] = {
    0: bytes,
    1: lambda data: gzip.compress(data, mtime=0),
    2: lambda data: b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, len(block := snappy.compress(data))) + block,
    3: lz4.frame.compress,
    4: zstandard.compress,
}


def unsnappy(data: bytes) -> bytes:
    if not data.startswith(b"\x82SNAPPY\0"):
        return bytes(snappy.decompress(data))
    out, at = b"", 16
    while at < len(data):
        (size,) = struct.unpack_from(">i", data, at)
        out += snappy.decompress(data[at + 4 : at + 4 + size])
        at += 4 + size
    return out


DECOMPRESS: dict[int, Callable[[bytes], bytes]] = {
    0: bytes,
    1: gzip.decompress,
    2: unsnappy,
    3: lz4.frame.decompress,
    4: lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}


class R(NamedTuple):
    """One record to be sent."""

    value: bytes | None = b"value"
    key: bytes | None = None
    timestamp_delta: int = 0
    headers: tuple[tuple[str, bytes | None], ...] = ()
    offset_delta: int | None = None


def zigzag(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def sized(data: bytes | None) -> bytes:
    return zigzag(-1) if data is None else zigzag(len(data)) + data


def record_bytes(record: R, index: int) -> bytes:
    delta = index if record.offset_delta is None else record.offset_delta
    body = b"\0" + zigzag(record.timestamp_delta) + zigzag(delta) + sized(record.key) + sized(record.value)
    body += zigzag(len(record.headers)) + b"".join(sized(name.encode()) + sized(v) for name, v in record.headers)
    return zigzag(len(body)) + body


def batch(
    *records: R,
    codec: int = 0,
    body: bytes | None = None,
    extra: bytes = b"",
    base_offset: int = 0,
    length: int | None = None,
    leader_epoch: int = -1,
    magic: int = 2,
    crc: int | None = None,
    attributes: int = 0,
    last_delta: int | None = None,
    base_timestamp: int = T0,
    max_timestamp: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
    count: int | None = None,
) -> bytes:
    """Builds one record batch of format v2; arguments replace correct values, `extra` follows the records."""
    if body is None:
        body = COMPRESS[codec](b"".join(record_bytes(r, i) for i, r in enumerate(records)) + extra)
    fields = (
        attributes | codec,
        len(records) - 1 if last_delta is None else last_delta,
        base_timestamp,
        base_timestamp + max((r.timestamp_delta for r in records), default=0)
        if max_timestamp is None
        else max_timestamp,
        producer_id,
        producer_epoch,
        sequence,
        len(records) if count is None else count,
    )
    covered = struct.pack(">hiqqqhii", *fields) + body
    right = crc32c.crc32c(covered)
    size = len(covered) + 9 if length is None else length
    return struct.pack(">qiibI", base_offset, size, leader_epoch, magic, right if crc is None else crc) + covered


def message_set(magic: int, *values: bytes, crc: int | None = None) -> bytes:
    """Builds messages of the old formats 0 and 1."""
    import zlib

    out = b""
    for offset, value in enumerate(values):
        covered = struct.pack(">bb", magic, 0) + (struct.pack(">q", T0) if magic else b"")
        covered += struct.pack(">i", -1) + struct.pack(">i", len(value)) + value
        out += struct.pack(">qiI", offset, len(covered) + 4, zlib.crc32(covered) if crc is None else crc) + covered
    return out


def parse(data: bytes) -> list[dict[str, Any]]:
    """Parses record data, batch by batch: header fields, validity of the CRC, and records."""
    return list(batches(data))


def batches(data: bytes) -> Iterator[dict[str, Any]]:
    at = 0
    while at < len(data):
        if len(data) - at < HEAD.size:
            yield {"rest": data[at:].hex()}
            return
        (offset, length, epoch, magic, crc, attributes, last, base, high, pid, pepoch, seq, count) = HEAD.unpack_from(
            data, at
        )
        whole = data[at : at + 12 + length]
        if len(whole) < 12 + length or magic != 2:
            yield {"rest": whole.hex()}
            return
        records = DECOMPRESS[attributes & 7](whole[HEAD.size :])
        yield {
            "base_offset": offset,
            "leader_epoch": epoch,
            "magic": magic,
            "crc_holds": crc == crc32c.crc32c(whole[CRC_FROM:]),
            "attributes": attributes,
            "last_delta": last,
            "base_timestamp": base,
            "max_timestamp": high,
            "ProducerId": pid,
            "producer_epoch": pepoch,
            "sequence": seq,
            "count": count,
            "records": control(records) if attributes & 32 else records.hex(),
        }
        at += 12 + length


def control(records: bytes) -> str:
    return "control " + records.hex()


def contents(data: bytes) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Returns key and value of each record in record data, whatever its batches are."""
    for each in batches(data):
        yield from contents_of(each)


def contents_of(batch: Mapping[str, Any]) -> Iterator[tuple[bytes | None, bytes | None]]:
    """Returns key and value of each record of a batch that `parse` returned."""
    records, at = bytes.fromhex(batch["records"].removeprefix("control ")), 0
    for _ in range(batch["count"]):
        size, at = unzigzag(records, at)
        end = at + size
        _, at = unzigzag(records, at + 1)  # the timestamp, after a byte of attributes
        _, at = unzigzag(records, at)  # the offset
        key, at = unsized(records, at)
        value, at = unsized(records, at)
        yield key, value
        at = end


def unzigzag(data: bytes, at: int) -> tuple[int, int]:
    """Returns a varint and the position after it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at


def unsized(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = unzigzag(data, at)
    return (None, at) if size < 0 else (data[at : at + size], at + size)


class Records:
    """Record data with values that are known only when it is sent (a producer id): made by `with_saved`."""

    def __init__(self, *pieces: "bytes | tuple[Iterable[R], dict[str, Any]]") -> None:
        self.pieces = pieces

    def with_saved(self, resolve: Callable[[Any], Any]) -> bytes:
        out = b""
        for piece in self.pieces:
            if isinstance(piece, bytes):
                out += piece
            else:
                records, options = piece
                out += batch(*records, **{name: resolve(value) for name, value in options.items()})
        return out


def records(*given: R | bytes | str, **options: Any) -> Records:
    """Builds one batch of these records (bytes or text stand for a record with that value)."""
    made = [r if isinstance(r, R) else R(r.encode() if isinstance(r, str) else r) for r in given]
    return Records((made, options))
