"""What becomes of a record that a share group is given, as data (Kafka's ``RecordState``).

Knows nothing of offsets, members or time.
"""

from enum import IntEnum
from typing import Final


class RecordState(IntEnum):
    """Its numbers are those that are written into ``__share_group_state``."""

    AVAILABLE = 0  #: for whoever comes next
    ACQUIRED = 1  #: a member has it, until its lock ends; never written
    ACKNOWLEDGED = 2  #: accepted
    ARCHIVED = 4  #: rejected, given too often, a gap, aborted, or below the start of the log


PREVIOUS_STATES: Final = {
    RecordState.AVAILABLE: {RecordState.ACQUIRED},
    RecordState.ACQUIRED: {RecordState.AVAILABLE},
    RecordState.ACKNOWLEDGED: {RecordState.ACQUIRED},
    RecordState.ARCHIVED: {RecordState.AVAILABLE, RecordState.ACQUIRED},
}
"""From which states a record may come to each."""

FINAL_STATES: Final = frozenset((RecordState.ACKNOWLEDGED, RecordState.ARCHIVED))
"""Its delivery is complete: it is never given again."""

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
"""What a member says of a record (``AcknowledgeType``); a gap is an offset at which it found none."""

ACKNOWLEDGED_AS: Final = {
    GAP: RecordState.ARCHIVED,
    ACCEPT: RecordState.ACKNOWLEDGED,
    RELEASE: RecordState.AVAILABLE,
    REJECT: RecordState.ARCHIVED,
}
"""The state that each acknowledgement asks for; a renewal (KIP-1222) asks for none, but for time."""
