"""Which logs have something to compact, how much of it, and up to where.

Decides, and does nothing. The rules are those of Apache Kafka's ``LogCleanerManager`` and ``LogToClean``.
"""

import logging
from bisect import bisect_right
from typing import NamedTuple

from barnabas.log.cleaning.job import CleaningJob, Producer, SegmentFile
from barnabas.log.partition_log import PartitionLog
from barnabas.log.segment import Segment

logger = logging.getLogger(__name__)


class LogToClean(NamedTuple):
    """A log, and what of it is clean, dirty, or not to be touched yet."""

    log: PartitionLog
    first_dirty_offset: int  #: below it no two records have the same key
    end_offset: int  #: nothing at or after it may be cleaned; where a segment begins
    clean_bytes: int
    cleanable_bytes: int
    is_overdue: bool  #: whether ``max.compaction.lag.ms`` has passed for what is dirty

    @property
    def ratio(self) -> float:
        """The dirty share of what is clean or may be cleaned."""
        return self.cleanable_bytes / max(self.clean_bytes + self.cleanable_bytes, 1)

    @property
    def is_due(self) -> bool:
        """Whether it is time (KIP-58, KIP-354)."""
        return self.cleanable_bytes > 0 and (self.is_overdue or self.ratio > self.log.config.min_cleanable_dirty_ratio)


def examine(log: PartitionLog, first_dirty: int, now_ms: int) -> LogToClean | None:
    """What there is to clean in ``log``, of which everything below ``first_dirty`` was cleaned; None if nothing is.

    Raises OSError, CorruptMessage where a segment has to be looked into.
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
    """Where cleaning goes on: at the checkpoint, unless that is not, or no longer, in the log."""
    start = log.log_start_offset
    if checkpoint is None or checkpoint < start:
        if checkpoint is not None and not log.config.deletes:
            logger.warning("%s was cleaned up to %d, and starts at %d: cleaning starts there", log, checkpoint, start)
        return start
    if checkpoint > log.log_end_offset:
        logger.warning("%s was cleaned up to %d, and ends at %d: it is dirty", log, checkpoint, log.log_end_offset)
        return start
    return checkpoint


def first_uncleanable_offset(log: PartitionLog, dirty: list[Segment], now_ms: int) -> int:
    """What is not committed or part of an open transaction stays, the active segment, and what is too young.

    So does what is not on the disk: a power cut could take it, and what has gone for its sake is not there any more.
    (Apache Kafka does not look at that.)
    """
    end = min(log.last_stable_offset, log.segments.active.base_offset, log.recovery_point)
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in dirty:
            if segment.age_timestamp() > now_ms - lag_ms:
                return min(end, segment.base_offset)
    return end


def is_overdue(log: PartitionLog, dirty: list[Segment], now_ms: int) -> bool:
    """Whether some dirty segment began longer ago than ``max.compaction.lag.ms``."""
    latest = now_ms - log.config.max_compaction_lag_ms
    return latest > 0 and any(segment.size and 0 < segment.first_timestamp() < latest for segment in dirty)


def _slot_at(log: PartitionLog, offset: int) -> int:
    """The number of the segment that ``offset`` is, or would be, in."""
    return max(bisect_right(log.segments, offset, key=_base_offset) - 1, 0)


def _base_offset(segment: Segment) -> int:
    return segment.base_offset


def job_of(
    to_clean: LogToClean, now_ms: int, *, buffer_bytes: int, load: float, bytes_per_second: float
) -> CleaningJob:
    """What a cleaner needs to know to do it; ``buffer_bytes`` and ``bytes_per_second`` are this cleaner's share.

    Raises OSError.
    """
    from barnabas.log.cleaning.offset_map import entries_for  # a broker without compacted topics never needs it

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
