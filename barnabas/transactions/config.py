"""The broker's configs that the transaction coordinator uses.

Knows nothing of where they come from but their names and Kafka's defaults.
"""

from typing import NamedTuple, Self

from barnabas.config.settings import Settings


class TransactionConfig(NamedTuple):
    """Kafka's names with underscores; times in milliseconds."""

    transaction_max_timeout_ms: int = 900_000
    transactional_id_expiration_ms: int = 604_800_000
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = 10_000
    transaction_remove_expired_transaction_cleanup_interval_ms: int = 3_600_000

    @classmethod
    def from_settings(cls, settings: Settings) -> Self:
        """Takes each config by its dotted name."""
        return cls(**{name: settings[name.replace("_", ".")] for name in cls._fields})
