"""A share partition: the records of one partition that one group has in flight (Kafka's ``SharePartition``).

Knows nothing of requests, sessions and logs, nor of where the state is stored: it is loaded from what the caller
passes, and written by a callback. Records are acquired for a member under a lock with a time limit. The member accepts,
releases, rejects or renews them. Everything below the *start offset* is done.

Three rules differ from Apache Kafka, without effect on what a client may rely on. Gaps in a loaded state are batches
that no member has read. Records below a new log start offset are archived at once, not when their lock ends. All locks
that end at the same moment are written as one change.
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

NOT_FOUND = "Batch record not found. The request batch offsets are not found in the cache."
FIRST_NEVER_ACQUIRED = "Batch record not found. The first offset in request is past acquired records."
LAST_NEVER_ACQUIRED = "Batch record not found. The last offset in request is past acquired records."
NOT_ACQUIRED = "The batch cannot be acknowledged. The batch is not in the acquired state."
OFFSET_NOT_ACQUIRED = "The offset cannot be acknowledged. The offset is not acquired."
NOT_THE_OWNER = "Member is not the owner of batch record"
NO_RENEWAL = "Renewing acquisition locks is not enabled for the group."
NOT_THE_OWNER_OF_OFFSET = "Member is not the owner of offset"

Done = Callable[[KafkaError | None], object]
"""Called once, when the change is durable, or with the error if nothing has changed."""

Write = Callable[[int, int, Sequence[StateBatch], Done], object]
"""Writes a start offset, the number of records behind it that are done, and the state of some records."""


class Limits(NamedTuple):
    """The current configs of the group."""

    lock_seconds: float  #: ``share.record.lock.duration.ms``
    delivery_count: int  #: ``share.delivery.count.limit``
    record_locks: int  #: ``share.partition.max.record.locks``
    may_renew: bool = True  #: ``share.renew.acknowledge.enable``


class Acknowledgement(NamedTuple):
    """What a member says of the records between two offsets, both included."""

    first_offset: int
    last_offset: int
    types: Sequence[int]  #: one for all records, or one for each


class SharePartition:
    """The records of one partition that one group has in flight, and its start offset."""

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
        """:param start_offset: that of the state, or where a group without one begins
        :param changed: called when there may be records to acquire that were not available before
        """
        self.limits = limits
        self._clock = clock
        self._deadlines = deadlines
        self._write = write
        self._changed = changed
        self._deadline = Deadline(self._locks_end)
        self._locks_end_at = float("inf")
        self.is_fenced = False
        self.start_offset = start_offset
        self.next_offset = start_offset  #: the first offset that was never in flight
        self.batches: list[InFlightBatch] = []  #: in offset order
        self.may_have_available = False  #: False if it is certain that no record is available
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
        """Stops: another leader has the share partition. Nothing can be acquired, acknowledged or written any more."""
        self.is_fenced = True
        self._deadline.cancel()
        self._changed()

    # ------------------------------------------------------------ what there is

    @property
    def in_flight_count(self) -> int:
        """How many records lie between the start offset and the next offset."""
        return self.next_offset - self.start_offset

    @property
    def delivery_complete_count(self) -> int:
        """How many records from the start offset on are acknowledged or archived."""
        return sum(count for batch in self.batches for count in batch.completed(self.start_offset))

    def next_fetch_offset(self) -> int:
        """Returns the offset to read next: the first record that is available or was never in flight."""
        if self.may_have_available:
            for batch in self.batches:
                for run in batch.runs:
                    if run.is_available and run.last >= self.start_offset:
                        return max(run.first, self.start_offset)
            self.may_have_available = False
        return self.next_offset

    def can_acquire(self) -> bool:
        """Returns whether a record can be acquired: one is available, or there is room for one more in flight."""
        return self.next_fetch_offset() != self.next_offset or self.in_flight_count < self.limits().record_locks

    def overlapping(self, first: int, last: int) -> list[InFlightBatch]:
        """Returns the batches with an offset from ``first`` to ``last``, both included."""
        at = max(bisect_right(self.batches, first, key=FIRST) - 1, 0)
        end = bisect_right(self.batches, last, key=FIRST)
        return [batch for batch in self.batches[at:end] if batch.last >= first]

    def insert(self, batch: InFlightBatch) -> None:
        """Inserts a batch in offset order."""
        self.batches.insert(bisect_right(self.batches, batch.first, key=FIRST), batch)

    def remove(self, batch: InFlightBatch) -> None:
        self.batches.remove(batch)

    # ------------------------------------------------------------ locks

    def lock(self) -> float:
        """Returns when a lock that is taken now ends, and sets the deadline for it."""
        seconds = self.limits().lock_seconds
        until = self._clock.monotonic() + seconds
        if until < self._locks_end_at:
            self._locks_end_at = until
            self._deadlines.set(self._deadline, seconds)
        return until

    def _locks_end(self) -> None:
        """Releases records whose lock has ended. They stay released even if that cannot be written."""
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
            self._write_runs(over, lambda error: self._advance_and_tell())

    # ------------------------------------------------------------ acknowledging

    def acknowledge(self, member_id: str, acknowledgements: Sequence[Acknowledgement], done: Done) -> None:
        """Applies a member's acknowledgements: all of them, or none if one is refused.

        ``done`` gets INVALID_RECORD_STATE for records that the member has not acquired, INVALID_REQUEST for offsets
        that were never in flight, or the error of the write. The caller checks that the types are valid.
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

    def _acknowledge(self, member_id: str, acknowledgement: Acknowledgement, change: Change) -> None:
        for batch in self._batches_of(acknowledgement):
            if not batch.is_split:
                if batch.whole.member_id is None:
                    raise InvalidRecordState(NOT_ACQUIRED)
                if batch.whole.member_id != member_id:
                    raise InvalidRecordState(NOT_THE_OWNER)
                is_covered = acknowledgement.first_offset <= batch.first and batch.last <= acknowledgement.last_offset
                batch.is_split = not is_covered or len(acknowledgement.types) > 1
            first = max(acknowledgement.first_offset, batch.first, self.start_offset)
            last = min(acknowledgement.last_offset, batch.last)
            for kind, start, end in self._types(acknowledgement, first, last):
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
        """Returns the state of a run that is released: archived if the delivery limit is reached."""
        is_over = run.delivery_count >= self.limits().delivery_count
        return RecordState.ARCHIVED if is_over else RecordState.AVAILABLE

    def _batches_of(self, acknowledgement: Acknowledgement) -> list[InFlightBatch]:
        """Returns the batches with the offsets of an acknowledgement."""
        first, last = acknowledgement.first_offset, acknowledgement.last_offset
        at = bisect_right(self.batches, first, key=FIRST) - 1
        if at < 0:
            if not (first < self.start_offset <= last and self.batches):
                raise InvalidRecordState(NOT_FOUND)
            at = 0
        end = bisect_right(self.batches, last, key=FIRST)
        batches = self.batches[at:end]
        if not batches or batches[-1].last < first:
            raise InvalidRequest(FIRST_NEVER_ACQUIRED)
        if batches[-1].last < last:
            raise InvalidRequest(LAST_NEVER_ACQUIRED)
        return [batch for batch in batches if batch.last >= max(first, self.start_offset)]

    @staticmethod
    def _types(acknowledgement: Acknowledgement, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """Yields the ranges of the acknowledgement between two offsets: type, first and last offset of each."""
        if len(acknowledgement.types) == 1:
            yield acknowledgement.types[0], first, last
            return
        wanted = acknowledgement.types[first - acknowledgement.first_offset : last - acknowledgement.first_offset + 1]
        for kind, same in groupby(wanted):
            count = sum(1 for _ in same)
            yield kind, first, first + count - 1
            first += count

    def release(self, member_id: str, done: Done) -> None:
        """Releases all records of a member that leaves."""
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

        def written(error: KafkaError | None) -> None:
            if error is not None:
                self._undo(change)
            else:
                change.complete()
                self._note_available(change.runs)
                self.advance()
            done(error)
            self._changed()

        self._write_runs(change.runs, written)

    def _undo(self, change: Change) -> None:
        change.undo(self._clock.monotonic(), self.limits().delivery_count)
        if change.runs:
            self._note_available(change.runs)
            self._relock(change.runs)

    def _note_available(self, runs: Sequence[Run]) -> None:
        """Notes whether one of the runs is available."""
        if any(run.state is RecordState.AVAILABLE for run in runs):
            self.may_have_available = True

    def _relock(self, runs: Sequence[Run]) -> None:
        """Sets the deadline for the locks of runs that are acquired again."""
        ends = min((run.locked_until for run in runs if run.state is RecordState.ACQUIRED), default=float("inf"))
        if ends < self._locks_end_at and not self.is_fenced:
            self._locks_end_at = ends
            self._deadlines.set(self._deadline, ends - self._clock.monotonic())

    def _write_runs(self, runs: Sequence[Run], done: Done) -> None:
        if self.is_fenced:  # the next leader has the state now
            done(NotLeaderOrFollower())
            return
        batches = [StateBatch(run.first, run.last, int(run.state), run.delivery_count) for run in runs]
        self._write(self.start_offset, self.delivery_complete_count, batches, done)

    # ------------------------------------------------------------ going on

    def _advance_and_tell(self) -> None:
        self.advance()
        self._changed()

    def advance(self) -> None:
        """Moves the start offset over records that are done, and drops batches that are done."""
        start, completed = self.start_offset, 0
        for batch in self.batches:
            batch.merge()
            first_open = next((run for run in batch.runs if not run.is_complete and run.last >= start), None)
            if first_open is not None:
                start = max(start, first_open.first)
                break
            completed += 1
        else:
            start = self.next_offset
        self.start_offset = start
        del self.batches[:completed]

    def log_start_moved(self, offset: int) -> None:
        """Archives everything below the new log start offset. It is written with the next change."""
        if offset <= self.start_offset:
            return
        self.start_offset = offset
        self.next_offset = max(self.next_offset, offset)
        self.batches = [batch for batch in self.batches if batch.last >= offset]
        if self.batches and self.batches[0].first < offset:
            for run in self.batches[0].within(self.batches[0].first, offset - 1):
                run.archive()
        self.advance()
