"""Joins members to a classic group: new ones, those with a returned id, those that rejoin, and static ones.

Knows nothing of requests, offsets and other groups. Rebalances are ``rebalance.py``. Follows ``classicGroupJoin`` and
its helpers in Apache Kafka's ``GroupMetadataManager``.
"""

import logging
from collections.abc import Callable

from barnabas.errors import (
    FencedInstanceId,
    GroupMaxSizeReached,
    InconsistentGroupProtocol,
    KafkaError,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from barnabas.groups.classic_group import ClassicGroup, State
from barnabas.groups.classic_member import ClassicMember
from barnabas.groups.messages import Join, JoinReply, JoinResult, SyncResult
from barnabas.groups.rebalance import Rebalance
from barnabas.groups.records import group_record

logger = logging.getLogger(__name__)


class Joining:
    """Handles JoinGroup for classic groups."""

    def __init__(self, rebalance: Rebalance, new_uuid: Callable[[], str]) -> None:
        self._rebalance = rebalance
        self._new_uuid = new_uuid
        """Returns a random UUID in its canonical text form."""

    def join(self, group: ClassicGroup, join: Join, reply: JoinReply) -> None:
        """Adds a member, or takes it to the next generation."""
        if not self._has_room(group, join.member_id):
            group.remove(join.member_id)
            self._rebalance.answer(reply, JoinResult.refused(GroupMaxSizeReached()))
        elif not group.supports(join.protocol_type, join.protocols):
            self._rebalance.answer(reply, JoinResult.refused(InconsistentGroupProtocol(), join.member_id))
        elif join.member_id:
            self._join_known(group, join, reply)
        elif join.group_instance_id is not None:
            self._join_static(group, join, reply)
        else:
            self._join_new(group, join, reply)
        self._rebalance.give_answers()

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        limit = self._rebalance.config.group_max_size
        if group.state is State.PREPARING_REBALANCE:
            # The limit counts members that wait, not all members. If the limit has been lowered, the last ones to
            # rejoin are refused.
            member = group.members.get(member_id)
            return (member is not None and member.is_awaiting_join) or group.awaiting_join < limit
        return group.is_empty or member_id in group.members or len(group.members) < limit

    def _join_new(self, group: ClassicGroup, join: Join, reply: JoinReply) -> None:
        member_id = f"{join.client_id}-{self._new_uuid()}"
        if join.knows_member_id_required:
            self._rebalance.expect_pending(group, member_id, join.session_timeout_ms)
            self._rebalance.answer(reply, JoinResult.refused(MemberIdRequired(), member_id))
        else:
            self._add(group, join, member_id, reply)

    def _join_static(self, group: ClassicGroup, join: Join, reply: JoinReply) -> None:
        assert join.group_instance_id is not None
        member_id = f"{join.group_instance_id}-{self._new_uuid()}"
        current = group.static_members.get(join.group_instance_id)
        if current is None:
            self._add(group, join, member_id, reply)
        else:
            self._replace_static(group, group.members[current], join, member_id, reply)

    def _join_known(self, group: ClassicGroup, join: Join, reply: JoinReply) -> None:
        if join.member_id in group.pending_members:
            self._add(group, join, join.member_id, reply)
            return
        try:
            member = group.require_member(join.member_id, join.group_instance_id)
        except KafkaError as error:
            self._rebalance.answer(reply, JoinResult.refused(error, join.member_id))
            return
        is_unchanged = member.protocols == join.protocols
        is_leader = group.leader_id == member.member_id
        if group.state is State.COMPLETING_REBALANCE and is_unchanged:
            # The response to its first JoinGroup may be lost.
            self._rebalance.answer(reply, self._rebalance.joined(group, member, tells_members=is_leader))
        elif group.state is State.STABLE and is_unchanged and not is_leader:
            self._rebalance.answer(reply, self._rebalance.joined(group, member, tells_members=False))
        elif group.is_empty:
            self._rebalance.answer(reply, JoinResult.refused(UnknownMemberId(), join.member_id))
        else:
            # A leader that rejoins always rebalances the group: it may know of a new assignment, for example of new
            # partitions.
            self._update(group, member, join, reply)
            self._rebalance.rebalance_or_complete(
                group, f"member {member.member_id} rejoins: {join.reason or 'no reason given'}"
            )

    def _add(self, group: ClassicGroup, join: Join, member_id: str, reply: JoinReply) -> None:
        member = ClassicMember(
            member_id,
            join.group_instance_id,
            join.client_id,
            join.client_host,
            join.rebalance_timeout_ms,
            join.session_timeout_ms,
            join.protocols,
            self._rebalance.session(group, member_id),
        )
        member.is_new = True
        member.join_reply = reply
        if group.state is State.PREPARING_REBALANCE and group.previous_state is State.EMPTY:
            group.new_member_added = True
        group.add(member, join.protocol_type)
        self._rebalance.expect_first_join(member)
        self._rebalance.rebalance_or_complete(group, f"member {member_id} joins: {join.reason or 'no reason given'}")

    def _update(self, group: ClassicGroup, member: ClassicMember, join: Join, reply: JoinReply) -> None:
        if member.join_reply is not None:
            # The member sends the request again, probably on another connection, which gets the response. Apache Kafka
            # leaves the first request without a response.
            self._rebalance.answer(member.join_reply, JoinResult.refused(RebalanceInProgress(), member.member_id))
        group.update(member, join.protocols, join.rebalance_timeout_ms, join.session_timeout_ms, reply)

    def _replace_static(
        self, group: ClassicGroup, member: ClassicMember, join: Join, member_id: str, reply: JoinReply
    ) -> None:
        """Gives a static member that rejoins without its member id a new one."""
        old_leader = group.leader_id or ""
        self._rebalance.answer_join(group, member, JoinResult.refused(FencedInstanceId(), member.member_id))
        self._rebalance.answer_sync(member, SyncResult.refused(FencedInstanceId()))
        successor = group.replace_static(member, member_id, self._rebalance.session(group, member_id))
        self._rebalance.expect_heartbeat(successor)
        group.update(successor, join.protocols, join.rebalance_timeout_ms, join.session_timeout_ms, reply)
        if group.state is State.COMPLETING_REBALANCE:
            # The leader may be assigning to the former member id.
            self._rebalance.prepare(group, f"static member {join.group_instance_id} rejoins as {member_id}")
        elif group.state is State.PREPARING_REBALANCE:
            self._rebalance.complete_if_all_joined(group)
        elif group.select_protocol() != group.protocol_name:
            self._rebalance.prepare(group, f"static member {join.group_instance_id} rejoins and changes the protocol")
        else:
            self._keep_static(group, successor, join, member, old_leader)

    def _keep_static(
        self, group: ClassicGroup, successor: ClassicMember, join: Join, former: ClassicMember, old_leader: str
    ) -> None:
        """Writes the new member id. Nothing else has changed, so the generation goes on."""

        def written(error: KafkaError | None) -> None:
            if error is not None:
                logger.warning("group %s: cannot replace static member %s: %s", group.group_id, former.member_id, error)
                self._rebalance.answer_join(group, successor, JoinResult.refused(error))
                if group.members.get(successor.member_id) is successor:
                    self._undo_replace_static(group, successor, former)
            elif join.knows_skip_assignment:
                is_leader = group.leader_id == successor.member_id
                result = self._rebalance.joined(group, successor, tells_members=is_leader)
                self._rebalance.answer_join(group, successor, result._replace(skip_assignment=is_leader))
            else:
                # A former leader would assign if it got its new id as the leader's. With the former id it is a
                # follower.
                result = self._rebalance.joined(group, successor, tells_members=False)
                self._rebalance.answer_join(group, successor, result._replace(leader=old_leader))
            self._rebalance.give_answers()

        assignments = {member.member_id: member.assignment for member in group.members.values()}
        self._rebalance.write(group.group_id, [group_record(group, assignments)], written)

    def _undo_replace_static(self, group: ClassicGroup, successor: ClassicMember, former: ClassicMember) -> None:
        restored = group.replace_static(successor, former.member_id, self._rebalance.session(group, former.member_id))
        restored.rebalance_timeout_ms = former.rebalance_timeout_ms
        restored.session_timeout_ms = former.session_timeout_ms
        group.change_protocols(restored, former.protocols)
        self._rebalance.expect_heartbeat(restored)
