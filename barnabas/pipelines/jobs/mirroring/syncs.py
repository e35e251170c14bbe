"""Which offset of the source is which at the target: pieces of a partition that were mirrored, and what they tell.

Knows nothing of clusters and groups. As in MirrorMaker 2 (``OffsetSyncStore``) few pieces of the distant past are
kept, and many of late: a group that is nearly caught up is translated exactly.
"""

import bisect
import json
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

NEAR = 8
"""Of each power of two so many pieces are kept: what is d pieces back is known to d/4 pieces."""


MOST_RUNS = 100
"""A piece with more holes than that does not say where they are: its record would be more than some kilobytes."""


class Piece(NamedTuple):
    """What one transaction mirrored of a partition, from its first record to its last; ends are exclusive."""

    number: int  #: of the pieces of this partition, from 0
    topic_id: str | None  #: of the source's topic; None where brokers are too old to have any
    source_start: int
    source_end: int
    target_start: int  #: where its first record is at the target
    target_end: int  #: behind its last
    records: int  #: fewer than source offsets where compaction and transactions left holes
    runs: tuple[tuple[int, int], ...] = ()  #: where records follow one another: see `Runs`; empty if it is not known


class Runs:
    """Finds the runs of a piece: each begins at an offset behind a hole, with so many of its records before it."""

    def __init__(self) -> None:
        self.records = self.first = self.next = 0
        self._runs: list[tuple[int, int]] = []

    def add(self, offsets: npt.NDArray[np.int64]) -> None:
        """The offsets of some more records, ascending; at least one."""
        breaks = np.flatnonzero(np.diff(offsets) != 1) + 1
        if not self.records:
            self.first = int(offsets[0])
        if not self.records or offsets[0] != self.next:
            breaks = np.concatenate(([0], breaks))
        for at in breaks[: MOST_RUNS + 1 - len(self._runs)].tolist():
            self._runs.append((int(offsets[at]), self.records + at))
        self.records += len(offsets)
        self.next = int(offsets[-1]) + 1

    def found(self) -> tuple[tuple[int, int], ...]:
        """All of them, or none where there are too many."""
        return tuple(self._runs) if len(self._runs) <= MOST_RUNS else ()


class Place(NamedTuple):
    """A partition of the target."""

    topic: str
    partition: int


def slot(number: int) -> str:
    """Which older piece this one takes the place of.

    A number that 2^k divides, and 2^(k+1) does not, shares eight slots with its like; the first has its own for ever.
    """
    if number == 0:
        return "first"
    level = (number & -number).bit_length() - 1
    return f"{level}.{(number >> (level + 1)) % NEAR}"


def encode(place: Place, piece: Piece) -> tuple[bytes, bytes]:
    """Key and value of a record in the topic of syncs, which is compacted."""
    key = {"topic": place.topic, "partition": place.partition, "slot": slot(piece.number)}
    return json.dumps(key).encode(), json.dumps(piece._asdict()).encode()


def decode(key: bytes, value: bytes) -> tuple[Place, str, Piece]:
    """A record of the topic of syncs: which partition, which slot, and the piece. Raises ValueError if it is none."""
    try:
        named, told = json.loads(key), json.loads(value)
        piece = Piece(**{name: told[name] for name in Piece._fields})
        piece = piece._replace(runs=tuple((int(start), int(before)) for start, before in piece.runs))
        return Place(named["topic"], int(named["partition"])), str(named["slot"]), piece
    except (KeyError, TypeError) as problem:
        raise ValueError(f"no offset sync of a mirror: {key!r}") from problem


@dataclass
class History:
    """The pieces of one partition that are still known."""

    _by_slot: dict[str, Piece] = field(default_factory=dict)
    _sorted: list[Piece] = field(default_factory=list)

    def add(self, name: str, piece: Piece) -> None:
        """Another piece. Those that do not lie before it tell of a topic, here or there, that was deleted since."""
        self._by_slot = {
            other: known
            for other, known in self._by_slot.items()
            if known.topic_id == piece.topic_id and known.source_end <= piece.source_start
        }
        self._by_slot[name] = piece
        self._sorted = sorted(self._by_slot.values())

    @property
    def last(self) -> Piece:
        return self._sorted[-1]

    def translate(self, offset: int) -> int | None:
        """Where a group goes on at the target that would have read `offset` of the source next; None if nobody knows.

        No record at or beyond `offset` is before it, so that none is skipped; the records between are as few as is
        known. Within a piece whose holes are not known, at most ``source_end - offset`` of its records are left, which
        are its last ones.
        """
        place = bisect.bisect_right(self._sorted, offset, key=lambda piece: piece.source_start) - 1
        if place < 0:
            first = self._sorted[0]
            return first.target_start if first.number == 0 else None
        piece = self._sorted[place]
        if offset >= piece.source_end:
            return piece.target_end
        if not piece.runs:
            return piece.target_start + max(0, piece.records - (piece.source_end - offset))
        run = bisect.bisect_right(piece.runs, offset, key=lambda each: each[0]) - 1
        start, before = piece.runs[run]
        until = piece.runs[run + 1][1] if run + 1 < len(piece.runs) else piece.records
        return piece.target_start + min(before + offset - start, until)


@dataclass
class Syncs:
    """The pieces of all partitions."""

    _histories: dict[Place, History] = field(default_factory=dict)

    def add(self, key: bytes, value: bytes) -> None:
        """A record of the topic of syncs, in its order."""
        place, name, piece = decode(key, value)
        self._histories.setdefault(place, History()).add(name, piece)

    def get(self, place: Place) -> History | None:
        return self._histories.get(place)

    def __getitem__(self, place: Place) -> History:
        return self._histories[place]

    def places(self) -> list[Place]:
        """Partitions of the target that a mirror has written."""
        return sorted(self._histories)

    def topics(self) -> set[str]:
        """Topics of the target that a mirror has written."""
        return {place.topic for place in self._histories}

    def of(self, places: Collection[Place]) -> "Syncs":
        """Those of these partitions alone."""
        return Syncs({place: history for place, history in self._histories.items() if place in places})
