"""Notes in a directory which exports write to it, so that no topic is written twice or in two formats.

Knows nothing of Spark.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from barnabas.pipelines.jobs.exporting.files import Files
from barnabas.pipelines.jobs.exporting.layout import HOME, Layout

NOTE = "export.json"


class Claim(NamedTuple):
    """What an export writes to a directory."""

    format: str
    directories: Sequence[str]  #: the columns that name directories
    partitions: Mapping[str, int]  #: the number of partitions of each topic


def claim(files: Files, layout: Layout, wanted: Claim) -> None:
    """Notes what this export writes; replaces its earlier note.

    :raises ValueError: another query exports one of its topics to this directory, or the directory holds an export
        with other directories or of another format.
    """
    for home, found in claims(files):
        if (found.format, [*found.directories]) != (wanted.format, [*wanted.directories]):
            raise ValueError(
                f"{files.uri('')} holds an export in {found.format} by {_listed(found.directories)}, but this one is "
                f"in {wanted.format} by {_listed(wanted.directories)} (with several topics, each has its own "
                "directory): export to another directory"
            )
        both = sorted(set(found.partitions) & set(wanted.partitions))
        if home != layout.home and both:
            raise ValueError(
                f"{files.uri('')} holds an export of {', '.join(both)} with another checkpoint ({home}): continue with "
                "that checkpoint, or export to another directory"
            )
    files.write(f"{layout.home}/{NOTE}", json.dumps(wanted._asdict(), indent=1))


def claims(files: Files) -> Iterator[tuple[str, Claim]]:
    """Yields the notes in this directory, each with the directory that holds the export's state."""
    for entry in files.list(HOME):
        home, _, name = entry.path.rpartition("/")
        if name == NOTE:
            note: dict[str, Any] = json.loads(files.read(entry.path) or "{}")
            yield home, Claim(**note)


def noted_partitions(files: Files) -> dict[str, int]:
    """Returns the number of partitions of each topic that was exported to this directory."""
    noted: dict[str, int] = {}
    for _, found in claims(files):
        for topic, count in found.partitions.items():
            noted[topic] = max(count, noted.get(topic, 0))
    return noted


def _listed(directories: Sequence[str]) -> str:
    return ", ".join(directories) or "no directories"
