"""A leader's view of its followers: their log end offsets, and the ISR.

Knows nothing of requests, nor of how a change of the ISR is sent to the controller. Apache Kafka's ``Replica`` and the
leader's half of its ``Partition`` (the states of the ISR KIP-497, eligible replicas KIP-841 and KIP-903, the high
watermark below ``min.insync.replicas`` KIP-966).
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple, Protocol

from barnabas.clock import Clock
from barnabas.cluster.image.image import BrokerImage, PartitionImage
from barnabas.errors import (
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidRequest,
    InvalidUpdateVersion,
    KafkaError,
    NewLeaderElected,
    NotLeaderOrFollower,
    OperationNotAttempted,
    UnknownLeaderEpoch,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.log.partition_log import PartitionLog

logger = logging.getLogger(__name__)

UNKNOWN = -1
LONG_AGO = float("-inf")

NOT_APPLIED = (OperationNotAttempted, IneligibleReplica)
"""After these errors the controller has not changed the ISR, and the leader returns to the committed one."""

METADATA_FOLLOWS = (
    UnknownTopicOrPartition, UnknownTopicId, FencedLeaderEpoch, InvalidUpdateVersion, InvalidRequest, NewLeaderElected,
)  # fmt: skip
"""After these errors the leader waits for newer metadata. After other errors the request is repeated."""


class IsrChange(NamedTuple):
    """The ISR that a leader proposes."""

    topic_id: bytes
    partition: int
    leader_epoch: int
    partition_epoch: int  #: the epoch of the ISR before
    isr: Mapping[int, int]  #: broker epochs by broker, -1 if not known


class CommittedIsr(NamedTuple):
    """The ISR that the controller has committed."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]


class Replication(Protocol):
    """The node, as leaders use it."""

    @property
    def clock(self) -> Clock: ...

    @property
    def brokers(self) -> Mapping[int, BrokerImage]:
        """The registered brokers."""

    @property
    def broker_epoch(self) -> int: ...

    @property
    def lag_time_max(self) -> float:
        """``replica.lag.time.max.ms``, in seconds."""

    def change_isr(self, change: IsrChange, done: Callable[[CommittedIsr | None, KafkaError | None], object]) -> None:
        """Sends the change to the controller. ``done`` is called later, with the result for this partition."""

    def look_at(self, look: Callable[[], object]) -> None:
        """Calls ``look`` periodically, to find followers that have stopped fetching."""

    def look_no_more(self, look: Callable[[], object]) -> None: ...


class Replica:
    """A follower, as its leader knows it from its fetches. Times are by the clock's ``monotonic``."""

    __slots__ = (
        "broker_epoch", "broker_id", "caught_up_at", "fetched_at", "leader_end_offset", "log_end_offset",
        "log_start_offset",
    )  # fmt: skip

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch: int | None = None  #: of its last fetch; -1 if that had none
        self.log_start_offset = UNKNOWN
        self.log_end_offset = UNKNOWN
        self.leader_end_offset = UNKNOWN  #: the leader's log end offset at the last fetch
        self.fetched_at = LONG_AGO
        self.caught_up_at = LONG_AGO  #: when the follower last had all records that the leader had at a fetch

    def new_epoch(self, now: float, leader_end_offset: int, *, is_new_leader: bool, is_in_sync: bool) -> None:
        """Resets the state for a leader epoch: a replica in the ISR has the maximum lag to fetch."""
        if is_new_leader:
            self.broker_epoch = None
            self.log_start_offset = self.log_end_offset = self.leader_end_offset = UNKNOWN
            self.fetched_at = LONG_AGO
        else:
            self.leader_end_offset = leader_end_offset
            self.fetched_at = now if is_in_sync else LONG_AGO
        self.caught_up_at = now if is_in_sync else LONG_AGO

    def fetched(
        self, offset: int, log_start_offset: int, leader_end_offset: int, broker_epoch: int, now: float
    ) -> None:
        """Handles a fetch from ``offset``: the follower has all records before it."""
        if offset >= leader_end_offset:
            self.caught_up_at = max(self.caught_up_at, now)
        elif offset >= self.leader_end_offset:
            self.caught_up_at = max(self.caught_up_at, self.fetched_at)
        self.log_end_offset, self.log_start_offset = offset, log_start_offset
        self.leader_end_offset = max(self.leader_end_offset, leader_end_offset)
        self.fetched_at = now
        self.broker_epoch = broker_epoch

    def is_caught_up(self, leader_end_offset: int, now: float, lag_time_max: float) -> bool:
        """Returns whether the follower is at the leader's end, or was so within ``lag_time_max``."""
        return self.log_end_offset == leader_end_offset or now - self.caught_up_at <= lag_time_max


class Followers:
    """The followers of a partition that this node leads.

    :param progressed: called when the high watermark may advance
    :param started_later: called when the low watermark may advance
    """

    def __init__(
        self,
        node_id: int,
        name: tuple[str, bytes, int],
        log: PartitionLog,
        replication: Replication,
        progressed: Callable[[], object],
        started_later: Callable[[], object],
    ) -> None:
        self._node_id = node_id
        self._topic, self._topic_id, self._index = name
        self.log = log
        self._replication = replication
        self._progressed = progressed
        self._started_later = started_later
        self._replicas: dict[int, Replica] = {}
        self.isr: tuple[int, ...] = ()  #: as committed by the controller
        self._maximal_isr: tuple[int, ...] = ()  # the ISR, and replicas that are proposed to join it
        self._change: IsrChange | None = None  # the change in flight
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.epoch_start_offset = UNKNOWN  #: the log end offset when the leader epoch began
        replication.look_at(self.look)

    def __repr__(self) -> str:
        return f"Followers of {self._topic}-{self._index}"

    # ------------------------------------------------------------ metadata

    def lead(self, image: PartitionImage) -> None:
        """Updates replicas and ISR from the metadata. Newer metadata drop the proposal in flight."""
        if image.partition_epoch <= self.partition_epoch:
            return  # the controller's response has arrived before its records; a proposal after it counts already
        followers = [broker_id for broker_id in image.replicas if broker_id != self._node_id]
        self._replicas = {each: self._replicas.get(each) or Replica(each) for each in followers}
        self._commit(image.isr, image.partition_epoch)
        if image.leader_epoch == self.leader_epoch:
            return
        is_new_leader = self.leader_epoch < 0
        self.leader_epoch = image.leader_epoch
        self.epoch_start_offset = end = self.log.log_end_offset
        now = self._replication.clock.monotonic()
        for replica in self._replicas.values():
            replica.new_epoch(now, end, is_new_leader=is_new_leader, is_in_sync=replica.broker_id in image.isr)

    def _commit(self, isr: tuple[int, ...], partition_epoch: int) -> None:
        self._change = None
        self.isr = self._maximal_isr = isr
        self.partition_epoch = partition_epoch

    def close(self) -> None:
        """Forgets the followers: this node leads no longer. A response to a change in flight is ignored."""
        self._change = None
        self._replication.look_no_more(self.look)

    # ------------------------------------------------------------ fetches

    def replica(self, broker_id: int, *, has_epoch: bool) -> Replica:
        """Returns the follower on that broker.

        :param has_epoch: whether the fetch has the current leader epoch
        :raises UnknownLeaderEpoch: it is no replica in this node's metadata, which may be older than the follower's
        :raises NotLeaderOrFollower: it is no replica, and its request has no leader epoch
        """
        replica = self._replicas.get(broker_id)
        if replica is None:
            raise no_replica(has_epoch=has_epoch)
        return replica

    def check_epoch(self, broker_id: int, broker_epoch: int) -> None:
        """Checks the broker epoch of a follower (KIP-903).

        :param broker_epoch: of the follower; -1 if it has none
        :raises NotLeaderOrFollower: the broker has been restarted since
        """
        alive = self._alive(broker_id)
        if broker_epoch != -1 and alive is not None and alive.epoch > broker_epoch:
            raise NotLeaderOrFollower(f"broker {broker_id} has epoch {alive.epoch}, not {broker_epoch}")

    def fetched(
        self, replica: Replica, offset: int, log_start_offset: int, leader_end_offset: int, broker_epoch: int
    ) -> None:
        """Handles a fetch, which may add the follower to the ISR and advance the high watermark.

        :param leader_end_offset: the log end offset before the read
        :param broker_epoch: of the follower; -1 if it has none
        :raises NotLeaderOrFollower: the broker has been restarted since
        """
        self.check_epoch(replica.broker_id, broker_epoch)
        has_progressed, starts_later = replica.log_end_offset != offset, replica.log_start_offset != log_start_offset
        replica.fetched(offset, log_start_offset, leader_end_offset, broker_epoch, self._replication.clock.monotonic())
        if replica.broker_id not in self._maximal_isr and self._change is None and self._may_come(replica):
            isr = (*self.isr, replica.broker_id)
            logger.info("%s-%d: proposing the ISR %s, with %d", self._topic, self._index, isr, replica.broker_id)
            self._maximal_isr = isr
            self._propose(isr)
        if has_progressed:
            self._progressed()
        if starts_later:
            self._started_later()

    @property
    def replicas(self) -> Iterable[Replica]:
        """The followers."""
        return self._replicas.values()

    def in_sync(self) -> Iterable[Replica]:
        """Returns the followers in the ISR."""
        return (replica for replica in self._replicas.values() if replica.broker_id in self.isr)

    @property
    def low_watermark(self) -> int:
        """The smallest log start offset of the leader and its followers on unfenced brokers (KIP-107)."""
        followers = (each.log_start_offset for each in self._replicas.values() if self._alive(each.broker_id))
        return min((self.log.log_start_offset, *followers))

    # ------------------------------------------------------------ in-sync replicas

    @property
    def has_high_watermark(self) -> bool:
        """Whether the high watermark has reached the start of the leader epoch (KIP-207)."""
        return self.log.high_watermark >= self.epoch_start_offset

    @property
    def min_isr(self) -> int:
        """``min.insync.replicas``, or the number of replicas if that is smaller."""
        return min(self.log.config.min_insync_replicas, len(self._replicas) + 1)

    @property
    def are_enough(self) -> bool:
        """Whether the maximal ISR has at least :attr:`min_isr` replicas (``checkEnoughReplicasReachOffset``)."""
        return len(self._maximal_isr) >= self.min_isr

    def committed_offset(self) -> int:
        """Returns the offset before which all records are committed; -1 while too few replicas are in sync (KIP-966).

        It is the smallest log end offset of the maximal ISR, and of replicas that are caught up and may join it soon.
        """
        if len(self.isr) < self.min_isr:
            return UNKNOWN
        end = offset = self.log.log_end_offset
        now, lag_time_max = self._replication.clock.monotonic(), self._replication.lag_time_max
        for replica in self._replicas.values():
            if replica.log_end_offset < offset and (
                replica.broker_id in self._maximal_isr
                or (replica.is_caught_up(end, now, lag_time_max) and self._is_eligible(replica))
            ):
                offset = replica.log_end_offset
        return offset

    def _alive(self, broker_id: int) -> BrokerImage | None:
        broker = self._replication.brokers.get(broker_id)
        return None if broker is None or broker.fenced else broker

    def _is_eligible(self, replica: Replica) -> bool:
        broker = self._alive(replica.broker_id)
        return broker is not None and not broker.in_controlled_shutdown and replica.broker_epoch in (-1, broker.epoch)

    def _may_come(self, replica: Replica) -> bool:
        """Returns whether a follower has all committed records, and all of earlier leader epochs."""
        needed = max(self.log.high_watermark, self.epoch_start_offset)
        return replica.log_end_offset >= needed and self._is_eligible(replica)

    def look(self) -> None:
        """Proposes an ISR without the replicas that have lagged for too long."""
        if self._change is None:
            end, now = self.log.log_end_offset, self._replication.clock.monotonic()
            lag_time_max = self._replication.lag_time_max
            lagging = {
                replica.broker_id for replica in self.in_sync() if not replica.is_caught_up(end, now, lag_time_max)
            }
            lagging |= {each for each in self.isr if each != self._node_id and each not in self._replicas}
            if lagging:
                isr = tuple(broker_id for broker_id in self.isr if broker_id not in lagging)
                logger.info("%s-%d: proposing the ISR %s, without %s", self._topic, self._index, isr, sorted(lagging))
                self._propose(isr)
        self._progressed()

    # ------------------------------------------------------------ changes

    def _propose(self, isr: tuple[int, ...]) -> None:
        epochs = {broker_id: self._epoch_of(broker_id) for broker_id in isr}
        change = IsrChange(self._topic_id, self._index, self.leader_epoch, self.partition_epoch, epochs)
        self._send(change)

    def _epoch_of(self, broker_id: int) -> int:
        if broker_id == self._node_id:
            return self._replication.broker_epoch
        replica = self._replicas.get(broker_id)
        return -1 if replica is None or replica.broker_epoch is None else replica.broker_epoch

    def _send(self, change: IsrChange) -> None:
        self._change = change
        self._replication.change_isr(change, partial(self._answered, change))

    def _answered(self, change: IsrChange, committed: CommittedIsr | None, error: KafkaError | None) -> None:
        """Handles the controller's response (``Partition.submitAlterPartition``)."""
        if change is not self._change:
            return  # the metadata is newer, or the leader has changed
        if committed is None:
            logger.info("%s-%d: the ISR stays %s: %r", self._topic, self._index, self.isr, error)
            if isinstance(error, NOT_APPLIED):
                self._commit(self.isr, self.partition_epoch)
                self._progressed()
            elif not isinstance(error, METADATA_FOLLOWS):
                self._send(change)
        elif committed.leader_epoch == self.leader_epoch and committed.partition_epoch >= self.partition_epoch:
            self._commit(committed.isr, committed.partition_epoch)
            self._progressed()


def no_replica(*, has_epoch: bool) -> KafkaError:
    """Returns the error for a broker without a replica (``Partition.followerReplicaOrThrow``)."""
    return UnknownLeaderEpoch() if has_epoch else NotLeaderOrFollower("the sender has no replica of this partition")
