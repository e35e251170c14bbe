"""Variable-length integers, and sections with unknown tagged fields."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import MalformedMessage
from barnabas.wire.types import Packers, read_length, read_uvarint, skip_tags, uvarint


@given(st.integers(0, 2**31 - 1))
def test_uvarints_come_back(value: int) -> None:
    data = uvarint(value)
    assert len(data) == max(1, -(-value.bit_length() // 7))
    assert read_uvarint(b"\xff" + data, 1) == (value, 1 + len(data))


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("8000", 0),  # longer than necessary, which is valid
        ("ffffffff07", 2**31 - 1),
        ("ffffffff0f", -1),  # signed 32 bits
        ("ffffffff7f", -1),  # bits beyond 32 are dropped, as in ByteUtils.readUnsignedVarint
    ],
)
def test_odd_uvarints_read_as_in_apache(data: str, value: int) -> None:
    assert read_uvarint(bytes.fromhex(data), 0) == (value, len(data) // 2)


def test_a_uvarint_has_five_bytes_at_most() -> None:
    with pytest.raises(MalformedMessage, match="five bytes"):
        read_uvarint(bytes.fromhex("808080808000"), 0)


@pytest.mark.parametrize("data", ["00", "ffffffff0f"])
def test_a_length_that_may_not_be_null(data: str) -> None:
    with pytest.raises(MalformedMessage, match="null"):
        read_length(bytes.fromhex(data), 0)


def test_tags_are_skipped() -> None:
    assert skip_tags(bytes.fromhex("02 05 03 010203 00 00 ff"), 0) == 8


@pytest.mark.parametrize("data", ["01 00 05 01", "01 00 ffffffff0f", "01 00"])
def test_tags_beyond_the_frame(data: str) -> None:
    with pytest.raises((MalformedMessage, IndexError)):
        skip_tags(bytes.fromhex(data), 0)


def test_packers_keep_the_short_ones_only() -> None:
    packers = Packers("h", lambda made: made.pack)
    assert packers[2](1, 2) == bytes.fromhex("00010002")
    assert packers[65](*range(65)) == b"".join(number.to_bytes(2, "big") for number in range(65))
    assert set(packers) == {2}
