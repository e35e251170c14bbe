"""One partition as one share group reads it: which records are whose, which are done with (Kafka's ``SharePartition``).

Knows nothing of requests, sessions, logs, nor of where its state is kept: that it is handed, and hands on to be
written. Records are acquired for a member under a lock that ends by itself; a member accepts, releases, rejects or
renews them. What lies below the *start offset* is done with, once and for all.

These of Apache Kafka's rules are kept otherwise, where only chance would tell: holes in the state that was read back
are batches like others, which nobody has read; what a log start offset that moves leaves behind is archived at once,
and not when its lock ends; all locks that end at one moment are written at once.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from barnabas.clock import Clock
from barnabas.deadlines import Deadline, Deadlines
from barnabas.errors import InvalidRecordState, InvalidRequest, KafkaError, NotLeaderOrFollower
from barnabas.share.in_flight import FIRST, Change, InFlightBatch, Run
from barnabas.share.messages import SharePartitionState, StateBatch
from barnabas.share.states import ACKNOWLEDGED_AS, RENEW, RecordState

NOT_FOUND = "None of these records is in flight."
FIRST_IS_PAST = "The first of these records was never given to the group."
LAST_IS_PAST = "The last of these records was never given to the group."
NOT_ACQUIRED = "Nobody has these records."
OFFSET_NOT_ACQUIRED = "Nobody has some of these records."
NOT_THE_OWNER = "Another member has these records."
NO_RENEWAL = "Members of this group get no more time for their records."
NOT_THE_OWNER_OF_OFFSET = "Another member has some of these records."

Done = Callable[[KafkaError | None], object]
"""Called once, at once or when what was written is safe; with the error where nothing has changed."""

Write = Callable[[int, int, Sequence[StateBatch], Done], object]
"""Keep a start offset, how many records beyond it are done with, and what became of some."""


class Limits(NamedTuple):
    """The settings of the group, as they are at the moment."""

    lock_seconds: float  #: ``share.record.lock.duration.ms``
    delivery_count: int  #: ``share.delivery.count.limit``
    record_locks: int  #: ``share.partition.max.record.locks``
    may_renew: bool = True  #: ``share.renew.acknowledge.enable``


class Acknowledgement(NamedTuple):
    """What a member says of the records from one offset to another, both included."""

    first_offset: int
    last_offset: int
    types: Sequence[int]  #: one for all of them, or one for each


class SharePartition:
    """The records of one partition that one group has in flight, and where it goes on."""

    def __init__(
        self,
        state: SharePartitionState,
        start_offset: int,
        *,
        limits: Callable[[], Limits],
        clock: Clock,
        deadlines: Deadlines,
        write: Write,
        changed: Callable[[], object] = lambda: None,
    ) -> None:
        """``start_offset``: that of the state, or where a group begins that has none. ``changed``: there may be
        something to acquire that was not a moment ago."""
        self.limits = limits
        self._clock = clock
        self._deadlines = deadlines
        self._write = write
        self._changed = changed
        self._deadline = Deadline(self._locks_end)
        self._locks_end_at = float("inf")
        self.is_fenced = False
        self.start_offset = start_offset
        self.next_offset = start_offset  #: the first that was never acquired, nor known of
        self.batches: list[InFlightBatch] = []  #: in the order of their offsets
        self.may_have_available = False  #: whether it is worth looking for one
        self._load(state.batches)

    def __repr__(self) -> str:
        return f"<SharePartition from {self.start_offset} to {self.next_offset}: {self.batches}>"

    def _load(self, kept: Sequence[StateBatch]) -> None:
        for each in kept:
            if each.first_offset < self.start_offset:
                raise ValueError(f"{each} begins before the start offset {self.start_offset}")
            if each.first_offset > self.next_offset:
                hole = Run(self.next_offset, each.first_offset - 1, RecordState.AVAILABLE, 0)
                self.batches.append(InFlightBatch(hole, is_unread=True))
            run = Run(each.first_offset, each.last_offset, RecordState(each.delivery_state), each.delivery_count)
            self.batches.append(InFlightBatch(run))
            self.next_offset = each.last_offset + 1
        self.may_have_available = bool(self.batches)
        self.advance()

    def fence(self) -> None:
        """Somebody else leads this share partition from now on: nothing is given, taken or written here any more."""
        self.is_fenced = True
        self._deadline.cancel()
        self._changed()

    # ------------------------------------------------------------ what there is

    @property
    def in_flight_count(self) -> int:
        """How many records lie between what is done with and what was never given."""
        return self.next_offset - self.start_offset

    @property
    def delivery_complete_count(self) -> int:
        """How many records from the start offset on are done with."""
        return sum(count for batch in self.batches for count in batch.completed(self.start_offset))

    def next_fetch_offset(self) -> int:
        """Where to read next: the first record that is available, or that was never given."""
        if self.may_have_available:
            for batch in self.batches:
                for run in batch.runs:
                    if run.is_available and run.last >= self.start_offset:
                        return max(run.first, self.start_offset)
            self.may_have_available = False
        return self.next_offset

    def can_acquire(self) -> bool:
        """Whether there is room for one more, or one that has its room already."""
        return self.next_fetch_offset() != self.next_offset or self.in_flight_count < self.limits().record_locks

    def overlapping(self, first: int, last: int) -> list[InFlightBatch]:
        """The batches that have something between two offsets, both included."""
        at = max(bisect_right(self.batches, first, key=FIRST) - 1, 0)
        end = bisect_right(self.batches, last, key=FIRST)
        return [batch for batch in self.batches[at:end] if batch.last >= first]

    def insert(self, batch: InFlightBatch) -> None:
        """Put a batch where its offsets belong."""
        self.batches.insert(bisect_right(self.batches, batch.first, key=FIRST), batch)

    def remove(self, batch: InFlightBatch) -> None:
        self.batches.remove(batch)

    # ------------------------------------------------------------ locks

    def lock(self) -> float:
        """Until when what is acquired now is locked; whoever holds it then has lost it."""
        seconds = self.limits().lock_seconds
        until = self._clock.monotonic() + seconds
        if until < self._locks_end_at:
            self._locks_end_at = until
            self._deadlines.set(self._deadline, seconds)
        return until

    def _locks_end(self) -> None:
        """Whoever has held records for too long has them no more, whether or not that can be written."""
        now = self._clock.monotonic()
        self._locks_end_at = float("inf")
        over: list[Run] = []
        for batch in self.batches:
            for run in batch.runs:
                if run.state is not RecordState.ACQUIRED:
                    continue
                if run.locked_until <= now:
                    run.leave(self._released(run))
                    over.append(run)
                else:
                    self._locks_end_at = min(self._locks_end_at, run.locked_until)
        if self._locks_end_at != float("inf"):
            self._deadlines.set(self._deadline, self._locks_end_at - now)
        if over:
            self.may_have_available = True
            self._keep(over, lambda error: self._advance_and_tell())

    # ------------------------------------------------------------ acknowledging

    def acknowledge(self, member_id: str, acknowledgements: Sequence[Acknowledgement], done: Done) -> None:
        """Take in what a member says of records: all of it, or, where something is wrong with it, nothing.

        ``done`` gets INVALID_RECORD_STATE for records that are not the member's, INVALID_REQUEST for such as were never
        given to anybody, and what keeping it failed by. A type that is none is for the caller to find.
        """
        if self.is_fenced:
            done(NotLeaderOrFollower())
            return
        change = Change()
        try:
            for each in acknowledgements:
                if each.last_offset >= self.start_offset:
                    self._acknowledge(member_id, each, change)
        except KafkaError as error:
            self._undo(change)
            done(error)
            return
        self._commit(change, done)

    def _acknowledge(self, member_id: str, said: Acknowledgement, change: Change) -> None:
        for batch in self._acknowledged(said):
            if not batch.is_split:
                if batch.whole.member_id is None:
                    raise InvalidRecordState(NOT_ACQUIRED)
                if batch.whole.member_id != member_id:
                    raise InvalidRecordState(NOT_THE_OWNER)
                is_covered = said.first_offset <= batch.first and batch.last <= said.last_offset
                batch.is_split = not is_covered or len(said.types) > 1
            first = max(said.first_offset, batch.first, self.start_offset)
            last = min(said.last_offset, batch.last)
            for kind, start, end in self._types(said, first, last):
                for run in batch.within(start, end):
                    self._acknowledge_run(member_id, run, kind, change)

    def _acknowledge_run(self, member_id: str, run: Run, kind: int, change: Change) -> None:
        if run.state is not RecordState.ACQUIRED:
            raise InvalidRecordState(OFFSET_NOT_ACQUIRED)
        if run.member_id != member_id:
            raise InvalidRecordState(NOT_THE_OWNER_OF_OFFSET)
        if kind == RENEW:
            if not self.limits().may_renew:
                raise InvalidRecordState(NO_RENEWAL)
            run.locked_until = self.lock()
            return
        state = ACKNOWLEDGED_AS[kind]
        change.move(run, self._released(run) if state is RecordState.AVAILABLE else state, run.delivery_count)

    def _released(self, run: Run) -> RecordState:
        """What a run is that nobody has any more: it has been given often enough, perhaps."""
        is_over = run.delivery_count >= self.limits().delivery_count
        return RecordState.ARCHIVED if is_over else RecordState.AVAILABLE

    def _acknowledged(self, said: Acknowledgement) -> list[InFlightBatch]:
        """The batches that an acknowledgement speaks of."""
        first, last = said.first_offset, said.last_offset
        at = bisect_right(self.batches, first, key=FIRST) - 1
        if at < 0:
            if not (first < self.start_offset <= last and self.batches):
                raise InvalidRecordState(NOT_FOUND)
            at = 0
        end = bisect_right(self.batches, last, key=FIRST)
        spoken_of = self.batches[at:end]
        if not spoken_of or spoken_of[-1].last < first:
            raise InvalidRequest(FIRST_IS_PAST)
        if spoken_of[-1].last < last:
            raise InvalidRequest(LAST_IS_PAST)
        return [batch for batch in spoken_of if batch.last >= max(first, self.start_offset)]

    @staticmethod
    def _types(said: Acknowledgement, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """The stretches between two offsets of which the same is said: what, and from where to where."""
        if len(said.types) == 1:
            yield said.types[0], first, last
            return
        wanted = said.types[first - said.first_offset : last - said.first_offset + 1]
        for kind, same in groupby(wanted):
            count = sum(1 for _ in same)
            yield kind, first, first + count - 1
            first += count

    def release(self, member_id: str, done: Done) -> None:
        """The member goes: all that it holds is for others."""
        change = Change()
        for batch in self.batches:
            for run in batch.runs:
                if run.member_id == member_id:
                    change.move(run, self._released(run), run.delivery_count)
        self._commit(change, done)

    # ------------------------------------------------------------ keeping

    def _commit(self, change: Change, done: Done) -> None:
        if not change.runs:
            done(None)
            return

        def kept(error: KafkaError | None) -> None:
            if error is not None:
                self._undo(change)
            else:
                change.complete()
                self._settle(change.runs)
                self.advance()
            done(error)
            self._changed()

        self._keep(change.runs, kept)

    def _undo(self, change: Change) -> None:
        change.undo(self._clock.monotonic(), self.limits().delivery_count)
        if change.runs:
            self._settle(change.runs)
            self._relock(change.runs)

    def _settle(self, runs: Sequence[Run]) -> None:
        """Some are available again, perhaps."""
        if any(run.state is RecordState.AVAILABLE for run in runs):
            self.may_have_available = True

    def _relock(self, runs: Sequence[Run]) -> None:
        """Runs that are acquired again have locks that nobody may be waiting for."""
        ends = min((run.locked_until for run in runs if run.state is RecordState.ACQUIRED), default=float("inf"))
        if ends < self._locks_end_at and not self.is_fenced:
            self._locks_end_at = ends
            self._deadlines.set(self._deadline, ends - self._clock.monotonic())

    def _keep(self, runs: Sequence[Run], done: Done) -> None:
        if self.is_fenced:  # whoever leads it now knows better
            done(NotLeaderOrFollower())
            return
        batches = [StateBatch(run.first, run.last, int(run.state), run.delivery_count) for run in runs]
        self._write(self.start_offset, self.delivery_complete_count, batches, done)

    # ------------------------------------------------------------ going on

    def _advance_and_tell(self) -> None:
        self.advance()
        self._changed()

    def advance(self) -> None:
        """What is done with at the beginning is behind us; batches that are done with are forgotten."""
        start, done_with = self.start_offset, 0
        for batch in self.batches:
            batch.merge()
            first_open = next((run for run in batch.runs if not run.is_complete and run.last >= start), None)
            if first_open is not None:
                start = max(start, first_open.first)
                break
            done_with += 1
        else:
            start = self.next_offset
        self.start_offset = start
        del self.batches[:done_with]

    def log_start_moved(self, offset: int) -> None:
        """There is nothing below that offset any more. It is written down with whatever is written next."""
        if offset <= self.start_offset:
            return
        self.start_offset = offset
        self.next_offset = max(self.next_offset, offset)
        self.batches = [batch for batch in self.batches if batch.last >= offset]
        if self.batches and self.batches[0].first < offset:
            for run in self.batches[0].within(self.batches[0].first, offset - 1):
                run.archive()
        self.advance()
