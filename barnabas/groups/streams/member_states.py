"""How far a member of a streams group is on its way to what it is to run, and which can follow which.

Knows nothing of what leads from one to another: that is ``reconciling.py``.
"""

import enum


class MemberState(enum.IntEnum):
    """Where a member stands on its way to its target; the values are those of the records (``MemberState``)."""

    STABLE = 1
    """Has all of its target as of its epoch."""
    UNREVOKED_TASKS = 2
    """Has to give up tasks first, and has not said that it did."""
    UNRELEASED_TASKS = 3
    """Waits for tasks that others still hold."""
    UNKNOWN = 127
    """What a newer broker wrote, perhaps."""

    @classmethod
    def of(cls, value: int) -> "MemberState":
        """As a record says it."""
        try:
            return cls(value)
        except ValueError:
            return cls.UNKNOWN


PREVIOUS_STATES = {
    MemberState.STABLE: {MemberState.UNREVOKED_TASKS, MemberState.UNRELEASED_TASKS, MemberState.UNKNOWN},
    MemberState.UNREVOKED_TASKS: {MemberState.STABLE, MemberState.UNRELEASED_TASKS, MemberState.UNKNOWN},
    MemberState.UNRELEASED_TASKS: {MemberState.STABLE, MemberState.UNREVOKED_TASKS, MemberState.UNKNOWN},
    MemberState.UNKNOWN: set(),
}
"""From which states each can be reached."""
