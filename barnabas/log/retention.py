"""Which of a log's segments are past their time.

Knows nothing of how they are deleted. The rules are those of Apache Kafka's ``UnifiedLog.deleteOldSegments``.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.log.partition_log import PartitionLog


def deletable(log: "PartitionLog", now_ms: int) -> int:
    """How many of the oldest segments may go: all of them only when records are in the last.

    A segment goes when all of it is committed, and it lies before the log start offset or, with
    ``cleanup.policy=delete``, its latest record is older than ``retention.ms`` or the log without it still has
    ``retention.bytes``.
    """
    config, segments = log.config, log.segments
    deletes = "delete" in config.cleanup_policy
    excess = log.size - config.retention_bytes if deletes and config.retention_bytes >= 0 else -1
    count = 0
    for slot, segment in enumerate(segments):
        is_active = slot + 1 == len(segments)
        end = log.log_end_offset if is_active else segments[slot + 1].base_offset
        if end > log.high_watermark or (is_active and segment.size == 0):
            break
        is_before_start = end <= log.log_start_offset and not is_active
        is_too_much = excess >= segment.size
        is_too_old = deletes and config.retention_ms >= 0 and now_ms - segment.age_timestamp() > config.retention_ms
        if not (is_before_start or is_too_much or is_too_old):
            break
        excess -= segment.size
        count += 1
    return count
