"""When a batch goes into a new segment.

Knows nothing of how segments are begun or ended. The rules are those of Apache Kafka's ``LogSegment.shouldRoll`` and
``LogConfig.maxSegmentMs``.
"""

from barnabas.config.topic import TopicConfig
from barnabas.log.segment import MAX_SIZE, Segment


def rolls_after_ms(config: TopicConfig, jitter_ms: int) -> int:
    """How old a segment gets, ``jitter_ms`` being the random part that it is spared.

    Only closed segments are compacted: what must be compacted in time (KIP-354) must be in one by then.
    """
    age_ms = min(config.segment_ms, config.max_compaction_lag_ms) if config.compacts else config.segment_ms
    return age_ms - jitter_ms


def must_roll(
    active: Segment, config: TopicConfig, roll_after_ms: int, size: int, last_offset: int, timestamp: int, now_ms: int
) -> bool:
    """Whether a batch of ``size`` bytes, up to that offset and timestamp (ms), cannot go into ``active`` any more.

    Time is that of the records, counted from the segment's first batch; the clock's where records have none. An empty
    segment does not grow old.
    """
    if active.size > config.segment_bytes - size or last_offset - active.base_offset > MAX_SIZE:
        return True
    if active.size:
        since = active.rolling_timestamp
        if since is None:
            since = active.first_timestamp()
        waited = timestamp - since if since >= 0 else now_ms - active.created_ms
        if waited > roll_after_ms:
            return True
    return active.bytes_since_index > active.index_interval and active.is_full(config.segment_index_bytes)
