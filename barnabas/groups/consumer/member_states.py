"""The states of a member of a consumer group, and their transitions, as data.

Knows nothing of what causes a transition: that is ``reconciliation.py``.
"""

import enum
from typing import Final


class MemberState(enum.IntEnum):
    """The values are those of the records (Kafka's ``MemberState``)."""

    STABLE = 0
    """The member owns the partitions of its epoch."""
    UNREVOKED_PARTITIONS = 1
    """The member has to revoke partitions and to confirm it before it moves to the next epoch."""
    UNRELEASED_PARTITIONS = 2
    """The member is in the epoch of its target, and waits for partitions that others have not revoked."""
    UNKNOWN = 127
    """A newer broker wrote a state that this one does not know."""

    @classmethod
    def of(cls, code: int) -> "MemberState":
        return _BY_CODE.get(code, cls.UNKNOWN)


_BY_CODE: Final = {int(state): state for state in MemberState}

STABLE: Final = MemberState.STABLE
UNREVOKED: Final = MemberState.UNREVOKED_PARTITIONS
UNRELEASED: Final = MemberState.UNRELEASED_PARTITIONS
UNKNOWN: Final = MemberState.UNKNOWN

PREVIOUS_STATES: Final[dict[MemberState, set[MemberState]]] = {
    STABLE: {UNREVOKED, UNRELEASED, UNKNOWN},
    UNREVOKED: {STABLE, UNRELEASED, UNKNOWN},
    UNRELEASED: {STABLE, UNREVOKED, UNKNOWN},
    UNKNOWN: set(),
}
"""The states from which each state can be reached."""
