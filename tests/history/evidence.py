"""An index of a history: the writer of each value, its offsets, its readers, and committed offsets.

Used by the checks; it decides nothing itself.
"""

from collections import defaultdict
from typing import NamedTuple

from tests.history.records import FAIL, OK, History, Operation, Poll, Send


class Sight(NamedTuple):
    """A value that a reader has read."""

    operation: Operation
    poll: Poll
    key: str
    offset: int
    value: int


class Evidence:
    """A history, indexed by value and by offset."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.written: dict[int, tuple[Operation, Send]] = {}
        self.sights: list[Sight] = []
        self.seen: dict[bool, set[int]] = {False: set(), True: set()}
        """The values that read_uncommitted readers (False) and read_committed readers (True) have read."""
        self.furthest: dict[bool, dict[str, int]] = {False: {}, True: {}}
        """For both, the highest offset of each key that any of them has read."""
        self.places: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
        """By key and offset, the values from acknowledgements and reads: one, or it is an anomaly."""
        self.offsets: dict[int, set[tuple[str, int]]] = defaultdict(set)
        """By value, its offsets: one, or it was duplicated."""
        self._read()
        self.orders = {key: self._order(key) for key in self.places}
        """By key, the expected records of read_committed readers: (offset, value), by offset."""

    def _read(self) -> None:
        for operation, send in self.history.sends():
            self.written[send.value] = operation, send
            if send.offset is not None and send.offset >= 0:
                self._place(send.key, send.offset, send.value)
        for operation, poll in self.history.polls():
            furthest = self.furthest[poll.committed]
            for key, offset, value in poll.records:
                self.sights.append(Sight(operation, poll, key, offset, value))
                self.seen[poll.committed].add(value)
                furthest[key] = max(offset, furthest.get(key, -1))
                self._place(key, offset, value)

    def _place(self, key: str, offset: int, value: int) -> None:
        self.places[key][offset].add(value)
        self.offsets[value].add((key, offset))

    def _order(self, key: str) -> list[tuple[int, int]]:
        committed = (
            (offset, value) for offset, values in self.places[key].items() for value in values if self.is_visible(value)
        )
        return sorted(committed)

    def writer(self, value: int) -> Operation | None:
        known = self.written.get(value)
        return known[0] if known else None

    def is_committed(self, operation: Operation) -> bool:
        """Returns whether the records of this transaction became visible: by its outcome, or since one was read."""
        if operation.outcome == OK:
            return True
        return operation.outcome != FAIL and any(send.value in self.seen[True] for send in operation.sends)

    def is_acknowledged(self, operation: Operation, send: Send) -> bool:
        """Returns whether the record was acknowledged."""
        if operation.is_transaction:
            return self.is_committed(operation)
        return send.offset is not None

    def is_visible(self, value: int) -> bool:
        """Returns whether read_committed readers have to read this value, or have read it."""
        if value in self.seen[True]:
            return True
        known = self.written.get(value)
        return known is not None and self.is_acknowledged(*known)
