"""The share partitions that this node leads: created by the first fetch of a group, and dropped when they are fenced.

Knows nothing of requests. Rules of Apache Kafka's ``SharePartitionManager``: the leader of a partition leads its share
partitions; it reads and writes their state through the share coordinator, which fences earlier leaders.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from barnabas.broker.environment import NodeEnvironment
from barnabas.broker.persister import Persister, Progress
from barnabas.broker.share_sessions import SessionKey, ShareSession, ShareSessions
from barnabas.cluster.features import SHARE_VERSION
from barnabas.cluster.image.image import MetadataDelta
from barnabas.cluster.replication.partition import READ_COMMITTED, READ_UNCOMMITTED, Partition
from barnabas.config.dynamic import GROUP_RESOURCE
from barnabas.config.group import GroupSettings
from barnabas.deadlines import Deadlines
from barnabas.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    FencedLeaderEpoch,
    FencedStateEpoch,
    GroupIdNotFound,
    KafkaError,
    NotCoordinator,
    NotLeaderOrFollower,
    OffsetNotAvailable,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from barnabas.share.messages import UNKNOWN_START_OFFSET, Outcome, Outcomes, StateBatch, TopicPartition
from barnabas.share.partition import Acknowledgement, Done, Limits, SharePartition

logger = logging.getLogger(__name__)

MAX_CACHED_LIMITS = 1000
"""The number of groups whose settings are cached: a client may name any group."""

NOT_HOSTED = UnknownTopicOrPartition.message

PERSISTER_ERRORS: dict[type[KafkaError], type[KafkaError]] = {
    NotCoordinator: CoordinatorNotAvailable,
    CoordinatorNotAvailable: CoordinatorNotAvailable,
    CoordinatorLoadInProgress: CoordinatorNotAvailable,
    GroupIdNotFound: GroupIdNotFound,
    UnknownTopicOrPartition: UnknownTopicOrPartition,
    FencedLeaderEpoch: NotLeaderOrFollower,
    FencedStateEpoch: NotLeaderOrFollower,
}
"""Errors for members, by error of the persister. All others become UNKNOWN_SERVER_ERROR."""

FENCING = (NotLeaderOrFollower, GroupIdNotFound, UnknownTopicOrPartition)
"""Errors after which the cached share partition is dropped."""

Results = dict[TopicPartition, KafkaError | None]
ResultsDone = Callable[[Results], object]


class GroupLimits(NamedTuple):
    """The settings of a share group that its share partitions use."""

    limits: Limits
    isolation_level: int
    lock_ms: int
    auto_offset_reset: str


class CachedSharePartition:
    """A share partition of a partition that this node leads: loading, active or fenced."""

    __slots__ = (
        "error",
        "group_id",
        "is_left",
        "leader_epoch",
        "partition",
        "share",
        "state_epoch",
        "waiters",
        "writes",
    )

    def __init__(self, group_id: str, partition: Partition) -> None:
        self.group_id = group_id
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.state_epoch = 0
        self.share: SharePartition | None = None  #: None until its state has been read
        self.error: KafkaError | None = None  #: the error with which loading failed, or that fenced it
        self.waiters: dict[Callable[[], object], None] = {}  #: callbacks of waiting fetches, longest first
        self.writes = 0  #: the number of writes without an outcome
        self.is_left = False  #: whether no member of the group is connected any more

    def wake(self) -> None:
        """Calls the waiting fetches: there may be records to acquire."""
        for waiter in list(self.waiters):
            waiter()


class Node(NodeEnvironment, Protocol):
    """The part of the broker that is used here."""

    @property
    def persister(self) -> Persister: ...

    def topic_name(self, topic_id: bytes, /) -> str | None:
        """Returns the name of the topic with that id, None if there is none."""


class SharePartitions:
    """All share partitions and share sessions of a broker."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.sessions = ShareSessions(lambda: node.config["group.share.max.share.sessions"])
        self._deadlines = Deadlines(node.clock, node.scheduler)
        self._cached: dict[tuple[str, bytes, int], CachedSharePartition] = {}
        self._group_limits: dict[str, GroupLimits] = {}
        node.persister.on_change = self.on_reset

    def of_group(self, group_id: str) -> GroupLimits:
        """Returns the current settings of the group."""
        found = self._group_limits.get(group_id)
        if found is None:
            settings = GroupSettings(self._node.config, self._node.image.configs_of(GROUP_RESOURCE, group_id))
            lock_ms: int = settings["share.record.lock.duration.ms"]
            is_committed = settings["share.isolation.level"] == "read_committed"
            if len(self._group_limits) >= MAX_CACHED_LIMITS:
                self._group_limits.clear()
            found = self._group_limits[group_id] = GroupLimits(
                Limits(
                    lock_ms / 1000,
                    settings["share.delivery.count.limit"],
                    settings["share.partition.max.record.locks"],
                    settings["share.renew.acknowledge.enable"],
                ),
                READ_COMMITTED if is_committed else READ_UNCOMMITTED,
                lock_ms,
                settings["share.auto.offset.reset"],
            )
        return found

    # ------------------------------------------------------------ leading

    @property
    def in_flight(self) -> dict[str, int]:
        """The records between the start offset and the next offset of share partitions, by group."""
        found = Counter[str]()
        for cached in self._cached.values():
            found[cached.group_id] += 0 if cached.share is None else cached.share.in_flight_count
        return dict(found)

    def find(self, group_id: str, at: TopicPartition) -> CachedSharePartition | None:
        """Returns the share partition, if it is cached. Releases records whose locks are due first."""
        self._deadlines.run_due()
        return self._cached.get((group_id, *at))

    def lead(self, group_id: str, at: TopicPartition) -> CachedSharePartition:
        """Returns the share partition. The state of a new one is read first: until then its ``share`` is None.

        :raises KafkaError: this node does not lead the partition
        """
        self._deadlines.run_due()
        key = (group_id, *at)
        cached = self._cached.get(key)
        if cached is None:
            name = self._node.topic_name(at[0])
            if name is None:
                raise UnknownTopicOrPartition
            partition = self._node.partition(name, at[1])
            partition.check_leader()
            cached = self._cached[key] = CachedSharePartition(group_id, partition)
            self._node.persister.read(group_id, *at, cached.leader_epoch, partial(self._read, key, cached))
        cached.is_left = False
        return cached

    def _read(self, key: tuple[str, bytes, int], cached: CachedSharePartition, outcomes: Outcomes) -> None:
        """Handles the response of the persister to the read."""
        if cached.error is not None:
            return
        try:
            outcome = outcomes[key[1:]]
            error = translated(outcome, "read")
            if error is not None:
                raise error
            cached.state_epoch = outcome.state.state_epoch
            start_offset = outcome.state.start_offset
            if start_offset == UNKNOWN_START_OFFSET:
                start_offset = self._first_offset(cached)
            cached.share = SharePartition(
                outcome.state,
                start_offset,
                limits=lambda: (self._group_limits.get(key[0]) or self.of_group(key[0])).limits,
                clock=self._node.clock,
                deadlines=self._deadlines,
                write=partial(self._write, key, cached),
                changed=cached.wake,
            )
        except ValueError as error:
            logger.error("Invalid state of %s of share group %s: %s", cached.partition, cached.group_id, error)
            self._drop(key, UnknownServerError())
        except KafkaError as error:
            self._drop(key, error)
        cached.wake()

    def _first_offset(self, cached: CachedSharePartition) -> int:
        """Returns the start offset of a new share partition. :raises OffsetNotAvailable: no record is new enough"""
        log, reset = cached.partition.log, self.of_group(cached.group_id).auto_offset_reset
        if reset == "earliest":
            return log.log_start_offset
        if reset == "latest":
            return log.high_watermark
        since = self._node.clock.time_ms() - duration_ms(reset.partition(":")[2])
        found = log.offset_for_timestamp(since, log.high_watermark)
        if found is None:
            raise OffsetNotAvailable
        return found[1]

    def _write(
        self,
        key: tuple[str, bytes, int],
        cached: CachedSharePartition,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
        done: Done,
    ) -> None:
        def written(outcomes: Outcomes) -> None:
            cached.writes -= 1
            error = translated(outcomes[key[1:]], "write")
            if isinstance(error, FENCING) and self._cached.get(key) is cached:
                self._drop(key, error)
            done(error)
            if cached.is_left and not cached.writes and self._cached.get(key) is cached:
                self._drop(key, NotLeaderOrFollower())

        def progress() -> Progress:
            if cached.share is None:
                return Progress(start_offset, delivery_complete_count)
            return Progress(cached.share.start_offset, cached.share.delivery_complete_count)

        cached.writes += 1
        self._node.persister.write(*key, cached.state_epoch, cached.leader_epoch, progress, batches, written)

    def _drop(self, key: tuple[str, bytes, int], error: KafkaError) -> None:
        """Drops and fences a share partition. The next fetch reads its state again."""
        cached = self._cached.pop(key, None)
        if cached is not None:
            cached.error = error
            if cached.share is not None:
                cached.share.fence()
            cached.wake()

    # ------------------------------------------------------------ members

    def acknowledge(
        self, key: SessionKey, acknowledged: Mapping[TopicPartition, Sequence[Acknowledgement]], done: ResultsDone
    ) -> None:
        """Applies the acknowledgements of a member, and calls ``done`` with the results by partition."""
        calls: dict[TopicPartition, Callable[[Done], object]] = {}
        for at, acknowledgements in acknowledged.items():
            cached = self.find(key.group_id, at)
            if cached is None or cached.share is None:
                calls[at] = lambda done: done(UnknownTopicOrPartition(NOT_HOSTED))
            else:
                calls[at] = partial(cached.share.acknowledge, key.member_id, acknowledgements)
        _together(calls, done)

    def close_session(self, session: ShareSession, done: Callable[[], object]) -> None:
        """Closes a session. The share partitions of the group stay until the member's connection is closed, too."""
        self.sessions.close(session)
        if all(group_id != session.key.group_id for group_id, _, _ in self._cached):
            self.sessions.detach(session)
        self._release(session, done)

    def _release(self, session: ShareSession, done: Callable[[], object] = lambda: None) -> None:
        """Releases the records that the member of a closed session has acquired."""
        calls: dict[TopicPartition, Callable[[Done], object]] = {}
        for at in session.partitions:
            cached = self.find(session.key.group_id, at)
            if cached is not None and cached.share is not None:
                calls[at] = partial(cached.share.release, session.key.member_id)
        _together(calls, lambda results: done())

    # ------------------------------------------------------------ dropping

    def disconnected(self, connection: int) -> None:
        """Ends the sessions of a closed connection. With a group's last session its share partitions are dropped."""
        opened = self.sessions.disconnected(connection)
        for session, has_ended in opened:
            if has_ended:
                self._release(session)
        for group_id in {session.key.group_id for session, _ in opened}:
            if not self.sessions.has_members(group_id):
                self._drop_group(group_id)

    def on_reset(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Drops share partitions whose offsets have been altered or deleted."""
        for at in partitions:
            self._drop((group_id, *at), NotLeaderOrFollower())

    def _drop_group(self, group_id: str) -> None:
        """Drops the share partitions of a group. The next fetch reads their state again.

        One with a write stays until that has an outcome: what is read meanwhile would not have it, and a later attempt
        of the write would not know what came after it.
        """
        for key, cached in [(key, cached) for key, cached in self._cached.items() if key[0] == group_id]:
            cached.is_left = True
            if not cached.writes:
                self._drop(key, NotLeaderOrFollower())

    def on_image(self, delta: MetadataDelta) -> None:
        """Drops the settings and share partitions that the change of the metadata makes stale."""
        if delta.configs:
            self._group_limits.clear()
        if SHARE_VERSION in delta.features and not self._node.image.features.get(SHARE_VERSION):
            self._drop_all()
        for key, cached in list(self._cached.items()):
            _, topic_id, index = key
            is_deleted = topic_id in delta.deleted_topics
            if is_deleted or index in delta.partitions.get(topic_id, ()):
                is_current = (
                    not is_deleted and cached.partition.leads and cached.partition.leader_epoch == cached.leader_epoch
                )
                if not is_current:
                    self._drop(key, UnknownTopicOrPartition() if is_deleted else NotLeaderOrFollower())

    def close(self) -> None:
        """Stops all timers, and drops all share partitions and sessions."""
        self._deadlines.close()
        self._drop_all()

    def _drop_all(self) -> None:
        for key in list(self._cached):
            self._drop(key, NotLeaderOrFollower())
        self.sessions.clear()


def translated(outcome: Outcome, operation: str) -> KafkaError | None:
    """Returns the error for the member, by the persister's outcome (``SharePartition.fetchPersisterError``)."""
    if outcome.error is None:
        return None
    return PERSISTER_ERRORS.get(type(outcome.error), UnknownServerError)(
        f"Error in {operation} state RPC. {outcome.error}"
    )


def _together(calls: Mapping[TopicPartition, Callable[[Done], object]], done: ResultsDone) -> None:
    """Runs all calls, and calls ``done`` with the results once all of them are done."""
    results: Results = {}

    def finished(at: TopicPartition, error: KafkaError | None) -> None:
        results[at] = error
        if len(results) == len(calls):
            done(results)

    if not calls:
        done({})
    for at, call in calls.items():
        call(partial(finished, at))


def duration_ms(text: str) -> int:
    """Returns the milliseconds of an ISO 8601 duration, of days at most (``java.time.Duration``).

    >>> duration_ms("P1DT2H3M4.5S")
    93784500
    """
    import re

    units = {"D": 86_400_000, "H": 3_600_000, "M": 60_000, "S": 1000}
    found: list[tuple[str, str]] = re.findall(r"([\d.]+)([DHMS])", text.upper())
    return sum(int(float(number) * units[unit]) for number, unit in found)
