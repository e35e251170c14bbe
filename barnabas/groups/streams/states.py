"""The states of a streams group, which can follow which, and what a member may be told beside its tasks.

Knows nothing of what leads from one to another.
"""

import enum


class GroupState(enum.Enum):
    """Where a group stands; the values are the names that clients see (``StreamsGroup.StreamsGroupState``)."""

    EMPTY = "Empty"
    """Has no members."""
    NOT_READY = "NotReady"
    """Its topology cannot run yet: topics are missing, or have numbers of partitions that do not go together."""
    ASSIGNING = "Assigning"
    """Something has changed since tasks were last assigned."""
    RECONCILING = "Reconciling"
    """Members are on the way to what they were assigned."""
    STABLE = "Stable"
    """Everybody has what it was assigned."""
    DEAD = "Dead"
    """Deleted."""


_WITH_MEMBERS = {GroupState.NOT_READY, GroupState.ASSIGNING, GroupState.RECONCILING, GroupState.STABLE}

PREVIOUS_STATES = {
    GroupState.EMPTY: _WITH_MEMBERS,
    GroupState.NOT_READY: {GroupState.EMPTY, GroupState.ASSIGNING, GroupState.RECONCILING, GroupState.STABLE},
    GroupState.ASSIGNING: {GroupState.EMPTY, GroupState.NOT_READY, GroupState.RECONCILING, GroupState.STABLE},
    GroupState.RECONCILING: {GroupState.EMPTY, GroupState.NOT_READY, GroupState.ASSIGNING, GroupState.STABLE},
    GroupState.STABLE: {GroupState.EMPTY, GroupState.NOT_READY, GroupState.ASSIGNING, GroupState.RECONCILING},
    GroupState.DEAD: {GroupState.EMPTY},
}
"""From which states each can be reached."""


class Status(enum.IntEnum):
    """What a heartbeat may tell beside tasks (``StreamsGroupHeartbeatResponse.Status``)."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
