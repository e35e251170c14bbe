"""The broker's configs that the share coordinator depends on.

Knows nothing of where their values come from.
"""

from typing import NamedTuple, Self

from barnabas.config.settings import Settings


class ShareCoordinatorConfig(NamedTuple):
    """Kafka's names in snake case; times in milliseconds."""

    share_coordinator_snapshot_update_records_per_snapshot: int = 500
    share_coordinator_cold_partition_snapshot_interval_ms: int = 300_000
    share_coordinator_state_topic_prune_interval_ms: int = 300_000

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Returns the values under their dotted names."""
        return cls(**{name: settings[name.replace("_", ".")] for name in cls._fields})
