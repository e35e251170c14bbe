"""Who exports what to a directory: noted there, so that nothing gets there twice, or in two ways.

Knows nothing of Spark.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from barnabas.pipelines.jobs.exporting.files import Files
from barnabas.pipelines.jobs.exporting.layout import HOME, Layout

NOTE = "export.json"


class Claim(NamedTuple):
    """What an export does."""

    format: str
    directories: Sequence[str]  #: the columns that are directories
    partitions: Mapping[str, int]  #: how many each topic has


def claim(files: Files, layout: Layout, wanted: Claim) -> None:
    """Note what this export does; it may have done so before.

    Raises:
        ValueError: one of its topics is exported there by another query, and would be twice there; or files are there
            already that lie in other directories, or are of another format.
    """
    for home, found in claims(files):
        if (found.format, [*found.directories]) != (wanted.format, [*wanted.directories]):
            raise ValueError(
                f"{files.uri('')} holds an export of {found.format} by {_said(found.directories)}, but this one is of "
                f"{wanted.format} by {_said(wanted.directories)} (several topics have directories of their own): "
                "export to another place"
            )
        both = sorted(set(found.partitions) & set(wanted.partitions))
        if home != layout.home and both:
            raise ValueError(
                f"{files.uri('')} holds an export of {', '.join(both)} by another checkpoint ({home}): go on with that "
                "checkpoint, or export to another place"
            )
    files.write(f"{layout.home}/{NOTE}", json.dumps(wanted._asdict(), indent=1))


def claims(files: Files) -> Iterator[tuple[str, Claim]]:
    """What is noted in this directory, each with where the export keeps what it must know."""
    for entry in files.list(HOME):
        home, _, name = entry.path.rpartition("/")
        if name == NOTE:
            told: dict[str, Any] = json.loads(files.read(entry.path) or "{}")
            yield home, Claim(**told)


def noted_partitions(files: Files) -> dict[str, int]:
    """How many partitions the topics had that were exported there."""
    noted: dict[str, int] = {}
    for _, found in claims(files):
        for topic, count in found.partitions.items():
            noted[topic] = max(count, noted.get(topic, 0))
    return noted


def _said(directories: Sequence[str]) -> str:
    return ", ".join(directories) or "no directories"
