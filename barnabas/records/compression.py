"""Compresses and decompresses the body of a record batch by its codec, up to a size limit.

Knows nothing of batches and records. The library of a codec is imported when it is first needed.
"""

import zlib
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from barnabas.errors import CorruptMessage, KafkaError, MessageTooLarge
from barnabas.records.batch import Compression

if TYPE_CHECKING:
    Buffer = bytes | bytearray | memoryview

CHUNK: Final = 1 << 16  # maximum decompressed bytes per call of a decoder
ZSTD_SIP: Final = 512  # compressed bytes per call of a zstd decoder; they decompress to 16 MiB at most
GZIP_MAGIC: Final = b"\x1f\x8b"
XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
XERIAL_BLOCK: Final = 32 << 10  # bytes in one block of snappy-java
_XERIAL_HEADER = Struct(">8sii")
_BLOCK_SIZE = Struct(">i")


class _Unpacked:
    """Decompressed bytes in pieces, up to a limit."""

    __slots__ = ("left", "limit", "pieces")

    def __init__(self, limit: int) -> None:
        self.limit = self.left = limit
        self.pieces: list[bytes] = []

    def room(self) -> int:
        """The maximum of bytes for the next call of the decoder: one more than allowed, to detect an excess."""
        return min(CHUNK, self.left + 1)

    def add(self, piece: bytes) -> None:
        self.left -= len(piece)
        if self.left < 0:
            raise MessageTooLarge(f"A batch unpacks to more than {self.limit} bytes.")
        self.pieces.append(piece)

    def whole(self) -> bytes:
        return self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)


def decompress(codec: Compression, data: "Buffer", limit: int) -> bytes:
    """Decompresses the body of a batch.

    No more than ``limit`` bytes and a constant are allocated.

    :raises CorruptMessage: ``data`` is not of that codec
    :raises MessageTooLarge: it decompresses to more than ``limit`` bytes
    """
    out = _Unpacked(limit)
    try:
        _UNPACK[codec](data, out)
    except KafkaError:
        raise
    except Exception as error:  # each library has its own exceptions, some of them plain RuntimeErrors
        raise CorruptMessage(f"A {codec.name.lower()} body cannot be unpacked: {error}") from error
    return out.whole()


def compress(codec: Compression, data: "Buffer", level: int | None = None) -> bytes:
    """Compresses the body of a batch as Apache Kafka does. :param level: of the codec; None takes Kafka's default"""
    return _PACK[codec](data, level)


def _unpack_gzip(data: "Buffer", out: _Unpacked) -> None:
    rest: Buffer = data
    while True:
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            piece = member.decompress(rest, out.room())
            rest = member.unconsumed_tail
            if not piece and not rest and not member.eof:
                raise EOFError("the stream is cut off")
            out.add(piece)
        rest = member.unused_data
        if rest[:2] != GZIP_MAGIC:  # bytes after the last member are ignored, as in Java's reader
            return


def _pack_gzip(data: "Buffer", level: int | None) -> bytes:
    packer = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


def _unpack_snappy(data: "Buffer", out: _Unpacked) -> None:
    """Decompresses raw snappy, which librdkafka writes, or snappy-java's framed blocks, which other clients write."""
    if len(data) < _XERIAL_HEADER.size or bytes(data[:8]) != XERIAL_MAGIC:
        return _unpack_snappy_block(data, out)
    # The two versions in the header are 1, in either byte order: some clients write little-endian.
    at, end = _XERIAL_HEADER.size, len(data)
    while at < end:
        if bytes(data[at : at + 8]) == XERIAL_MAGIC:  # concatenated streams
            at += _XERIAL_HEADER.size
            continue
        if end - at < _BLOCK_SIZE.size:  # snappy-java ignores the rest
            return
        (size,) = _BLOCK_SIZE.unpack_from(data, at)
        at += _BLOCK_SIZE.size
        if not 0 < size <= end - at:
            raise EOFError(f"a block of {size} bytes does not fit")
        _unpack_snappy_block(data[at : at + size], out)
        at += size


def _unpack_snappy_block(data: "Buffer", out: _Unpacked) -> None:
    import snappy

    block = bytes(data)
    claimed = shift = 0
    for byte in block[:5]:
        claimed |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    # Snappy allocates the size that the block claims. At best it compresses 64 bytes to three.
    if claimed > 22 * len(block):
        raise ValueError(f"{claimed} bytes cannot come out of {len(block)}")
    if claimed > out.left:
        raise MessageTooLarge(f"A batch unpacks to more than {out.limit} bytes.")
    out.add(snappy.uncompress(block))


def _pack_snappy(data: "Buffer", level: int | None) -> bytes:
    import snappy

    blocks = [_XERIAL_HEADER.pack(XERIAL_MAGIC, 1, 1)]
    for at in range(0, len(data), XERIAL_BLOCK):
        block = snappy.compress(bytes(data[at : at + XERIAL_BLOCK]))
        blocks += _BLOCK_SIZE.pack(len(block)), block
    return b"".join(blocks)


def _unpack_lz4(data: "Buffer", out: _Unpacked) -> None:
    from lz4.frame import LZ4FrameDecompressor

    frame = LZ4FrameDecompressor()
    piece = frame.decompress(bytes(data), out.room())
    while not frame.eof:
        if not piece and frame.needs_input:
            raise EOFError("the frame is cut off")
        out.add(piece)
        piece = frame.decompress(b"", out.room())
    out.add(piece)


def _pack_lz4(data: "Buffer", level: int | None) -> bytes:
    from lz4.frame import BLOCKSIZE_MAX64KB, compress

    # Apache Kafka's decoder requires independent blocks. Its default level is 9.
    packed: bytes = compress(
        bytes(data),
        compression_level=9 if level is None else level,
        block_size=BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return packed


def _unpack_zstd(data: "Buffer", out: _Unpacked) -> None:
    from zstandard import ZstdDecompressor

    # The library's bounded reader accepts a truncated frame. This decoder does not,
    # but its output is unbounded: four bytes may become 128 KiB. So it gets small pieces of input.
    unpacker, rest = ZstdDecompressor(), bytes(data)
    while rest:
        frame = unpacker.decompressobj()
        for at in range(0, len(rest), ZSTD_SIP):
            out.add(frame.decompress(rest[at : at + ZSTD_SIP]))
            if frame.eof:
                rest = frame.unused_data + rest[at + ZSTD_SIP :]
                break
        else:
            raise EOFError("the frame is cut off")


def _pack_zstd(data: "Buffer", level: int | None) -> bytes:
    from zstandard import ZstdCompressor

    return ZstdCompressor(level=3 if level is None else level).compress(data)


def _unpack_none(data: "Buffer", out: _Unpacked) -> None:
    if len(data) > out.left:
        raise MessageTooLarge(f"A batch has more than {out.limit} bytes.")
    out.add(bytes(data))


def _pack_none(data: "Buffer", level: int | None) -> bytes:
    return bytes(data)


_UNPACK: dict[Compression, Callable[["Buffer", _Unpacked], None]] = {
    Compression.NONE: _unpack_none,
    Compression.GZIP: _unpack_gzip,
    Compression.SNAPPY: _unpack_snappy,
    Compression.LZ4: _unpack_lz4,
    Compression.ZSTD: _unpack_zstd,
}
_PACK: dict[Compression, Callable[[Any, int | None], bytes]] = {
    Compression.NONE: _pack_none,
    Compression.GZIP: _pack_gzip,
    Compression.SNAPPY: _pack_snappy,
    Compression.LZ4: _pack_lz4,
    Compression.ZSTD: _pack_zstd,
}
