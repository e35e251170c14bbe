"""Records in flight: ranges of offsets that share a state, and the batches that they were acquired in.

Knows nothing of where they are read from, nor of what is written about them. Apache Kafka keeps a state for a batch
(``InFlightBatch``) or, once its records go separate ways, one for each offset; here a batch is cut into *runs* only
where they differ, so that cost goes with what members say, not with how many records there are.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

from barnabas.share.states import FINAL_STATES, RecordState

AVAILABLE, ACQUIRED, ARCHIVED = RecordState.AVAILABLE, RecordState.ACQUIRED, RecordState.ARCHIVED

FIRST = attrgetter("first")
"""By what runs, and batches, are looked up: there may be as many of them as records."""


class Before(NamedTuple):
    """What a run goes back to when a change cannot be written."""

    state: RecordState
    delivery_count: int
    member_id: str | None


class Run:
    """Neighbouring records of one batch with one state, one holder, one lock."""

    __slots__ = ("before", "change", "delivery_count", "first", "last", "locked_until", "member_id", "state")

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
        self.member_id = member_id  #: whose it is; None unless it is acquired
        self.locked_until = locked_until  #: in seconds of the clock's ``monotonic``; of an acquired one
        self.change: Change | None = None  #: under way: written, and not known to be safe
        self.before = Before(state, delivery_count, member_id)

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
        """Its delivery is complete, and nothing will undo that."""
        return self.change is None and self.state in FINAL_STATES

    def acquire(self, member_id: str, locked_until: float) -> None:
        self.state = ACQUIRED
        self.delivery_count += 1
        self.member_id = member_id
        self.locked_until = locked_until

    def leave(self, state: RecordState) -> None:
        """It is nobody's any more."""
        self.state = state
        self.member_id = None

    def archive(self) -> None:
        """Whatever was about to become of it: it is not to be given any more."""
        self.leave(ARCHIVED)
        self.change = None


class Change:
    """Transitions that are written together, and undone together when they could not be."""

    __slots__ = ("runs",)

    def __init__(self) -> None:
        self.runs: list[Run] = []

    def move(self, run: Run, state: RecordState, delivery_count: int) -> None:
        """Let the run be in that state, as far as the next look goes."""
        run.before = Before(run.state, run.delivery_count, run.member_id)
        run.leave(state)
        run.delivery_count = delivery_count
        run.change = self
        self.runs.append(run)

    def complete(self) -> None:
        """It is written."""
        for run in self.runs:
            if run.change is self:
                run.change = None

    def undo(self, now: float, delivery_count_limit: int) -> None:
        """It is not: the runs are whose they were, or, where their lock has ended meanwhile, nobody's."""
        for run in self.runs:
            if run.change is not self:
                continue
            run.change = None
            run.state, run.delivery_count, run.member_id = run.before
            if run.state is ACQUIRED and run.locked_until <= now:
                run.leave(ARCHIVED if run.delivery_count >= delivery_count_limit else AVAILABLE)


class InFlightBatch:
    """What was acquired, or read back, in one go; its runs lie behind one another without a hole."""

    __slots__ = ("first", "is_split", "is_unread", "last", "runs")

    def __init__(self, run: Run, *, is_unread: bool = False) -> None:
        self.first = run.first
        self.last = run.last
        self.runs = [run]
        self.is_split = False  #: whether its records go separate ways, as Apache Kafka would see it
        #: whether nothing is known of it: a hole in what was kept, whose records nobody acknowledged
        self.is_unread = is_unread

    def __repr__(self) -> str:
        return f"<InFlightBatch {self.runs}>"

    @property
    def count(self) -> int:
        return self.last - self.first + 1

    @property
    def whole(self) -> Run:
        """The one run of a batch that is not split."""
        return self.runs[0]

    def within(self, first: int, last: int) -> list[Run]:
        """The runs from ``first`` to ``last``, both included; those that reach beyond are cut."""
        self._cut(first)
        self._cut(last + 1)
        return self.runs[bisect_left(self.runs, first, key=FIRST) : bisect_right(self.runs, last, key=FIRST)]

    def _cut(self, at: int) -> None:
        """Let a run begin at that offset."""
        index = bisect_left(self.runs, at, key=FIRST)
        run = self.runs[index - 1]
        if index == 0 or run.last < at:
            return
        rest = Run(at, run.last, run.state, run.delivery_count, run.member_id, run.locked_until)
        rest.before, rest.change = run.before, run.change
        if run.change is not None:
            run.change.runs.append(rest)
        run.last = at - 1
        self.runs.insert(index, rest)
        self.is_split = True

    def merge(self) -> None:
        """Runs whose delivery is complete alike are one."""
        merged: list[Run] = []
        for run in self.runs:
            if merged and run.is_complete and merged[-1].is_complete and run.state is merged[-1].state:
                merged[-1].last = run.last
            else:
                merged.append(run)
        self.runs = merged

    def completed(self, start: int) -> Iterator[int]:
        """How many records of each run from ``start`` on have a final state, written or about to be."""
        for run in self.runs:
            if run.state in FINAL_STATES and run.last >= start:
                yield run.last - max(run.first, start) + 1
