"""Which of the small files of many micro-batches become one.

Knows nothing of files: parts with their sizes and ages go in, groups of them come out.
"""

import itertools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from barnabas.pipelines.jobs.exporting.layout import Part


class Limits(NamedTuple):
    """When a file is made visible."""

    target_bytes: int  #: as soon as it is so large
    wait_seconds: float  #: or its oldest part has been held back for so long


def due(parts: Iterable[Part], limits: Limits, *, now: float, all_of_them: bool = False) -> list[list[Part]]:
    """Groups of parts, each to be one file, in the order of their batches; what waits for more is in none.

    A group is closed once it has reached the target, and where the schema changes: what comes after cannot join it.
    """
    ordered = sorted(parts, key=lambda part: (part.leaf, part.batch, part.number))
    return [
        group
        for _, leaf in itertools.groupby(ordered, key=lambda part: part.leaf)
        for group, is_closed in _grouped(leaf, limits.target_bytes)
        if is_closed or all_of_them or now - min(part.since for part in group) >= limits.wait_seconds
    ]


def _grouped(parts: Iterable[Part], target_bytes: int) -> Iterator[tuple[list[Part], bool]]:
    """The parts of one directory in groups, and whether nothing more can join the group."""
    group: list[Part] = []
    size = 0
    for part in parts:
        if group and part.schema != group[0].schema:
            yield group, True
            group, size = [], 0
        group.append(part)
        size += part.size
        if size >= target_bytes:
            yield group, True
            group, size = [], 0
    if group:
        yield group, False
