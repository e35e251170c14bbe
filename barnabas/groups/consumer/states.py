"""Where a consumer group stands: names and transitions, as data.

Knows nothing of what leads from one to the next.
"""

import enum
from typing import Final


class GroupState(enum.Enum):
    """Where a group stands; the values are the names that clients see (Kafka's ``ConsumerGroupState``)."""

    EMPTY = "Empty"
    """Has no members, perhaps offsets."""
    ASSIGNING = "Assigning"
    """Something has changed since the target assignment was worked out; the next one is due."""
    RECONCILING = "Reconciling"
    """The target assignment is new, and members are on their way to it."""
    STABLE = "Stable"
    """Every member owns what it is to own."""
    DEAD = "Dead"
    """Deleted."""


PREVIOUS_STATES: Final[dict[GroupState, set[GroupState]]] = {
    GroupState.EMPTY: {GroupState.ASSIGNING, GroupState.RECONCILING, GroupState.STABLE},
    GroupState.ASSIGNING: {GroupState.EMPTY, GroupState.RECONCILING, GroupState.STABLE},
    GroupState.RECONCILING: {GroupState.ASSIGNING, GroupState.STABLE},
    GroupState.STABLE: {GroupState.EMPTY, GroupState.ASSIGNING, GroupState.RECONCILING},
    GroupState.DEAD: {GroupState.EMPTY},
}
"""From which states each can be reached."""
