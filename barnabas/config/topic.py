"""One topic's settings, parsed, in the units of the log and the partition.

Knows nothing of the source of a value (the topic, the broker, Kafka's default), which ``BrokerConfig.topic`` selects.
"""

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.integers import MAX_LONG


class TopicConfig(NamedTuple):
    """The configs of a topic. The defaults are Apache Kafka 4.3's; sizes are in bytes, times in milliseconds.

    Names are those of Kafka's topic configs (``TopicConfig.java``) with ``_`` for ``.``.
    """

    segment_bytes: int = 1 << 30
    segment_ms: int = 604_800_000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    retention_ms: int = 604_800_000
    retention_bytes: int = -1
    max_message_bytes: int = 1_048_588
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    cleanup_policy: frozenset[str] = frozenset({"delete"})
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = MAX_LONG
    message_timestamp_after_max_ms: int = 3_600_000
    flush_messages: int = MAX_LONG
    flush_ms: int = MAX_LONG
    file_delete_delay_ms: int = 60_000
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    preallocate: bool = False
    delete_retention_ms: int = 86_400_000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = MAX_LONG
    min_cleanable_dirty_ratio: float = 0.5
    leader_replication_throttled_replicas: Sequence[str] = ()
    follower_replication_throttled_replicas: Sequence[str] = ()
    barnabas_value_schema_validation: bool = False

    @property
    def compacts(self) -> bool:
        """Whether the log is compacted."""
        return "compact" in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        """Whether ``retention_ms`` and ``retention_bytes`` delete old segments."""
        return "delete" in self.cleanup_policy
