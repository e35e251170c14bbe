"""When a batch goes into a new segment.

Knows nothing of how segments are begun or ended. The rules are those of Apache Kafka's ``LogSegment.shouldRoll``.
"""

from barnabas.config.topic import TopicConfig
from barnabas.log.segment import MAX_SIZE, Segment


def must_roll(
    active: Segment, config: TopicConfig, jitter_ms: int, size: int, last_offset: int, timestamp: int, now_ms: int
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
        if waited > config.segment_ms - jitter_ms:
            return True
    return active.bytes_since_index > active.index_interval and active.is_full(config.segment_index_bytes)
