"""The voters and ``kraft.version`` at each offset of the metadata log.

Knows nothing of what is committed. Apache Kafka's ``KRaftControlRecordStateMachine`` (KIP-853).
"""

from collections.abc import Iterable

from barnabas.cluster.quorum.record_batches import Control
from barnabas.cluster.quorum.snapshots import KRaftState, after_control
from barnabas.records.batch import RecordBatch
from barnabas.records.control import control_record_type
from barnabas.records.record import records_of


class KRaftHistory:
    """The states after control records, oldest first; the first one is that of the log's start."""

    def __init__(self, first: KRaftState = KRaftState()) -> None:  # noqa: B008 - immutable
        self._states = [(0, first)]

    @property
    def latest(self) -> KRaftState:
        """The state at the end of the log, which may not be committed."""
        return self._states[-1][1]

    @property
    def voters_offset(self) -> int:
        """The offset of the last record with voters; -1 if it is not in the history."""
        named = self.latest.voters
        before = [state for _, state in self._states[:-1]]
        for (offset, _), previous in zip(reversed(self._states), [*reversed(before), None], strict=True):
            if previous is None:
                return -1
            if previous.voters is not named:
                return offset
        return -1

    def at(self, end_offset: int) -> KRaftState:
        """Returns the state after the records below ``end_offset``."""
        return next((state for offset, state in reversed(self._states) if offset < end_offset), self._states[0][1])

    def read(self, batches: Iterable[RecordBatch]) -> bool:
        """Reads the control batches among those that follow the log's end. Returns whether the state has changed."""
        before = self.latest
        for batch in batches:
            if batch.is_control:
                state = self.latest
                for record in records_of(batch):
                    control = Control(control_record_type(record.key), bytes(record.value or b""))
                    state = after_control(state, control)
                if state != self.latest:
                    self._states.append((batch.base_offset, state))
        return self.latest != before

    def truncate_to(self, end_offset: int) -> None:
        """Removes the states of records from ``end_offset`` on."""
        self._states[1:] = [(offset, state) for offset, state in self._states[1:] if offset < end_offset]

    def forget_before(self, end_offset: int) -> None:
        """Removes the states before the one at ``end_offset``."""
        self._states[:] = [(0, self.at(end_offset)), *(each for each in self._states[1:] if each[0] >= end_offset)]
