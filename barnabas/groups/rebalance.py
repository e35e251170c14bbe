"""The rebalances of classic groups: their begin and end, SyncGroup, Heartbeat, LeaveGroup, and timeouts.

Knows nothing of requests, offsets and other groups. How members join is ``joining.py``. Follows the parts of Apache
Kafka's ``GroupMetadataManager`` for classic groups.

Responses are collected while the state changes, and sent afterwards: a client that gets one may send its next request
at once.
"""

import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from barnabas.clock import Clock
from barnabas.deadlines import Deadline, Deadlines
from barnabas.errors import (
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
from barnabas.groups.messages import JoinResult, LeaveResult, LeavingMember, Sync, SyncReply, SyncResult
from barnabas.groups.records import group_record
from barnabas.offsets.records import Record

logger = logging.getLogger(__name__)

R = TypeVar("R")

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long the first JoinGroup of a new member may wait. The member does not know its id, so it sends no heartbeats."""

MIN_WAIT_MS = 1
"""The shortest time between two attempts to complete a rebalance, independently of the rebalance timeouts."""

Write = Callable[[str, Sequence[Record], Written], None]
"""Appends records of a group to the log as one batch, and calls back when they are durable."""


class Rebalance:
    """Moves classic groups through their states."""

    def __init__(
        self,
        config: GroupConfig,
        clock: Clock,
        deadlines: Deadlines,
        write: Write,
        completed: Callable[[], object],
    ) -> None:
        """:param completed: called after each rebalance that has ended with an assignment"""
        self.config = config
        self.clock = clock
        self._deadlines = deadlines
        self.write = write
        self._completed = completed
        self._answers: deque[Callable[[], object]] = deque()

    # -------------------------------------------------------------- rebalance

    def rebalance_or_complete(self, group: ClassicGroup, reason: str) -> None:
        if group.can_rebalance:
            self.prepare(group, reason)
        else:
            self.complete_if_all_joined(group)

    def prepare(self, group: ClassicGroup, reason: str) -> None:
        """Begins a rebalance: all members have to rejoin."""
        if group.state is State.COMPLETING_REBALANCE:
            self._propagate_error(group, RebalanceInProgress())
        self._cancel(group.sync_deadline)
        is_first = group.is_empty
        group.transition_to(State.PREPARING_REBALANCE, self.clock.time_ms())
        logger.info("group %s: preparing to rebalance generation %d: %s", group.group_id, group.generation_id, reason)
        if is_first:
            # More members are likely to join, as they often start together.
            delay_ms = self.config.group_initial_rebalance_delay_ms
            remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            self._wait_for_joins(group, delay_ms, self._end_initial_delay, delay_ms, remaining_ms)
        elif group.has_all_members_joined:
            self._complete_join(group)
        else:
            self._wait_for_joins(group, group.rebalance_timeout_ms, self._end_joining)

    def complete_if_all_joined(self, group: ClassicGroup) -> None:
        """Completes the rebalance if all members have joined. The first rebalance still waits for its delay."""
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
        """Begins the next generation with the members that have joined, and removes the others."""
        self._cancel(group.join_deadline)
        group.new_member_added = False
        missing = [
            member
            for member in group.members.values()
            if not member.is_awaiting_join and member.group_instance_id is None
        ]
        for member in missing:
            logger.info(
                "group %s: removed member %s: it has not rejoined within the rebalance timeout",
                group.group_id,
                member.member_id,
            )
            group.remove(member.member_id)
        if not group.elect_leader() and group.members:
            # Only static members are left, and none has joined. They are removed when their sessions end.
            self._wait_for_joins(group, max(group.rebalance_timeout_ms, MIN_WAIT_MS), self._end_joining)
            return
        group.next_generation(self.clock.time_ms())
        if group.is_empty:
            logger.info("group %s: empty in generation %d", group.group_id, group.generation_id)
            self.write(group.group_id, [group_record(group, {})], log_failure(group.group_id, "the empty group"))
        else:
            self._answer_joined(group)

    @staticmethod
    def joined(group: ClassicGroup, member: ClassicMember, *, tells_members: bool) -> JoinResult:
        return JoinResult(
            None,
            member.member_id,
            group.generation_id,
            group.protocol_type,
            group.protocol_name,
            group.leader_id or "",
            group.joined_members() if tells_members else (),
        )

    def _answer_joined(self, group: ClassicGroup) -> None:
        logger.info("group %s: generation %d with %d members", group.group_id, group.generation_id, len(group.members))
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
        """Replies to a member with its assignment, once the leader has sent it."""
        try:
            member = self._validate_sync(group, sync)
        except KafkaError as error:
            self.answer(reply, SyncResult.refused(error))
        else:
            self._sync(group, member, sync, reply)
        self.give_answers()

    @staticmethod
    def _validate_sync(group: ClassicGroup, sync: Sync) -> ClassicMember:
        member = group.require_member(sync.member_id, sync.group_instance_id)
        if sync.generation_id != group.generation_id:
            raise IllegalGeneration
        for requested, chosen in ((sync.protocol_type, group.protocol_type), (sync.protocol_name, group.protocol_name)):
            if requested is not None and chosen is not None and requested != chosen:
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
        self.answer_sync(member, SyncResult.refused(RebalanceInProgress()))
        member.sync_reply = reply
        if group.leader_id == member.member_id and group.assigned_generation_id != sync.generation_id:
            # The leader may sync again, with another assignment, before this one is written. The first one of a
            # generation is valid.
            group.assigned_generation_id = sync.generation_id
            brought = dict(sync.assignments)
            assignments = {member_id: brought.get(member_id, b"") for member_id in group.members}
            logger.info(
                "group %s: assignment of generation %d from leader %s",
                group.group_id,
                sync.generation_id,
                sync.member_id,
            )
            self.write(
                group.group_id,
                [group_record(group, assignments)],
                lambda error: self._assigned(group, sync.generation_id, assignments, error),
            )

    def _assigned(
        self, group: ClassicGroup, generation_id: int, assignments: Mapping[str, bytes], error: KafkaError | None
    ) -> None:
        """Handles the outcome of writing the assignment, if the group still waits for it."""
        if group.state is not State.COMPLETING_REBALANCE or group.generation_id != generation_id:
            return
        if error is not None:
            self._propagate_error(group, error)
            self.rebalance_or_complete(group, f"cannot write the assignment: {error}")
        else:
            for member in group.members.values():
                member.assignment = assignments.get(member.member_id, b"")
                self._expect_heartbeat_after(member, self.answer_sync(member, self._synced(group, member)))
            group.transition_to(State.STABLE, self.clock.time_ms())
            self._completed()
        self.give_answers()

    def _propagate_error(self, group: ClassicGroup, error: KafkaError) -> None:
        """Replies to the members that wait for an assignment with the error."""
        for member in group.members.values():
            member.assignment = b""
            self._expect_heartbeat_after(member, self.answer_sync(member, SyncResult.refused(error)))

    @staticmethod
    def _synced(group: ClassicGroup, member: ClassicMember) -> SyncResult:
        return SyncResult(None, group.protocol_type, group.protocol_name, member.assignment)

    # ------------------------------------------------------- heartbeat, leave

    def heartbeat(self, group: ClassicGroup, member_id: str, group_instance_id: str | None, generation_id: int) -> None:
        """Handles a Heartbeat.

        :raises RebalanceInProgress: the member has to rejoin
        :raises KafkaError: it is not a member of that generation
        """
        member = group.require_member(member_id, group_instance_id)
        if generation_id != group.generation_id:
            raise IllegalGeneration
        if group.is_empty:
            raise UnknownMemberId
        self.expect_heartbeat(member)
        if group.state is State.PREPARING_REBALANCE:
            raise RebalanceInProgress

    def leave(self, group: ClassicGroup, leaving: Sequence[LeavingMember]) -> list[LeaveResult]:
        """Removes members, and rebalances once for all of them."""
        answers = [self._leave(group, leaver) for leaver in leaving]
        gone = [leaver for leaver, answer in zip(leaving, answers, strict=True) if answer.error is None]
        if gone:
            names = ", ".join(leaver.member_id or f"{leaver.group_instance_id}" for leaver in gone)
            self._rebalance_without(group, f"{names} left: {gone[0].reason or 'no reason given'}")
        self.give_answers()
        return answers

    def _leave(self, group: ClassicGroup, leaver: LeavingMember) -> LeaveResult:
        member_id = leaver.member_id
        if not member_id and leaver.group_instance_id is not None:
            # An administrator removes the instance; its member id does not matter.
            member_id = group.static_members.get(leaver.group_instance_id, "")
        if member_id in group.pending_members:
            group.remove(member_id)
            return LeaveResult(leaver.member_id, leaver.group_instance_id)
        try:
            member = group.require_member(member_id, leaver.group_instance_id)
        except KafkaError as error:
            return LeaveResult(leaver.member_id, leaver.group_instance_id, error)
        self._remove(group, member)
        return LeaveResult(leaver.member_id, leaver.group_instance_id)

    def _remove(self, group: ClassicGroup, member: ClassicMember) -> None:
        self.answer_join(group, member, JoinResult.refused(UnknownMemberId()))
        self.answer_sync(member, SyncResult.refused(UnknownMemberId()))
        group.remove(member.member_id)

    def _rebalance_without(self, group: ClassicGroup, reason: str) -> None:
        if group.state in (State.STABLE, State.COMPLETING_REBALANCE):
            self.prepare(group, reason)
        else:
            self.complete_if_all_joined(group)

    # ------------------------------------------------------------------- time

    def loaded(self, group: ClassicGroup) -> None:
        """Starts the sessions of a group that was loaded from the log."""
        for member in group.members.values():
            self.expect_heartbeat(member)
        if len(group.members) > self.config.group_max_size:
            self.prepare(group, f"it has {len(group.members)} members, more than group.max.size")
        self.give_answers()

    def abandon(self, group: ClassicGroup, error: KafkaError) -> None:
        """Removes a group, and replies to its members that wait with the error."""
        for member in list(group.members.values()):
            self.answer_join(group, member, JoinResult.refused(error))
            self.answer_sync(member, SyncResult.refused(error))
        group.close()
        self.give_answers()

    def session(self, group: ClassicGroup, member_id: str) -> Deadline:
        """Returns the session deadline of a member that is being created."""
        return Deadline(self._expire_session, group, member_id)

    def expect_heartbeat(self, member: ClassicMember) -> None:
        """Restarts the member's session."""
        self._deadlines.set(member.session, member.session_timeout_ms / 1000)

    def expect_first_join(self, member: ClassicMember) -> None:
        """Sets the deadline of a new member's first JoinGroup.

        While its request waits, the broker does not read from the connection, and does not notice its end. If the
        member is still there, it tries again.
        """
        self._deadlines.set(member.session, NEW_MEMBER_JOIN_TIMEOUT_MS / 1000)

    def expect_pending(self, group: ClassicGroup, member_id: str, session_timeout_ms: int) -> None:
        """Sets the deadline by which a member has to join with the id that was returned to it."""
        pending = Deadline(self._expire_pending, group, member_id)
        group.pending_members[member_id] = pending
        self._deadlines.set(pending, session_timeout_ms / 1000)

    def _expire_session(self, group: ClassicGroup, member_id: str) -> None:
        member = group.members.get(member_id)
        if member is None or member.awaits_response:
            return
        logger.info("group %s: removed member %s: its session timed out", group.group_id, member_id)
        self._remove(group, member)
        self._rebalance_without(group, f"the session of member {member_id} timed out")
        self.give_answers()

    def _expire_pending(self, group: ClassicGroup, member_id: str) -> None:
        logger.info("group %s: removed pending member %s: it has not joined", group.group_id, member_id)
        group.remove(member_id)
        self.complete_if_all_joined(group)
        self.give_answers()

    def _expire_sync(self, group: ClassicGroup, generation_id: int) -> None:
        """Removes members that have joined and have not synced in time."""
        if generation_id != group.generation_id or group.state not in (State.COMPLETING_REBALANCE, State.STABLE):
            return
        missing = [group.members[member_id] for member_id in sorted(group.pending_sync) if member_id in group.members]
        for member in missing:
            logger.info(
                "group %s: removed member %s: it has not synced within the rebalance timeout",
                group.group_id,
                member.member_id,
            )
            self._remove(group, member)
        if missing:
            self.prepare(group, "members have not synced")
        self.give_answers()

    @staticmethod
    def _cancel(deadline: Deadline | None) -> None:
        if deadline is not None:
            deadline.cancel()

    # -------------------------------------------------------------- responses

    def answer(self, reply: Callable[[R], object], result: R) -> None:
        """Collects a response, which :meth:`give_answers` sends."""
        self._answers.append(lambda: reply(result))

    def give_answers(self) -> None:
        """Sends the collected responses. A callback may bring the next command, which sends the rest."""
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
        """Restarts the session of a member that has got a response. Its session may have ended while it waited."""
        if was_answered:
            self.expect_heartbeat(member)
