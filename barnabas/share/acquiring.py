"""Acquires records for a member, out of the batches that were read (``SharePartition.acquire``).

Knows nothing of a batch of the log but its offsets. A client receives whole batches of the log, and beside them the
offsets that it has acquired. Records that are delivered for the first time are acquired in whole batches (*batch
optimized*), or at most as many as the client asks for (*record limit*, KIP-1206). Records that are delivered again are
acquired in the batches in which they were acquired before.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from barnabas.share.in_flight import InFlightBatch, Run
from barnabas.share.partition import SharePartition
from barnabas.share.states import RecordState


class LogBatch(Protocol):
    """A batch of the log."""

    base_offset: int

    @property
    def last_offset(self) -> int: ...


class Acquired(NamedTuple):
    """Records that the member has acquired, and how often they have been delivered."""

    first_offset: int
    last_offset: int
    delivery_count: int


class Wanted(NamedTuple):
    """The request of a member."""

    member_id: str
    max_records: int  #: the rest of a batch may exceed it, unless ``is_record_limit``
    batch_size: int  #: about how many new records are acquired as one batch
    is_record_limit: bool = False


def acquire(share: SharePartition, wanted: Wanted, fetch_offset: int, read: Sequence[LogBatch]) -> list[Acquired]:
    """Acquires records of those read from ``fetch_offset`` on for the member, and returns them in offset order."""
    if not read or wanted.max_records <= 0 or share.is_fenced:
        return []
    return _Acquisition(share, wanted, fetch_offset, read).run()


def throttled_from(limit: int) -> int:
    """Returns the delivery count from which records are acquired in ever smaller batches.

    A record that cannot be processed then does not take its whole batch past the delivery limit.
    """
    return max(2, (limit + 1) // 2)


class _Acquisition:
    """One call of :func:`acquire`."""

    def __init__(self, share: SharePartition, wanted: Wanted, fetch_offset: int, read: Sequence[LogBatch]) -> None:
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
            # No new records can be in flight. Those that are delivered again are in flight already.
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
            if self._left <= 0 or not self._acquire_known(batch):
                break
        else:
            first = max(first, share.next_offset)
            if self._left > 0 and first <= self._last:
                self._acquire_new(first, self._last)
        share.advance()
        return self._acquired

    def _archive_missing(self) -> None:
        """Archives what was in flight and is missing from the batches that were read: it has been compacted away."""
        if self._fetch_offset >= self._base:
            return
        for batch in self._share.overlapping(self._fetch_offset, self._base - 1):
            for run in batch.within(self._fetch_offset, self._base - 1):
                if run.is_available:
                    run.archive()
            if batch.is_unread:
                self._share.remove(batch)
                self._put_back(batch, batch.first, batch.last)

    def _put_back(self, unread: InFlightBatch, first: int, last: int) -> None:
        """Puts the part of a removed unread batch between two offsets back."""
        for run in unread.within(first, last) if first <= last else ():
            self._share.insert(InFlightBatch(run, is_unread=run.is_available))

    # ------------------------------------------------------------ redelivery

    def _acquire_known(self, batch: InFlightBatch) -> bool:
        """Acquires what is available of a batch in flight. Returns False if nothing behind it may be acquired."""
        if batch.is_unread:
            self._acquire_unread(batch)
            return True
        is_throttled = self._is_throttled(batch)
        if is_throttled and self._acquired:
            return False
        is_covered = self._base <= batch.first and batch.last <= self._last
        is_too_much = self._wanted.is_record_limit and batch.count > self._left
        if is_covered and not batch.is_split and not is_too_much and not is_throttled:
            if batch.whole.is_available:
                self._lock(batch.whole)
                self._add(batch.first, batch.last, batch.whole.delivery_count)
            return True
        if not batch.is_split:
            if not batch.whole.is_available:
                return True
            batch.is_split = True
        return not (self._acquire_some(batch) and is_throttled)

    def _is_throttled(self, batch: InFlightBatch) -> bool:
        counts = [
            run.delivery_count
            for run in batch.runs
            if run.is_available and run.first <= self._last and run.last >= self._base
        ]
        return max(counts, default=0) >= throttled_from(self._delivery_limit)

    def _acquire_some(self, batch: InFlightBatch) -> int:
        """Acquires single records of a batch in flight, and returns how many."""
        limit, threshold, size = self._delivery_limit, throttled_from(self._delivery_limit), batch.count
        taken = 0
        most = self._left if self._wanted.is_record_limit else size
        portion: int | None = None
        for run in batch.within(max(self._base, batch.first, self._share.start_offset), min(self._last, batch.last)):
            if not run.is_available:
                continue
            is_last_delivery = limit > 2 and run.delivery_count == limit - 1
            if is_last_delivery and taken:
                break
            if portion is None and run.delivery_count >= threshold:
                portion = max(1, size >> (run.delivery_count - threshold + 1))
                if taken < portion:
                    most = min(most, portion)
            count = min(run.count, most - taken, 1 if is_last_delivery else run.count)
            for piece in batch.within(run.first, run.first + count - 1):
                self._lock(piece)
                self._add(piece.first, piece.last, piece.delivery_count, extends=taken > 0)
            taken += count
            if is_last_delivery or taken >= most:
                break
        return taken

    # ------------------------------------------------------------ for the first time

    def _acquire_unread(self, batch: InFlightBatch) -> None:
        """Acquires records of an unread batch, as new ones."""
        share = self._share
        first, last = max(batch.first, self._base, share.start_offset), min(batch.last, self._last)
        share.remove(batch)
        self._put_back(batch, batch.first, first - 1)
        self._put_back(batch, last + 1, batch.last)
        last_acquired = self._acquire_new(first, last)
        if last_acquired < last:
            share.insert(InFlightBatch(Run(last_acquired + 1, last, RecordState.AVAILABLE, 0), is_unread=True))

    def _acquire_new(self, first: int, last: int) -> int:
        """Acquires new records, in batches that end where batches of the log end.

        Acquires as many as are wanted and the rest of the batch. Returns the last offset that is in flight now.
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
            self._lock(run)
            self._add(run.first, run.last, run.delivery_count)
        share.next_offset = max(share.next_offset, last + 1)
        return last

    def _end_of_batch(self, offset: int) -> int:
        """Returns the last offset of the batch with that offset; the offset itself if no batch has it."""
        for batch in self._read:
            if batch.base_offset <= offset <= batch.last_offset:
                return batch.last_offset
        return offset

    def _portions(self, first: int, last: int) -> list[tuple[int, int]]:
        """Returns the batches into which new records are divided, by their first and last offsets."""
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

    def _lock(self, run: Run) -> None:
        if self._until is None:
            self._until = self._share.lock()
        run.acquire(self._wanted.member_id, self._until)

    def _add(self, first: int, last: int, delivery_count: int, *, extends: bool = False) -> None:
        """Adds records to the result.

        :param extends: they are of the same batch as the last ones, and join them if they have the same delivery count
        """
        self._left -= last - first + 1
        if extends:
            before = self._acquired[-1]
            if before.last_offset + 1 == first and before.delivery_count == delivery_count:
                self._acquired[-1] = before._replace(last_offset=last)
                return
        self._acquired.append(Acquired(first, last, delivery_count))


def without_aborted(
    share: SharePartition, member_id: str, acquired: Sequence[Acquired], aborted: Sequence[LogBatch]
) -> list[Acquired]:
    """Archives the batches of aborted transactions, and returns what is left of the acquired records."""
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


def _outside(records: Acquired, batch: LogBatch) -> list[Acquired]:
    """Returns the parts of the records before and behind a batch."""
    first, last, count = records
    pieces = (first, min(last, batch.base_offset - 1)), (max(first, batch.last_offset + 1), last)
    return [Acquired(start, end, count) for start, end in pieces if start <= end]
