"""One member's fetch of share partitions: reads and acquires records, at once or when there are enough to acquire.

Knows nothing of requests and responses. Rules of Apache Kafka's ``DelayedShareFetch`` and ``ShareFetchUtils``: a fetch
that finds too little waits for appended batches, released records and expired locks. A share partition that is new to
the broker is included once its state has been read. The fetch ends as soon as the included partitions have enough
records: a first fetch often returns only one of its partitions.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from barnabas.broker.share_partitions import CachedSharePartition, SharePartitions
from barnabas.clock import Scheduler
from barnabas.cluster.replication.delayed_fetch import DelayedFetch
from barnabas.cluster.replication.partition import READ_COMMITTED
from barnabas.errors import KafkaError, UnknownServerError
from barnabas.log.transaction_index import AbortedTransaction
from barnabas.log.transactions import marker_of
from barnabas.records.batch import RecordBatch, batches
from barnabas.share.acquiring import Acquired, Wanted, acquire, without_aborted
from barnabas.share.messages import TopicPartition


class Node(Protocol):
    """The part of the broker that is used here."""

    @property
    def scheduler(self) -> Scheduler: ...

    @property
    def share_partitions(self) -> SharePartitions: ...


FIRST_READ_BYTES, READ_GROWTH = 65_536, 16
"""The size of the first read, and the factor by which each further read is larger until there are enough records."""


class Fetched(NamedTuple):
    """The result of the fetch of one partition."""

    records: bytes | memoryview = b""  #: whole batches of the log, with all acquired records
    acquired: Sequence[Acquired] = ()
    error: KafkaError | None = None


class FetchLimits(NamedTuple):
    """The limits of a fetch."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int


Results = dict[TopicPartition, Fetched]
Done = Callable[[Results], object]


class ShareFetching:
    """A fetch in progress. Call :meth:`start` once. ``done`` is called once, unless :meth:`stop` is called before."""

    def __init__(
        self,
        node: Node,
        group_id: str,
        wanted: Wanted,
        limits: FetchLimits,
        partitions: Sequence[TopicPartition],
        done: Done,
    ) -> None:
        self._node = node
        self._group_id = group_id
        self._wanted = wanted
        self._limits = limits
        self._requested = partitions
        self._done = done
        self._isolation_level = node.share_partitions.of_group(group_id).isolation_level
        self._cached: dict[TopicPartition, CachedSharePartition] = {}
        self._loading: list[TopicPartition] = []  #: new share partitions that are not included yet
        self._found: Mapping[TopicPartition, CachedSharePartition] = {}  #: those that were acquirable at the last check
        self._results: Results = {}
        self._delayed: DelayedShareFetch | None = None

    def start(self) -> None:
        """Finds or creates the share partitions. Finishes at once if there is enough to acquire."""
        share_partitions = self._node.share_partitions
        for at in self._requested:
            known = share_partitions.find(self._group_id, at)
            if known is not None and known.share is not None:
                self._cached[at] = known
                continue
            try:
                self._cached[at] = share_partitions.lead(self._group_id, at)
            except KafkaError as error:
                self._results[at] = Fetched(error=error)
            else:
                self._loading.append(at)
        if not self._cached or self._limits.max_bytes == 0 or self._wanted.max_records == 0:
            self._finish()
        elif self._is_enough():
            self._read(self._found)
        elif self._limits.max_wait_ms <= 0:
            self.expire()
        else:
            self._delayed = DelayedShareFetch(
                self, self._node.scheduler, self._cached.values(), self._isolation_level, self._limits.max_wait_ms
            )

    # ------------------------------------------------------------ waiting

    def try_complete(self) -> None:
        """Finishes if there is enough to acquire, or nothing to wait for."""
        if self._is_enough():
            self._read(self._found)

    def expire(self) -> None:
        """Finishes with the records that there are, since the wait is over."""
        self._loading.clear()
        self._drop_failed()
        self._read(self._acquirable())

    def stop(self) -> None:
        """Stops waiting."""
        delayed, self._delayed = self._delayed, None
        if delayed is not None:
            delayed.stop()

    def _finish(self) -> None:
        if self._delayed is not None:
            self.stop()
        self._done(self._results)

    # ------------------------------------------------------------ checking

    def _drop_failed(self) -> None:
        """Moves the share partitions that have failed to the results."""
        for at, cached in list(self._cached.items()):
            if cached.error is not None:
                self._results[at] = Fetched(error=cached.error)
                del self._cached[at]

    def _acquirable(self) -> dict[TopicPartition, CachedSharePartition]:
        return {
            at: cached
            for at, cached in self._cached.items()
            if cached.share is not None and at not in self._loading and cached.share.can_acquire()
        }

    def _is_enough(self) -> bool:
        """Returns whether to finish now. Includes loaded share partitions until there is enough."""
        while not (is_enough := self._included_is_enough()) and self._include_next():
            pass
        return is_enough

    def _include_next(self) -> bool:
        """Includes the first share partition that has been loaded since, and returns whether there was one."""
        for at in self._loading:
            if at not in self._cached or self._cached[at].share is not None:
                self._loading.remove(at)
                return True
        return False

    def _included_is_enough(self) -> bool:
        self._drop_failed()
        if not self._cached:
            self._found = {}
            return True
        acquirable = self._found = self._acquirable()
        if not acquirable:
            return False
        size, max_bytes = 0, self._limits.max_bytes // len(acquirable)
        for cached in acquirable.values():
            try:
                size += self._available(cached, max_bytes)
            except KafkaError:
                return True  # the read has the same error
        return size >= self._limits.min_bytes

    def _available(self, cached: CachedSharePartition, max_bytes: int) -> int:
        """Returns the bytes that can be read; a mere 1 if ``min.bytes`` is at most 1. :raises KafkaError: it fails"""
        assert cached.share is not None, "only a loaded share partition is acquirable"
        partition, offset = cached.partition, cached.share.next_fetch_offset()
        partition.check_leader(cached.leader_epoch)
        up_to = partition.readable_up_to(self._isolation_level)
        if offset < partition.log.log_start_offset or max_bytes < 0:
            return self._limits.min_bytes
        if offset >= up_to:
            return 0
        if self._limits.min_bytes <= 1:
            return 1
        return min(partition.log.bytes_between(offset, up_to), max_bytes)

    # ------------------------------------------------------------ reading

    def _read(self, acquirable: Mapping[TopicPartition, CachedSharePartition]) -> None:
        left, minimum_one = self._wanted.max_records, True
        for at, cached in acquirable.items():
            try:
                fetched = self._read_one(cached, left, self._limits.max_bytes // len(acquirable), minimum_one)
            except KafkaError as error:
                fetched = Fetched(error=error)
            left -= sum(each.last_offset - each.first_offset + 1 for each in fetched.acquired)
            minimum_one = minimum_one and not fetched.records
            self._results[at] = fetched
        self._finish()

    def _read_one(self, cached: CachedSharePartition, max_records: int, max_bytes: int, minimum_one: bool) -> Fetched:
        partition, share = cached.partition, cached.share
        assert share is not None, "only a loaded share partition is acquirable"
        partition.check_leader(cached.leader_epoch)
        offset = share.next_fetch_offset()
        if offset < partition.log.log_start_offset:
            share.log_start_moved(partition.log.log_start_offset)
            return Fetched()  # the next fetch starts at the new log start offset
        up_to = partition.readable_up_to(self._isolation_level)
        if max_bytes < 0:
            raise UnknownServerError(f"{max_bytes} bytes cannot be read")
        if offset >= up_to or max_records <= 0:  # a start offset may be set above the end: no error
            return Fetched()
        data, read = self._data(cached, offset, up_to, max_records, max_bytes, minimum_one)
        if not read:
            return Fetched()
        wanted = self._wanted
        if max_records != wanted.max_records:
            wanted = wanted._replace(max_records=max_records)
        acquired = acquire(share, wanted, offset, read)
        if acquired and self._isolation_level == READ_COMMITTED:
            aborted = aborted_batches(read, partition.log.aborted_transactions(offset, data))
            acquired = without_aborted(share, self._wanted.member_id, acquired, aborted) if aborted else acquired
        return Fetched(_slice(data, read, acquired), acquired) if acquired else Fetched()

    def _data(
        self, cached: CachedSharePartition, offset: int, up_to: int, max_records: int, max_bytes: int, minimum_one: bool
    ) -> tuple[bytes, list[RecordBatch]]:
        """Returns batches from ``offset`` on; of those never delivered, no more than can be acquired."""
        partition, share = cached.partition, cached.share
        assert share is not None, "only a loaded share partition is acquirable"
        room = share.limits().record_locks - share.in_flight_count
        enough = share.next_offset + max(min(max_records, room), 0)
        size = min(max_bytes, FIRST_READ_BYTES)
        while True:
            data = partition.read(offset, size, up_to=up_to, minimum_one=minimum_one)
            read = until(enough, data)
            if size == max_bytes or (read and read[-1].next_offset >= min(enough, up_to)):
                return data, read
            size = min(size * READ_GROWTH, max_bytes)


class DelayedShareFetch(DelayedFetch):
    """A share fetch that waits for its share partitions, too: for their state, and for released records."""

    __slots__ = ("_fetching", "_share_partitions")

    def __init__(
        self,
        fetching: ShareFetching,
        scheduler: Scheduler,
        share_partitions: Iterable[CachedSharePartition],
        isolation_level: int,
        max_wait_ms: int,
    ) -> None:
        self._fetching = fetching
        self._share_partitions = list(share_partitions)
        for each in self._share_partitions:
            each.waiters[self.look_soon] = None
        partitions = [each.partition for each in self._share_partitions]
        super().__init__(scheduler, partitions, isolation_level, max_wait_ms)

    def try_complete(self) -> None:
        self._look = None
        self._fetching.try_complete()

    def expire(self) -> None:
        self._fetching.expire()

    def stop(self) -> None:
        super().stop()
        for each in self._share_partitions:
            each.waiters.pop(self.look_soon, None)


def until(offset: int, data: bytes) -> list[RecordBatch]:
    """Returns the batches up to the one that reaches that offset."""
    read = []
    for batch in batches(data):
        read.append(batch)
        if batch.next_offset >= offset:
            break
    return read


def _slice(data: bytes, read: Sequence[RecordBatch], acquired: Sequence[Acquired]) -> bytes | memoryview:
    """Returns the batches from the first to the last with acquired records."""
    first, last = acquired[0].first_offset, acquired[-1].last_offset
    start = end = 0
    for batch in read:
        size = batch.size_in_bytes
        if batch.last_offset < first:
            start += size
        if batch.base_offset <= last:
            end += size
        else:
            break
    return data if end - start == len(data) else memoryview(data)[start:end]


def aborted_batches(read: Sequence[RecordBatch], aborted: Sequence[AbortedTransaction]) -> list[RecordBatch]:
    """Returns the batches of aborted transactions, without their markers."""
    upcoming = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
    producers: set[int] = set()
    found = []
    for batch in read:
        if not batch.has_producer_id:
            continue
        while upcoming and upcoming[-1].first_offset <= batch.last_offset:
            producers.add(upcoming.pop().producer_id)
        if batch.is_control:
            marker = marker_of(batch)
            if marker is not None and marker.is_abort:
                producers.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in producers:
            found.append(batch)
    return found
