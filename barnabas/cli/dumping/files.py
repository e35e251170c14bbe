"""The kind of a file in a log directory by its name, and the rows of each kind.

Knows nothing of the contents of the files.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from barnabas.cli.dumping import beside, logs
from barnabas.cli.dumping.rows import Row, Source
from barnabas.cli.layouts.coordinators import OF_TOPIC

#: The suffixes of files that are being deleted, compacted or swapped in; the kind is that of the name without it.
PASSING = (".deleted", ".cleaned", ".swap", ".tmp")

#: A partition directory, also while it is being moved or deleted.
_OF_PARTITION = re.compile(r"(?P<topic>.+)-\d+(\.[0-9a-f]+-(delete|future|stray))?$")

LOG_LIKE = ("log", "metadata-snapshot")

_BY_SUFFIX = {
    ".log": "log",
    ".index": "index",
    ".timeindex": "timeindex",
    ".txnindex": "txnindex",
    ".snapshot": "producer-snapshot",
    ".checkpoint": "metadata-snapshot",
}
_BY_NAME = {
    "recovery-point-offset-checkpoint": "offset-checkpoint",
    "log-start-offset-checkpoint": "offset-checkpoint",
    "replication-offset-checkpoint": "offset-checkpoint",
    "cleaner-offset-checkpoint": "offset-checkpoint",
    "leader-epoch-checkpoint": "epoch-checkpoint",
    "meta.properties": "properties",
    "partition.metadata": "properties",
    "quorum-state": "json",
    ".kafka_cleanshutdown": "json",
}
_ROWS: dict[str, Callable[[Source], Iterator[Row]]] = {
    "index": beside.offset_index,
    "timeindex": beside.time_index,
    "txnindex": beside.transaction_index,
    "producer-snapshot": beside.producer_snapshot,
    "offset-checkpoint": partial(beside.checkpoint, columns=beside.PARTITION_OFFSETS),
    "epoch-checkpoint": partial(beside.checkpoint, columns=beside.EPOCHS),
    "properties": beside.properties,
    "json": beside.json_file,
}


def kind_of(path: Path) -> str | None:
    """Returns the kind of a file; None if it is unknown, or has no contents to print, such as ``.lock``."""
    name = path.name
    while name.endswith(PASSING):
        name = name[: name.rindex(".")]
    return _BY_NAME.get(name) or _BY_SUFFIX.get(Path(name).suffix)


def files_in(directory: Path) -> Iterator[Path]:
    """Yields the files of known kinds in a directory and in its partition directories, sorted by name."""
    for path in sorted(directory.iterdir()):
        if path.is_dir():
            yield from files_in(path)
        elif kind_of(path) is not None:
            yield path


def decoder_of(path: Path) -> str | None:
    """Returns the decoder for the records of a log, by the name of its partition directory."""
    if path.name.endswith(".checkpoint"):
        return OF_TOPIC["__cluster_metadata"]
    directory = _OF_PARTITION.match(path.resolve().parent.name)
    return OF_TOPIC.get(directory["topic"]) if directory is not None else None


def rows(source: Source, kind: str, options: logs.Options) -> Iterator[Row]:
    """Yields the rows of a file of that kind."""
    return logs.rows(source, options) if kind in LOG_LIKE else _ROWS[kind](source)
