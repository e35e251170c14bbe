"""The broker's configs that the group coordinator depends on.

Knows nothing of where their values come from.
"""

from typing import NamedTuple, Self

from barnabas.config.settings import Settings

MINUTE_MS = 60_000


class GroupConfig(NamedTuple):
    """Kafka's names in snake case; times in milliseconds except for ``offsets_retention_minutes``."""

    group_initial_rebalance_delay_ms: int = 3000
    group_min_session_timeout_ms: int = 6000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = (1 << 31) - 1
    offset_metadata_max_bytes: int = 4096
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Returns the values under their dotted names."""
        return cls(**{name: settings[name.replace("_", ".")] for name in cls._fields})

    @property
    def offsets_retention_ms(self) -> int:
        return self.offsets_retention_minutes * MINUTE_MS
