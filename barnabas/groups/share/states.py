"""Where a share group stands, and how it comes there.

Knows nothing of what a group is made of.
"""

import enum


class State(enum.Enum):
    """Kafka's ``ShareGroup.ShareGroupState``; the values are the names that clients see."""

    EMPTY = "Empty"
    """Has no members, perhaps state of share partitions."""
    STABLE = "Stable"
    """Has members. There is nothing to wait for: who is to read a partition reads it beside those that still do."""
    DEAD = "Dead"
    """Deleted."""


PREVIOUS_STATES = {
    State.EMPTY: {State.STABLE},
    State.STABLE: {State.EMPTY},
    State.DEAD: {State.EMPTY},
}
"""From which states each can be reached."""
