"""Builds message sets of formats v0 and v1, valid and invalid ones, and parses them.

Must not know ``barnabas.records``: it is a second, independent implementation of the formats.
"""

import contextlib
import struct
import zlib
from typing import Any, NamedTuple

from .batches import COMPRESS, DECOMPRESS, T0

LZ4 = 3


class M(NamedTuple):
    """One message; fields that are None get correct values."""

    value: bytes | None = b"value"
    key: bytes | None = None
    timestamp: int = T0
    magic: int | None = None
    attributes: int = 0
    offset: int | None = None
    crc: int | None = None
    length: int | None = None
    content: bytes | None = None  #: instead of timestamp, key and value


def sized(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def message(outcomes: M, magic: int, index: int) -> bytes:
    magic = magic if outcomes.magic is None else outcomes.magic
    covered = struct.pack(">bb", magic, outcomes.attributes)
    if outcomes.content is not None:
        covered += outcomes.content
    else:
        covered += (
            (struct.pack(">q", outcomes.timestamp) if magic else b"") + sized(outcomes.key) + sized(outcomes.value)
        )
    crc = zlib.crc32(covered) if outcomes.crc is None else outcomes.crc
    length = len(covered) + 4 if outcomes.length is None else outcomes.length
    return struct.pack(">qiI", index if outcomes.offset is None else outcomes.offset, length, crc) + covered


def message_set(magic: int, *found: M | bytes) -> bytes:
    """Concatenates messages; bytes stand for a message with that value."""
    return b"".join(message(each if isinstance(each, M) else M(each), magic, i) for i, each in enumerate(found))


def wrapper(magic: int, codec: int, *found: M | bytes, inside: bytes | None = None, **fields: Any) -> bytes:
    """Builds a compressed message around others; `inside` replaces its content, `fields` are the wrapper's own."""
    data = message_set(magic, *found) if inside is None else inside
    packed = COMPRESS[codec](data)
    if codec == LZ4 and magic == 0:
        at = checksum_at(packed)
        packed = packed[:at] + bytes([packed[at] ^ 0xFF]) + packed[at + 1 :]  # wrong anyway in v0: not checked
    fields = {"value": packed, "attributes": codec, "offset": max(len(found) - 1, 0)} | fields
    return message(M(**fields), magic, 0)


def checksum_at(frame: bytes) -> int:
    """Returns the position of the checksum in a frame's header: after the content's size, if there is one."""
    return 14 if frame[4] & 8 else 6


def unlz4(frame: bytes) -> bytes:
    """Decompresses a frame whatever its header's checksum is: one of 256 is right."""
    at = checksum_at(frame)
    for guess in range(256):
        with contextlib.suppress(RuntimeError):
            return DECOMPRESS[LZ4](frame[:at] + bytes([guess]) + frame[at + 1 :])
    raise ValueError("no lz4 frame")


def parse(data: bytes) -> list[dict[str, Any]]:
    """Returns the whole messages in a set, wrappers with their inner messages."""
    found, at = [], 0
    while len(data) - at >= 12:
        offset, length = struct.unpack_from(">qi", data, at)
        body = data[at + 12 : at + 12 + length]
        if len(body) < length:
            break
        found.append({"offset": offset} | parsed(body))
        at += 12 + length
    return found


def parsed(body: bytes) -> dict[str, Any]:
    crc, magic, attributes = struct.unpack_from(">IBB", body)
    if magic > 1:
        return {"odd": body.hex()}
    at = 14 if magic else 6
    content = []
    for _ in range(2):
        (size,) = struct.unpack_from(">i", body, at)
        content.append(None if size < 0 else body[at + 4 : at + 4 + size])
        at += 4 + max(size, 0)
    key, value = content
    codec = attributes & 7
    found: dict[str, Any] = {
        "magic": magic,
        "attributes": attributes,
        "crc_holds": zlib.crc32(body[4:]) == crc,
        "max_timestamp": struct.unpack_from(">q", body, 6)[0] if magic else None,
        "key": None if key is None else key.hex(),
        "left_over": len(body) - at,
    }
    if not codec or value is None:
        return found | {"value": None if value is None else value.hex()}
    if codec == LZ4:
        return found | {"frame": value[:7].hex(), "inside": parse(unlz4(value))}
    return found | {"inside": parse(DECOMPRESS[codec](value))}
