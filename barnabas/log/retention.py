"""Retention: which of a log's segments may be deleted.

Knows nothing of how they are deleted. The rules are those of Apache Kafka's ``UnifiedLog.deleteOldSegments``.
"""

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.config.topic import TopicConfig
from barnabas.log.segment import Segment


class LogOffsets(NamedTuple):
    """The offsets of a log by which its segments are judged."""

    log_start_offset: int
    high_watermark: int
    log_end_offset: int


def deletable(segments: Sequence[Segment], offsets: LogOffsets, config: TopicConfig, now_ms: int) -> int:
    """Returns how many of the oldest segments may be deleted; all of them only when the active one has records.

    A segment may be deleted when all its records are committed and one of these holds: it is before the log start
    offset; its latest record is older than ``retention.ms``; the log has ``retention.bytes`` without it. The latter two
    apply with ``cleanup.policy=delete``.

    :raises OSError: the timestamp of a segment cannot be read
    """
    deletes = "delete" in config.cleanup_policy
    size = sum(segment.size for segment in segments)
    excess = size - config.retention_bytes if deletes and config.retention_bytes >= 0 else -1
    count = 0
    for slot, segment in enumerate(segments):
        is_active = slot + 1 == len(segments)
        end = offsets.log_end_offset if is_active else segments[slot + 1].base_offset
        if end > offsets.high_watermark or (is_active and segment.size == 0):
            break
        is_before_start = end <= offsets.log_start_offset and not is_active
        is_too_much = excess >= segment.size
        is_too_old = deletes and config.retention_ms >= 0 and now_ms - segment.age_timestamp() > config.retention_ms
        if not (is_before_start or is_too_much or is_too_old):
            break
        excess -= segment.size
        count += 1
    return count
