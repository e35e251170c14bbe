"""Combining batches, compared with a dict of offsets, and with results of Apache Kafka."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.share.combining import TooManySteps, add, combine, is_settled
from barnabas.share.messages import StateBatch


def batch(first, length, state, count):
    return StateBatch(first, first + length, state, count)


BATCHES = st.lists(
    st.builds(batch, st.integers(0, 30), st.integers(0, 9), st.sampled_from([0, 2, 4]), st.integers(1, 3)), max_size=12
)


def offsets(batches, start_offset=-1):
    """Returns the state of each offset: the higher delivery count wins, then the higher state."""
    known = {}
    for first, last, state, count in batches:
        for offset in range(max(first, start_offset), last + 1):
            known[offset] = max(known.get(offset, (-1, -1)), (count, state))
    return known


@given(BATCHES, st.integers(-1, 40))
def test_of_each_offset_the_most_is_known_that_was_said(batches, start_offset):
    combined = combine(batches, start_offset)
    assert offsets(combined) == offsets(batches, start_offset)
    assert all(before.last_offset < after.first_offset for before, after in pairwise(combined))


@given(BATCHES, BATCHES, st.integers(-1, 40))
def test_what_is_combined_piece_by_piece_says_the_same_as_at_once(before, after, start_offset):
    piece_by_piece = combine([*combine(before, start_offset), *after], start_offset)
    assert offsets(piece_by_piece) == offsets(combine([*before, *after], start_offset))


@given(BATCHES, st.lists(BATCHES, max_size=4), st.integers(-1, 40))
def test_what_is_added_is_combined(before, added, start_offset):
    known = combine(before, -1)
    for batches in added:
        if is_settled(known):
            assert add(known, batches, start_offset)[0] == combine([*known, *batches], start_offset)
            known, settled = add(known, batches, start_offset)
            assert settled == is_settled(known)
        else:
            known = combine([*known, *batches], start_offset)


def test_what_is_tangled_is_not_waited_for():
    with pytest.raises(TooManySteps):
        combine([StateBatch(0, last, 0, 1000 - last) for last in range(1000)], 0)


def test_two_lists_are_never_too_tangled():
    one = [StateBatch(first, first + 2, 0, 1 + first % 2) for first in range(0, 3000, 3)]
    other = [StateBatch(first, first + 4, 2, 1 + first % 3) for first in range(1, 3000, 5)]
    assert offsets(combine([*one, *other], -1)) == offsets([*one, *other])


SHAPES = {
    "nothing": ("", -1, ""),
    "none that ends before it begins": ("9-5:0x1", -1, ""),
    "alone": ("5-9:0x1", -1, "5-9:0x1"),
    "below": ("5-9:0x1", 10, ""),
    "cut": ("5-9:0x1", 7, "7-9:0x1"),
    "neighbours that say the same": ("0-4:0x1 5-9:0x1", -1, "0-9:0x1"),
    "neighbours of other counts": ("0-4:0x1 5-9:0x2", -1, "0-4:0x1 5-9:0x2"),
    "twice": ("0-4:2x1 0-4:2x1", -1, "0-4:2x1"),
    "in the middle": ("0-9:0x1 4-5:2x1", -1, "0-3:0x1 4-5:2x1 6-9:0x1"),
    "in the middle, older": ("0-9:0x2 4-5:2x1", -1, "0-9:0x2"),
    "over the end": ("0-9:0x1 5-12:0x2", -1, "0-4:0x1 5-12:0x2"),
    "over the end, older": ("0-9:0x2 5-12:2x1", -1, "0-9:0x2 10-12:2x1"),
    "kept apart after a conflict": (
        "5-9:2x1 5-9:2x1 9-12:2x2 13-13:2x2 0-4:2x2 5-6:4x1 5-8:2x2",
        0,
        "0-4:2x2 5-8:2x2 9-13:2x2",
    ),
    "many": (
        "5-9:2x1 6-7:2x2 9-12:2x2 13-13:2x2 0-3:0x1 0-1:0x2",
        0,
        "0-1:0x2 2-3:0x1 5-5:2x1 6-7:2x2 8-8:2x1 9-13:2x2",
    ),
    "in part twice": ("10-11:2x1 12-15:0x2 13-16:2x1", 10, "10-11:2x1 12-15:0x2 16-16:2x1"),
}
"""The results with several conflicts are those of Apache Kafka 4.3.1."""


@pytest.mark.parametrize("name", SHAPES)
def test_shape(name):
    given_batches, start_offset, expected = SHAPES[name]
    combined = combine(map(parse, given_batches.split()), start_offset)
    assert " ".join(f"{first}-{last}:{state}x{count}" for first, last, state, count in combined) == expected


def parse(text):
    span, _, rest = text.partition(":")
    first, last = map(int, span.split("-"))
    state, count = map(int, rest.split("x"))
    return StateBatch(first, last, state, count)
