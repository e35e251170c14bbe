"""The controller's commands about configs, and their results.

Knows nothing of requests and decisions.
"""

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.errors import KafkaError

SET, DELETE, APPEND, SUBTRACT = range(4)


class ConfigChange(NamedTuple):
    """One operation of IncrementalAlterConfigs (KIP-339)."""

    name: str
    operation: int
    value: str | None


class ConfigResource(NamedTuple):
    type: int  #: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group
    name: str  #: the id of a broker, or empty for all brokers


class IncrementalAlterConfigs(NamedTuple):
    resources: Sequence[tuple[ConfigResource, Sequence[ConfigChange]]]
    validate_only: bool = False


class AlterConfigs(NamedTuple):
    """Replaces all configs of each resource."""

    resources: Sequence[tuple[ConfigResource, Sequence[tuple[str, str | None]]]]
    validate_only: bool = False


class AlteredConfigs(NamedTuple):
    resource: ConfigResource
    error: KafkaError | None = None
