"""How cleaned segments take the place of those they were made from, and what a crash in between leaves to be done.

Knows nothing of how segments are cleaned. The steps are those of Apache Kafka's ``UnifiedLog.replaceSegments``:

1. A cleaned segment lies beside the others as ``….log.cleaned``, ``….index.cleaned`` and so on, whole and synced.
   Until all of its files are ``.swap``, it does not count.
2. Its files become ``….log.swap`` and so on (:func:`stage`), and the directory is synced: from now on it counts.
3. The old segments' files become ``.deleted``, oldest first, and then those of the new one lose ``.swap``
   (:func:`swap_in`). They are deleted ``file.delete.delay.ms`` later.

Only the third step is seen by who uses the log, and it alone has to be taken in the log's thread. A start does what is
left of it (:func:`finish`).
"""

import contextlib
import logging
from typing import TYPE_CHECKING, Final

from barnabas.log.cleaning.job import CleanedGroup
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
from barnabas.records.batch import HEADER, HEADER_SIZE, LOG_OVERHEAD

if TYPE_CHECKING:
    from barnabas.log.partition_log import PartitionLog

logger = logging.getLogger(__name__)

CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"
_LEFTOVERS: Final = (DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX, ".tmp")
_DIGITS = 20


# ---------------------------------------------------------------- while the log is in use


def stage(files: Files, directory: str, group: CleanedGroup) -> None:
    """Let a cleaned segment count as finished, whatever happens from now on. In any thread; raises OSError."""
    for path in _paths(directory, group):
        files.rename(path + CLEANED_SUFFIX, path + SWAP_SUFFIX)
    files.fsync_path(directory)


def discard(files: Files, directory: str, group: CleanedGroup) -> None:
    """Undo :func:`stage`, or what the cleaner did: nobody wants that segment any more. Raises OSError.

    The ``.log`` is first to be called unfinished again, so that a crash leaves nothing that seems to be whole.
    """
    paths = _paths(directory, group)
    with contextlib.suppress(FileNotFoundError):
        files.rename(paths[0] + SWAP_SUFFIX, paths[0] + CLEANED_SUFFIX)
    with contextlib.suppress(FileNotFoundError):  # the directory itself may be gone
        for path in reversed(paths):
            files.delete(path + SWAP_SUFFIX)
            files.delete(path + CLEANED_SUFFIX)


def swap_in(log: "PartitionLog", files: Files, group: CleanedGroup) -> bool:
    """Let a segment that was staged take its place in the log; false when the old ones are not there any more.

    In the log's thread. Raises OSError: then the directory has to be opened anew.
    """
    segments = log.segments
    slot = segments.slot_of(group.base_offset)
    old = segments[slot : slot + len(group.replaces)]
    if [segment.base_offset for segment in old] != group.replaces or any(segment.active for segment in old):
        return False
    segments.set_aside(old, log.config.file_delete_delay_ms)
    for path in _paths(log.directory, group):
        files.rename(path + SWAP_SUFFIX, path)
    new = segments.replace(slot, len(old), group.base_offset, group.size)
    new.index_interval = log.config.index_interval_bytes
    new.created_ms = old[0].created_ms
    new.max_timestamp, new.max_timestamp_offset = group.max_timestamp, group.max_timestamp_offset
    for gone in old[1:]:
        log.producers.remove_snapshots(gone.base_offset, gone.base_offset)
    return True


def _paths(directory: str, group: CleanedGroup) -> list[str]:
    suffixes = [LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, *([TXN_INDEX_SUFFIX] if group.has_txn_index else [])]
    return [f"{directory}/{group.base_offset:020d}{suffix}" for suffix in suffixes]


# ---------------------------------------------------------------- at the next start


def finish(files: Files, directory: str) -> dict[str, int]:
    """Do what a crash left half done, as Apache Kafka's ``LogLoader``; gives the files that are left, and their sizes.

    ``.deleted`` and ``.tmp`` files go. A ``.cleaned`` segment was not finished: it goes, and so do ``.swap`` segments
    from its base offset on, which were made together with it. Any other ``.swap`` segment takes the place of those
    that it was made from. Raises OSError; what was done then needs not be done again.
    """
    sizes = files.sizes(directory)
    leftovers = [name for name in sizes if name.endswith(_LEFTOVERS)]
    if not leftovers:
        return sizes
    unfinished = [_base(name) for name in leftovers if name.endswith(CLEANED_SUFFIX)]
    swaps = [name for name in leftovers if name.endswith(SWAP_SUFFIX)]
    undone = [name for name in swaps if unfinished and _base(name) >= min(unfinished)]
    # What is undone goes while there still is something to say that it has to be.
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
    """Delete what a finished segment was made from: all files of its own base offset, and of those up to its end.

    Oldest first, so that a record never outlives the one that put an end to it.
    """
    base = _base(swap)
    end = _end_of(files, f"{directory}/{swap}", base, sizes[swap])
    logger.info("%s/%s takes the place of the segments from %d to %d", directory, swap, base, max(base, end - 1))
    for name in sorted(sizes):
        stem, _, suffix = name.partition(".")
        if len(stem) != _DIGITS or not stem.isdecimal():
            continue
        is_old = base <= int(stem) < max(end, base + 1) and f".{suffix}" in SUFFIXES
        if is_old or (f".{suffix}" == SNAPSHOT_SUFFIX and base < int(stem) < end):
            files.delete(f"{directory}/{name}")


def _end_of(files: Files, path: str, base: int, size: int) -> int:
    """The offset after the last record of a segment that is not in place yet."""
    data, at, end = files.open(path), 0, base
    with contextlib.closing(data):
        while at + HEADER_SIZE <= size:
            base_offset, length, _, _, _, _, delta = HEADER.unpack(data.pread(HEADER_SIZE, at))[:7]
            if length < HEADER_SIZE - LOG_OVERHEAD:
                break  # recovery will find that too
            at, end = at + LOG_OVERHEAD + length, base_offset + delta + 1
    return end


def _base(name: str) -> int:
    return int(name[:_DIGITS]) if name[:_DIGITS].isdecimal() else 0
