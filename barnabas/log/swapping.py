"""Replaces segments by the cleaned segment that was made from them, and completes a swap that a crash interrupted.

Knows nothing of how segments are cleaned. The steps are those of Apache Kafka's ``UnifiedLog.replaceSegments``:

1. A cleaned segment is beside the others as ``….log.cleaned``, ``….index.cleaned`` and so on, complete and fsynced.
   After a crash it is deleted, as long as one of its files is ``.cleaned``.
2. Its files are renamed to ``….log.swap`` and so on (:func:`stage`), and the directory is fsynced. After a crash the
   swap is completed (:func:`complete_swaps`).
3. The old segments' files are renamed to ``.deleted``, oldest first. Then the files of the new segment lose ``.swap``
   (:func:`swap_in`). The old files are deleted ``file.delete.delay.ms`` later.

Only the third step changes the log, so only it runs in the log's thread.
"""

import contextlib
import logging
from typing import TYPE_CHECKING, Final

from barnabas.config.topic import TopicConfig
from barnabas.log.files import Files
from barnabas.log.segment import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SNAPSHOT_SUFFIX,
    SUFFIXES,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
)
from barnabas.log.segments import Segments
from barnabas.records.batch import HEADER, HEADER_SIZE, LOG_OVERHEAD

if TYPE_CHECKING:
    from barnabas.log.cleaning.job import CleanedGroup

logger = logging.getLogger(__name__)

CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"
_LEFTOVERS: Final = (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX, ".tmp")
_DIGITS = 20


# ---------------------------------------------------------------- while the log is in use


def stage(files: Files, directory: str, group: "CleanedGroup") -> None:
    """Renames the files of a cleaned segment to ``.swap`` and fsyncs the directory. In any thread.

    :raises OSError: that fails
    """
    for path in _paths(directory, group):
        files.rename(path + CLEANED_SUFFIX, path + SWAP_SUFFIX)
    files.fsync_path(directory)


def discard(files: Files, directory: str, group: "CleanedGroup") -> None:
    """Deletes a cleaned or staged segment that is not to be used.

    The ``.log`` is renamed to ``.cleaned`` first: a crash in between leaves a segment that counts as incomplete.

    :raises OSError: a file cannot be renamed or deleted
    """
    paths = _paths(directory, group)
    with contextlib.suppress(FileNotFoundError):
        files.rename(paths[0] + SWAP_SUFFIX, paths[0] + CLEANED_SUFFIX)
    with contextlib.suppress(FileNotFoundError):  # the partition's directory may have been renamed
        for path in reversed(paths):
            files.delete(path + SWAP_SUFFIX)
            files.delete(path + CLEANED_SUFFIX)


def swap_in(files: Files, directory: str, segments: Segments, group: "CleanedGroup", config: TopicConfig) -> bool:
    """Replaces segments by a staged one. Returns False when the old ones are gone or one of them is active.

    In the log's thread.

    :raises OSError: a file cannot be renamed; the directory then has to be reopened
    """
    slot = segments.slot_of(group.base_offset)
    old = segments[slot : slot + len(group.replaces)]
    if [segment.base_offset for segment in old] != group.replaces or any(segment.active for segment in old):
        return False
    segments.remove_files(old, config.file_delete_delay_ms)
    for path in _paths(directory, group):
        files.rename(path + SWAP_SUFFIX, path)
    new = segments.replace(slot, len(old), group.base_offset, group.size)
    new.index_interval = config.index_interval_bytes
    new.created_ms = old[0].created_ms
    new.max_timestamp, new.max_timestamp_offset = group.max_timestamp, group.max_timestamp_offset
    return True


def _paths(directory: str, group: "CleanedGroup") -> list[str]:
    suffixes = [LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, *([TXN_INDEX_SUFFIX] if group.has_txn_index else [])]
    return [f"{directory}/{group.base_offset:020d}{suffix}" for suffix in suffixes]


# ---------------------------------------------------------------- at the next start


def complete_swaps(files: Files, directory: str) -> dict[str, int]:
    """Completes or undoes what a crash interrupted, as Apache Kafka's ``LogLoader``. Returns the files and their sizes.

    ``.deleted`` and ``.tmp`` files are deleted. A ``.cleaned`` segment is incomplete: it is deleted, and so are the
    ``.swap`` segments from its base offset on, which belong to the same pass. Any other ``.swap`` segment replaces the
    segments that it was made from.

    :raises OSError: a file cannot be renamed or deleted; the next call continues
    """
    sizes = files.sizes(directory)
    leftovers = [name for name in sizes if name.endswith(_LEFTOVERS)]
    if not leftovers:
        return sizes
    unfinished = [_base(name) for name in leftovers if name.endswith(CLEANED_SUFFIX)]
    swaps = [name for name in leftovers if name.endswith(SWAP_SUFFIX)]
    undone = [name for name in swaps if unfinished and _base(name) >= min(unfinished)]
    # The ``.swap`` files are deleted before the ``.cleaned`` files that show that they are incomplete.
    for name in [*sorted(undone, key=_is_log), *(name for name in leftovers if name not in swaps)]:
        files.delete(f"{directory}/{name}")
    swaps = [name for name in swaps if name not in undone]
    for name in filter(_is_log, swaps):
        _remove_replaced(files, directory, name, sizes)
    for name in sorted(swaps, key=_is_log, reverse=True):
        files.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP_SUFFIX)}")
    return files.sizes(directory)


def _is_log(name: str) -> bool:
    return name.endswith(LOG_SUFFIX + SWAP_SUFFIX)


def _remove_replaced(files: Files, directory: str, swap: str, sizes: dict[str, int]) -> None:
    """Deletes the segments that a complete segment replaces: from its base offset up to its end.

    Oldest first, so that a crash in between never leaves an old record without the newer one of its key.
    """
    base = _base(swap)
    end = _end_of(files, f"{directory}/{swap}", base, sizes[swap])
    logger.info("%s/%s replaces the segments from offset %d to %d", directory, swap, base, max(base, end - 1))
    for name in sorted(sizes):
        stem, _, suffix = name.partition(".")
        if len(stem) != _DIGITS or not stem.isdecimal():
            continue
        is_old = base <= int(stem) < max(end, base + 1) and f".{suffix}" in SUFFIXES
        if is_old or (f".{suffix}" == SNAPSHOT_SUFFIX and base < int(stem) < end):
            files.delete(f"{directory}/{name}")


def _end_of(files: Files, path: str, base: int, size: int) -> int:
    """Returns the offset after the last record of a segment that is not swapped in yet."""
    data, at, end = files.open(path), 0, base
    with contextlib.closing(data):
        while at + HEADER_SIZE <= size:
            base_offset, length, _, _, _, _, delta = HEADER.unpack(data.pread(HEADER_SIZE, at))[:7]
            if length < HEADER_SIZE - LOG_OVERHEAD:
                break  # recovery finds that too
            at, end = at + LOG_OVERHEAD + length, base_offset + delta + 1
    return end


def _base(name: str) -> int:
    return int(name[:_DIGITS]) if name[:_DIGITS].isdecimal() else 0
