"""Checkpoint files: a version, a count, and that many lines of text (Apache Kafka's ``CheckpointFile``).

Knows nothing of what the numbers mean.

Four files in each log directory hold an offset for each partition: ``recovery-point-offset-checkpoint`` (everything
below is fsynced), ``log-start-offset-checkpoint`` (the log start offset, where DeleteRecords has moved it),
``replication-offset-checkpoint`` (the high watermark) and ``cleaner-offset-checkpoint`` (the first dirty offset)::

    0
    2
    orders 0 815
    orders 1 47
"""

from collections.abc import Iterable, Mapping, Sequence

from barnabas.log.files import Files

VERSION = 0

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"

TopicPartition = tuple[str, int]


class CorruptCheckpoint(Exception):
    """The file is not a valid checkpoint."""


def read_entries(files: Files, path: str, *, columns: int) -> list[list[str]]:
    """Returns the lines of a checkpoint file, split into words.

    :raises FileNotFoundError: there is no such file
    :raises CorruptCheckpoint: the version, the count or the number of words in a line is wrong, or it is cut off
    """
    try:
        text = files.read(path).decode()
        lines = text.splitlines()
        version, count, entries = int(lines[0]), int(lines[1]), [line.split() for line in lines[2:]]
    except (ValueError, IndexError):
        raise CorruptCheckpoint(f"{path}: no version and count") from None
    if version != VERSION:
        raise CorruptCheckpoint(f"{path}: version {version}, not {VERSION}")
    if not text.endswith("\n"):  # a power cut may leave a part of the last number, which is a number, too
        raise CorruptCheckpoint(f"{path}: the last line has no end")
    if count != len(entries):
        raise CorruptCheckpoint(f"{path}: {len(entries)} entries, and a count of {count}")
    for entry in entries:
        if len(entry) != columns or not all(_is_integer(word) for word in entry[columns - 2 :]):
            raise CorruptCheckpoint(f"{path}: malformed line {' '.join(entry)!r}")
    return entries


def _is_integer(word: str) -> bool:
    return word.isascii() and word.removeprefix("-").isdigit()


def write_entries(files: Files, path: str, entries: Sequence[Iterable[object]], *, sync: bool) -> None:
    """Replaces a checkpoint file atomically."""
    lines = [str(VERSION), str(len(entries)), *(" ".join(map(str, entry)) for entry in entries)]
    files.write_atomically(path, "".join(f"{line}\n" for line in lines).encode(), sync=sync)


def read_offsets(files: Files, path: str) -> dict[TopicPartition, int]:
    """Returns the offset of each partition; nothing when the file is missing or empty.

    :raises CorruptCheckpoint: the file is not a valid checkpoint
    """
    try:
        if not files.read(path):
            return {}
        entries = read_entries(files, path, columns=3)
    except FileNotFoundError:
        return {}
    return {(topic, int(partition)): int(offset) for topic, partition, offset in entries}


def write_offsets(files: Files, path: str, offsets: Mapping[TopicPartition, int], *, sync: bool = True) -> None:
    """Replaces a checkpoint file that holds an offset for each partition."""
    write_entries(
        files, path, [(topic, partition, offset) for (topic, partition), offset in offsets.items()], sync=sync
    )
