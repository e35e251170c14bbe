"""Decompresses batches and message sets.

Knows nothing of the content. It shares no code with ``barnabas.records.compression``, so that tests can compare the
two.
"""

import zlib
from collections.abc import Callable

from construct import (
    Bytes,
    Const,
    GreedyBytes,
    GreedyRange,
    If,
    Int8ub,
    Int32sb,
    Int32ul,
    Prefixed,
    Struct,
    this,
)

LIMIT = 1 << 30
"""The maximum size of a decompressed body, in bytes."""


class CannotUnpack(Exception):
    """The bytes cannot be decompressed."""


def unpack(codec: str, data: bytes, magic: int = 2) -> bytes:
    """Decompresses ``data``. :raises CannotUnpack: it is not of that codec, or too large"""
    try:
        found = (_lz4_of_magic_0 if codec == "lz4" and magic == 0 else _UNPACK[codec])(data)
    except Exception as error:  # each library raises exceptions of its own
        raise CannotUnpack(f"the {codec} body cannot be decompressed: {' '.join(str(error).split())}") from error
    if len(found) > LIMIT:
        raise CannotUnpack(f"the {codec} body decompresses to more than {LIMIT} bytes")
    return found


def _gzip(data: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    found = unpacker.decompress(data, LIMIT + 1)
    if len(found) <= LIMIT and not unpacker.eof:
        raise EOFError("it is truncated")
    return found


#: The header of snappy-java's framing; librdkafka does not frame snappy blocks.
_XERIAL = Struct(
    "magic" / Const(b"\x82SNAPPY\x00"), "versions" / Bytes(8), "blocks" / GreedyRange(Prefixed(Int32sb, GreedyBytes))
)


def _snappy(data: bytes) -> bytes:
    import snappy

    if not data.startswith(b"\x82SNAPPY\x00"):
        return bytes(snappy.uncompress(data))
    return b"".join(snappy.uncompress(block) for block in _XERIAL.parse(data).blocks)


def _lz4(data: bytes) -> bytes:
    from lz4.frame import LZ4FrameDecompressor

    unpacker = LZ4FrameDecompressor()
    found: bytes = unpacker.decompress(data, LIMIT + 1)
    if len(found) <= LIMIT and not unpacker.eof:
        raise EOFError("it is truncated")
    return found


_LZ4_BLOCK = Struct("size" / Int32ul, "data" / If(this.size > 0, Bytes(this.size & 0x7FFFFFFF)))
_LZ4_HEAD = Struct(
    "magic" / Const(0x184D2204, Int32ul),
    "flags" / Int8ub,
    "block" / Int8ub,
    "size" / If(this.flags & 8, Bytes(8)),
    "checksum" / Int8ub,
)
_LZ4_BLOCK_SIZES = {4: 1 << 16, 5: 1 << 18, 6: 1 << 20, 7: 1 << 22}


def _lz4_of_magic_0(data: bytes) -> bytes:
    """Decompresses, block by block, frames whose header checksum covers the wrong bytes (KAFKA-3160)."""
    from lz4.block import decompress

    head = _LZ4_HEAD.parse(data)
    largest = _LZ4_BLOCK_SIZES[head.block >> 4 & 7]
    at, pieces = 7 + (8 if head.flags & 8 else 0), []
    while (block := _LZ4_BLOCK.parse(data[at:])).size:
        is_packed = not block.size & 0x80000000
        pieces.append(decompress(block.data, uncompressed_size=largest) if is_packed else block.data)
        at += 4 + len(block.data) + (4 if head.flags & 16 else 0)
    return b"".join(pieces)


def _zstd(data: bytes) -> bytes:
    from zstandard import ZstdDecompressor

    unpacker = ZstdDecompressor().decompressobj()
    found = unpacker.decompress(data)
    if not unpacker.eof:
        raise EOFError("it is truncated")
    return found


_UNPACK: dict[str, Callable[[bytes], bytes]] = {
    "none": bytes,
    "gzip": _gzip,
    "snappy": _snappy,
    "lz4": _lz4,
    "zstd": _zstd,
}
