"""The share partitions that this node leads: made when a member first reads them, kept as long as they are of use.

Knows nothing of requests. Rules of Apache Kafka's ``SharePartitionManager``: whoever leads a partition leads what share
groups make of it; the state is read from, and written to, the share coordinator, which tells when somebody newer leads.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from barnabas.broker.environment import NodeEnvironment
from barnabas.broker.persister import Persister
from barnabas.broker.share_sessions import SessionKey, ShareSession, ShareSessions
from barnabas.cluster.features import SHARE_VERSION
from barnabas.cluster.image import MetadataDelta
from barnabas.cluster.partition import READ_COMMITTED, READ_UNCOMMITTED, Partition
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

MOST_LIMITS = 1000
"""Of so many groups the settings are kept at hand: whoever asks may name any group."""

NOT_HOSTED = UnknownTopicOrPartition.message

ERRORS_OF_THE_PERSISTER: dict[type[KafkaError], type[KafkaError]] = {
    NotCoordinator: CoordinatorNotAvailable,
    CoordinatorNotAvailable: CoordinatorNotAvailable,
    CoordinatorLoadInProgress: CoordinatorNotAvailable,
    GroupIdNotFound: GroupIdNotFound,
    UnknownTopicOrPartition: UnknownTopicOrPartition,
    FencedLeaderEpoch: NotLeaderOrFollower,
    FencedStateEpoch: NotLeaderOrFollower,
}
"""What a member is told when its state could not be kept; of anything else, UNKNOWN_SERVER_ERROR."""

FENCING = (NotLeaderOrFollower, GroupIdNotFound, UnknownTopicOrPartition)
"""Errors after which what is known here of a share partition is worth nothing."""

Results = dict[TopicPartition, KafkaError | None]
ResultsDone = Callable[[Results], object]


class GroupLimits(NamedTuple):
    """What a share group is set to, as far as its partitions go by it."""

    limits: Limits
    isolation_level: int
    lock_ms: int
    auto_offset_reset: str


class CachedSharePartition:
    """A share partition whose partition this node leads: its state is being read, is there, or is out of use."""

    __slots__ = ("error", "group_id", "leader_epoch", "partition", "share", "state_epoch", "waiters")

    def __init__(self, group_id: str, partition: Partition) -> None:
        self.group_id = group_id
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.state_epoch = 0
        self.share: SharePartition | None = None  #: None until its state has been read
        self.error: KafkaError | None = None  #: why it never will be, or what fenced it
        self.waiters: dict[Callable[[], object], None] = {}  #: whoever waits for records of it, longest first

    def wake(self) -> None:
        """There may be something to acquire."""
        for waiter in list(self.waiters):
            waiter()


class Node(NodeEnvironment, Protocol):
    """What is needed of this node."""

    @property
    def persister(self) -> Persister: ...

    def topic_name(self, topic_id: bytes, /) -> str | None:
        """Returns the name of the topic with that id, None if there is none."""


class SharePartitions:
    """All of a broker, with the sessions of those who read them."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.sessions = ShareSessions(lambda: node.config["group.share.max.share.sessions"])
        self._deadlines = Deadlines(node.clock, node.scheduler)
        self._led: dict[tuple[str, bytes, int], CachedSharePartition] = {}
        self._group_limits: dict[str, GroupLimits] = {}
        node.persister.on_change = self.begun_anew

    def of_group(self, group_id: str) -> GroupLimits:
        """What the group is set to, now."""
        found = self._group_limits.get(group_id)
        if found is None:
            settings = GroupSettings(self._node.config, self._node.image.configs_of(GROUP_RESOURCE, group_id))
            lock_ms: int = settings["share.record.lock.duration.ms"]
            is_committed = settings["share.isolation.level"] == "read_committed"
            if len(self._group_limits) >= MOST_LIMITS:
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

    def find(self, group_id: str, at: TopicPartition) -> CachedSharePartition | None:
        """What is led of the group's, if any member has read it. Locks that are due have ended by then."""
        self._deadlines.run_due()
        return self._led.get((group_id, *at))

    def lead(self, group_id: str, at: TopicPartition) -> CachedSharePartition:
        """What is to be read. Its state is asked for when it is new: see ``share`` and ``error``, and wait.

        :raises KafkaError: this node does not lead the partition
        """
        self._deadlines.run_due()
        key = (group_id, *at)
        led = self._led.get(key)
        if led is None:
            name = self._node.topic_name(at[0])
            if name is None:
                raise UnknownTopicOrPartition
            partition = self._node.partition(name, at[1])
            partition.check_leader()
            led = self._led[key] = CachedSharePartition(group_id, partition)
            self._node.persister.read(group_id, *at, led.leader_epoch, partial(self._read, key, led))
        return led

    def _read(self, key: tuple[str, bytes, int], led: CachedSharePartition, outcomes: Outcomes) -> None:
        """The state has come, or not."""
        if led.error is not None:
            return
        try:
            outcome = outcomes[key[1:]]
            error = translated(outcome, "read")
            if error is not None:
                raise error
            led.state_epoch = outcome.state.state_epoch
            start_offset = outcome.state.start_offset
            if start_offset == UNKNOWN_START_OFFSET:
                start_offset = self._first_offset(led)
            led.share = SharePartition(
                outcome.state,
                start_offset,
                limits=lambda: self.of_group(led.group_id).limits,
                clock=self._node.clock,
                deadlines=self._deadlines,
                write=partial(self._write, key, led),
                changed=led.wake,
            )
        except ValueError as error:
            logger.error("The state of %s of share group %s makes no sense: %s", led.partition, led.group_id, error)
            self._give_up(key, UnknownServerError())
        except KafkaError as error:
            self._give_up(key, error)
        led.wake()

    def _first_offset(self, led: CachedSharePartition) -> int:
        """Where a group begins that has never read the partition. :raises OffsetNotAvailable: there is no such place"""
        log, reset = led.partition.log, self.of_group(led.group_id).auto_offset_reset
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
        led: CachedSharePartition,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
        done: Done,
    ) -> None:
        def written(outcomes: Outcomes) -> None:
            error = translated(outcomes[key[1:]], "write")
            if isinstance(error, FENCING) and self._led.get(key) is led:
                self._give_up(key, error)
            done(error)

        self._node.persister.write(
            *key, led.state_epoch, led.leader_epoch, start_offset, delivery_complete_count, batches, written
        )

    def _give_up(self, key: tuple[str, bytes, int], error: KafkaError) -> None:
        """What is known of it is not to be used any more; who comes next reads its state anew."""
        led = self._led.pop(key, None)
        if led is not None:
            led.error = error
            if led.share is not None:
                led.share.fence()
            led.wake()

    # ------------------------------------------------------------ what members say

    def acknowledge(
        self, key: SessionKey, said: Mapping[TopicPartition, Sequence[Acknowledgement]], done: ResultsDone
    ) -> None:
        """Take in what a member says of several partitions; ``done`` gets what became of each."""
        asks: dict[TopicPartition, Callable[[Done], object]] = {}
        for at, acknowledgements in said.items():
            led = self.find(key.group_id, at)
            if led is None or led.share is None:
                asks[at] = lambda done: done(UnknownTopicOrPartition(NOT_HOSTED))
            else:
                asks[at] = partial(led.share.acknowledge, key.member_id, acknowledgements)
        _together(asks, done)

    def close_session(self, session: ShareSession, done: Callable[[], object]) -> None:
        """Its member has had enough. What is known of the group stays until the member's connection ends, too."""
        self.sessions.close(session)
        if all(group_id != session.key.group_id for group_id, _, _ in self._led):
            self.sessions.detach(session)
        self._release(session, done)

    def _release(self, session: ShareSession, done: Callable[[], object] = lambda: None) -> None:
        """The session is closed: what its member holds of the partitions in there is for others."""
        asks: dict[TopicPartition, Callable[[Done], object]] = {}
        for at in session.partitions:
            led = self.find(session.key.group_id, at)
            if led is not None and led.share is not None:
                asks[at] = partial(led.share.release, session.key.member_id)
        _together(asks, lambda results: done())

    # ------------------------------------------------------------ the end of things

    def disconnected(self, connection: int) -> None:
        """A client has gone: so have its sessions; and with the last of a group all that is known of it here."""
        opened = self.sessions.disconnected(connection)
        for session, has_ended in opened:
            if has_ended:
                self._release(session)
        for group_id in {session.key.group_id for session, _ in opened}:
            if not self.sessions.has_members(group_id):
                self._forget(group_id)

    def begun_anew(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """What was known of these is of a state that is no more: their group's offsets have been altered or deleted."""
        for at in partitions:
            self._give_up((group_id, *at), NotLeaderOrFollower())

    def _forget(self, group_id: str) -> None:
        """Nobody reads for the group any more; whoever comes reads what was kept of it."""
        for key in [key for key in self._led if key[0] == group_id]:
            self._give_up(key, NotLeaderOrFollower())

    def on_image(self, delta: MetadataDelta) -> None:
        """Leadership, topics and settings may be other ones now."""
        if delta.configs:
            self._group_limits.clear()
        if SHARE_VERSION in delta.features and not self._node.image.features.get(SHARE_VERSION):
            self._give_up_all()
        for key, led in list(self._led.items()):
            _, topic_id, index = key
            is_gone = topic_id in delta.deleted_topics
            if is_gone or index in delta.partitions.get(topic_id, ()):
                is_ours = not is_gone and led.partition.leads and led.partition.leader_epoch == led.leader_epoch
                if not is_ours:
                    self._give_up(key, UnknownTopicOrPartition() if is_gone else NotLeaderOrFollower())

    def close(self) -> None:
        """No lock ends any more, and nobody is waited for."""
        self._deadlines.close()
        self._give_up_all()

    def _give_up_all(self) -> None:
        for key in list(self._led):
            self._give_up(key, NotLeaderOrFollower())
        self.sessions.clear()


def translated(outcome: Outcome, operation: str) -> KafkaError | None:
    """Returns what a member is told of the share coordinator's answer (``SharePartition.fetchPersisterError``)."""
    if outcome.error is None:
        return None
    return ERRORS_OF_THE_PERSISTER.get(type(outcome.error), UnknownServerError)(
        f"Error in {operation} state RPC. {outcome.error}"
    )


def _together(asks: Mapping[TopicPartition, Callable[[Done], object]], done: ResultsDone) -> None:
    """Ask all, and call ``done`` when all have answered."""
    results: Results = {}

    def answered(at: TopicPartition, error: KafkaError | None) -> None:
        results[at] = error
        if len(results) == len(asks):
            done(results)

    if not asks:
        done({})
    for at, ask in asks.items():
        ask(partial(answered, at))


def duration_ms(text: str) -> int:
    """A span of time as ISO 8601 writes it, days the longest unit (``java.time.Duration``).

    >>> duration_ms("P1DT2H3M4.5S")
    93784500
    """
    import re

    units = {"D": 86_400_000, "H": 3_600_000, "M": 60_000, "S": 1000}
    found: list[tuple[str, str]] = re.findall(r"([\d.]+)([DHMS])", text.upper())
    return sum(int(float(number) * units[unit]) for number, unit in found)
