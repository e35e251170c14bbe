"""A partition on this node: its log, its role, and the callbacks that wait for its watermarks.

Knows nothing of requests. Apache Kafka's ``Partition``. Only this module decides when an appended batch may be
acknowledged, and up to which offset a client may read.
"""

import contextlib
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.cluster.image.image import PartitionImage
from barnabas.cluster.replication.traffic import Traffic
from barnabas.errors import (
    FencedLeaderEpoch,
    KafkaError,
    KafkaStorageError,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    UnknownLeaderEpoch,
)
from barnabas.log.follower import Fetched, Follower
from barnabas.log.partition_log import Appended, PartitionLog
from barnabas.records.batch import RecordBatch
from barnabas.records.validation import ProducePolicy

if TYPE_CHECKING:
    from barnabas.cluster.replication.followers import Followers, Replica, Replication

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
READ_LOG_END: Final = 2
"""The isolation level of followers, beside those of consumers (``FetchIsolation.LOG_END``)."""
LOW_WATERMARK: Final = 3
"""The watermark for DeleteRecords: no replica has records before it."""

ACKS_ALL: Final = -1
"""The ``acks`` that wait for all in-sync replicas."""

Watcher = Callable[[int], object]
"""Called with the number of bytes that have become readable; with 0 after another change: the leader or its epoch, the
log start offset, or the state of the log.
"""

Watchers = dict[Watcher, None]
"""In the order in which they were added, so that runs are reproducible."""

Done = Callable[[KafkaError | None], object]
"""Called with None when records are safe, or with the error because of which they may not become safe."""


class Unsafe(NamedTuple):
    """Appended records that are not safe yet, and their callback."""

    offset: int  #: the end offset of the records
    flush_offset: int  #: the offset up to which the log has to be flushed; 0 for no flush
    done: Done


class Partition:
    """A partition that this node hosts."""

    __slots__ = (
        "_end_watchers",
        "_low_watchers",
        "_replication",
        "_stable_watchers",
        "_unsafe",
        "_watchers",
        "batches",
        "followers",
        "image",
        "index",
        "leader_epoch",
        "leads",
        "log",
        "node_id",
        "produce_policy",
        "topic",
        "topic_id",
        "traffic",
    )

    def __init__(
        self,
        topic: str,
        topic_id: bytes,
        index: int,
        node_id: int,
        log: PartitionLog,
        produce_policy: ProducePolicy,
        replication: "Callable[[], Replication] | None" = None,
    ) -> None:
        """Hosts a partition. ``replication`` is required to lead a partition with followers."""
        self._replication = replication
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.node_id = node_id
        self.produce_policy = produce_policy  #: the topic's configs that apply to a producer's batch
        self.image: PartitionImage
        self.batches = 0  #: batches that the leader was given, since somebody last read it
        self.traffic: Traffic | None = None  #: their bytes and records; None if nobody reads it
        self.leads = False  #: whether this node is the leader
        self.leader_epoch = -1
        self.followers: Followers | None = None  #: if this node leads, and there are other replicas
        self._end_watchers: Watchers = {}  # of the log end offset
        self._low_watchers: Watchers = {}  # of the low watermark
        self._watchers: Watchers = {}  # of the high watermark
        self._stable_watchers: Watchers = {}  # of the last stable offset
        self._unsafe: dict[bool, deque[Unsafe]] = {}  # in the order of the log, by whether acks is all
        self.use_log(log)

    def __repr__(self) -> str:
        return f"Partition({self.topic}-{self.index}, leader epoch {self.leader_epoch})"

    def use_log(self, log: PartitionLog) -> None:
        """Serves the partition from ``log``: its first one, or the copy in another log directory."""
        self.log = log
        log.on_change = self._log_changed
        if self.leads and self.traffic is not None:
            self.traffic.end()
            self.traffic.begin(log)
        if self.leads and self.followers is not None:
            self.followers.log = log
        if self.leads:
            log.assign_leader_epoch(self.leader_epoch)

    # ------------------------------------------------------------ leadership

    def become_leader(self, image: PartitionImage) -> None:
        """Becomes the leader in the epoch of ``image``, with its ISR.

        An image of the same epoch may change the ISR, which may advance the high watermark.
        """
        self.image = image
        is_new_epoch = image.leader_epoch != self.leader_epoch or not self.leads
        if not self.leads and self.traffic is not None:
            self.traffic.begin(self.log)
        self.leads = True
        if is_new_epoch:
            self.leader_epoch = image.leader_epoch
            with contextlib.suppress(KafkaStorageError):  # the offline log directory was reported
                self.log.assign_leader_epoch(image.leader_epoch)
        self._know_followers(image)
        self._progressed()
        if is_new_epoch:
            self._changed()

    def _know_followers(self, image: PartitionImage) -> None:
        if len(image.replicas) == 1:
            self._forget_followers()
            return
        if self.followers is None:
            from barnabas.cluster.replication.followers import Followers

            assert self._replication is not None
            name = (self.topic, self.topic_id, self.index)
            self.followers = Followers(
                self.node_id, name, self.log, self._replication(), self._progressed, self._started_later
            )
        self.followers.lead(image)

    def _forget_followers(self) -> None:
        if self.followers is not None:
            self.followers.close()
            self.followers = None

    def become_follower(self, image: PartitionImage) -> None:
        """Becomes a follower: another node leads the partition, or none."""
        led = self.leads
        is_new_epoch = image.leader_epoch != self.leader_epoch
        self.image = image
        self._lead_no_more()
        self.leader_epoch = image.leader_epoch
        if led:
            self._fail_unsafe(NotLeaderOrFollower())
        if led or is_new_epoch:
            self._changed()

    def _lead_no_more(self) -> None:
        if self.leads and self.traffic is not None:
            self.traffic.end()
        self.leads = False
        self._forget_followers()

    def count_traffic(self) -> None:
        """Counts the bytes and records that the leader appends from now on."""
        self.traffic = Traffic()
        self.batches = 0
        if self.leads:
            self.traffic.begin(self.log)

    def close(self, error: KafkaError) -> None:
        """Fails all waiting callbacks: the partition, or its replica on this node, is deleted."""
        self._lead_no_more()
        self.log.on_change = None
        self._fail_unsafe(error)
        self._changed()

    def check_leader(self, current_leader_epoch: int = -1) -> None:
        """Checks that this node leads the partition, in the leader epoch of the client.

        :raises KafkaError: it does not, or :meth:`check_epoch` fails
        """
        self.check_epoch(current_leader_epoch)
        if not self.leads:
            raise NotLeaderOrFollower

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Checks that the leader epoch of the client is that of this node (KIP-320), and that the log is online.

        The epoch is -1 if the client does not send one.
        """
        if self.log.is_offline:
            raise KafkaStorageError
        if current_leader_epoch not in (-1, self.leader_epoch):
            raise FencedLeaderEpoch if current_leader_epoch < self.leader_epoch else UnknownLeaderEpoch

    # ------------------------------------------------------------ appending

    def append(self, batch: RecordBatch, now_ms: int, *, acks: int = 1, by_coordinator: bool = False) -> Appended:
        """Stamps the batch in place and appends it. :meth:`is_safe` and :meth:`when_safe` tell when it is safe.

        :param by_coordinator: whether a coordinator writes for a producer, without its sequence numbers
        :raises NotLeaderOrFollower: this node does not lead the partition
        :raises NotEnoughReplicas: ``acks`` is -1 (all), and fewer than ``min.insync.replicas`` are in sync
        """
        log = self.log
        if not self.leads and not log.is_offline:
            raise NotLeaderOrFollower
        if acks == ACKS_ALL and self.followers is not None:
            self._check_in_sync(self.followers)
        appended = log.append_as_leader(
            batch, leader_epoch=self.leader_epoch, now_ms=now_ms, by_coordinator=by_coordinator
        )
        self.batches += 1  # whether or not somebody reads it: to look costs as much
        if not appended.is_duplicate:
            self._advance_high_watermark(batch)
        elif self.traffic is not None:
            self.traffic.add_duplicate(batch)
        return appended

    def _check_in_sync(self, followers: "Followers") -> None:
        if len(followers.isr) < followers.min_isr and not self.log.is_offline:
            raise NotEnoughReplicas(
                f"{len(followers.isr)} replicas are in sync, min.insync.replicas wants {followers.min_isr}"
            )

    def _advance_high_watermark(self, batch: RecordBatch | None = None) -> None:
        """Raises the high watermark to the smallest log end offset of the ISR, and calls the watchers.

        Without followers it is the log end offset. ``batch`` is the batch that has just been appended.
        """
        log = self.log
        if self.followers is None:
            committed = log.log_end_offset
        else:
            committed = self.followers.committed_offset()
            if batch is not None:
                for watcher in list(self._end_watchers):
                    watcher(batch.size_in_bytes)
        if not (self._watchers or self._stable_watchers):
            log.maybe_set_high_watermark(committed)
            return
        high_watermark, stable = log.high_watermark, log.last_stable_offset
        log.maybe_set_high_watermark(committed)
        self._tell_of_progress(high_watermark, stable, batch)

    def _tell_of_progress(self, high_watermark: int, stable: int, batch: RecordBatch | None) -> None:
        """Calls the watchers of the watermarks that have changed."""
        log = self.log
        if self._watchers and log.high_watermark > high_watermark:
            self._tell(self._watchers, high_watermark, log.high_watermark, batch)
        if self._stable_watchers and log.last_stable_offset > stable:
            self._tell(self._stable_watchers, stable, log.last_stable_offset, batch)

    def _progressed(self) -> None:
        """Handles progress of followers, or a change of the ISR."""
        if self.leads and not self.log.is_offline:
            self._advance_high_watermark()
            self._complete_safe()

    def _started_later(self) -> None:
        """Handles an increase of a follower's log start offset."""
        for watcher in list(self._low_watchers):
            watcher(0)

    # ------------------------------------------------------------ replicas

    @property
    def low_watermark(self) -> int:
        """The smallest log start offset of the replicas (KIP-107)."""
        return self.log.log_start_offset if self.followers is None else self.followers.low_watermark

    def replica(self, broker_id: int, *, has_epoch: bool) -> "Replica":
        """Returns the follower on that broker.

        :raises KafkaError: those of :meth:`Followers.replica`
        """
        if self.followers is None:
            from barnabas.cluster.replication.followers import no_replica

            raise no_replica(has_epoch=has_epoch)
        return self.followers.replica(broker_id, has_epoch=has_epoch)

    # ------------------------------------------------------------ following

    def follow(self, fetched: Fetched, now_ms: int, leader_epoch: int) -> int:
        """Applies fetched data of the leader, and calls the watchers. Returns the number of appended bytes.

        :raises KafkaError: those of :meth:`Follower.apply`
        """
        log = self.log
        high_watermark, stable = log.high_watermark, log.last_stable_offset
        size = Follower(log).apply(fetched, now_ms, leader_epoch)
        self._tell_of_progress(high_watermark, stable, None)
        return size

    # ------------------------------------------------------------ safety

    def is_safe(self, offset: int, acks: int) -> bool:
        """Returns whether all records before ``offset``, just appended, may be acknowledged.

        Fewer than ``flush.messages`` records of the log are not flushed; with ``acks=-1`` (all) the whole ISR has the
        records, too.
        """
        log = self.log
        return offset - log.recovery_point < log.config.flush_messages and (
            acks != ACKS_ALL or offset <= log.high_watermark
        )

    def when_safe(self, offset: int, acks: int, done: Done) -> None:
        """Calls ``done(None)`` when all records before ``offset`` are safe (:meth:`is_safe`); immediately if they are.

        Callbacks with the same ``acks`` are called in the order of the log: records that are safe immediately are
        acknowledged after earlier ones that are not. ``done`` may append.

        ``done`` gets an error instead if this node loses leadership (NotLeaderOrFollower), the disk fails
        (KafkaStorageError) or the partition is deleted (UnknownTopicOrPartition). The records are in the log then, and
        may still become safe.
        """
        log, wants_all = self.log, acks == ACKS_ALL
        if log.is_offline:
            done(KafkaStorageError())
            return
        unsafe = self._unsafe.get(wants_all)
        if unsafe is None:
            if self.is_safe(offset, acks):
                done(None if self.followers is None or not wants_all else self._too_few())
                return
            unsafe = self._unsafe[wants_all] = deque()
        flush_offset = offset if offset - log.recovery_point >= log.config.flush_messages else 0
        unsafe.append(Unsafe(offset, flush_offset, done))
        if flush_offset:
            log.when_flushed(flush_offset, self._flushed)

    def stop_waiting(self, done: Done) -> None:
        """Removes the callback."""
        for wants_all, unsafe in list(self._unsafe.items()):
            for each in [each for each in unsafe if each.done == done]:
                unsafe.remove(each)
            if not unsafe:
                del self._unsafe[wants_all]

    def _too_few(self) -> KafkaError | None:
        """Returns the error for records that the whole ISR has, if the ISR is smaller than ``min.insync.replicas``."""
        return None if self.followers is None or self.followers.are_enough else NotEnoughReplicasAfterAppend()

    def _flushed(self) -> None:
        if not self.log.is_offline:
            self._complete_safe()

    def _log_changed(self) -> None:
        """Handles a change of the log start offset, or a failed disk."""
        if self.log.is_offline:
            self._fail_unsafe(KafkaStorageError())
        self._changed()

    def _complete_safe(self) -> None:
        """Calls the callbacks whose records are safe."""
        for wants_all, unsafe in list(self._unsafe.items()):
            try:
                while unsafe:
                    first, log = unsafe[0], self.log
                    if first.flush_offset > log.recovery_point or (wants_all and first.offset > log.high_watermark):
                        break
                    # The queue stays until its last call has returned, since later appends wait behind it.
                    unsafe.popleft().done(self._too_few() if wants_all else None)
            finally:
                if not unsafe and self._unsafe.get(wants_all) is unsafe:
                    del self._unsafe[wants_all]

    def _fail_unsafe(self, error: KafkaError) -> None:
        """Fails all waiting callbacks: their records may not become safe."""
        waiting, self._unsafe = self._unsafe, {}
        for unsafe in waiting.values():
            while unsafe:
                unsafe.popleft().done(error)

    # ------------------------------------------------------------ reading

    def readable_up_to(self, isolation_level: int) -> int:
        """Returns the end offset of the records that a client may read."""
        log = self.log
        if isolation_level == READ_LOG_END:
            return log.log_end_offset
        return log.last_stable_offset if isolation_level == READ_COMMITTED else log.high_watermark

    def read(self, offset: int, max_bytes: int, *, up_to: int, minimum_one: bool, cached_only: bool = False) -> bytes:
        """Returns whole batches from the one with ``offset`` on, as in the log; none at ``up_to``.

        :raises OffsetOutOfRange: ``offset`` is before the log start offset, or after ``up_to``
        :raises NotCached: ``cached_only`` is set, and the read would wait for the disk
        """
        log = self.log
        if not log.log_start_offset <= offset <= up_to:
            if up_to < offset <= log.log_end_offset:
                return b""
            raise OffsetOutOfRange(
                f"offset {offset} of {self.topic}-{self.index} is not within {log.log_start_offset} and {up_to}"
            )
        if offset == up_to:
            return b""
        return log.read(offset, max_bytes, up_to=up_to, minimum_one=minimum_one, cached_only=cached_only)

    # ------------------------------------------------------------ watermarks

    def watch(self, watcher: Watcher, isolation_level: int) -> None:
        """Calls ``watcher`` whenever a client with that isolation level can read more, or the partition has changed.

        The level may also be :data:`READ_LOG_END` or :data:`LOW_WATERMARK`. The watcher may be called during an append,
        and must not read in the call.
        """
        self._watchers_of(isolation_level)[watcher] = None

    def _watchers_of(self, isolation_level: int) -> Watchers:
        return (self._watchers, self._stable_watchers, self._end_watchers, self._low_watchers)[isolation_level]

    def unwatch(self, watcher: Watcher) -> None:
        """Removes the watcher."""
        for watchers in (self._watchers, self._stable_watchers, self._end_watchers, self._low_watchers):
            watchers.pop(watcher, None)

    def _tell(self, watchers: Watchers, before: int, after: int, batch: RecordBatch | None) -> None:
        """Calls the watchers of a watermark with the number of bytes that it has passed."""
        if batch is not None and before == batch.base_offset:
            size = batch.size_in_bytes
        else:
            try:
                size = self.log.bytes_between(before, after)
            except KafkaError:
                size = 0
        for watcher in list(watchers):
            watcher(size)

    def _changed(self) -> None:
        """Calls all watchers with 0."""
        for watcher in [*self._watchers, *self._stable_watchers, *self._end_watchers, *self._low_watchers]:
            watcher(0)
