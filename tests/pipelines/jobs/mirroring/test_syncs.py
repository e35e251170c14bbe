"""Translation of offsets, compared with a model that mirrors record by record."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.pipelines.jobs.mirroring.syncs import (
    MOST_RUNS,
    NEAR,
    History,
    Piece,
    Place,
    Runs,
    Syncs,
    decode,
    encode,
    slot,
)

PLACE = Place("prague.orders", 3)


class Mirrored:
    """A partition of the source with gaps, mirrored piece by piece, between markers and other producers' records."""

    def __init__(
        self, chance: random.Random, pieces: int, hole: float, stranger: float, *, has_runs: bool = False
    ) -> None:
        self.history = History()
        self.target_of: dict[int, int] = {}  #: by offset of the source, for offsets with a record
        offset, end = chance.randrange(1000), chance.randrange(50)
        self.first = offset
        for number in range(pieces):
            before, offsets = end, []
            for _ in range(chance.randrange(1, 12)):
                if chance.random() >= hole or not offsets:
                    while chance.random() < stranger:
                        end += 1
                    self.target_of[offset] = end
                    end += 1
                    offsets.append(offset)
                offset += 1
            runs = Runs()
            for some in np.array_split(np.array(offsets), chance.randrange(1, len(offsets) + 1)):
                runs.add(some)
            assert (runs.first, runs.next, runs.records) == (offsets[0], offsets[-1] + 1, len(offsets))
            where = runs.found() if has_runs else ()
            piece = Piece(number, "id", runs.first, runs.next, before, end, runs.records, where)
            self.history.add(slot(number), piece)
            end += 1  # the marker that commits
        self.last = offset

    def exact(self, offset: int) -> int | None:
        """Returns the target offset of the first record at or after `offset`."""
        return min((target for source, target in self.target_of.items() if source >= offset), default=None)


@given(
    seed=st.integers(),
    pieces=st.integers(1, 60),
    hole=st.sampled_from([0.0, 0.2, 0.9]),
    stranger=st.sampled_from([0.0, 0.3]),
    has_runs=st.booleans(),
)
def test_nothing_is_skipped(seed: int, pieces: int, hole: float, stranger: float, has_runs: bool) -> None:
    model = Mirrored(random.Random(seed), pieces, hole, stranger, has_runs=has_runs)
    previous = 0
    for offset in range(max(0, model.first - 3), model.last + 3):
        translated, exact = model.history.translate(offset), model.exact(offset)
        assert translated is not None
        assert exact is None or translated <= exact
        assert translated >= previous, "a later offset is never translated to an earlier one"
        previous = translated


@given(seed=st.integers(), pieces=st.integers(1, 40), hole=st.sampled_from([0.0, 0.2, 0.9]))
def test_exact_where_pieces_are_known(seed: int, pieces: int, hole: float) -> None:
    model = Mirrored(random.Random(seed), pieces, hole, 0.0, has_runs=True)
    known = list(model.history._by_slot.values())
    for offset in range(model.first, model.last):
        if any(piece.source_start <= offset < piece.source_end for piece in known):
            assert model.history.translate(offset) == model.exact(offset)
    assert model.history.translate(model.last) == model.history.last.target_end


def test_too_many_holes_are_not_told() -> None:
    runs = Runs()
    for first in range(0, 2 * MOST_RUNS, 20):
        runs.add(np.arange(first, first + 20, 2))
    assert len(runs.found()) == MOST_RUNS
    runs.add(np.array([2 * MOST_RUNS + 1, 2 * MOST_RUNS + 3]))
    assert runs.found() == ()
    assert (runs.records, runs.next) == (MOST_RUNS + 2, 2 * MOST_RUNS + 4)


def test_a_group_at_the_end_has_read_all() -> None:
    history = History()
    history.add("first", Piece(0, "id", 0, 10, 100, 105, 5))
    assert history.translate(10) == 105
    assert history.translate(5_000) == 105
    assert history.translate(7) == 102, "of what is left there are at most three records"
    assert history.translate(2) == 100
    assert history.translate(0) == 100


def test_an_offset_before_all_that_is_known() -> None:
    history = History()
    history.add("first", Piece(0, "id", 50, 60, 7, 17, 10))
    assert history.translate(3) == 7, "what came before was not mirrored"
    without_first = History()
    without_first.add("0.1", Piece(9, "id", 50, 60, 7, 17, 10))
    assert without_first.translate(3) is None


@pytest.mark.parametrize("count", [1, 7, 100, 5_000])
def test_few_pieces_of_the_past_are_kept(count: int) -> None:
    kept: dict[str, int] = {}
    for number in range(count):
        kept[slot(number)] = number
    numbers = sorted(kept.values())
    assert numbers[0] == 0
    assert numbers[-1] == count - 1
    assert len(numbers) <= NEAR * count.bit_length() + 1
    for lost in set(range(count)) - set(numbers):
        before = max(number for number in numbers if number < lost)
        assert lost - before <= max(1, (count - before) / 4), "the nearer the end, the closer they are"


def test_a_topic_that_was_made_again_forgets_the_old() -> None:
    history = History()
    for number in range(5):
        history.add(
            slot(number), Piece(number, "old", number * 10, number * 10 + 10, number * 11, number * 11 + 10, 10)
        )
    history.add(slot(0), Piece(0, "new", 0, 4, 55, 59, 4))
    assert history.translate(2) == 57
    assert history.translate(30) == 59


def test_a_topic_that_is_mirrored_anew_forgets_what_was_where() -> None:
    history = History()
    for number in range(20):
        history.add(slot(number), Piece(number, "id", number * 10, number * 10 + 10, number * 11, number * 11 + 10, 10))
    history.add(slot(0), Piece(0, "id", 0, 100, 7, 107, 100))
    assert history.translate(50) == 57
    assert history.translate(150) == 107


def test_records_of_the_topic_of_syncs() -> None:
    piece = Piece(12, "6f2b", 100, 120, 80, 90, 10, ((100, 0), (115, 5)))
    key, value = encode(PLACE, piece)
    assert decode(key, value) == (PLACE, slot(12), piece)
    syncs = Syncs()
    syncs.add(key, value)
    history = syncs.get(PLACE)
    assert history is not None
    assert history.last == piece
    assert syncs.topics() == {"prague.orders"}
    assert syncs.places() == [PLACE]
    assert syncs.of({PLACE})[PLACE] is history
    assert syncs.of(set()).topics() == set()
    assert syncs.get(Place("prague.orders", 4)) is None


@pytest.mark.parametrize(("key", "value"), [(b"{}", b"{}"), (b"no", b"json"), (b"[]", b"[]"), (b"1", b"{}")])
def test_what_is_no_sync(key: bytes, value: bytes) -> None:
    with pytest.raises(ValueError):
        decode(key, value)
