"""The checksum of lz4 headers in message format v0, beside the right one."""

import lz4.frame
import pytest

from barnabas.records.old_lz4 import with_old_checksum, with_right_checksum, xxh32


@pytest.mark.parametrize("store_size", [False, True])
@pytest.mark.parametrize("size", [0, 1, 1000, 200_000])
def test_the_right_checksum_is_the_librarys(size, store_size):
    frame = lz4.frame.compress(bytes(size), store_size=store_size)
    assert with_right_checksum(frame) == frame
    old = with_old_checksum(frame)
    assert old != frame
    with pytest.raises(RuntimeError):
        lz4.frame.decompress(old)
    assert with_right_checksum(old) == frame


def test_what_apache_kafka_writes():
    assert with_old_checksum(bytes.fromhex("04224d18604082") + bytes(20))[:7].hex() == "04224d1860401a"


@pytest.mark.parametrize(
    ("data", "value"), [(b"", 0x02CC5D05), (b"a", 0x550D7456), (b"abc", 0x32D153FF), (b"abcdefgh", 0x0BB3C6BB)]
)
def test_known_hashes(data, value):
    assert xxh32(data) == value


@pytest.mark.parametrize("data", [b"", b"\x04\x22\x4d\x18", b"\x04\x22\x4d\x18\x60\x40", b"x" * 100])
def test_what_is_no_frame_stays(data):
    assert with_right_checksum(data) == with_old_checksum(data) == data
