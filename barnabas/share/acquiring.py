"""Acquiring records for a member: which of those that were read, and in what portions (``SharePartition.acquire``).

Knows nothing of what is in a batch of the log but its offsets. What a client gets are whole batches of the log; beside
them it is told which offsets in there are its own. Those that are given for the first time come in whole batches too
(*batch optimized*), or as few as were asked for (*record limit*, KIP-1206); those that come again in the batches in
which they were given before.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from barnabas.share.in_flight import InFlightBatch, Run
from barnabas.share.partition import SharePartition
from barnabas.share.states import RecordState


class Read(Protocol):
    """A batch of the log."""

    base_offset: int

    @property
    def last_offset(self) -> int: ...


class Acquired(NamedTuple):
    """Records that are the member's, and how often they have been given now."""

    first_offset: int
    last_offset: int
    delivery_count: int


class Wanted(NamedTuple):
    """What a member asks for."""

    member_id: str
    max_records: int  #: may be exceeded by the rest of a batch, unless ``is_record_limit``
    batch_size: int  #: of new records, about how many to a portion
    is_record_limit: bool = False


def acquire(share: SharePartition, wanted: Wanted, fetch_offset: int, read: Sequence[Read]) -> list[Acquired]:
    """Give the member what may be given of what was read from ``fetch_offset`` on; in the order of offsets."""
    if not read or wanted.max_records <= 0 or share.is_fenced:
        return []
    return _Acquisition(share, wanted, fetch_offset, read).run()


def throttled_from(limit: int) -> int:
    """From which delivery count on records are given in smaller and smaller portions.

    So that one that cannot be processed does not take the whole batch with it past the limit.
    """
    return max(2, (limit + 1) // 2)


class _Acquisition:
    """One go at it."""

    def __init__(self, share: SharePartition, wanted: Wanted, fetch_offset: int, read: Sequence[Read]) -> None:
        limits = share.limits()
        self._share = share
        self._wanted = wanted
        self._fetch_offset = fetch_offset
        self._read = read
        self._delivery_limit = limits.delivery_count
        self._base = read[0].base_offset
        self._last = read[-1].last_offset
        self._until: float | None = None
        self._left = min(wanted.max_records, limits.record_locks - share.in_flight_count)
        if self._left <= 0 and fetch_offset < share.next_offset:
            # There is no room for new ones. Those that come again have theirs.
            self._left = min(wanted.max_records, share.next_offset - fetch_offset)
            self._last = min(self._last, share.next_offset - 1)
        self._acquired: list[Acquired] = []

    def run(self) -> list[Acquired]:
        if self._left <= 0:
            return []
        share = self._share
        self._archive_missing()
        first = max(self._base, share.start_offset)
        known = share.overlapping(first, self._last)
        for batch in known:
            if self._left <= 0 or not self._again(batch):
                break
        else:
            first = max(first, share.next_offset)
            if self._left > 0 and first <= self._last:
                self._new(first, self._last)
        share.advance()
        return self._acquired

    def _archive_missing(self) -> None:
        """What should have been read and was not has been compacted away since it was given last."""
        if self._fetch_offset >= self._base:
            return
        for batch in self._share.overlapping(self._fetch_offset, self._base - 1):
            for run in batch.within(self._fetch_offset, self._base - 1):
                if run.is_available:
                    run.archive()
            if batch.is_unread:
                self._share.remove(batch)
                self._keep(batch, batch.first, batch.last)

    def _keep(self, unread: InFlightBatch, first: int, last: int) -> None:
        """Put back what is between two offsets of an unread batch that was taken out."""
        for run in unread.within(first, last) if first <= last else ():
            self._share.insert(InFlightBatch(run, is_unread=run.is_available))

    # ------------------------------------------------------------ again

    def _again(self, batch: InFlightBatch) -> bool:
        """Give what is available of a batch that is known. False: nothing that comes after it is to be given."""
        if batch.is_unread:
            self._first_of_unread(batch)
            return True
        is_throttled = self._is_throttled(batch)
        if is_throttled and self._acquired:
            return False
        is_covered = self._base <= batch.first and batch.last <= self._last
        is_too_much = self._wanted.is_record_limit and batch.count > self._left
        if is_covered and not batch.is_split and not is_too_much and not is_throttled:
            if batch.whole.is_available:
                self._take(batch.whole)
                self._tell(batch.first, batch.last, batch.whole.delivery_count)
            return True
        if not batch.is_split:
            if not batch.whole.is_available:
                return True
            batch.is_split = True
        return not (self._some_of(batch) and is_throttled)

    def _is_throttled(self, batch: InFlightBatch) -> bool:
        counts = [
            run.delivery_count
            for run in batch.runs
            if run.is_available and run.first <= self._last and run.last >= self._base
        ]
        return max(counts, default=0) >= throttled_from(self._delivery_limit)

    def _some_of(self, batch: InFlightBatch) -> int:
        """Give records of a batch one by one: how many."""
        limit, threshold, size = self._delivery_limit, throttled_from(self._delivery_limit), batch.count
        taken = 0
        most = self._left if self._wanted.is_record_limit else size
        portion: int | None = None
        for run in batch.within(max(self._base, batch.first, self._share.start_offset), min(self._last, batch.last)):
            if not run.is_available:
                continue
            is_last_chance = limit > 2 and run.delivery_count == limit - 1
            if is_last_chance and taken:
                break
            if portion is None and run.delivery_count >= threshold:
                portion = max(1, size >> (run.delivery_count - threshold + 1))
                if taken < portion:
                    most = min(most, portion)
            count = min(run.count, most - taken, 1 if is_last_chance else run.count)
            for piece in batch.within(run.first, run.first + count - 1):
                self._take(piece)
                self._tell(piece.first, piece.last, piece.delivery_count, goes_on=taken > 0)
            taken += count
            if is_last_chance or taken >= most:
                break
        return taken

    # ------------------------------------------------------------ for the first time

    def _first_of_unread(self, batch: InFlightBatch) -> None:
        """Records in a hole of what was kept are as good as new."""
        share = self._share
        first, last = max(batch.first, self._base, share.start_offset), min(batch.last, self._last)
        share.remove(batch)
        self._keep(batch, batch.first, first - 1)
        self._keep(batch, last + 1, batch.last)
        given_to = self._new(first, last)
        if given_to < last:
            share.insert(InFlightBatch(Run(given_to + 1, last, RecordState.AVAILABLE, 0), is_unread=True))

    def _new(self, first: int, last: int) -> int:
        """Give records that nothing is known of, in portions that end where batches of the log do.

        As many as are wanted, and the rest of the batch. The last offset that is known from now on.
        """
        share, left = self._share, self._left
        if left < last - first + 1:
            last = min(self._end_of_batch(first + left - 1), last)
        for start, end in self._portions(first, last):
            batch = InFlightBatch(Run(start, end, RecordState.AVAILABLE, 0))
            share.insert(batch)
            run = batch.whole
            if self._wanted.is_record_limit and batch.count > left:
                (run,) = batch.within(start, start + left - 1)
                share.may_have_available = True
            self._take(run)
            self._tell(run.first, run.last, run.delivery_count)
        share.next_offset = max(share.next_offset, last + 1)
        return last

    def _end_of_batch(self, offset: int) -> int:
        """The last offset of the batch with that one in it; that one where it is in none."""
        for batch in self._read:
            if batch.base_offset <= offset <= batch.last_offset:
                return batch.last_offset
        return offset

    def _portions(self, first: int, last: int) -> list[tuple[int, int]]:
        """Where records from one offset to another are parted."""
        portions = []
        if not self._wanted.is_record_limit and last - first + 1 > self._wanted.batch_size:
            for batch in self._read:
                if batch.base_offset > last:
                    break
                if batch.base_offset - first >= self._wanted.batch_size:
                    portions.append((first, batch.base_offset - 1))
                    first = batch.base_offset
        portions.append((first, last))
        return portions

    # ------------------------------------------------------------ giving

    def _take(self, run: Run) -> None:
        if self._until is None:
            self._until = self._share.lock()
        run.acquire(self._wanted.member_id, self._until)

    def _tell(self, first: int, last: int, delivery_count: int, *, goes_on: bool = False) -> None:
        """``goes_on``: it is of the same batch as what was given before, and told with it where it is like it."""
        self._left -= last - first + 1
        if goes_on:
            before = self._acquired[-1]
            if before.last_offset + 1 == first and before.delivery_count == delivery_count:
                self._acquired[-1] = before._replace(last_offset=last)
                return
        self._acquired.append(Acquired(first, last, delivery_count))


def without_aborted(
    share: SharePartition, member_id: str, acquired: Sequence[Acquired], aborted: Sequence[Read]
) -> list[Acquired]:
    """What is left for a reader of committed transactions, once the batches of aborted ones have been archived."""
    for batch in aborted:
        for known in share.overlapping(batch.base_offset, batch.last_offset):
            for run in known.within(max(batch.base_offset, known.first), min(batch.last_offset, known.last)):
                if run.member_id == member_id:
                    run.archive()
    left = list(acquired)
    for batch in aborted:
        left = [piece for each in left for piece in _outside(each, batch)]
    share.advance()
    return left


def _outside(records: Acquired, batch: Read) -> list[Acquired]:
    """The parts of ``records`` before and behind a batch."""
    first, last, count = records
    pieces = (first, min(last, batch.base_offset - 1)), (max(first, batch.last_offset + 1), last)
    return [Acquired(start, end, count) for start, end in pieces if start <= end]
