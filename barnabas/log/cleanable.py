"""Finds out what can be cleaned in a log, and whether cleaning is due.

Knows nothing of how logs are cleaned. The rules are those of Apache Kafka's ``LogCleanerManager`` and ``LogToClean``.
"""

import logging
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from barnabas.log.partition_log import PartitionLog
from barnabas.log.segment import Segment

if TYPE_CHECKING:
    from barnabas.log.cleaning.job import CleaningJob

logger = logging.getLogger(__name__)


class LogToClean(NamedTuple):
    """The clean part of a log, and the dirty part that may be cleaned now."""

    log: PartitionLog
    first_dirty_offset: int  #: below it no two records have the same key
    end_offset: int  #: the end of the cleanable part, where a segment begins
    clean_bytes: int
    cleanable_bytes: int
    is_overdue: bool  #: whether ``max.compaction.lag.ms`` has passed for a dirty segment

    @property
    def ratio(self) -> float:
        """The cleanable ratio: the dirty share of the clean and the cleanable part."""
        return self.cleanable_bytes / max(self.clean_bytes + self.cleanable_bytes, 1)

    @property
    def is_due(self) -> bool:
        """Whether cleaning is due (KIP-58, KIP-354)."""
        return self.cleanable_bytes > 0 and (self.is_overdue or self.ratio > self.log.config.min_cleanable_dirty_ratio)


def examine(log: PartitionLog, first_dirty: int, now_ms: int) -> LogToClean | None:
    """Returns what can be cleaned in ``log``, which is clean below ``first_dirty``.

    Returns None if only the active segment is dirty.

    :raises OSError: a segment cannot be read
    :raises CorruptMessage: a segment is corrupt
    """
    segments = log.segments
    if first_dirty >= segments.active.base_offset:
        return None
    dirty = segments[_slot_at(log, first_dirty) : -1]
    end_slot = _slot_at(log, first_uncleanable_offset(log, dirty, now_ms))
    end = segments[end_slot].base_offset
    clean_bytes = sum(segment.size for segment in segments if segment.base_offset < first_dirty)
    cleanable = segments[_slot_at(log, min(first_dirty, end)) : end_slot]
    cleanable_bytes = sum(segment.size for segment in cleanable)
    return LogToClean(log, first_dirty, end, clean_bytes, cleanable_bytes, is_overdue(log, dirty, now_ms))


def first_dirty_offset(log: PartitionLog, checkpoint: int | None) -> int:
    """Returns where cleaning continues: at the checkpoint if it is in the log, else at the log start offset."""
    start = log.log_start_offset
    if checkpoint is None or checkpoint < start:
        if checkpoint is not None and not log.config.deletes:
            logger.warning("Cleaner checkpoint %d of %s is below the log start offset %d", checkpoint, log, start)
        return start
    if checkpoint > log.log_end_offset:
        end = log.log_end_offset
        logger.warning("Cleaner checkpoint %d of %s is above the log end offset %d", checkpoint, log, end)
        return start
    return checkpoint


def first_uncleanable_offset(log: PartitionLog, dirty: list[Segment], now_ms: int) -> int:
    """Returns the offset from which on nothing may be cleaned.

    It is the lowest of: the last stable offset; the base offset of the active segment; the base offset of the first
    segment with a record younger than ``min.compaction.lag.ms``; the recovery point. Apache Kafka does not use the
    recovery point: there a power cut can take the newer record of a key after the older one was removed.
    """
    end = min(log.last_stable_offset, log.segments.active.base_offset, log.recovery_point)
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in dirty:
            if segment.age_timestamp() > now_ms - lag_ms:
                return min(end, segment.base_offset)
    return end


def is_overdue(log: PartitionLog, dirty: list[Segment], now_ms: int) -> bool:
    """Returns whether the first record of a dirty segment is older than ``max.compaction.lag.ms``."""
    latest = now_ms - log.config.max_compaction_lag_ms
    return latest > 0 and any(segment.size and 0 < segment.first_timestamp() < latest for segment in dirty)


def _slot_at(log: PartitionLog, offset: int) -> int:
    """Returns the number of the segment that holds ``offset``."""
    return max(bisect_right(log.segments, offset, key=_base_offset) - 1, 0)


def _base_offset(segment: Segment) -> int:
    return segment.base_offset


def job_of(
    to_clean: LogToClean, now_ms: int, *, buffer_bytes: int, load: float, bytes_per_second: float
) -> "CleaningJob":
    """Returns the job for a cleaner. ``buffer_bytes`` and ``bytes_per_second`` are the share of one cleaner.

    :raises OSError: the modification time of a segment cannot be read
    """
    # Not needed by a broker without compacted topics.
    from barnabas.log.cleaning.job import CleaningJob, Producer, SegmentFile
    from barnabas.log.cleaning.offset_map import entries_for

    log = to_clean.log
    config = log.config
    segments = log.segments[: _slot_at(log, to_clean.end_offset)]
    return CleaningJob(
        directory=log.directory,
        segments=[SegmentFile(segment.base_offset, segment.size, segment.modified_ms()) for segment in segments],
        first_dirty_offset=to_clean.first_dirty_offset,
        end_offset=to_clean.end_offset,
        now_ms=now_ms,
        delete_retention_ms=config.delete_retention_ms,
        segment_bytes=config.segment_bytes,
        segment_index_bytes=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
        map_entries=entries_for(buffer_bytes, load),
        max_bytes_per_second=bytes_per_second,
        producers={
            entry.producer_id: Producer(entry.producer_epoch, entry.last_offset) for entry in log.active_producers()
        },
    )
