"""The controller's command about features.

Knows nothing of requests and decisions.
"""

from collections.abc import Sequence
from typing import NamedTuple

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


class FeatureUpdate(NamedTuple):
    """A new level of a feature, and the direction that is allowed (KIP-584)."""

    name: str
    level: int
    upgrade_type: int = UPGRADE


class UpdateFeatures(NamedTuple):
    """The updates of different features."""

    updates: Sequence[FeatureUpdate]
    validate_only: bool = False
