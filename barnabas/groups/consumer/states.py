"""The states of a consumer group, and their transitions, as data.

Knows nothing of what causes a transition.
"""

import enum
from typing import Final


class GroupState(enum.Enum):
    """The values are the names that clients see (Kafka's ``ConsumerGroupState``)."""

    EMPTY = "Empty"
    """The group has no members. It may have offsets."""
    ASSIGNING = "Assigning"
    """The group epoch is ahead of the target assignment: a new one is due."""
    RECONCILING = "Reconciling"
    """There is a new target assignment, and not all members have reached it."""
    STABLE = "Stable"
    """Every member owns the partitions of its target."""
    DEAD = "Dead"
    """The group is deleted."""


PREVIOUS_STATES: Final[dict[GroupState, set[GroupState]]] = {
    GroupState.EMPTY: {GroupState.ASSIGNING, GroupState.RECONCILING, GroupState.STABLE},
    GroupState.ASSIGNING: {GroupState.EMPTY, GroupState.RECONCILING, GroupState.STABLE},
    GroupState.RECONCILING: {GroupState.ASSIGNING, GroupState.STABLE},
    GroupState.STABLE: {GroupState.EMPTY, GroupState.ASSIGNING, GroupState.RECONCILING},
    GroupState.DEAD: {GroupState.EMPTY},
}
"""The states from which each state can be reached."""
