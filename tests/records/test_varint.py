"""Zigzag varints against kafka-python's, and at their ends."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.util import decode_varint, encode_varint

from barnabas.errors import InvalidRecord
from barnabas.records.varint import read_varint, read_varlong, write_varint


def written(value: int) -> bytes:
    out = bytearray()
    write_varint(value, out)
    return bytes(out)


@given(st.integers(-(2**63), 2**63 - 1))
def test_as_kafka_python_writes_them(value: int) -> None:
    theirs = bytearray()
    encode_varint(value, theirs.append)
    assert written(value) == theirs
    assert read_varlong(written(value), 0) == (value, len(theirs)) == decode_varint(memoryview(theirs))


@given(st.integers(-(2**31), 2**31 - 1), st.binary(max_size=3))
def test_int32_comes_back(value: int, before: bytes) -> None:
    data = before + written(value)
    assert read_varint(data + b"\x7f", len(before)) == (value, len(data))


@pytest.mark.parametrize("value", [0, -1, 63, -64, 64, 8191, -8192, 8192, 2**31 - 1, -(2**31)])
def test_the_ends_of_each_length(value: int) -> None:
    assert read_varint(written(value), 0)[0] == value


@pytest.mark.parametrize(("read", "size"), [(read_varint, 5), (read_varlong, 10)])
def test_too_long(read, size) -> None:
    assert read(b"\x80" * (size - 1) + b"\x01", 0)[1] == size
    with pytest.raises(InvalidRecord):
        read(b"\x80" * size + b"\x01", 0)


@pytest.mark.parametrize("read", [read_varint, read_varlong])
@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff\xff"])
def test_cut_off(read, data) -> None:
    with pytest.raises(IndexError):
        read(data, 0)
