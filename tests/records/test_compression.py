"""The codecs: framings that clients use, truncated streams, and bombs."""

import contextlib
import gzip
import struct
import tracemalloc

import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from kafka import codec as kafka_python

from barnabas.errors import CorruptMessage, MessageTooLarge
from barnabas.records.batch import Compression
from barnabas.records.compression import XERIAL_MAGIC, compress, decompress

GZIP, SNAPPY, LZ4, ZSTD = Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD
PACKED = [GZIP, SNAPPY, LZ4, ZSTD]
TEXT = b"".join(b"%d green bottles, " % n for n in range(20_000))


@given(st.sampled_from(Compression), st.binary(max_size=100), st.integers(1, 2000))
def test_round_trip(codec, data, times) -> None:
    packed = compress(codec, data * times)
    assert decompress(codec, packed, len(data) * times) == data * times
    assert decompress(codec, memoryview(packed), 1 << 20) == data * times


THEIRS = {
    GZIP: (kafka_python.gzip_encode, kafka_python.gzip_decode),
    SNAPPY: (kafka_python.snappy_encode, kafka_python.snappy_decode),
    LZ4: (kafka_python.lz4_encode, kafka_python.lz4_decode),
    ZSTD: (kafka_python.zstd_encode, kafka_python.zstd_decode),
}


@pytest.mark.parametrize("codec", PACKED)
def test_as_kafka_python_has_it(codec) -> None:
    encode, decode = THEIRS[codec]
    assert decompress(codec, encode(TEXT), len(TEXT)) == TEXT
    assert decode(compress(codec, TEXT)) == TEXT


@pytest.mark.parametrize(("codec", "low", "high"), [(GZIP, 1, 9), (LZ4, 1, 9), (ZSTD, 1, 15)])
def test_levels(codec, low, high) -> None:
    assert len(compress(codec, TEXT, low)) > len(compress(codec, TEXT, high))


FRAMINGS = {
    "gzip in two members": (GZIP, gzip.compress(TEXT[:1000]) + gzip.compress(TEXT[1000:])),
    "gzip and what is not gzip": (GZIP, gzip.compress(TEXT) + b"stray"),
    "snappy, raw": (SNAPPY, snappy.compress(TEXT)),
    "snappy, xerial": (SNAPPY, kafka_python.snappy_encode(TEXT)),
    "snappy, xerial in one block": (SNAPPY, kafka_python.snappy_encode(TEXT, xerial_blocksize=1 << 30)),
    "snappy, xerial, versions little-endian": (
        SNAPPY,
        XERIAL_MAGIC + struct.pack("<ii", 1, 1) + kafka_python.snappy_encode(TEXT)[16:],
    ),
    "snappy, two xerial streams": (
        SNAPPY,
        kafka_python.snappy_encode(TEXT[:99]) + kafka_python.snappy_encode(TEXT[99:]),
    ),
    "snappy, xerial, stray bytes": (SNAPPY, kafka_python.snappy_encode(TEXT) + b"\0\0"),
    "lz4 with its size": (LZ4, lz4.frame.compress(TEXT, store_size=True)),
    "lz4 with checksums": (LZ4, lz4.frame.compress(TEXT, content_checksum=True, block_checksum=True)),
    "lz4 with linked blocks": (LZ4, lz4.frame.compress(TEXT, block_linked=True)),
    "zstd without its size": (ZSTD, zstandard.ZstdCompressor(write_content_size=False).compress(TEXT)),
    "zstd in two frames": (ZSTD, zstandard.compress(TEXT[:99]) + zstandard.compress(TEXT[99:])),
    "zstd with a checksum": (ZSTD, zstandard.ZstdCompressor(write_checksum=True).compress(TEXT)),
}


@pytest.mark.parametrize("framing", FRAMINGS)
def test_framings(framing) -> None:
    codec, packed = FRAMINGS[framing]
    assert decompress(codec, packed, len(TEXT)) == TEXT


def test_snappy_is_framed_for_snappy_java() -> None:
    packed = compress(SNAPPY, TEXT)
    assert packed[:16] == b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01"
    (size,) = struct.unpack_from(">i", packed, 16)
    assert snappy.uncompress(packed[20 : 20 + size]) == TEXT[: 32 << 10]


def test_lz4_is_framed_for_apaches_decoder() -> None:
    info = lz4.frame.get_frame_info(compress(LZ4, TEXT))
    assert not info["block_linked"]
    assert info["block_size"] == 64 << 10
    assert not info["content_checksum"] and not info["block_checksum"] and info["content_size"] == 0


@pytest.mark.parametrize("codec", PACKED)
def test_cut_off_or_rubbish(codec) -> None:
    packed = compress(codec, TEXT[:1000])
    for size in range(1, len(packed)):
        if codec is SNAPPY and size in (16, 17, 18, 19):
            continue  # a xerial stream without blocks is valid
        with pytest.raises(CorruptMessage):
            decompress(codec, packed[:size], 1 << 20)
    with pytest.raises(CorruptMessage):
        decompress(codec, b"junk" * 20, 1 << 20)


@pytest.mark.parametrize("codec", PACKED)
@given(st.data())
def test_mutations_give_bytes_or_an_error_of_the_protocol(codec, data) -> None:
    packed = bytearray(compress(codec, TEXT[:500]))
    for _ in range(data.draw(st.integers(1, 4))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(CorruptMessage, MessageTooLarge):
        assert len(decompress(codec, packed, 1 << 16)) <= 1 << 16


@pytest.mark.parametrize("block", [-1, 0, 1 << 30])
def test_xerial_blocks_that_lie(block) -> None:
    with pytest.raises(CorruptMessage):
        decompress(SNAPPY, XERIAL_MAGIC + struct.pack(">iii", 1, 1, block) + b"x", 1 << 20)


@pytest.mark.parametrize("framed", [False, True])
def test_snappy_that_claims_more_than_it_can_hold(framed) -> None:
    block = b"\xff\xff\xff\xff\x07" + snappy.compress(b"tiny")[1:]
    if framed:
        block = XERIAL_MAGIC + struct.pack(">iii", 1, 1, len(block)) + block
    with pytest.raises(CorruptMessage):
        decompress(SNAPPY, block, 1 << 31)


@pytest.mark.parametrize("codec", PACKED)
def test_the_limit_is_exact(codec) -> None:
    packed = compress(codec, TEXT)
    assert decompress(codec, packed, len(TEXT)) == TEXT
    for limit in (len(TEXT) - 1, 1000, 0):
        with pytest.raises(MessageTooLarge):
            decompress(codec, packed, limit)


def bomb(codec: Compression) -> bytes:
    """Returns 200 MiB of zeros, compressed."""
    if codec is ZSTD:
        return zstandard.compress(bytes(200 << 20))
    chunk = compress(codec, bytes(1 << 20))
    if codec is SNAPPY:
        return chunk + chunk[16:] * 199
    if codec is GZIP:
        return chunk * 200
    return lz4.frame.compress(bytes(200 << 20))


@pytest.mark.parametrize("codec", PACKED)
def test_bombs_do_not_go_off(codec) -> None:
    packed = bomb(codec)
    tracemalloc.start()
    try:
        with pytest.raises(MessageTooLarge):
            decompress(codec, packed, 1 << 20)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 24 << 20
