"""The rebalances of classic groups: what begins and ends them, assignments, heartbeats, leaving, and time that is up.

Knows nothing of requests, of offsets, or of which groups there are: it is handed one group at a time. How members
come in is ``joining.py``'s. Follows the classic half of Apache Kafka's ``GroupMetadataManager``.

Answers are collected while the state changes and given when it has changed, since whoever gets one may come back with
the next command at once.
"""

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from barnabas.clock import Clock
from barnabas.deadlines import Deadline, Deadlines
from barnabas.errors import (
    NONE,
    IllegalGeneration,
    InconsistentGroupProtocol,
    KafkaError,
    RebalanceInProgress,
    UnknownMemberId,
)
from barnabas.groups.classic_group import ClassicGroup, State
from barnabas.groups.classic_member import ClassicMember
from barnabas.groups.config import GroupConfig
from barnabas.groups.ledger import Written, log_failure
from barnabas.groups.messages import JoinResult, Leaver, Left, Sync, SyncReply, SyncResult
from barnabas.groups.records import group_record
from barnabas.offsets.records import Record

logger = logging.getLogger(__name__)

R = TypeVar("R")

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long a new member's first JoinGroup may take: it cannot send heartbeats, for it does not know its id."""

SHORTEST_WAIT_MS = 1
"""Between looking for members again and again, whatever their rebalance time-outs: so that it cannot spin."""

Write = Callable[[str, Sequence[Record], Written], None]
"""Appends records of one group to the log, all or none, in order; tells so, at once or later."""


class Rebalance:
    """Moves classic groups through their states."""

    def __init__(
        self,
        config: GroupConfig,
        clock: Clock,
        deadlines: Deadlines,
        write: Write,
    ) -> None:
        self.config = config
        self.clock = clock
        self._deadlines = deadlines
        self.write = write
        self._answers: deque[Callable[[], object]] = deque()

    # -------------------------------------------------------------- rebalance

    def rebalance_or_go_on(self, group: ClassicGroup, reason: str) -> None:
        if group.can_rebalance:
            self.prepare(group, reason)
        else:
            self.go_on_if_all_joined(group)

    def prepare(self, group: ClassicGroup, reason: str) -> None:
        """Call all members together."""
        if group.state is State.COMPLETING_REBALANCE:
            self._propagate_error(group, RebalanceInProgress)
        self._cancel(group.sync_deadline)
        is_first = group.is_empty
        group.transition_to(State.PREPARING_REBALANCE, self.clock.time_ms())
        logger.info("group %s: rebalances generation %d (%s)", group.group_id, group.generation_id, reason)
        if is_first:
            # More members are likely to come: many start at once.
            delay_ms = self.config.group_initial_rebalance_delay_ms
            remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            self._wait_for_joins(group, delay_ms, self._end_initial_delay, delay_ms, remaining_ms)
        elif group.has_all_members_joined:
            self._complete_join(group)
        else:
            self._wait_for_joins(group, group.rebalance_timeout_ms, self._end_joining)

    def go_on_if_all_joined(self, group: ClassicGroup) -> None:
        """Somebody has joined or left while members are awaited; the first rebalance waits its delay all the same."""
        if (
            group.state is State.PREPARING_REBALANCE
            and group.previous_state is not State.EMPTY
            and group.has_all_members_joined
        ):
            self._complete_join(group)

    def _wait_for_joins(self, group: ClassicGroup, delay_ms: int, then: Callable[..., None], *args: int) -> None:
        self._cancel(group.join_deadline)
        group.join_deadline = Deadline(then, group, *args)
        self._deadlines.set(group.join_deadline, delay_ms / 1000)

    def _end_initial_delay(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        if group.new_member_added and remaining_ms > 0:
            group.new_member_added = False
            next_delay_ms = min(self.config.group_initial_rebalance_delay_ms, remaining_ms)
            next_remaining_ms = max(remaining_ms - delay_ms, 0)
            self._wait_for_joins(group, next_delay_ms, self._end_initial_delay, next_delay_ms, next_remaining_ms)
        else:
            self._complete_join(group)
            self.give_answers()

    def _end_joining(self, group: ClassicGroup) -> None:
        self._complete_join(group)
        self.give_answers()

    def _complete_join(self, group: ClassicGroup) -> None:
        """The members are those who have joined; begin the next generation with them."""
        self._cancel(group.join_deadline)
        group.new_member_added = False
        missing = [
            member
            for member in group.members.values()
            if not member.is_awaiting_join and member.group_instance_id is None
        ]
        for member in missing:
            logger.info("group %s: %s has not joined again and is out", group.group_id, member.member_id)
            group.remove(member.member_id)
        if not group.elect_leader() and group.members:
            # Only static members are left, and none of them has come: their sessions end before the group does.
            self._wait_for_joins(group, max(group.rebalance_timeout_ms, SHORTEST_WAIT_MS), self._end_joining)
            return
        group.next_generation(self.clock.time_ms())
        if group.is_empty:
            logger.info("group %s: empty at generation %d", group.group_id, group.generation_id)
            self.write(group.group_id, [group_record(group, {})], log_failure(group.group_id, "that it is empty"))
        else:
            self._answer_joined(group)

    @staticmethod
    def joined(group: ClassicGroup, member: ClassicMember, *, tells_members: bool) -> JoinResult:
        return JoinResult(
            NONE,
            member.member_id,
            group.generation_id,
            group.protocol_type,
            group.protocol_name,
            group.leader_id or "",
            group.joined_members() if tells_members else (),
        )

    def _answer_joined(self, group: ClassicGroup) -> None:
        logger.info("group %s: generation %d of %d members", group.group_id, group.generation_id, len(group.members))
        for member in group.members.values():
            result = self.joined(group, member, tells_members=group.leader_id == member.member_id)
            self.answer_join(group, member, result)
            self.expect_heartbeat(member)
            member.is_new = False
            group.pending_sync.add(member.member_id)
        group.sync_deadline = Deadline(self._expire_sync, group, group.generation_id)
        self._deadlines.set(group.sync_deadline, group.rebalance_timeout_ms / 1000)

    # ------------------------------------------------------------------- sync

    def sync(self, group: ClassicGroup, sync: Sync, reply: SyncReply) -> None:
        """Give a member its assignment, as soon as the leader has brought it."""
        try:
            member = self._validate_sync(group, sync)
        except KafkaError as error:
            self.answer(reply, SyncResult.refused(type(error)))
        else:
            self._sync(group, member, sync, reply)
        self.give_answers()

    @staticmethod
    def _validate_sync(group: ClassicGroup, sync: Sync) -> ClassicMember:
        member = group.require_member(sync.member_id, sync.group_instance_id)
        if sync.generation_id != group.generation_id:
            raise IllegalGeneration
        for asked, chosen in ((sync.protocol_type, group.protocol_type), (sync.protocol_name, group.protocol_name)):
            if asked is not None and chosen is not None and asked != chosen:
                raise InconsistentGroupProtocol
        if group.is_empty:
            raise UnknownMemberId
        if group.state is State.PREPARING_REBALANCE:
            raise RebalanceInProgress
        return member

    def _sync(self, group: ClassicGroup, member: ClassicMember, sync: Sync, reply: SyncReply) -> None:
        group.pending_sync.discard(member.member_id)
        if not group.pending_sync:
            self._cancel(group.sync_deadline)
        if group.state is State.STABLE:
            self.expect_heartbeat(member)
            self.answer(reply, self._synced(group, member))
            return
        self.answer_sync(member, SyncResult.refused(RebalanceInProgress))
        member.sync_reply = reply
        if group.leader_id == member.member_id and group.assigned_generation_id != sync.generation_id:
            # Asked again while this is on its way to the log, it may bring another one: a generation has the first.
            group.assigned_generation_id = sync.generation_id
            brought = dict(sync.assignments)
            assignments = {member_id: brought.get(member_id, b"") for member_id in group.members}
            logger.info("group %s: assigned by %s at generation %d", group.group_id, sync.member_id, sync.generation_id)
            self.write(
                group.group_id,
                [group_record(group, assignments)],
                lambda error: self._assigned(group, sync.generation_id, assignments, error),
            )

    def _assigned(
        self, group: ClassicGroup, generation_id: int, assignments: Mapping[str, bytes], error: type[KafkaError] | None
    ) -> None:
        """The assignment is written, or is not; meanwhile the group may have gone on without it."""
        if group.state is not State.COMPLETING_REBALANCE or group.generation_id != generation_id:
            return
        if error is not None:
            self._propagate_error(group, error)
            self.rebalance_or_go_on(group, f"the assignment could not be written: {error.__name__}")
        else:
            for member in group.members.values():
                member.assignment = assignments.get(member.member_id, b"")
                self._expect_heartbeat_after(member, self.answer_sync(member, self._synced(group, member)))
            group.transition_to(State.STABLE, self.clock.time_ms())
        self.give_answers()

    def _propagate_error(self, group: ClassicGroup, error: type[KafkaError]) -> None:
        """Nobody has an assignment; those who wait for one are told why."""
        for member in group.members.values():
            member.assignment = b""
            self._expect_heartbeat_after(member, self.answer_sync(member, SyncResult.refused(error)))

    @staticmethod
    def _synced(group: ClassicGroup, member: ClassicMember) -> SyncResult:
        return SyncResult(NONE, group.protocol_type, group.protocol_name, member.assignment)

    # ------------------------------------------------------- heartbeat, leave

    def heartbeat(self, group: ClassicGroup, member_id: str, group_instance_id: str | None, generation_id: int) -> int:
        """The member lives; the error code says whether it has to join again."""
        try:
            member = group.require_member(member_id, group_instance_id)
        except KafkaError as error:
            return error.code
        if generation_id != group.generation_id:
            return IllegalGeneration.code
        if group.is_empty:
            return UnknownMemberId.code
        self.expect_heartbeat(member)
        return RebalanceInProgress.code if group.state is State.PREPARING_REBALANCE else NONE

    def leave(self, group: ClassicGroup, leavers: Sequence[Leaver]) -> list[Left]:
        """Take members out, and rebalance once for all of them."""
        answers = [self._leave(group, leaver) for leaver in leavers]
        gone = [leaver for leaver, answer in zip(leavers, answers, strict=True) if answer.error_code == NONE]
        if gone:
            names = ", ".join(leaver.member_id or f"{leaver.group_instance_id}" for leaver in gone)
            self._rebalance_without(group, f"{names} left: {gone[0].reason or 'not said why'}")
        self.give_answers()
        return answers

    def _leave(self, group: ClassicGroup, leaver: Leaver) -> Left:
        member_id = leaver.member_id
        if not member_id and leaver.group_instance_id is not None:
            # An administrator takes the instance out, whoever it is by now.
            member_id = group.static_members.get(leaver.group_instance_id, "")
        if member_id in group.pending_members:
            group.remove(member_id)
            return Left(leaver.member_id, leaver.group_instance_id)
        try:
            member = group.require_member(member_id, leaver.group_instance_id)
        except KafkaError as error:
            return Left(leaver.member_id, leaver.group_instance_id, error.code)
        self._remove(group, member)
        return Left(leaver.member_id, leaver.group_instance_id)

    def _remove(self, group: ClassicGroup, member: ClassicMember) -> None:
        self.answer_join(group, member, JoinResult.refused(UnknownMemberId))
        self.answer_sync(member, SyncResult.refused(UnknownMemberId))
        group.remove(member.member_id)

    def _rebalance_without(self, group: ClassicGroup, reason: str) -> None:
        if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            self.prepare(group, reason)
        else:
            self.go_on_if_all_joined(group)

    # ------------------------------------------------------------------- time

    def loaded(self, group: ClassicGroup) -> None:
        """The group came from the log: its members have their whole session time-outs to be heard of."""
        for member in group.members.values():
            self.expect_heartbeat(member)
        if len(group.members) > self.config.group_max_size:
            self.prepare(group, f"{len(group.members)} members are more than group.max.size")
        self.give_answers()

    def abandon(self, group: ClassicGroup, error: type[KafkaError]) -> None:
        """The group is no more, because of that: whoever waits in it is told."""
        for member in list(group.members.values()):
            self.answer_join(group, member, JoinResult.refused(error))
            self.answer_sync(member, SyncResult.refused(error))
        group.bury()
        self.give_answers()

    def session(self, group: ClassicGroup, member_id: str) -> Deadline:
        """The deadline of a member that is about to be made."""
        return Deadline(self._expire_session, group, member_id)

    def expect_heartbeat(self, member: ClassicMember) -> None:
        """It has been heard of: its session begins anew."""
        self._deadlines.set(member.session, member.session_timeout_ms / 1000)

    def expect_first_join(self, member: ClassicMember) -> None:
        """Its connection does not read while its JoinGroup waits with us, so that we would not see it close.

        Should the member have gone, this ends the wait; should it be there, it tries again.
        """
        self._deadlines.set(member.session, NEW_MEMBER_JOIN_TIMEOUT_MS / 1000)

    def expect_pending(self, group: ClassicGroup, member_id: str, session_timeout_ms: int) -> None:
        """The id was given out: it has to be joined by within a session time-out."""
        pending = Deadline(self._expire_pending, group, member_id)
        group.pending_members[member_id] = pending
        self._deadlines.set(pending, session_timeout_ms / 1000)

    def _expire_session(self, group: ClassicGroup, member_id: str) -> None:
        member = group.members.get(member_id)
        if member is None or member.is_excused:
            return
        logger.info("group %s: %s has not been heard of for its session time-out", group.group_id, member_id)
        self._remove(group, member)
        self._rebalance_without(group, f"{member_id} is gone")
        self.give_answers()

    def _expire_pending(self, group: ClassicGroup, member_id: str) -> None:
        logger.info("group %s: %s has never joined by its id", group.group_id, member_id)
        group.remove(member_id)
        self.go_on_if_all_joined(group)
        self.give_answers()

    def _expire_sync(self, group: ClassicGroup, generation_id: int) -> None:
        """Whoever has joined and not asked for its assignment in all that time is out."""
        if generation_id != group.generation_id or group.state not in (State.COMPLETING_REBALANCE, State.STABLE):
            return
        missing = [group.members[member_id] for member_id in sorted(group.pending_sync) if member_id in group.members]
        for member in missing:
            logger.info("group %s: %s has not synced and is out", group.group_id, member.member_id)
            self._remove(group, member)
        if missing:
            self.prepare(group, "members that joined have not synced")
        self.give_answers()

    @staticmethod
    def _cancel(deadline: Deadline | None) -> None:
        if deadline is not None:
            deadline.cancel()

    # ---------------------------------------------------------------- answers

    def answer(self, reply: Callable[[R], object], result: R) -> None:
        """Say so, once the state is as it will be."""
        self._answers.append(lambda: reply(result))

    def give_answers(self) -> None:
        """Call who waits. Each call may bring the next command, which gives its own answers, and ours that are left."""
        while self._answers:
            self._answers.popleft()()

    def answer_join(self, group: ClassicGroup, member: ClassicMember, result: JoinResult) -> None:
        reply = group.take_join_reply(member)
        if reply is not None:
            self.answer(reply, result)

    def answer_sync(self, member: ClassicMember, result: SyncResult) -> bool:
        reply, member.sync_reply = member.sync_reply, None
        if reply is not None:
            self.answer(reply, result)
        return reply is not None

    def _expect_heartbeat_after(self, member: ClassicMember, was_answered: bool) -> None:
        """A session that ended while the member waited was let go by; now that it is answered it begins anew."""
        if was_answered:
            self.expect_heartbeat(member)
