"""The group coordinator: which groups there are, who asks what of them, and the offsets that they keep.

Does no I/O and knows no requests: commands come as calls, answers go to callbacks (or are returned, where nothing has
to be waited for), records go out through one function, and come back through :meth:`GroupCoordinator.load`.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Sequence

from barnabas.clock import Clock, Scheduler
from barnabas.errors import (
    NONE,
    GroupIdNotFound,
    GroupSubscribedToTopic,
    IllegalGeneration,
    InvalidGroupId,
    InvalidSessionTimeout,
    KafkaError,
    NonEmptyGroup,
    NotCoordinator,
    OffsetMetadataTooLarge,
    UnknownMemberId,
    UnknownServerError,
)
from barnabas.groups.classic_group import ClassicGroup, State
from barnabas.groups.config import GroupConfig
from barnabas.deadlines import Deadline, Deadlines
from barnabas.groups.joining import Joining
from barnabas.groups.messages import (
    DescribedGroup,
    ErrorReply,
    ErrorsReply,
    Join,
    JoinReply,
    JoinResult,
    Leaver,
    Left,
    ListedGroup,
    OffsetCommit,
    Sync,
    SyncReply,
    SyncResult,
)
from barnabas.groups.rebalance import Rebalance, Written
from barnabas.groups.records import group_tombstone, has_place_for, new_group_record
from barnabas.groups.replay import Replay
from barnabas.offsets.committed import LATEST_EXPIRY, NO_EXPIRY, CommittedOffset, Topics
from barnabas.offsets.group_offsets import GroupOffsets
from barnabas.offsets.pending import Position, Producer, Transaction
from barnabas.offsets.records import Record, commit_record, tombstone

logger = logging.getLogger(__name__)

Write = Callable[[str, Sequence[Record], Written, Producer | None], None]
"""Append records of a group as one batch, of the transaction of that producer where there is one.

The callback may come later, but comes in the order of the log.
"""

MADE_UP = 37
"""Bytes that a member id has beside what the member calls itself: a hyphen and a UUID."""


class GroupCoordinator:
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
    ) -> None:
        """``partition_of`` names the partition of ``__consumer_offsets`` that keeps a group."""
        self.config = config
        self.offsets = GroupOffsets()
        self._clock = clock
        self._append = write
        self._is_coordinator = is_coordinator
        self._partition_of = partition_of
        self._groups: dict[str, ClassicGroup] = {}
        self._deadlines = Deadlines(clock, scheduler)
        self._rebalance = Rebalance(config, clock, self._deadlines, self._write)
        self._joining = Joining(self._rebalance, new_uuid)
        self._replay = Replay(self._groups, self.offsets, self._rebalance, clock)
        self._retention_check = Deadline(self._check_retention)

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
            self._joining.join(group, join, reply)
        elif not self._is_coordinator(join.group_id):
            reply(JoinResult.refused(NotCoordinator, join.member_id))
        elif join.member_id:
            reply(JoinResult.refused(UnknownMemberId, join.member_id))
        else:
            self._join_first(join, reply)

    def _join_first(self, join: Join, reply: JoinReply) -> None:
        """Make the group, and write that it is there before anybody hears of it."""
        group = self._create(join.group_id)

        def written(error: type[KafkaError] | None) -> None:
            if error is None:
                self._joining.join(group, join, reply)
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
        elif (group := self._groups.get(sync.group_id)) is None:
            reply(SyncResult.refused(self._missing(sync.group_id, UnknownMemberId)))
        else:
            self._rebalance.sync(group, sync, reply)

    def heartbeat(self, group_id: str, member_id: str, group_instance_id: str | None, generation_id: int) -> int:
        """Heartbeat: the error code of the answer."""
        if not group_id:  # no group has members without a name, but offsets may be kept under it
            return InvalidGroupId.code
        group = self._groups.get(group_id)
        if group is None:
            return self._missing(group_id, UnknownMemberId).code
        return self._rebalance.heartbeat(group, member_id, group_instance_id, generation_id)

    def leave(self, group_id: str, leavers: Sequence[Leaver]) -> list[Left]:
        """LeaveGroup: what became of each; INVALID_GROUP_ID or NOT_COORDINATOR for all of them."""
        if not group_id:
            raise InvalidGroupId
        group = self._find(group_id)
        if group is None:
            return [Left(each.member_id, each.group_instance_id, UnknownMemberId.code) for each in leavers]
        return self._rebalance.leave(group, leavers)

    # ----------------------------------------------------------------- groups

    def describe(self, group_id: str) -> DescribedGroup:
        """DescribeGroups, one of them; GROUP_ID_NOT_FOUND or NOT_COORDINATOR."""
        group = self._find(group_id)
        if group is None or not group.is_written:
            raise GroupIdNotFound(f"There is no group {group_id}.")
        return group.describe()

    def list_groups(self, states: Iterable[str] = (), types: Iterable[str] = ()) -> list[ListedGroup]:
        """ListGroups: those in these states and of these types, whatever their case; all where none are given."""
        wanted_states = {state.lower() for state in states}
        wanted_types = {each.lower() for each in types}
        return [
            ListedGroup(group.group_id, group.protocol_type or "", group.state.value, group.type)
            for group in self._groups.values()
            if group.is_written
            and (not wanted_states or group.state.value.lower() in wanted_states)
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
            self._delete(group, lambda error: reply(_code(error)))

    def _delete(self, group: ClassicGroup, written: Written) -> None:
        positions = list(self.offsets.positions(group.group_id))
        records = [tombstone(group.group_id, topic, partition) for topic, partition in positions]
        records.append(group_tombstone(group.group_id))

        def then(error: type[KafkaError] | None) -> None:
            if error is None:
                for topic, partition in positions:
                    self.offsets.remove(group.group_id, topic, partition)
                self._forget(group)
            written(error)

        self._write(group.group_id, records, then)

    def _create(self, group_id: str) -> ClassicGroup:
        if not has_place_for(group_id):
            raise UnknownServerError("a group with an id of that length cannot be kept")
        group = self._groups[group_id] = ClassicGroup(group_id, self._clock.time_ms())
        return group

    def _forget(self, group: ClassicGroup) -> None:
        if self._groups.get(group.group_id) is group:
            del self._groups[group.group_id]
            self._rebalance.bury(group)

    def _write(
        self, group_id: str, records: Sequence[Record], written: Written, producer: Producer | None = None
    ) -> None:
        """Append records of a group; from the first that is safe on, the group is seen."""

        def then(error: type[KafkaError] | None) -> None:
            if error is None and (group := self._groups.get(group_id)) is not None:
                group.is_written = True
            written(error)

        self._append(group_id, records, then, producer)

    def _find(self, group_id: str) -> ClassicGroup | None:
        """The group, or None where there is none; NOT_COORDINATOR where it would not be here."""
        group = self._groups.get(group_id)
        if group is None and not self._is_coordinator(group_id):
            raise NotCoordinator
        return group

    def _missing(self, group_id: str, otherwise: type[KafkaError]) -> type[KafkaError]:
        """Why there is no such group."""
        return otherwise if self._is_coordinator(group_id) else NotCoordinator

    # ---------------------------------------------------------------- offsets

    def commit_offsets(self, commit: OffsetCommit, reply: ErrorsReply) -> None:
        """OffsetCommit, of partitions that exist: a code for each; KafkaError for all of them.

        Or TxnOffsetCommit, by a producer of whom it is known that the group is part of its transaction.
        """
        group = self._committing(commit)
        is_alive = commit.producer is None and group.state in (State.STABLE, State.PREPARING_REBALANCE)
        if is_alive and commit.member_id in group.members:
            self._rebalance.expect_heartbeat(group.members[commit.member_id])
        now_ms = self._clock.time_ms()
        expires_ms = NO_EXPIRY
        if commit.retention_time_ms != NO_EXPIRY:
            expires_ms = min(now_ms + commit.retention_time_ms, LATEST_EXPIRY)
        codes: list[int] = []
        taken: list[tuple[str, int, CommittedOffset]] = []
        for asked in commit.offsets:
            if asked.metadata is not None and _utf16_length(asked.metadata) > self.config.offset_metadata_max_bytes:
                codes.append(OffsetMetadataTooLarge.code)
                continue
            codes.append(NONE)
            committed = CommittedOffset(
                asked.offset, asked.leader_epoch, asked.metadata or "", now_ms, expires_ms, asked.topic_id
            )
            taken.append((asked.topic, asked.partition, committed))
        if not taken:
            reply(codes)
            return

        def written(error: type[KafkaError] | None) -> None:
            if error is not None:
                reply([code or error.code for code in codes])
                return
            if commit.group_id not in self._groups:  # deleted while this was being written
                self._create(commit.group_id).is_written = True
            for each in taken:
                self._put(commit.group_id, each, commit.producer)
            reply(codes)

        records = [commit_record(commit.group_id, *each) for each in taken]
        self._write(commit.group_id, records, written, commit.producer)

    def _put(self, group_id: str, taken: tuple[str, int, CommittedOffset], producer: Producer | None) -> None:
        if producer is None:
            self.offsets.put(group_id, *taken)
        else:
            self.offsets.put_pending(Transaction(self._partition_of(group_id), producer.id), group_id, *taken)

    def transaction_ended(self, partition: int, producer_id: int, is_commit: bool) -> None:
        """A producer's marker is in that partition of ``__consumer_offsets``: its offsets there count, or are gone."""
        self.offsets.end(Transaction(partition, producer_id), is_commit)

    def _committing(self, commit: OffsetCommit) -> ClassicGroup:
        """The group that takes the commit; a simple consumer's comes into being by it."""
        group = self._find(commit.group_id)
        if group is None:
            if commit.generation_id >= 0:
                raise GroupIdNotFound if commit.knows_group_id_not_found else IllegalGeneration
            group = self._create(commit.group_id)
        group.validate_offset_commit(
            commit.member_id,
            commit.group_instance_id,
            commit.generation_id,
            is_transactional=commit.producer is not None,
        )
        return group

    def fetch_offsets(self, group_id: str) -> Topics:
        """OffsetFetch: all that the group has committed, nothing for one that is not there. Not to be changed.

        NOT_COORDINATOR where it would not be here.
        """
        self._find(group_id)
        return self.offsets.of(group_id)

    def unstable_offsets(self, group_id: str) -> Collection[Position]:
        """Where transactions are about to change what :meth:`fetch_offsets` says (KIP-447). Not to be changed."""
        return self.offsets.unstable(group_id)

    def delete_offsets(self, group_id: str, positions: Sequence[tuple[str, int]], reply: ErrorsReply) -> None:
        """OffsetDelete, of (topic, partition)s that exist: a code for each; KafkaError for all of them."""
        if not group_id:
            raise InvalidGroupId
        group = self._find(group_id)
        if group is None:
            raise GroupIdNotFound
        if not group.is_empty and not group.is_consumer_group:
            raise NonEmptyGroup
        codes = [GroupSubscribedToTopic.code if group.is_subscribed_to(topic) else NONE for topic, _ in positions]
        doomed = [position for position, code in zip(positions, codes, strict=True) if code == NONE]
        self._remove_offsets(group_id, doomed, lambda error: reply([code or _code(error) for code in codes]))

    def _remove_offsets(self, group_id: str, positions: Iterable[tuple[str, int]], written: Written) -> None:
        """Take away those of them that there are."""
        present = [each for each in dict.fromkeys(positions) if self.offsets.has(group_id, *each)]

        def then(error: type[KafkaError] | None) -> None:
            if error is None:
                for topic, partition in present:
                    self.offsets.remove(group_id, topic, partition)
            written(error)

        if present:
            self._write(group_id, [tombstone(group_id, *each) for each in present], then)
        else:
            written(None)

    def topics_deleted(self, topics: Iterable[str]) -> None:
        """Those topics are no more, and neither are the offsets of them."""
        for topic in topics:
            for group_id in self.offsets.groups_of(topic):
                positions = [each for each in self.offsets.positions(group_id) if each[0] == topic]
                logger.info("group %s: %d offsets of the deleted topic %s go", group_id, len(positions), topic)
                self._remove_offsets(group_id, positions, _log_failure(group_id))

    # -------------------------------------------------------------- retention

    def expire_offsets(self) -> None:
        """Take away offsets that nobody has needed for the retention time, and empty groups without any."""
        for group in list(self._groups.values()):
            expired, keeps_some = self._expired(group)
            if group.is_empty and not group.pending_members and not keeps_some:
                logger.info("group %s: has no members and no offsets left, and goes", group.group_id)
                self._delete(group, _log_failure(group.group_id))
            elif expired:
                logger.info("group %s: %d offsets have expired", group.group_id, len(expired))
                self._remove_offsets(group.group_id, expired, _log_failure(group.group_id))

    def _expired(self, group: ClassicGroup) -> tuple[list[tuple[str, int]], bool]:
        """Which offsets have expired, and whether there are others. What a transaction is about to change has not."""
        now_ms, retention_ms = self._clock.time_ms(), self.config.offsets_retention_ms
        unstable = self.offsets.unstable(group.group_id)
        expired, keeps_some = [], bool(unstable)
        for topic, partitions in self.offsets.of(group.group_id).items():
            is_needed = group.is_subscribed_to(topic)
            for partition, committed in partitions.items():
                is_kept = is_needed or (topic, partition) in unstable
                base_ms = None if is_kept else group.expiry_base_ms(committed.commit_timestamp_ms)
                if base_ms is not None and committed.is_expired(base_ms, now_ms, retention_ms):
                    expired.append((topic, partition))
                else:
                    keeps_some = True
        return expired, keeps_some

    def _check_retention(self) -> None:
        self._deadlines.set(self._retention_check, self.config.offsets_retention_check_interval_ms / 1000)
        self.expire_offsets()

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
            self._rebalance.loaded(group)
        self._deadlines.set(self._retention_check, self.config.offsets_retention_check_interval_ms / 1000)

    def resign(self) -> None:
        """Another node is the coordinator now, or nobody: whoever waits is told so, and all groups are forgotten."""
        groups = list(self._groups.values())
        self._groups.clear()
        self.offsets.clear()
        for group in groups:
            self._rebalance.abandon(group, NotCoordinator)

    def resign_lost(self) -> None:
        """As :meth:`resign`, of the groups whose partition of ``__consumer_offsets`` is not led here any more."""
        lost = [group for group_id, group in self._groups.items() if not self._is_coordinator(group_id)]
        for group in lost:
            del self._groups[group.group_id]
            for topic, partition in list(self.offsets.positions(group.group_id)):
                self.offsets.remove(group.group_id, topic, partition)
        for group in lost:
            self._rebalance.abandon(group, NotCoordinator)

    def stop(self) -> None:
        """No deadline strikes any more. What waits stays unanswered, as the connections go."""
        self._deadlines.close()


def _code(error: type[KafkaError] | None) -> int:
    return NONE if error is None else error.code


def _utf16_length(text: str) -> int:
    """As Java counts; only what lies beyond the first plane counts twice."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _can_be_kept(join: Join) -> bool:
    """Whether records have a place for the member; its id is made of one of the first two."""
    return has_place_for(join.group_instance_id, join.client_id, spare=MADE_UP) and has_place_for(
        join.protocol_type, *(name for name, _ in join.protocols)
    )


def _log_failure(group_id: str) -> Written:
    def written(error: type[KafkaError] | None) -> None:
        if error is not None:
            logger.warning("group %s: offsets could not be removed: %s", group_id, error.__name__)

    return written
