"""Varints read as arrays, compared with reading them one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.columnar.varints import read_varints, read_varlongs
from barnabas.errors import InvalidRecord
from barnabas.records.varint import read_varint, read_varlong, write_varint

INTS = st.integers(-(2**31), 2**31 - 1) | st.integers(-70, 70) | st.integers(-9000, 9000)
LONGS = st.integers(-(2**63), 2**63 - 1) | INTS


def written(numbers: list[int]) -> tuple[bytes, list[int], list[int]]:
    """Returns the numbers' bytes, their starts and their ends."""
    out, starts, ends = bytearray(), [], []
    for number in numbers:
        starts.append(len(out))
        write_varint(number, out)
        ends.append(len(out))
    return bytes(out), starts, ends


@pytest.mark.parametrize(("read", "numbers"), [(read_varints, INTS), (read_varlongs, LONGS)], ids=["32 bits", "64"])
@given(data=st.data())
def test_what_was_written_is_read(read, numbers, data) -> None:
    wanted = data.draw(st.lists(numbers, min_size=1, max_size=30))
    out, starts, ends = written(wanted)
    found, at = read(np.frombuffer(out, np.uint8), np.array(starts))
    assert found.tolist() == wanted
    assert at.tolist() == ends


@pytest.mark.parametrize(
    ("read", "read_one"), [(read_varints, read_varint), (read_varlongs, read_varlong)], ids=["32 bits", "64"]
)
@given(data=st.binary(min_size=1, max_size=40), inside=st.data())
def test_any_bytes_are_what_they_are_one_by_one(read, read_one, data, inside) -> None:
    starts = inside.draw(st.lists(st.integers(0, len(data) - 1), min_size=1, max_size=5))
    one_by_one = []
    for start in starts:
        try:
            one_by_one.append(read_one(data, start))
        except InvalidRecord:
            with pytest.raises(InvalidRecord, match="bytes"):
                read(np.frombuffer(data, np.uint8), np.array(starts))
            return
        except IndexError:
            return  # the end is beyond the data, which the caller checks
    numbers, ends = read(np.frombuffer(data, np.uint8), np.array(starts))
    assert list(zip(numbers.tolist(), ends.tolist(), strict=True)) == one_by_one


def test_a_number_beyond_the_data_ends_beyond_it() -> None:
    _, ends = read_varints(np.frombuffer(b"\x00\x05", np.uint8), np.array([1, 2, 900]))
    assert ends.tolist() == [2, 3, 901]


def test_a_number_that_is_too_long_is_read_when_it_is_only_a_guess() -> None:
    found, ends = read_varints(np.full(12, 0xFF, np.uint8), np.array([0]), strict=False)
    assert (found.tolist(), ends.tolist()) == ([-(2**31)], [5])
