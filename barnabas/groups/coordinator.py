"""The group coordinator: which groups there are, and who asks what of them.

Does no I/O and knows no requests: commands come as calls, answers go to callbacks (or are returned, where nothing has
to be waited for), records go out through one function, and come back through :meth:`GroupCoordinator.load`. Classic
groups are asked here; the newer kinds by themselves (:attr:`consumer`, :attr:`share`, :attr:`streams`).
"""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from barnabas.clock import Clock, Scheduler
from barnabas.deadlines import Deadlines
from barnabas.errors import (
    NONE,
    GroupIdNotFound,
    InconsistentGroupProtocol,
    InvalidGroupId,
    InvalidSessionTimeout,
    KafkaError,
    NonEmptyGroup,
    NotCoordinator,
    UnknownMemberId,
    UnknownServerError,
)
from barnabas.groups.classic_group import ClassicGroup, State
from barnabas.groups.config import GroupConfig, Settings
from barnabas.groups.environment import ClusterView, CreateTopics, Environment, no_persister, no_topics
from barnabas.groups.group import Group
from barnabas.groups.joining import Joining
from barnabas.groups.kinds import Kinds
from barnabas.groups.ledger import Applier, Ledger, Write
from barnabas.groups.messages import (
    DescribedGroup,
    ErrorReply,
    Join,
    JoinReply,
    JoinResult,
    Leaver,
    Left,
    ListedGroup,
    Sync,
    SyncReply,
    SyncResult,
)
from barnabas.groups.offset_keeping import CONSUMER, SHARE, OffsetKeeping
from barnabas.groups.persister import Persister
from barnabas.groups.rebalance import Rebalance
from barnabas.groups.records import has_place_for, new_group_pair, new_group_record
from barnabas.groups.replay import Replay
from barnabas.offsets.pending import Transaction
from barnabas.offsets.records import Record
from barnabas.wire.coordinator_records import CoordinatorKey

if TYPE_CHECKING:
    from barnabas.groups.consumer_groups import ConsumerGroups
    from barnabas.groups.share.share_groups import ShareGroups
    from barnabas.groups.streams.streams_groups import StreamsGroups

logger = logging.getLogger(__name__)

GIVING_WAY = (CONSUMER, "streams")
"""Kinds of which an empty group is no obstacle to the classic protocol."""

MADE_UP = 37
"""Bytes that a member id has beside what the member calls itself: a hyphen and a UUID."""


class GroupCoordinator(OffsetKeeping):
    """All groups whose coordinator this node is (Kafka's ``GroupCoordinatorService`` and its shards).

    >>> from barnabas.clock import ManualClock
    >>> clock = ManualClock()
    >>> coordinator = GroupCoordinator(
    ...     GroupConfig(),
    ...     clock,
    ...     clock,
    ...     write=lambda group_id, records, written, producer: written(None),
    ...     new_uuid=lambda: "1",
    ... )
    >>> coordinator.heartbeat("readers", "me", None, generation_id=1) == UnknownMemberId.code
    True
    """

    def __init__(
        self,
        config: GroupConfig,
        clock: Clock,
        scheduler: Scheduler,
        *,
        write: Write,
        new_uuid: Callable[[], str],
        is_coordinator: Callable[[str], bool] = lambda group_id: True,
        partition_of: Callable[[str], int] = lambda group_id: 0,
        image: Callable[[], ClusterView] | None = None,
        settings: Callable[[], Settings] | None = None,
        group_settings: Callable[[str], Settings] | None = None,
        persister: Callable[[], Persister] = no_persister,
        create_topics: CreateTopics = no_topics,
    ) -> None:
        """``partition_of`` names the partition of ``__consumer_offsets`` that keeps a group.

        The last five are for groups of the newer kinds: see :class:`Environment`.
        """
        deadlines = Deadlines(clock, scheduler)
        ledger = Ledger(write, self._applier_of)
        super().__init__(
            config, clock, deadlines, ledger, write=write, is_coordinator=is_coordinator, partition_of=partition_of
        )
        self._rebalance = Rebalance(config, clock, deadlines, self._write)
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
                is_coordinator,
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
        """The groups of the consumer protocol (KIP-848)."""
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

    def topics_changed(self, names: Collection[str]) -> None:
        """Topics of these names were made, deleted, or have more partitions."""
        self._kinds.topics_changed(names)

    # ---------------------------------------------------------------- members

    def join(self, join: Join, reply: JoinReply) -> None:
        """JoinGroup: answered when the group is complete."""
        limits = self.config
        if not join.group_id:
            reply(JoinResult.refused(InvalidGroupId, join.member_id))
        elif not (
            limits.group_min_session_timeout_ms <= join.session_timeout_ms <= limits.group_max_session_timeout_ms
        ):
            reply(JoinResult.refused(InvalidSessionTimeout, join.member_id))
        elif not _can_be_kept(join):
            reply(JoinResult.refused(UnknownServerError, join.member_id))
        elif (group := self._groups.get(join.group_id)) is not None:
            if isinstance(group, ClassicGroup):
                self._joining.join(group, join, reply)
            else:
                self._join_newer(group, join, reply)
        elif not self._is_coordinator(join.group_id):
            reply(JoinResult.refused(NotCoordinator, join.member_id))
        elif join.member_id:
            reply(JoinResult.refused(UnknownMemberId, join.member_id))
        else:
            self._join_first(join, reply)

    def _join_newer(self, group: Group, join: Join, reply: JoinReply) -> None:
        """Consumer groups take members of the classic protocol; when empty, they and streams groups give way."""
        if group.type == CONSUMER and not group.is_empty:
            self.consumer.classic.join(join, reply)
        elif group.type not in GIVING_WAY or not group.is_empty:
            reply(JoinResult.refused(InconsistentGroupProtocol, ""))
        elif join.member_id:
            reply(JoinResult.refused(UnknownMemberId, join.member_id))
        else:
            self._join_instead(group, join, reply)

    def _join_instead(self, group: Group, join: Join, reply: JoinReply) -> None:
        """Put a classic group in the place of one that is empty; offsets stay."""
        successor = ClassicGroup(group.group_id, self._clock.time_ms())

        def written(error: type[KafkaError] | None) -> None:
            if error is None:
                self.join(join, reply)
            else:
                reply(JoinResult.refused(error, join.member_id))

        self._ledger.commit(group.group_id, [*group.tombstones(), new_group_pair(successor)], written)

    def _join_first(self, join: Join, reply: JoinReply) -> None:
        """Make the group, and write that it is there before anybody hears of it."""
        group = self._create(join.group_id)

        def written(error: type[KafkaError] | None) -> None:
            if error is None:
                self.join(join, reply)  # to the group that is there now: this one may be deleted already
                return
            reply(JoinResult.refused(error, join.member_id))
            if self._groups.get(group.group_id) is group:
                del self._groups[group.group_id]
                self._rebalance.abandon(group, error)

        self._write(group.group_id, [new_group_record(group)], written)

    def sync(self, sync: Sync, reply: SyncReply) -> None:
        """SyncGroup: answered when the leader has assigned."""
        if not sync.group_id:
            reply(SyncResult.refused(InvalidGroupId))
        elif isinstance(group := self._groups.get(sync.group_id), ClassicGroup):
            self._rebalance.sync(group, sync, reply)
        elif group is not None and group.type == CONSUMER:
            self.consumer.classic.sync(sync, reply)
        else:
            reply(SyncResult.refused(self._missing(sync.group_id, UnknownMemberId)))

    def heartbeat(self, group_id: str, member_id: str, group_instance_id: str | None, generation_id: int) -> int:
        """Heartbeat: the error code of the answer."""
        if not group_id:  # no group has members without a name, but offsets may be kept under it
            return InvalidGroupId.code
        group = self._groups.get(group_id)
        if group is not None and group.type == CONSUMER:
            return self.consumer.classic.heartbeat(group_id, member_id, group_instance_id, generation_id)
        if not isinstance(group, ClassicGroup):
            return self._missing(group_id, UnknownMemberId).code
        return self._rebalance.heartbeat(group, member_id, group_instance_id, generation_id)

    def leave(self, group_id: str, leavers: Sequence[Leaver]) -> list[Left]:
        """LeaveGroup: what became of each; INVALID_GROUP_ID or NOT_COORDINATOR for all of them."""
        if not group_id:
            raise InvalidGroupId
        group = self._find(group_id)
        if group is not None and group.type == CONSUMER:
            return self.consumer.classic.leave(group_id, leavers)
        if not isinstance(group, ClassicGroup):
            return [Left(each.member_id, each.group_instance_id, UnknownMemberId.code) for each in leavers]
        return self._rebalance.leave(group, leavers)

    # ----------------------------------------------------------------- groups

    def describe(self, group_id: str) -> DescribedGroup:
        """DescribeGroups, one of them; GROUP_ID_NOT_FOUND or NOT_COORDINATOR."""
        group = self._find(group_id)
        if group is None or not group.is_written:
            raise GroupIdNotFound(f"Group {group_id} not found.")
        if not isinstance(group, ClassicGroup):
            raise GroupIdNotFound(f"Group {group_id} is not a classic group.")
        return group.describe()

    def list_groups(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[ListedGroup]:
        """ListGroups: those in these states and of these types, whatever their case; all where none are given."""
        wanted_states = {state.lower() for state in states}
        wanted_types = {each.lower() for each in types}
        return [
            ListedGroup(group.group_id, group.protocol_type or "", group.state_name, group.type)
            for group in self._groups.values()
            if group.is_written
            and (not wanted_states or group.state_name.lower() in wanted_states)
            and (not wanted_types or group.type in wanted_types)
        ]

    def delete(self, group_id: str, reply: ErrorReply) -> None:
        """DeleteGroups, one of them: with its offsets; answered when that is written."""
        group = self._groups.get(group_id)
        if group is None:
            reply(self._missing(group_id, GroupIdNotFound).code)
        elif not group.is_empty:
            reply(NonEmptyGroup.code)
        else:
            # The state of a share group's partitions goes before the group does.
            delete = self.share.delete if group.type == SHARE else self._delete
            delete(group, lambda error: reply(NONE if error is None else error.code))

    def _missing(self, group_id: str, otherwise: type[KafkaError]) -> type[KafkaError]:
        """Why there is no such group."""
        return otherwise if self._is_coordinator(group_id) else NotCoordinator

    # ------------------------------------------------------------ start, stop

    def load(self, records: Iterable[Record], transaction: Transaction | None = None) -> None:
        """Take in records of ``__consumer_offsets``, of a transaction or of none; MalformedMessage if one is none.

        To be called with all of a partition, in order; what ends transactions goes to :meth:`transaction_ended`.
        """
        for key, value in records:
            self._replay.replay(key, value, transaction)

    def start(self) -> None:
        """All is loaded: sessions begin anew, and what has expired meanwhile goes at the first check."""
        for group in list(self._groups.values()):
            if isinstance(group, ClassicGroup):
                self._rebalance.loaded(group)
        self._kinds.start()
        self._deadlines.set(self._retention_check, self.config.offsets_retention_check_interval_ms / 1000)

    def resign(self) -> None:
        """Another node is the coordinator now, or nobody: whoever waits is told so, and all groups are forgotten."""
        groups = list(self._groups.values())
        self._groups.clear()
        self.offsets.clear()
        self._unsafe.clear()
        for group in groups:
            self._abandon(group)

    def resign_lost(self) -> None:
        """As :meth:`resign`, of the groups whose partition of ``__consumer_offsets`` is not led here any more."""
        lost = [group for group_id, group in self._groups.items() if not self._is_coordinator(group_id)]
        for group in lost:
            del self._groups[group.group_id]
            self._unsafe.pop(group.group_id, None)
            for topic, partition in list(self.offsets.positions(group.group_id)):
                self.offsets.remove(group.group_id, topic, partition)
        for group in lost:
            self._abandon(group)

    def _abandon(self, group: Group) -> None:
        if isinstance(group, ClassicGroup):
            self._rebalance.abandon(group, NotCoordinator)
        else:
            group.bury()

    def _heard_of(self, group: Group, member_id: str) -> None:
        """A commit is as good as a heartbeat of a classic member."""
        if isinstance(group, ClassicGroup) and group.state in (State.STABLE, State.PREPARING_REBALANCE):
            member = group.members.get(member_id)
            if member is not None:
                self._rebalance.expect_heartbeat(member)

    def stop(self) -> None:
        """No deadline strikes any more. What waits stays unanswered, as the connections go."""
        self._deadlines.close()


def _can_be_kept(join: Join) -> bool:
    """Whether records have a place for the member; its id is made of one of the first two."""
    return has_place_for(join.group_instance_id, join.client_id, spare=MADE_UP) and has_place_for(
        join.protocol_type, *(name for name, _ in join.protocols)
    )
