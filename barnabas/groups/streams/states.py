"""The states of a streams group and their transitions, and the statuses of a heartbeat, as data.

Knows nothing of what causes a transition.
"""

import enum


class GroupState(enum.Enum):
    """The values are the names that clients see (``StreamsGroup.StreamsGroupState``)."""

    EMPTY = "Empty"
    """The group has no members."""
    NOT_READY = "NotReady"
    """The topology is not ready: topics are missing, or their partition counts do not match."""
    ASSIGNING = "Assigning"
    """The group epoch is ahead of the target assignment: a new one is due."""
    RECONCILING = "Reconciling"
    """There is a new target assignment, and not all members have reached it."""
    STABLE = "Stable"
    """Every member has the tasks of its target."""
    DEAD = "Dead"
    """The group is deleted."""


_WITH_MEMBERS = {GroupState.NOT_READY, GroupState.ASSIGNING, GroupState.RECONCILING, GroupState.STABLE}

PREVIOUS_STATES = {
    GroupState.EMPTY: _WITH_MEMBERS,
    GroupState.NOT_READY: {GroupState.EMPTY, GroupState.ASSIGNING, GroupState.RECONCILING, GroupState.STABLE},
    GroupState.ASSIGNING: {GroupState.EMPTY, GroupState.NOT_READY, GroupState.RECONCILING, GroupState.STABLE},
    GroupState.RECONCILING: {GroupState.EMPTY, GroupState.NOT_READY, GroupState.ASSIGNING, GroupState.STABLE},
    GroupState.STABLE: {GroupState.EMPTY, GroupState.NOT_READY, GroupState.ASSIGNING, GroupState.RECONCILING},
    GroupState.DEAD: {GroupState.EMPTY},
}
"""The states from which each state can be reached."""


class Status(enum.IntEnum):
    """What a response says beside the tasks (``StreamsGroupHeartbeatResponse.Status``)."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
