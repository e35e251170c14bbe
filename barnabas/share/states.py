"""The states of a record in a share group, and their transitions, as data (Kafka's ``RecordState``).

Knows nothing of offsets, members and time.
"""

from enum import IntEnum
from typing import Final


class RecordState(IntEnum):
    """The values are those in ``__share_group_state``."""

    AVAILABLE = 0  #: can be acquired
    ACQUIRED = 1  #: a member has it until its lock ends; this state is not written
    ACKNOWLEDGED = 2  #: accepted
    ARCHIVED = 4  #: rejected, delivered too often, a gap, aborted, or below the log start offset


PREVIOUS_STATES: Final = {
    RecordState.AVAILABLE: {RecordState.ACQUIRED},
    RecordState.ACQUIRED: {RecordState.AVAILABLE},
    RecordState.ACKNOWLEDGED: {RecordState.ACQUIRED},
    RecordState.ARCHIVED: {RecordState.AVAILABLE, RecordState.ACQUIRED},
}
"""The states from which each state can be reached."""

FINAL_STATES: Final = frozenset((RecordState.ACKNOWLEDGED, RecordState.ARCHIVED))
"""The states of records whose delivery is complete."""

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
"""How a member acknowledges a record (``AcknowledgeType``). A gap is an offset without a record."""

ACKNOWLEDGED_AS: Final = {
    GAP: RecordState.ARCHIVED,
    ACCEPT: RecordState.ACKNOWLEDGED,
    RELEASE: RecordState.AVAILABLE,
    REJECT: RecordState.ARCHIVED,
}
"""The state that each type leads to. A renewal (KIP-1222) extends the lock, and leads to none."""
