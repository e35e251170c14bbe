"""The rules for rolling: when a batch is appended to a new segment.

Knows nothing of how a segment is rolled. The rules are those of Apache Kafka's ``LogSegment.shouldRoll`` and
``LogConfig.maxSegmentMs``.
"""

from collections.abc import Iterable

from barnabas.config.topic import TopicConfig
from barnabas.log.limits import MAX_RELATIVE_OFFSET
from barnabas.log.segment import Segment
from barnabas.records.batch import RecordBatch


def rolls_after_ms(config: TopicConfig, jitter_ms: int) -> int:
    """Returns the age in ms at which a segment rolls, less the random ``jitter_ms``.

    Only closed segments are compacted, so a segment rolls before ``max.compaction.lag.ms`` has passed (KIP-354).
    """
    age_ms = min(config.segment_ms, config.max_compaction_lag_ms) if config.compacts else config.segment_ms
    return age_ms - jitter_ms


def must_roll(
    active: Segment, config: TopicConfig, roll_after_ms: int, size: int, last_offset: int, timestamp: int, now_ms: int
) -> bool:
    """Returns whether the active segment must roll before a batch of ``size`` bytes is appended.

    A segment's age is the difference of the records' timestamps since its first batch, or of the clock where records
    have no timestamps. An empty segment has no age.

    :param last_offset: of the batch, as is ``timestamp``, in ms
    """
    if active.size > config.segment_bytes - size or last_offset - active.base_offset > MAX_RELATIVE_OFFSET:
        return True
    if active.size:
        since = active.rolling_timestamp
        if since is None:
            since = active.first_timestamp()
        waited = timestamp - since if since >= 0 else now_ms - active.created_ms
        if waited > roll_after_ms:
            return True
    return active.bytes_since_index > active.index_interval and active.is_full(config.segment_index_bytes)


def fitting(
    active: Segment, config: TopicConfig, roll_after_ms: int, batches: Iterable[RecordBatch], now_ms: int
) -> int:
    """Returns how many of the batches can be appended to the active segment, all together, before it must roll."""
    count = size = 0
    for batch in batches:
        size += batch.size_in_bytes
        if must_roll(active, config, roll_after_ms, size, batch.last_offset, batch.max_timestamp, now_ms):
            break
        count += 1
    return count
