"""How far a member of a consumer group is on its way to what it is to own: names and transitions, as data.

Knows nothing of what leads from one to the next: that is ``reconciliation.py``.
"""

import enum
from typing import Final


class MemberState(enum.IntEnum):
    """The values are those of the records (Kafka's ``MemberState``)."""

    STABLE = 0
    """Owns what it was to own in its epoch."""
    UNREVOKED_PARTITIONS = 1
    """Has to give up partitions, and to say so, before it goes on to the next epoch."""
    UNRELEASED_PARTITIONS = 2
    """Is in the epoch of its target, and waits for partitions that others have not given up."""
    UNKNOWN = 127
    """What a newer broker wrote, in words that this one does not know."""

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
"""From which states each can be reached."""
