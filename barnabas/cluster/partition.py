"""One partition as a broker serves it: its log, who leads it, and who waits for it to grow.

Knows nothing of requests. This is the object through which handlers reach a log; replication is learned here, behind
the same calls: append, know when it is committed, read up to what the reader may see.
"""

import contextlib
from collections.abc import Callable

from barnabas.cluster.image import PartitionImage
from barnabas.errors import (
    FencedLeaderEpoch,
    KafkaError,
    KafkaStorageError,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    UnknownLeaderEpoch,
)
from barnabas.log.partition_log import Appended, PartitionLog
from barnabas.records.batch import RecordBatch
from barnabas.records.validation import ProducePolicy

READ_UNCOMMITTED = 0
READ_COMMITTED = 1

Waiter = Callable[[int], object]
"""Called with the number of bytes that were appended, or with 0 when the partition is no longer what it was."""


class Partition:
    """A partition that this node hosts."""

    __slots__ = (
        "_committed_waiters",
        "_waiters",
        "image",
        "index",
        "leader_epoch",
        "leads",
        "log",
        "node_id",
        "produce_policy",
        "topic",
        "topic_id",
    )

    def __init__(
        self, topic: str, topic_id: bytes, index: int, node_id: int, log: PartitionLog, produce_policy: ProducePolicy
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.node_id = node_id
        self.log = log
        self.produce_policy = produce_policy  #: what the topic's configs ask of a producer's batch
        self.image: PartitionImage
        self.leads = False  #: whether this node is the leader
        self.leader_epoch = -1
        self._waiters: set[Waiter] = set()
        self._committed_waiters: set[Waiter] = set()

    def __repr__(self) -> str:
        return f"Partition({self.topic}-{self.index}, leader epoch {self.leader_epoch})"

    # ------------------------------------------------------------ leadership

    def lead(self, image: PartitionImage) -> None:
        """The metadata image says so: who leads, in which epoch, with which replicas in sync."""
        self.image = image
        self.leads = image.leader == self.node_id
        if image.leader_epoch != self.leader_epoch:
            self.leader_epoch = image.leader_epoch
            if self.leads:
                with contextlib.suppress(KafkaStorageError):  # the directory is offline, and has said so
                    self.log.assign_leader_epoch(image.leader_epoch)
                self._commit()
            self.wake()

    def check_leader(self, current_leader_epoch: int = -1) -> None:
        """Raise unless this node leads the partition, in the epoch that the client believes in (KIP-320).

        -1 is a client that doesn't say.
        """
        if self.log.is_offline:
            raise KafkaStorageError
        if current_leader_epoch not in (-1, self.leader_epoch):
            raise FencedLeaderEpoch if current_leader_epoch < self.leader_epoch else UnknownLeaderEpoch
        if not self.leads:
            raise NotLeaderOrFollower

    # ------------------------------------------------------------ appending

    def append(
        self, batch: RecordBatch, now_ms: int, *, all_in_sync: bool = False, by_coordinator: bool = False
    ) -> Appended:
        """Stamp the batch in place, append it, and wake who waits. ``all_in_sync`` asks for ``min.insync.replicas``.

        ``by_coordinator``: a coordinator wrote it on behalf of a producer, whose sequences it does not know.
        """
        if all_in_sync and not self.log.is_offline:
            enough = min(self.log.config.min_insync_replicas, len(self.image.replicas))
            if len(self.image.isr) < enough:
                raise NotEnoughReplicas(
                    f"{len(self.image.isr)} replicas are in sync, min.insync.replicas wants {enough}"
                )
        stable = self.log.last_stable_offset
        appended = self.log.append_as_leader(
            batch, leader_epoch=self.leader_epoch, now_ms=now_ms, by_coordinator=by_coordinator
        )
        if not appended.is_duplicate:
            self._commit()
            if self._committed_waiters and self.log.last_stable_offset > stable:
                self._tell_committed(stable, batch)
            if self._waiters:
                size = batch.size_in_bytes
                for waiter in list(self._waiters):
                    waiter(size)
        return appended

    def _tell_committed(self, stable: int, batch: RecordBatch) -> None:
        """Who reads committed transactions may see more than up to ``stable``: the batch, or whole transactions."""
        if stable == batch.base_offset:
            size = batch.size_in_bytes
        else:
            try:
                size = self.log.bytes_between(stable, self.log.last_stable_offset)
            except KafkaError:
                size = 0  # they will find out for themselves
        for waiter in list(self._committed_waiters):
            waiter(size)

    def _commit(self) -> None:
        """What every replica in sync has is committed: on one node, what the log has."""
        self.log.maybe_set_high_watermark(self.log.log_end_offset)

    # ------------------------------------------------------------ reading

    def readable_up_to(self, isolation_level: int) -> int:
        """The first offset that a client may not see."""
        log = self.log
        return log.last_stable_offset if isolation_level == READ_COMMITTED else log.high_watermark

    def read(self, offset: int, max_bytes: int, *, up_to: int, minimum_one: bool) -> bytes:
        """Whole batches from the one that holds ``offset``, as the log has them; empty at ``up_to``.

        :raises OffsetOutOfRange: before the log's start, or beyond what may be seen
        """
        log = self.log
        if not log.log_start_offset <= offset <= up_to:
            if up_to < offset <= log.log_end_offset:
                return b""
            raise OffsetOutOfRange(
                f"offset {offset} of {self.topic}-{self.index} is not within {log.log_start_offset} and {up_to}"
            )
        return log.read(offset, max_bytes, up_to=up_to, minimum_one=minimum_one) if offset < up_to else b""

    # ------------------------------------------------------------ waiting

    def add_waiter(self, waiter: Waiter, isolation_level: int = READ_UNCOMMITTED) -> None:
        """Tell the waiter of every append, or of what ends of transactions make readable."""
        (self._committed_waiters if isolation_level == READ_COMMITTED else self._waiters).add(waiter)

    def remove_waiter(self, waiter: Waiter) -> None:
        self._waiters.discard(waiter)
        self._committed_waiters.discard(waiter)

    def wake(self) -> None:
        """Something else than an append happened: whoever waits must look again."""
        for waiter in [*self._waiters, *self._committed_waiters]:
            waiter(0)
