"""One member's fetch of share partitions: read and acquired at once, or as soon as there is something to acquire.

Knows nothing of requests and responses. Rules of Apache Kafka's ``DelayedShareFetch`` and ``ShareFetchUtils``: a fetch
that finds too little waits; a batch that is appended, a record that is released, a lock that ends wakes it. A share
partition that this fetch is the first to read is taken in when its state has been read, and the fetch is answered with
the partitions that were taken in by the time these are enough: often with one, however many it names.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from barnabas.broker.share_partitions import CachedSharePartition, SharePartitions
from barnabas.clock import Scheduler
from barnabas.cluster.delayed_fetch import DelayedFetch
from barnabas.cluster.partition import READ_COMMITTED
from barnabas.errors import KafkaError, UnknownServerError
from barnabas.log.transaction_index import AbortedTransaction
from barnabas.log.transactions import marker_of
from barnabas.records.batch import RecordBatch, batches
from barnabas.share.acquiring import Acquired, Wanted, acquire, without_aborted
from barnabas.share.messages import TopicPartition
from barnabas.share.partition import SharePartition


class Node(Protocol):
    """What is needed of this node."""

    @property
    def scheduler(self) -> Scheduler: ...

    @property
    def share_partitions(self) -> SharePartitions: ...


FIRST_READ, MORE = 65_536, 16
"""How many bytes are read before it is known whether there are enough records in them, and how many times that next."""


class Fetched(NamedTuple):
    """What a member is told of one partition."""

    records: bytes | memoryview = b""  #: whole batches of the log, with all that was acquired in them
    acquired: Sequence[Acquired] = ()
    error: KafkaError | None = None


class FetchLimits(NamedTuple):
    """How much is wanted, and how long it may take."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int


Results = dict[TopicPartition, Fetched]
Done = Callable[[Results], object]


class ShareFetching:
    """A fetch under way. :meth:`start` it once; ``done`` is called once, unless it is :meth:`stop` ped."""

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
        self._asked = partitions
        self._done = done
        self._isolation_level = node.share_partitions.of_group(group_id).isolation_level
        self._led: dict[TopicPartition, CachedSharePartition] = {}
        self._loading: list[TopicPartition] = []  #: partitions that this fetch is the first to read, not taken in yet
        self._results: Results = {}
        self._delayed: DelayedShareFetch | None = None

    def start(self) -> None:
        """Lead what is to be read, and answer if that can be done already."""
        share_partitions = self._node.share_partitions
        for at in self._asked:
            known = share_partitions.find(self._group_id, at)
            try:
                self._led[at] = share_partitions.lead(self._group_id, at)
            except KafkaError as error:
                self._results[at] = Fetched(error=error)
            else:
                if known is None or known.share is None:
                    self._loading.append(at)
        if not self._led or self._limits.max_bytes == 0 or self._wanted.max_records == 0:
            self._finish()
        elif self._is_enough():
            self._read()
        elif self._limits.max_wait_ms <= 0:
            self.expire()
        else:
            self._delayed = DelayedShareFetch(
                self, self._node.scheduler, self._led.values(), self._isolation_level, self._limits.max_wait_ms
            )

    # ------------------------------------------------------------ waiting

    def try_complete(self) -> None:
        """Answers if there is enough to answer with, or nothing to wait for."""
        if self._is_enough():
            self._read()

    def expire(self) -> None:
        """Answers with what there is: the time is up."""
        self._loading.clear()
        self._drop_failed()
        self._read()

    def stop(self) -> None:
        """Stops waiting."""
        delayed, self._delayed = self._delayed, None
        if delayed is not None:
            delayed.stop()

    def _finish(self) -> None:
        self.stop()
        self._done(self._results)

    # ------------------------------------------------------------ looking

    def _drop_failed(self) -> None:
        """Some may have turned out not to be led here."""
        for at, led in list(self._led.items()):
            if led.error is not None:
                self._results[at] = Fetched(error=led.error)
                del self._led[at]

    def _acquirable(self) -> dict[TopicPartition, CachedSharePartition]:
        return {
            at: led
            for at, led in self._led.items()
            if led.share is not None and at not in self._loading and led.share.can_acquire()
        }

    def _is_enough(self) -> bool:
        """Whether there is enough to answer with, or nothing to wait for. Takes in partitions until there is."""
        while not (is_enough := self._taken_in_is_enough()) and self._take_in():
            pass
        return is_enough

    def _take_in(self) -> bool:
        """Takes in the first partition that has been loaded since; returns whether there was one."""
        for at in self._loading:
            if at not in self._led or self._led[at].share is not None:
                self._loading.remove(at)
                return True
        return False

    def _taken_in_is_enough(self) -> bool:
        self._drop_failed()
        if not self._led:
            return True
        acquirable = self._acquirable()
        if not acquirable:
            return False
        size, most = 0, self._limits.max_bytes // len(acquirable)
        for led in acquirable.values():
            try:
                size += self._available(led, most)
            except KafkaError:
                return True  # which reading will tell
        return size >= self._limits.min_bytes

    def _available(self, led: CachedSharePartition, most: int) -> int:
        """How many bytes there are to read: exactly where it matters. :raises KafkaError: reading fails"""
        partition, offset = led.partition, _share(led).next_fetch_offset()
        partition.check_leader(led.leader_epoch)
        up_to = partition.readable_up_to(self._isolation_level)
        if offset < partition.log.log_start_offset or most < 0:
            return self._limits.min_bytes
        if offset >= up_to:
            return 0
        if self._limits.min_bytes <= 1:
            return 1
        return min(partition.log.bytes_between(offset, up_to), most)

    # ------------------------------------------------------------ reading

    def _read(self) -> None:
        acquirable = self._acquirable()
        left, minimum_one = self._wanted.max_records, True
        for at, led in acquirable.items():
            try:
                fetched = self._read_one(led, left, self._limits.max_bytes // len(acquirable), minimum_one)
            except KafkaError as error:
                fetched = Fetched(error=error)
            left -= sum(each.last_offset - each.first_offset + 1 for each in fetched.acquired)
            minimum_one = minimum_one and not fetched.records
            self._results[at] = fetched
        self._finish()

    def _read_one(self, led: CachedSharePartition, max_records: int, max_bytes: int, minimum_one: bool) -> Fetched:
        partition, share = led.partition, _share(led)
        partition.check_leader(led.leader_epoch)
        offset = share.next_fetch_offset()
        if offset < partition.log.log_start_offset:
            share.log_start_moved(partition.log.log_start_offset)
            return Fetched()  # the next fetch finds what there is
        up_to = partition.readable_up_to(self._isolation_level)
        if max_bytes < 0:
            raise UnknownServerError(f"{max_bytes} bytes cannot be read")
        if offset >= up_to or max_records <= 0:  # a group may have been set to begin beyond the end: that is no error
            return Fetched()
        data, read = self._data(led, offset, up_to, max_records, max_bytes, minimum_one)
        if not read:
            return Fetched()
        acquired = acquire(share, self._wanted._replace(max_records=max_records), offset, read)
        if acquired and self._isolation_level == READ_COMMITTED:
            aborted = aborted_batches(read, partition.log.aborted_transactions(offset, data))
            acquired = without_aborted(share, self._wanted.member_id, acquired, aborted) if aborted else acquired
        return Fetched(_slice(data, read, acquired), acquired) if acquired else Fetched()

    def _data(
        self, led: CachedSharePartition, offset: int, up_to: int, max_records: int, max_bytes: int, minimum_one: bool
    ) -> tuple[bytes, list[RecordBatch]]:
        """Batches of the log from ``offset`` on; of those that nobody has had no more than can be acquired."""
        partition, share = led.partition, _share(led)
        room = share.limits().record_locks - share.in_flight_count
        enough = share.next_offset + max(min(max_records, room), 0)
        size = min(max_bytes, FIRST_READ)
        while True:
            data = partition.read(offset, size, up_to=up_to, minimum_one=minimum_one)
            read = until(enough, data)
            if size == max_bytes or (read and read[-1].next_offset >= min(enough, up_to)):
                return data, read
            size = min(size * MORE, max_bytes)


class DelayedShareFetch(DelayedFetch):
    """A share fetch that waits for its share partitions, too: for their state, and for what is released in them."""

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
    """The batches up to the one that reaches that offset."""
    read = []
    for batch in batches(data):
        read.append(batch)
        if batch.next_offset >= offset:
            break
    return read


def _share(led: CachedSharePartition) -> SharePartition:
    assert led.share is not None, "only what has been read back is acquirable"
    return led.share


def _slice(data: bytes, read: Sequence[RecordBatch], acquired: Sequence[Acquired]) -> bytes | memoryview:
    """The batches from the first to the last that something was acquired of."""
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
    """The batches whose records belong to transactions that were aborted; their markers are not among them."""
    to_come = sorted(aborted, key=lambda transaction: transaction.first_offset, reverse=True)
    producers: set[int] = set()
    found = []
    for batch in read:
        if not batch.has_producer_id:
            continue
        while to_come and to_come[-1].first_offset <= batch.last_offset:
            producers.add(to_come.pop().producer_id)
        if batch.is_control:
            marker = marker_of(batch)
            if marker is not None and marker.is_abort:
                producers.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id in producers:
            found.append(batch)
    return found
