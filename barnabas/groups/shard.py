"""One shard of the group coordinator: the groups and offsets of one partition of ``__consumer_offsets``.

Does no I/O and knows no requests. A command is a call; its response is returned, or passed to a callback if it has to
wait. Records are written through one function, and :meth:`GroupShard.replay` applies those of the log. The newer types
of groups have modules of their own (:attr:`consumer`, :attr:`share`, :attr:`streams`). Follows Apache Kafka's
``GroupCoordinatorShard``.
"""

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from barnabas.clock import Clock
from barnabas.config.settings import Settings
from barnabas.deadlines import Deadlines
from barnabas.errors import (
    GroupIdNotFound,
    InconsistentGroupProtocol,
    KafkaError,
    NonEmptyGroup,
    NotCoordinator,
    UnknownMemberId,
)
from barnabas.groups.classic_group import GROUP_TYPE, ClassicGroup, State
from barnabas.groups.config import GroupConfig
from barnabas.groups.environment import ClusterView, CreateTopics, Environment, no_persister, no_topics
from barnabas.groups.group import Group
from barnabas.groups.joining import Joining
from barnabas.groups.kinds import Kinds
from barnabas.groups.ledger import Applier, Ledger, Pair, Write
from barnabas.groups.messages import (
    DescribedGroup,
    ErrorReply,
    Join,
    JoinReply,
    JoinResult,
    LeaveResult,
    LeavingMember,
    ListedGroup,
    Sync,
    SyncReply,
    SyncResult,
)
from barnabas.groups.offset_keeping import CONSUMER, SHARE, OffsetKeeping
from barnabas.groups.persister import Persister
from barnabas.groups.rebalance import Rebalance
from barnabas.groups.records import new_group_pair, new_group_record
from barnabas.groups.replay import Replay
from barnabas.offsets.pending import Transaction
from barnabas.wire.coordinator_records import CoordinatorKey
from barnabas.wire.messages.group_records import (
    ConsumerGroupMetadataKey,
    ShareGroupMetadataKey,
    StreamsGroupMetadataKey,
)

if TYPE_CHECKING:
    from barnabas.groups.consumer_groups import ConsumerGroups
    from barnabas.groups.share.share_groups import ShareGroups
    from barnabas.groups.streams.streams_groups import StreamsGroups

logger = logging.getLogger(__name__)

GIVING_WAY = (CONSUMER, "streams")
"""The types of which an empty group is replaced by a classic group."""

EPOCH_KEYS: Mapping[type[CoordinatorKey], str] = {
    ConsumerGroupMetadataKey: CONSUMER,
    ShareGroupMetadataKey: SHARE,
    StreamsGroupMetadataKey: "streams",
}
"""The keys of the records with a group's epoch. Each new epoch counts as a rebalance."""

NO_PRODUCER_ID = -1


class GroupShard(OffsetKeeping):
    """The groups of one partition. Every command names a group of this partition, which may not exist.

    >>> from barnabas.clock import ManualClock
    >>> clock = ManualClock()
    >>> shard = GroupShard(
    ...     GroupConfig(),
    ...     clock,
    ...     Deadlines(clock, clock),
    ...     write=lambda group_id, records, written, producer, appended: written(None),
    ...     new_uuid=lambda: "1",
    ... )
    >>> shard.leave("readers", [LeavingMember("me")])[0].error
    UnknownMemberId()
    """

    def __init__(
        self,
        config: GroupConfig,
        clock: Clock,
        deadlines: Deadlines,
        *,
        write: Write,
        new_uuid: Callable[[], str],
        index: int = 0,
        rebalances: Counter[str] | None = None,
        image: Callable[[], ClusterView] | None = None,
        settings: Callable[[], Settings] | None = None,
        group_settings: Callable[[str], Settings] | None = None,
        persister: Callable[[], Persister] = no_persister,
        create_topics: CreateTopics = no_topics,
    ) -> None:
        """The last five parameters are for groups of the newer types: see :class:`Environment`.

        :param index: the partition of ``__consumer_offsets``
        :param rebalances: counts the rebalances by group type
        """
        self._rebalances = Counter[str]() if rebalances is None else rebalances
        ledger = Ledger(write, self._applier_of, self._count_epochs)
        super().__init__(config, clock, deadlines, ledger, write=write, index=index)
        self._rebalance = Rebalance(config, clock, deadlines, self._write, self._count_completed)
        self._joining = Joining(self._rebalance, new_uuid)
        self._replay = Replay(self._groups, self.offsets, self._rebalance, clock, ledger)

        def environment() -> Environment:
            assert image is not None and settings is not None and group_settings is not None
            return Environment(
                self._groups,
                ledger,
                clock,
                deadlines,
                new_uuid,
                image,
                settings,
                group_settings,
                self._rebalance,
                persister,
                create_topics,
            )

        self._kinds = Kinds(environment)

    # ------------------------------------------------------------------ kinds

    @property
    def consumer(self) -> "ConsumerGroups":
        """The consumer groups (KIP-848)."""
        kind: ConsumerGroups = self._kinds.of("consumer")
        return kind

    @property
    def share(self) -> "ShareGroups":
        """The share groups (KIP-932)."""
        kind: ShareGroups = self._kinds.of("share")
        return kind

    @property
    def streams(self) -> "StreamsGroups":
        """The streams groups (KIP-1071)."""
        kind: StreamsGroups = self._kinds.of("streams")
        return kind

    def _applier_of(self, key: type[CoordinatorKey]) -> Applier | None:
        return self._replay.appliers.get(key) or self._kinds.applier_of(key)

    def _count_epochs(self, new_records: Sequence[Pair]) -> None:
        for key, value in new_records:
            if value is not None and type(key) in EPOCH_KEYS:
                self._rebalances[EPOCH_KEYS[type(key)]] += 1

    def _count_completed(self) -> None:
        self._rebalances[GROUP_TYPE] += 1

    def topics_changed(self, names: Collection[str]) -> None:
        """Notes that these topics were created or deleted, or have more partitions."""
        self._kinds.topics_changed(names)

    # ---------------------------------------------------------------- members

    def join(self, join: Join, reply: JoinReply) -> None:
        """Handles a JoinGroup. Replies once all members have joined."""
        group = self._groups.get(join.group_id)
        if isinstance(group, ClassicGroup):
            self._joining.join(group, join, reply)
        elif group is not None:
            self._join_newer(group, join, reply)
        elif join.member_id:
            reply(JoinResult.refused(UnknownMemberId(), join.member_id))
        else:
            self._join_first(join, reply)

    def _join_newer(self, group: Group, join: Join, reply: JoinReply) -> None:
        """Joins a group of a newer type. A consumer group accepts members of the classic protocol; an empty group is
        replaced.
        """
        if group.type == CONSUMER and not group.is_empty:
            self.consumer.classic.join(join, reply)
        elif group.type not in GIVING_WAY or not group.is_empty:
            reply(JoinResult.refused(InconsistentGroupProtocol(), ""))
        elif join.member_id:
            reply(JoinResult.refused(UnknownMemberId(), join.member_id))
        else:
            self._join_instead(group, join, reply)

    def _join_instead(self, group: Group, join: Join, reply: JoinReply) -> None:
        """Replaces an empty group by a classic group, which keeps the offsets."""
        successor = ClassicGroup(group.group_id, self._clock.time_ms())

        def written(error: KafkaError | None) -> None:
            if error is None:
                self.join(join, reply)
            else:
                reply(JoinResult.refused(error, join.member_id))

        self._ledger.commit(group.group_id, [*group.tombstones(), new_group_pair(successor)], written)

    def _join_first(self, join: Join, reply: JoinReply) -> None:
        """Creates the group, and joins the member once the record of the group is durable."""
        group = self._create(join.group_id)

        def written(error: KafkaError | None) -> None:
            if error is None:
                self.join(join, reply)  # The group may have been deleted and created again during the write.
                return
            reply(JoinResult.refused(error, join.member_id))
            if self._groups.get(group.group_id) is group:
                del self._groups[group.group_id]
                self._rebalance.abandon(group, error)

        self._write(group.group_id, [new_group_record(group)], written)

    def sync(self, sync: Sync, reply: SyncReply) -> None:
        """Handles a SyncGroup. Replies once the leader has sent the assignment."""
        group = self._groups.get(sync.group_id)
        if isinstance(group, ClassicGroup):
            self._rebalance.sync(group, sync, reply)
        elif group is not None and group.type == CONSUMER:
            self.consumer.classic.sync(sync, reply)
        else:
            reply(SyncResult.refused(UnknownMemberId()))

    def heartbeat(self, group_id: str, member_id: str, group_instance_id: str | None, generation_id: int) -> None:
        """Handles a Heartbeat. :raises KafkaError: the member has to rejoin (REBALANCE_IN_PROGRESS), or the request is
        refused
        """
        group = self._groups.get(group_id)
        if group is not None and group.type == CONSUMER:
            self.consumer.classic.heartbeat(group_id, member_id, group_instance_id, generation_id)
        elif isinstance(group, ClassicGroup):
            self._rebalance.heartbeat(group, member_id, group_instance_id, generation_id)
        else:
            raise UnknownMemberId

    def leave(self, group_id: str, leaving: Sequence[LeavingMember]) -> list[LeaveResult]:
        """Handles a LeaveGroup. Returns the result of each member."""
        group = self._groups.get(group_id)
        if group is not None and group.type == CONSUMER:
            return self.consumer.classic.leave(group_id, leaving)
        if not isinstance(group, ClassicGroup):
            return [LeaveResult(each.member_id, each.group_instance_id, UnknownMemberId()) for each in leaving]
        return self._rebalance.leave(group, leaving)

    def when_written(self, group_id: str, reply: ErrorReply) -> None:
        """Replies once all that was appended before is durable."""
        self._append(group_id, (), reply)

    # ----------------------------------------------------------------- groups

    def describe(self, group_id: str) -> DescribedGroup:
        """Describes one classic group. :raises GroupIdNotFound: there is no classic group with that id"""
        group = self._groups.get(group_id)
        if group is None or not group.is_written:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        if not isinstance(group, ClassicGroup):
            raise GroupIdNotFound(f"Group {group_id} is not a classic group.")
        return group.describe()

    def list_groups(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[ListedGroup]:
        """Returns the groups in these states and of these types, ignoring case; without states or types all match."""
        wanted_states = {state.lower() for state in states}
        wanted_types = {each.lower() for each in types}
        return [
            ListedGroup(group.group_id, group.protocol_type or "", group.state_name, group.type, len(group.members))
            for group in self._groups.values()
            if group.is_written
            and (not wanted_states or group.state_name.lower() in wanted_states)
            and (not wanted_types or group.type in wanted_types)
        ]

    def delete(self, group_id: str, reply: ErrorReply) -> None:
        """Deletes one group and its offsets. Replies once all that was written is durable."""
        group = self._groups.get(group_id)
        if group is None or not group.is_empty:
            error = GroupIdNotFound() if group is None else NonEmptyGroup()
            self.when_written(group_id, lambda failure: reply(failure or error))
        else:
            # The state of its share partitions is deleted before the group.
            delete = self.share.delete if group.type == SHARE else self._delete
            delete(group, reply)

    # ------------------------------------------------------------ the log

    def replay(self, offset: int, producer_id: int, key: bytes, value: bytes | None) -> None:
        """Applies a record of ``__consumer_offsets``.

        :param producer_id: of the transaction that the record is part of; -1 if it is part of none
        :raises MalformedMessage: it is not such a record
        """
        transaction = None if producer_id == NO_PRODUCER_ID else Transaction(self._index, producer_id)
        self._replay.replay(key, value, transaction)

    def replay_end_marker(self, producer_id: int, is_commit: bool) -> None:
        """Applies the end of the producer's transaction: its pending offsets become visible, or are dropped."""
        self.offsets.end(Transaction(self._index, producer_id), is_commit)

    def loaded(self) -> None:
        """Starts the sessions of all members, and the regular check for expired offsets."""
        for group in list(self._groups.values()):
            if isinstance(group, ClassicGroup):
                self._rebalance.loaded(group)
        self._kinds.start()
        self._deadlines.set(self._retention_check, self.config.offsets_retention_check_interval_ms / 1000)

    def unloaded(self) -> None:
        """Drops all groups, and replies NOT_COORDINATOR to the requests that wait in them."""
        groups = list(self._groups.values())
        self._groups.clear()
        self.offsets.clear()
        self._unsafe.clear()
        for group in groups:
            if isinstance(group, ClassicGroup):
                self._rebalance.abandon(group, NotCoordinator())
            else:
                group.close()

    def _note_commit(self, group: Group, member_id: str) -> None:
        """Restarts the session of a classic member: its commit counts as a heartbeat."""
        if isinstance(group, ClassicGroup) and group.state in (State.STABLE, State.PREPARING_REBALANCE):
            member = group.members.get(member_id)
            if member is not None:
                self._rebalance.expect_heartbeat(member)


class Shards(Protocol):
    """The shards of the group coordinator on this node."""

    def shard(self, group_id: str, /) -> GroupShard:
        """Returns the shard of the group.

        :raises NotCoordinator: it is not on this node
        :raises CoordinatorLoadInProgress: it is being loaded
        """

    def shards(self) -> Iterable[GroupShard]:
        """Returns all shards on this node. :raises CoordinatorLoadInProgress: one of them is being loaded"""
