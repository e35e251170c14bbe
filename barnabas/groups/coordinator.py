"""The group coordinator: validates a command as far as that needs no state, and passes it to the shard of its group.

Knows nothing of how a group changes, nor of where shards come from. It has the commands of classic groups and of
offsets. Those of the newer types are in :attr:`consumer`, :attr:`share` and :attr:`streams`, which are imported when
they are first needed. Follows Apache Kafka's ``GroupCoordinatorService``.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from barnabas.config.settings import Settings
from barnabas.errors import (
    CoordinatorLoadInProgress,
    InvalidGroupId,
    InvalidSessionTimeout,
    KafkaError,
    UnknownServerError,
)
from barnabas.groups.config import GroupConfig
from barnabas.groups.messages import (
    DeletionReply,
    DescribedGroup,
    ErrorReply,
    ErrorsReply,
    Join,
    JoinReply,
    JoinResult,
    LeaveResult,
    LeavingMember,
    ListedGroup,
    OffsetCommit,
    OffsetsReply,
    Sync,
    SyncReply,
    SyncResult,
)
from barnabas.groups.records import has_place_for
from barnabas.groups.shard import Shards
from barnabas.offsets.committed import Topics
from barnabas.offsets.pending import Position

if TYPE_CHECKING:
    from barnabas.groups.consumer_coordinator import ConsumerGroupCoordinator
    from barnabas.groups.share_coordinator import ShareGroupCoordinator
    from barnabas.groups.streams_coordinator import StreamsGroupCoordinator

MEMBER_ID_SUFFIX = 37
"""The length in bytes of what follows the client id or the instance id in a member id: a hyphen and a UUID."""


class GroupCoordinator:
    """The groups that this node coordinates."""

    def __init__(self, config: GroupConfig, shards: Shards, settings: Callable[[], Settings] = dict) -> None:
        """:param settings: returns the broker's current configs, which the newer types need"""
        self.config = config
        self.rebalances = Counter[str]()  #: since the start of the node, by group type
        self._shards = shards
        self._settings = settings

    # ------------------------------------------------------------------ kinds

    @cached_property
    def consumer(self) -> "ConsumerGroupCoordinator":
        """The commands of consumer groups (KIP-848)."""
        from barnabas.groups.consumer_coordinator import ConsumerGroupCoordinator

        return ConsumerGroupCoordinator(self._shards, self._settings)

    @cached_property
    def share(self) -> "ShareGroupCoordinator":
        """The commands of share groups (KIP-932)."""
        from barnabas.groups.share_coordinator import ShareGroupCoordinator

        return ShareGroupCoordinator(self._shards)

    @cached_property
    def streams(self) -> "StreamsGroupCoordinator":
        """The commands of streams groups (KIP-1071)."""
        from barnabas.groups.streams_coordinator import StreamsGroupCoordinator

        return StreamsGroupCoordinator(self._shards)

    # ---------------------------------------------------------------- members

    def join(self, join: Join, reply: JoinReply) -> None:
        """Handles a JoinGroup. Replies once all members have joined."""
        try:
            self._check_join(join)
            shard = self._shards.shard(join.group_id)
        except KafkaError as error:
            reply(JoinResult.refused(error, join.member_id))
        else:
            shard.join(join, reply)

    def _check_join(self, join: Join) -> None:
        config = self.config
        if not join.group_id:
            raise InvalidGroupId
        if not config.group_min_session_timeout_ms <= join.session_timeout_ms <= config.group_max_session_timeout_ms:
            raise InvalidSessionTimeout
        # The member id begins with the instance id, or with the client id.
        fits = has_place_for(join.group_instance_id, join.client_id, spare=MEMBER_ID_SUFFIX) and has_place_for(
            join.protocol_type, *(name for name, _ in join.protocols)
        )
        if not fits:
            raise UnknownServerError("a record has no place for names of that length")

    def sync(self, sync: Sync, reply: SyncReply) -> None:
        """Handles a SyncGroup. Replies once the leader has sent the assignment."""
        try:
            if not sync.group_id:
                raise InvalidGroupId
            shard = self._shards.shard(sync.group_id)
        except KafkaError as error:
            reply(SyncResult.refused(error))
        else:
            shard.sync(sync, reply)

    def heartbeat(self, group_id: str, member_id: str, group_instance_id: str | None, generation_id: int) -> None:
        """Handles a Heartbeat. :raises KafkaError: the member has to rejoin (REBALANCE_IN_PROGRESS), or the request is
        refused

        While the group is being loaded the heartbeat is accepted, since all sessions start again once it is loaded.
        """
        if not group_id:
            raise InvalidGroupId
        try:
            shard = self._shards.shard(group_id)
        except CoordinatorLoadInProgress:
            return
        shard.heartbeat(group_id, member_id, group_instance_id, generation_id)

    def leave(self, group_id: str, leaving: Sequence[LeavingMember]) -> list[LeaveResult]:
        """Handles a LeaveGroup. Returns the result of each member. :raises KafkaError: the whole request is refused"""
        if not group_id:
            raise InvalidGroupId
        return self._shards.shard(group_id).leave(group_id, leaving)

    def when_written(self, group_id: str, reply: ErrorReply) -> None:
        """Replies once all that was appended before is durable: what a member is told may rest on it.

        While the group is being loaded it replies at once: only heartbeats are accepted then.
        :raises NotCoordinator: this node does not coordinate the group
        """
        try:
            shard = self._shards.shard(group_id)
        except CoordinatorLoadInProgress:
            reply(None)
        else:
            shard.when_written(group_id, reply)

    # ----------------------------------------------------------------- groups

    def describe(self, group_id: str) -> DescribedGroup:
        """Describes one classic group. :raises GroupIdNotFound: there is no classic group with that id"""
        return self._shards.shard(group_id).describe(group_id)

    def list_groups(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[ListedGroup]:
        """Handles a ListGroups. Returns the groups in these states and of these types, ignoring case; without states or
        types all match.

        :raises CoordinatorLoadInProgress: some groups are not loaded yet
        """
        states, types = list(states), list(types)
        return [each for shard in self._shards.shards() for each in shard.list_groups(states, types)]

    def delete(self, group_id: str, reply: ErrorReply) -> None:
        """Deletes one group and its offsets. Replies once all that was written is durable."""
        try:
            shard = self._shards.shard(group_id)
        except KafkaError as error:
            reply(error)
        else:
            shard.delete(group_id, reply)

    # ---------------------------------------------------------------- offsets

    def commit_offsets(self, commit: OffsetCommit, reply: ErrorsReply) -> None:
        """Handles an OffsetCommit or TxnOffsetCommit. Replies with an error or None for each offset once they are
        durable.

        The caller has checked that the group is part of the transaction.

        :raises KafkaError: the error of all of them
        """
        self._shards.shard(commit.group_id).commit_offsets(commit, reply)

    def fetch_offsets(self, group_id: str, member_id: str | None = None, member_epoch: int = -1) -> Topics:
        """Handles an OffsetFetch. Returns the group's offsets, which must not be modified; none if there is no such
        group.

        :raises KafkaError: the member may not fetch them
        """
        return self._shards.shard(group_id).fetch_offsets(group_id, member_id, member_epoch)

    def fetch_stable_offsets(
        self, group_id: str, reply: OffsetsReply, member_id: str | None = None, member_epoch: int = -1
    ) -> None:
        """Handles an OffsetFetch with ``require_stable`` (KIP-447). Replies with the group's offsets, and the
        partitions for which open transactions have pending ones, once earlier writes are durable.

        :raises KafkaError: the member may not fetch them
        """
        self._shards.shard(group_id).fetch_stable_offsets(group_id, reply, member_id, member_epoch)

    def delete_offsets(self, group_id: str, positions: Sequence[Position], reply: DeletionReply) -> None:
        """Handles an OffsetDelete. Replies once the tombstones, and all that was written before, are durable.

        :raises KafkaError: the whole request is refused
        """
        if not group_id:
            raise InvalidGroupId
        self._shards.shard(group_id).delete_offsets(group_id, positions, reply)
