"""All share groups of a coordinator: heartbeats, sessions, assignments and descriptions.

Knows nothing of requests and logs. A command reads the group, computes records and a response, and passes the records
to the ledger. Follows the parts of Apache Kafka's ``GroupMetadataManager`` for share groups (KIP-932).
"""

import logging
from collections.abc import Collection, Mapping

from barnabas.deadlines import Deadline
from barnabas.errors import (
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    InvalidRequest,
    KafkaError,
    UnknownMemberId,
)
from barnabas.groups.assigning.interval import may_assign
from barnabas.groups.environment import Environment
from barnabas.groups.group import Group
from barnabas.groups.ledger import Applier, Pair, Written
from barnabas.groups.records import has_place_for
from barnabas.groups.share import records
from barnabas.groups.share.assigning import ASSIGNOR, assign, has_unassigned_partitions, hash_of, subscribed_part
from barnabas.groups.share.messages import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LONGEST_MEMBER_ID,
    DescribedGroup,
    DescribedMember,
    Heartbeat,
    HeartbeatReply,
    HeartbeatResult,
    Partitions,
)
from barnabas.groups.share.replay import Replay
from barnabas.groups.share.share_group import ALWAYS_DUE, ShareGroup
from barnabas.groups.share.share_member import ShareMember
from barnabas.groups.share.state_manager import StateManager
from barnabas.wire.coordinator_records import CoordinatorKey

logger = logging.getLogger(__name__)

REFRESH_INTERVAL_MS = 180_000
"""How often the topics of a group are refreshed if no change is reported (``METADATA_REFRESH_INTERVAL_MS``):
brokers may have moved to other racks."""


class ShareGroups:
    """The share groups whose coordinator this node is."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._groups = environment.groups
        self.states = StateManager(environment, self.find)
        self.appliers: Mapping[type[CoordinatorKey], Applier] = Replay(environment.groups).appliers
        self.delete = self.states.delete_group

    # ---------------------------------------------------------------- members

    def heartbeat(self, request: Heartbeat, reply: HeartbeatReply) -> None:
        """Handles a ShareGroupHeartbeat: joins, stays or leaves.

        :raises KafkaError: the request is refused
        """
        if request.member_epoch == LEAVE_EPOCH:
            self._leave(request, reply)
        else:
            self._heartbeat(request, reply)

    def _heartbeat(self, request: Heartbeat, reply: HeartbeatReply) -> None:
        group = self._group_to_join(request)
        member = self._member(group, request)
        update = _HeartbeatUpdate(self._environment, group, member, _updated(member, request))
        to_initialize = self.states.uninitialized(group, group.subscribed_topic_names(update.updated))
        if to_initialize:
            update.records.append(records.state_record(request.group_id, group.state.with_initializing(to_initialize)))
        answer = self._answer(request, member, update.updated)

        def written(error: KafkaError | None) -> None:
            if error is not None:
                group.refresh_at_ms = ALWAYS_DUE
                self.states.unmark_initializing(group, to_initialize)
                reply(error)
                return
            reply(answer)
            current = self._share_group(request.group_id)
            if current is group:
                self.states.initialize(group, to_initialize)
            elif current is not None:  # this batch created the group; a later heartbeat may initialize some of them
                names = [topic.name for topic in to_initialize.values()]
                self.states.initialize(current, self.states.uninitialized(current, names))

        group.refresh_at_ms = update.refresh_at_ms
        self.states.mark_initializing(group, to_initialize)
        self._environment.ledger.commit(request.group_id, update.records, written)
        current = self._share_group(request.group_id)
        if current is not None and request.member_id in current.members:
            self._restart_session(current, request.member_id)

    def _group_to_join(self, request: Heartbeat) -> ShareGroup:
        """Returns the group of a heartbeat, which may be new."""
        if request.member_epoch == JOIN_EPOCH and request.group_id not in self._groups:
            group = ShareGroup(request.group_id)
        else:
            group = self.find(request.group_id, "Share group")
        limit: int = self._environment.config()["group.share.max.size"]
        if request.member_id not in group.members and len(group.members) >= limit:
            raise GroupMaxSizeReached(f"The share group has reached its maximum capacity of {limit} members.")
        return group

    def _member(self, group: ShareGroup, request: Heartbeat) -> ShareMember:
        """Returns the member before this heartbeat.

        :raises FencedMemberEpoch: the heartbeat has neither its epoch nor the previous one
        """
        member = group.members.get(request.member_id)
        if request.member_epoch == JOIN_EPOCH:
            return member or ShareMember(request.member_id)
        if member is None:
            raise _unknown(request)
        # The previous epoch is valid, too: the response with the current one may be lost.
        if request.member_epoch not in (member.epoch, member.previous_epoch):
            known = f"the one known by the group coordinator ({member.epoch})"
            if request.member_epoch < member.epoch:
                known += f", and it does not match the previous member epoch ({member.previous_epoch})"
            greater = "greater" if request.member_epoch > member.epoch else "smaller"
            raise FencedMemberEpoch(
                f"The share group member has a {greater} member epoch ({request.member_epoch}) than {known}. "
                "The member must abandon all its partitions and rejoin."
            )
        return member

    def _answer(self, request: Heartbeat, member: ShareMember, updated: ShareMember) -> HeartbeatResult:
        is_told = (
            request.member_epoch == JOIN_EPOCH
            or request.subscribed_topic_names is not None
            or updated.assigned != member.assigned
        )
        return HeartbeatResult(
            request.member_id,
            updated.epoch,
            self._environment.group_settings(request.group_id)["share.heartbeat.interval.ms"],
            updated.assigned if is_told else None,
        )

    def _leave(self, request: Heartbeat, reply: HeartbeatReply) -> None:
        group = self.find(request.group_id)
        if request.member_id not in group.members:
            raise _unknown(request)

        def written(error: KafkaError | None) -> None:
            reply(HeartbeatResult(request.member_id, LEAVE_EPOCH) if error is None else error)

        self._remove(group, request.member_id, written)

    def _remove(self, group: ShareGroup, member_id: str, written: Written) -> None:
        """Writes the tombstones of a member. Its partitions are assigned again in the next epoch."""
        names = {
            name
            for each in group.members.values()
            if each.member_id != member_id
            for name in each.subscribed_topic_names
        }
        metadata_hash = hash_of(names, self._environment.image())
        gone = [
            *records.member_tombstones(group.group_id, member_id),
            records.epoch_record(group.group_id, group.epoch + 1, metadata_hash),
        ]
        self._environment.ledger.commit(group.group_id, gone, written)

    # --------------------------------------------------------------- sessions

    def _restart_session(self, group: ShareGroup, member_id: str) -> None:
        """Restarts the member's session."""
        session = group.sessions.get(member_id)
        if session is None:
            session = group.sessions[member_id] = Deadline(self._expire, group, member_id)
        timeout_ms: int = self._environment.group_settings(group.group_id)["share.session.timeout.ms"]
        self._environment.deadlines.set(session, timeout_ms / 1000)

    def _expire(self, group: ShareGroup, member_id: str) -> None:
        def written(error: KafkaError | None) -> None:
            if error is not None and member_id in group.members:
                logger.warning("group %s: cannot remove member %s: %s", group.group_id, member_id, error)
                self._restart_session(group, member_id)

        logger.info("group %s: removing member %s: its session timed out", group.group_id, member_id)
        self._remove(group, member_id, written)

    def start(self) -> None:
        """Starts all sessions, once the log is loaded."""
        for group in list(self._groups.values()):
            if isinstance(group, ShareGroup):
                for member_id in group.members:
                    if member_id not in group.sessions:
                        self._restart_session(group, member_id)
                self.states.topics_changed(group)

    # ----------------------------------------------------------------- topics

    def topics_changed(self, names: Collection[str]) -> None:
        """Notes that these topics were created or deleted, or have more partitions."""
        for group in list(self._groups.values()):
            if isinstance(group, ShareGroup):
                if any(map(group.is_subscribed_to, names)):
                    group.refresh_at_ms = ALWAYS_DUE
                self.states.topics_changed(group)

    # ----------------------------------------------------------------- groups

    def find(self, group_id: str, kind: str = "Group") -> ShareGroup:
        """Returns the group.

        :param kind: what the error calls a missing group
        :raises GroupIdNotFound: there is no share group with that id
        """
        group: Group | None = self._groups.get(group_id)
        if isinstance(group, ShareGroup):
            return group
        if group is not None:
            raise GroupIdNotFound(f"Group {group_id} is not a share group.")
        raise GroupIdNotFound(f"{kind} {group_id} not found.")

    def _share_group(self, group_id: str) -> ShareGroup | None:
        group = self._groups.get(group_id)
        return group if isinstance(group, ShareGroup) else None

    def describe(self, group_id: str) -> DescribedGroup:
        """Describes one group. Raises what :meth:`find` raises."""
        group = self.find(group_id)
        topics = self._environment.image().topics_by_id
        members = [
            DescribedMember(
                member.member_id,
                member.rack_id,
                member.epoch,
                member.client_id,
                member.client_host,
                member.subscribed_topic_names,
                [
                    (topic_id, topics[topic_id].name, partitions)
                    for topic_id, partitions in member.assigned.items()
                    if topic_id in topics
                ],
            )
            for member in group.members.values()
        ]
        return DescribedGroup(group.state_name, group.epoch, group.assignment_epoch, ASSIGNOR, members)


class _HeartbeatUpdate:
    """Computes a heartbeat: its ``records``, and the member as ``updated`` by them."""

    def __init__(self, environment: Environment, group: ShareGroup, member: ShareMember, updated: ShareMember) -> None:
        self._environment = environment
        self._group = group
        self._now_ms = environment.clock.time_ms()
        self._is_new = member.member_id not in group.members
        self.records: list[Pair] = []
        self.refresh_at_ms = group.refresh_at_ms
        self.updated = updated
        if self._is_new or updated != member:
            self.records.append(records.member_record(group.group_id, updated))
        self._epoch = self._next_epoch(updated.subscribed_topic_names != member.subscribed_topic_names)
        target_epoch, target = self._target()
        self._reconcile(target_epoch, target)

    def _next_epoch(self, is_subscription_changed: bool) -> int:
        """Returns the group epoch. It rises if the subscription, a topic, or the partitions to assign have changed."""
        group, image = self._group, self._environment.image()
        is_raised = is_subscription_changed or has_unassigned_partitions(group, image)
        if not is_raised and self._now_ms < group.refresh_at_ms:
            return group.epoch
        self.refresh_at_ms = self._now_ms + REFRESH_INTERVAL_MS
        metadata_hash = hash_of(group.subscribed_topic_names(self.updated), image)
        if not is_raised and metadata_hash == group.metadata_hash:
            return group.epoch
        self.records.append(records.epoch_record(group.group_id, group.epoch + 1, metadata_hash))
        return group.epoch + 1

    def _target(self) -> tuple[int, Partitions]:
        """Returns the epoch and the member's part of the target assignment. Computes a new one if it is due."""
        group, member_id = self._group, self.updated.member_id
        interval_ms: int = self._environment.group_settings(group.group_id)["share.assignment.interval.ms"]
        if self._epoch == group.assignment_epoch or not may_assign(group.assigned_at_ms, interval_ms, self._now_ms):
            return group.assignment_epoch, group.target.get(member_id, {})
        targets = assign(group, self.updated, self._environment.image())
        for each, target in targets.items():
            if group.target.get(each) != target:
                self.records.append(records.target_record(group.group_id, each, target))
        self.records.append(records.target_epoch_record(group.group_id, self._epoch, self._now_ms))
        return self._epoch, targets[member_id]

    def _reconcile(self, target_epoch: int, target: Partitions) -> None:
        """Assigns the whole target at once: several members may read a partition."""
        before = self.updated
        assigned = subscribed_part(target, before.subscribed_topic_names, self._environment.image())
        if before.epoch != target_epoch:
            self.updated = before._replace(epoch=target_epoch, previous_epoch=before.epoch, assigned=assigned)
        elif assigned != before.assigned:
            self.updated = before._replace(assigned=assigned)
        if self.updated is not before:
            self.records.append(records.assigned_record(self._group.group_id, self.updated))


def check_shape(request: Heartbeat) -> None:
    """Checks the fields of a heartbeat, without looking at its group.

    :raises InvalidRequest: a field is missing or has an invalid value
    """
    if not request.member_id or len(request.member_id) > LONGEST_MEMBER_ID:
        raise InvalidRequest
    for value, name in ((request.member_id, "MemberId"), (request.group_id, "GroupId"), (request.rack_id, "RackId")):
        if value is not None and not value.strip():
            raise InvalidRequest(f"{name} can't be empty.")
    if request.member_epoch == JOIN_EPOCH and not request.subscribed_topic_names:
        raise InvalidRequest("SubscribedTopicNames must be set in first request.")
    if request.member_epoch < LEAVE_EPOCH:
        raise InvalidRequest("MemberEpoch is invalid.")
    if not has_place_for(request.group_id, request.client_id, request.rack_id, *(request.subscribed_topic_names or ())):
        raise InvalidRequest("A text is too long for a record.")


def _updated(member: ShareMember, request: Heartbeat) -> ShareMember:
    names = request.subscribed_topic_names
    return member._replace(
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        subscribed_topic_names=member.subscribed_topic_names if names is None else tuple(sorted(set(names))),
    )


def _unknown(request: Heartbeat) -> UnknownMemberId:
    return UnknownMemberId(f"Member {request.member_id} is not a member of group {request.group_id}.")
