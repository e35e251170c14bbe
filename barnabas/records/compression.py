"""The four codecs of a record batch's body, both ways; unpacking stops at a limit that the caller sets.

Knows nothing of batches and records. The codecs' libraries are imported when a batch first needs them.
"""

import zlib
from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from barnabas.errors import CorruptMessage, KafkaError, MessageTooLarge
from barnabas.records.batch import Compression

if TYPE_CHECKING:
    Buffer = bytes | bytearray | memoryview

CHUNK: Final = 1 << 16  # unpacked bytes that a decoder is asked for at a time
ZSTD_SIP: Final = 512  # packed bytes that a zstd decoder is given at a time: 16 MiB come of them at the most
GZIP_MAGIC: Final = b"\x1f\x8b"
XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
XERIAL_BLOCK: Final = 32 << 10  # what snappy-java puts into one block
_XERIAL_HEADER = Struct(">8sii")
_BLOCK_SIZE = Struct(">i")


class _Unpacked:
    """Pieces of unpacked bytes, up to a limit."""

    __slots__ = ("left", "limit", "pieces")

    def __init__(self, limit: int) -> None:
        self.limit = self.left = limit
        self.pieces: list[bytes] = []

    def room(self) -> int:
        """How many bytes to ask the decoder for: one more than may be, so that too much shows."""
        return min(CHUNK, self.left + 1)

    def add(self, piece: bytes) -> None:
        self.left -= len(piece)
        if self.left < 0:
            raise MessageTooLarge(f"A batch unpacks to more than {self.limit} bytes.")
        self.pieces.append(piece)

    def whole(self) -> bytes:
        return self.pieces[0] if len(self.pieces) == 1 else b"".join(self.pieces)


def decompress(codec: Compression, data: "Buffer", limit: int) -> bytes:
    """Unpack a batch's body, which may come to ``limit`` bytes; what is allocated beyond them does not depend on it.

    Raises CorruptMessage if ``data`` is not what ``codec`` makes, MessageTooLarge beyond the limit.
    """
    out = _Unpacked(limit)
    try:
        _UNPACK[codec](data, out)
    except KafkaError:
        raise
    except Exception as error:  # each library has its own, and some raise plain RuntimeErrors
        raise CorruptMessage(f"A {codec.name.lower()} body cannot be unpacked: {error}") from error
    return out.whole()


def compress(codec: Compression, data: "Buffer", level: int | None = None) -> bytes:
    """Pack a batch's body as Apache Kafka does. ``level`` is the codec's own; None for what Kafka takes by default."""
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
        if rest[:2] != GZIP_MAGIC:  # what follows the last member is nobody's, for Java's reader too
            return


def _pack_gzip(data: "Buffer", level: int | None) -> bytes:
    packer = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, 31)
    return packer.compress(data) + packer.flush()


def _unpack_snappy(data: "Buffer", out: _Unpacked) -> None:
    """Raw snappy (librdkafka's), or the blocks that snappy-java frames it in (everybody else's)."""
    if len(data) < _XERIAL_HEADER.size or bytes(data[:8]) != XERIAL_MAGIC:
        return _unpack_snappy_block(data, out)
    # The header's two version numbers say 1, in either byte order: some clients write them the wrong way round.
    at, end = _XERIAL_HEADER.size, len(data)
    while at < end:
        if bytes(data[at : at + 8]) == XERIAL_MAGIC:  # streams may be joined
            at += _XERIAL_HEADER.size
            continue
        if end - at < _BLOCK_SIZE.size:  # snappy-java stops here without a word
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
    # Snappy allocates what the block claims. Its best copy makes 64 bytes of three.
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

    # Apache's decoder wants independent blocks. It has 9 as its default level.
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

    # The library's bounded reader takes a frame that is cut off for one that has ended. This one knows the difference,
    # but returns all that comes of what it is given. A block makes 128 KiB of four bytes at the most: small sips.
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
