"""The controller's command about quotas of clients, and its result.

Knows nothing of requests and decisions.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from barnabas.errors import KafkaError


class QuotaAlteration(NamedTuple):
    """New values of an entity's quotas; None removes a quota. The name of a default entity is None."""

    entity: Mapping[str, str | None]  #: names by types
    values: Sequence[tuple[str, float | None]]


class AlterClientQuotas(NamedTuple):
    """Changes quotas. The result has an :class:`AlteredQuotas` for each entity."""

    alterations: Sequence[QuotaAlteration]
    validate_only: bool = False
    unresolvable: Collection[str] = ()  #: invalid IP addresses, and names that cannot be resolved


class AlteredQuotas(NamedTuple):
    entity: Mapping[str, str | None]
    error: KafkaError | None = None
