"""Offset syncs: the pieces of a partition that were mirrored, by which source offsets are translated to the target's.

As in MirrorMaker 2 (``OffsetSyncStore``), many recent pieces are kept and few old ones, so the offset of a group that
has nearly caught up is translated exactly. Knows nothing of clusters and groups.
"""

import bisect
import json
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

NEAR = 8
"""The number of pieces kept per power of two: at a distance of d pieces the gaps are at most about d/4 pieces."""


MOST_RUNS = 100
"""A piece with more runs omits them: its record would exceed a few kilobytes."""


class Piece(NamedTuple):
    """The records of a partition that one transaction mirrored. Ends are exclusive."""

    number: int  #: counts the pieces of this partition from 0
    topic_id: str | None  #: of the source's topic; None if the brokers are too old for topic ids
    source_start: int
    source_end: int
    target_start: int  #: the offset of its first record in the target
    target_end: int  #: the offset after its last record
    records: int  #: fewer than source offsets if compaction or transactions left gaps
    runs: tuple[tuple[int, int], ...] = ()  #: of consecutive offsets, see `Runs`; empty if unknown


class Runs:
    """Collects a piece's runs of consecutive offsets: the first offset, and the number of records before the run."""

    def __init__(self) -> None:
        self.records = self.first = self.next = 0
        self._runs: list[tuple[int, int]] = []

    def add(self, offsets: npt.NDArray[np.int64]) -> None:
        """Adds the offsets of further records.

        :param offsets: ascending, and at least one.
        """
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
        """Returns all runs, or none if there are more than MOST_RUNS."""
        return tuple(self._runs) if len(self._runs) <= MOST_RUNS else ()


class Place(NamedTuple):
    """A partition of the target."""

    topic: str
    partition: int


def slot(number: int) -> str:
    """Returns the slot of a piece; a piece replaces the older one in its slot.

    Numbers that are divisible by 2^k but not by 2^(k+1) share eight slots. The first piece has a slot of its own, and
    is never replaced.
    """
    if number == 0:
        return "first"
    level = (number & -number).bit_length() - 1
    return f"{level}.{(number >> (level + 1)) % NEAR}"


def encode(place: Place, piece: Piece) -> tuple[bytes, bytes]:
    """Returns key and value of a piece's record in the offset syncs topic, which is compacted."""
    key = {"topic": place.topic, "partition": place.partition, "slot": slot(piece.number)}
    return json.dumps(key).encode(), json.dumps(piece._asdict()).encode()


def decode(key: bytes, value: bytes) -> tuple[Place, str, Piece]:
    """Returns the partition, the slot and the piece of a record in the offset syncs topic.

    :raises ValueError: it is not an offset sync.
    """
    try:
        named, fields = json.loads(key), json.loads(value)
        piece = Piece(**{name: fields[name] for name in Piece._fields})
        piece = piece._replace(runs=tuple((int(start), int(before)) for start, before in piece.runs))
        return Place(named["topic"], int(named["partition"])), str(named["slot"]), piece
    except (KeyError, TypeError) as problem:
        raise ValueError(f"no offset sync of a mirror: {key!r}") from problem


@dataclass
class History:
    """The pieces of one partition that were not replaced."""

    _by_slot: dict[str, Piece] = field(default_factory=dict)
    _sorted: list[Piece] = field(default_factory=list)

    def add(self, name: str, piece: Piece) -> None:
        """Adds a piece. Drops pieces that do not precede it: they belong to a topic that was deleted since."""
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
        """Returns the target offset for a group that has committed `offset` in the source, or None if it is unknown.

        The group skips no record from `offset` on, and reads as few earlier records again as the known pieces allow.
        In a piece with unknown gaps, at most its last ``source_end - offset`` records are still to be read.
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
        """Adds a record of the offset syncs topic. Records must be added in the order of their offsets."""
        place, name, piece = decode(key, value)
        self._histories.setdefault(place, History()).add(name, piece)

    def get(self, place: Place) -> History | None:
        return self._histories.get(place)

    def __getitem__(self, place: Place) -> History:
        return self._histories[place]

    def places(self) -> list[Place]:
        """Returns the partitions of the target that the mirror has written to."""
        return sorted(self._histories)

    def topics(self) -> set[str]:
        """Returns the topics of the target that the mirror has written to."""
        return {place.topic for place in self._histories}

    def of(self, places: Collection[Place]) -> "Syncs":
        """Returns the pieces of these partitions only."""
        return Syncs({place: history for place, history in self._histories.items() if place in places})
