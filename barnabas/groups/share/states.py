"""The states of a share group, and their transitions, as data.

Knows nothing of what causes a transition.
"""

import enum


class State(enum.Enum):
    """The values are the names that clients see (Kafka's ``ShareGroup.ShareGroupState``)."""

    EMPTY = "Empty"
    """The group has no members. Its share partitions may have state."""
    STABLE = "Stable"
    """The group has members. A new assignment is valid at once, since several members may read a partition."""
    DEAD = "Dead"
    """The group is deleted."""


PREVIOUS_STATES = {
    State.EMPTY: {State.STABLE},
    State.STABLE: {State.EMPTY},
    State.DEAD: {State.EMPTY},
}
"""The states from which each state can be reached."""
