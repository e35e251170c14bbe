"""The states of a member of a streams group, and their transitions, as data.

Knows nothing of what causes a transition: that is ``reconciling.py``.
"""

import enum


class MemberState(enum.IntEnum):
    """The values are those of the records (Kafka's ``MemberState``)."""

    STABLE = 1
    """The member has all tasks of its target."""
    UNREVOKED_TASKS = 2
    """The member has to revoke tasks, and to confirm it."""
    UNRELEASED_TASKS = 3
    """The member waits for tasks that others still own."""
    UNKNOWN = 127
    """A newer broker wrote a state that this one does not know."""

    @classmethod
    def of(cls, value: int) -> "MemberState":
        """Returns the state for the value in a record."""
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
"""The states from which each state can be reached."""
