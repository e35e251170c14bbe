"""Decides which held-back parts are merged into one visible file, and when.

Knows nothing of files: takes parts with their sizes and ages, returns groups of them.
"""

import itertools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from barnabas.pipelines.jobs.exporting.layout import Part


class Limits(NamedTuple):
    """When a file is made visible."""

    target_bytes: int  #: as soon as it has this size
    wait_seconds: float  #: or as soon as its oldest part has been held back this long


def due(parts: Iterable[Part], limits: Limits, *, now: float, all_of_them: bool = False) -> list[list[Part]]:
    """Returns the groups of parts that are to become visible, each as one file, in the order of their batches.

    Parts that wait for more are in no group. A group is complete when it reaches the target size, or where the schema
    changes, since parts of two schemas are not merged. A part that has the target size by itself is a group of its own.
    """
    ordered = sorted(parts, key=lambda part: (part.leaf, part.batch, part.number))
    return [
        group
        for _, leaf in itertools.groupby(ordered, key=lambda part: part.leaf)
        for group, is_complete in _grouped(leaf, limits.target_bytes)
        if is_complete or all_of_them or now - min(part.since for part in group) >= limits.wait_seconds
    ]


def _grouped(parts: Iterable[Part], target_bytes: int) -> Iterator[tuple[list[Part], bool]]:
    """Yields the parts of one directory in groups, and whether the group is complete."""
    group: list[Part] = []
    size = 0
    for part in parts:
        if part.size >= target_bytes:
            yield [part], True
            continue
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
