"""Records in flight: runs of offsets with the same state, and the batches in which they were acquired.

Knows nothing of where they are read from, nor of what is written about them. Apache Kafka stores one state for a batch
(``InFlightBatch``), or one for each offset once its records have different states. Here a batch is split into *runs*
where the states differ, so that the cost depends on the acknowledgements, not on the number of records.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

from barnabas.share.states import FINAL_STATES, RecordState

AVAILABLE, ACQUIRED, ARCHIVED = RecordState.AVAILABLE, RecordState.ACQUIRED, RecordState.ARCHIVED

FIRST = attrgetter("first")
"""The key by which runs and batches are searched: there may be as many as there are records."""


class Former(NamedTuple):
    """The state to which a run returns if a change cannot be written."""

    state: RecordState
    delivery_count: int
    member_id: str | None


class Run:
    """Adjacent records of one batch with the same state, member and lock."""

    __slots__ = ("change", "delivery_count", "first", "former", "last", "locked_until", "member_id", "state")

    def __init__(
        self,
        first: int,
        last: int,
        state: RecordState,
        delivery_count: int,
        member_id: str | None = None,
        locked_until: float = 0.0,
    ) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.delivery_count = delivery_count
        self.member_id = member_id  #: the member that has acquired the run; None in other states
        self.locked_until = locked_until  #: when the lock ends, in seconds of ``Clock.monotonic``
        self.change: Change | None = None  #: the change that is being written
        self.former = Former(state, delivery_count, member_id)

    def __repr__(self) -> str:
        return f"<{self.first}-{self.last} {self.state.name.lower()} {self.delivery_count} {self.member_id or ''}>"

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    @property
    def is_available(self) -> bool:
        return self.state is AVAILABLE and self.change is None

    @property
    def is_complete(self) -> bool:
        """Whether its delivery is complete, and written."""
        return self.change is None and self.state in FINAL_STATES

    def acquire(self, member_id: str, locked_until: float) -> None:
        self.state = ACQUIRED
        self.delivery_count += 1
        self.member_id = member_id
        self.locked_until = locked_until

    def leave(self, state: RecordState) -> None:
        """Takes the run from its member."""
        self.state = state
        self.member_id = None

    def archive(self) -> None:
        """Archives the run, even while a write of its state is in progress."""
        self.leave(ARCHIVED)
        self.change = None


class Change:
    """Transitions that are written together, and undone together if they cannot be written."""

    __slots__ = ("runs",)

    def __init__(self) -> None:
        self.runs: list[Run] = []

    def move(self, run: Run, state: RecordState, delivery_count: int) -> None:
        """Changes a run, until the change is complete or undone."""
        run.former = Former(run.state, run.delivery_count, run.member_id)
        run.leave(state)
        run.delivery_count = delivery_count
        run.change = self
        self.runs.append(run)

    def complete(self) -> None:
        """Ends the change: it is written."""
        for run in self.runs:
            if run.change is self:
                run.change = None

    def undo(self, now: float, delivery_count_limit: int) -> None:
        """Undoes the change: it cannot be written. A run whose lock has ended meanwhile is released."""
        for run in self.runs:
            if run.change is not self:
                continue
            run.change = None
            run.state, run.delivery_count, run.member_id = run.former
            if run.state is ACQUIRED and run.locked_until <= now:
                run.leave(ARCHIVED if run.delivery_count >= delivery_count_limit else AVAILABLE)


class InFlightBatch:
    """Records that were acquired, or loaded, as one batch. Its runs follow each other without a gap."""

    __slots__ = ("first", "is_split", "is_unread", "last", "runs")

    def __init__(self, run: Run, *, is_unread: bool = False) -> None:
        self.first = run.first
        self.last = run.last
        self.runs = [run]
        self.is_split = False  #: whether Apache Kafka would store a state for each offset
        #: whether it was never acquired: a gap in the state that was loaded
        self.is_unread = is_unread

    def __repr__(self) -> str:
        return f"<InFlightBatch {self.runs}>"

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    @property
    def whole(self) -> Run:
        """The only run of a batch that is not split."""
        return self.runs[0]

    def within(self, first: int, last: int) -> list[Run]:
        """Returns the runs from ``first`` to ``last``, both included. Splits those that reach beyond."""
        self._cut(first)
        self._cut(last + 1)
        return self.runs[bisect_left(self.runs, first, key=FIRST) : bisect_right(self.runs, last, key=FIRST)]

    def _cut(self, at: int) -> None:
        """Splits the run with that offset, so that one begins there."""
        index = bisect_left(self.runs, at, key=FIRST)
        run = self.runs[index - 1]
        if index == 0 or run.last < at:
            return
        rest = Run(at, run.last, run.state, run.delivery_count, run.member_id, run.locked_until)
        rest.former, rest.change = run.former, run.change
        if run.change is not None:
            run.change.runs.append(rest)
        run.last = at - 1
        self.runs.insert(index, rest)
        self.is_split = True

    def merge(self) -> None:
        """Merges adjacent runs whose delivery is complete in the same way."""
        merged: list[Run] = []
        for run in self.runs:
            if merged and run.is_complete and merged[-1].is_complete and run.state is merged[-1].state:
                merged[-1].last = run.last
            else:
                merged.append(run)
        self.runs = merged

    def completed(self, start: int) -> Iterator[int]:
        """Yields for each run how many of its records from ``start`` on have a final state, written or not."""
        for run in self.runs:
            if run.state in FINAL_STATES and run.last >= start:
                yield run.last - max(run.first, start) + 1
