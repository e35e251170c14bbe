"""The topics that a regular expression of a subscription matches (Kafka's ``ResolvedRegularExpression``).

Knows nothing of groups, nor of when an expression is resolved.
"""

from typing import Final, NamedTuple


class ResolvedRegex(NamedTuple):
    """The topics that a regular expression matched in one metadata image."""

    topics: frozenset[str]
    image_offset: int
    """The offset of that image."""
    time_ms: int


UNRESOLVED: Final = ResolvedRegex(frozenset(), -1, -1)
