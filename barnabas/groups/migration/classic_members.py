"""Members of a consumer group that use the classic protocol: JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

Knows nothing of requests. The broker assigns partitions to them as to all other members. They get a new assignment by
joining and syncing again, where a member of the consumer protocol gets it in the response to a heartbeat. No member is
the leader. Follows the methods of Apache Kafka's ``GroupMetadataManager`` whose names end in ``ToConsumerGroup``
(KIP-848).
"""

import logging
from collections.abc import Sequence

from barnabas.deadlines import Deadline
from barnabas.errors import (
    FencedInstanceId,
    IllegalGeneration,
    InconsistentGroupProtocol,
    KafkaError,
    MalformedMessage,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
    UnknownServerError,
)
from barnabas.groups.consumer import checks, records
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.leaving import Leaving
from barnabas.groups.consumer.member import ClassicProtocols, Member
from barnabas.groups.consumer.member_states import UNRELEASED, UNREVOKED
from barnabas.groups.consumer.membership import Membership
from barnabas.groups.ledger import Pair
from barnabas.groups.messages import (
    Join,
    JoinReply,
    JoinResult,
    LeaveResult,
    LeavingMember,
    Sync,
    SyncReply,
    SyncResult,
)
from barnabas.groups.migration.downgrading import Downgrading
from barnabas.groups.migration.embedded import Subscription, assignment_of, preferred, subscription_of, version_of
from barnabas.groups.migration.policy import policy_of
from barnabas.groups.subscription import CONSUMER_PROTOCOL

logger = logging.getLogger(__name__)


class ClassicMembers:
    """Handles the requests of the classic protocol for consumer groups that are not empty."""

    def __init__(self, membership: Membership, leaving: Leaving, downgrading: Downgrading) -> None:
        self._membership = membership
        self._leaving = leaving
        self._downgrading = downgrading
        self._directory = membership.directory
        self._environment = membership.environment

    # ------------------------------------------------------------------- join

    def join(self, join: Join, reply: JoinReply) -> None:
        """Handles a JoinGroup. Replies without waiting for other members."""
        try:
            self._join(self._directory.require(join.group_id), join, reply)
        except KafkaError as error:
            reply(JoinResult.refused(error))

    def _join(self, group: ConsumerGroup, join: Join, reply: JoinReply) -> None:
        settings = self._environment.config()
        if not policy_of(settings).allows_both_protocols:
            raise InconsistentGroupProtocol
        member_id = join.member_id or self._membership.new_member_id()
        checks.check_room(group, member_id, settings["group.consumer.max.size"])
        _check_protocols(group, join)
        if not join.member_id and join.group_instance_id is None and join.knows_member_id_required:
            reply(JoinResult.refused(MemberIdRequired(), member_id))
            return
        new_records: list[Pair] = []
        replaced = self._replaced(group, join)
        former = self._former(group, join, member_id, replaced, new_records)
        subscription = self._subscription(join)
        member = _updated(former, join, subscription)
        epoch, member = self._advance(group, former, member, subscription, new_records)
        result = JoinResult(None, member.member_id, member.epoch, CONSUMER_PROTOCOL, preferred(join.protocols)[0])

        def done(error: KafkaError | None) -> None:
            if error is None:
                reply(result)
                return
            group.request_refresh()  # the refresh was not written
            reply(JoinResult.refused(error))

        if replaced is not None and self._downgrading.is_due(group, [replaced], member):
            self._downgrading.replace(group, replaced, member, epoch, new_records, done)
            return
        self._environment.ledger.commit(group.group_id, new_records, done)
        self._expect_sync(group.group_id, member)

    @staticmethod
    def _replaced(group: ConsumerGroup, join: Join) -> Member | None:
        """Returns the static member whose instance id the new member takes over, if there is one."""
        return None if join.member_id else group.static_member(join.group_instance_id)

    def _former(
        self, group: ConsumerGroup, join: Join, member_id: str, replaced: Member | None, new_records: list[Pair]
    ) -> Member:
        """Returns the member before this request: the stored one, a new one, or the successor of a static member."""
        if replaced is not None:
            return self._membership.replace(group, replaced, member_id, new_records)
        if join.group_instance_id is not None and join.member_id:
            return _require(group, join.member_id, join.group_instance_id)
        return group.members.get(member_id) or Member(member_id)

    def _subscription(self, join: Join) -> Subscription:
        try:
            return subscription_of(preferred(join.protocols)[1], self._environment.image())
        except MalformedMessage as error:
            raise UnknownServerError(str(error)) from error

    def _advance(
        self, group: ConsumerGroup, former: Member, member: Member, subscription: Subscription, new_records: list[Pair]
    ) -> tuple[int, Member]:
        """Returns the group epoch and the member after its next step, as for a heartbeat."""
        membership = self._membership
        has_new_topics = member.topic_names != former.topic_names
        if not member.is_described_as(former):
            new_records.append(records.member_record(group.group_id, member))
        unused_regexes = group.regexes_only_of([former])
        new_records += [records.regex_record(group.group_id, regex, None) for regex in unused_regexes]
        epoch = membership.next_epoch(group, former, member, new_records, is_due=has_new_topics or bool(unused_regexes))
        member_target = membership.target(group, epoch, former, member, new_records)
        has_changed = has_new_topics or former.topic_regex != member.topic_regex
        return epoch, membership.reconcile(group, member, member_target, has_changed, subscription.owned, new_records)

    def _expect_sync(self, group_id: str, member: Member) -> None:
        """Restarts the session of a member that has joined, and sets the deadline by which it has to sync."""
        group = self._directory.find(group_id)
        if group is None or member.member_id not in group.members:
            return
        self._expect_heartbeat(group, member)
        self._cancel(group.joins, member)
        deadline = Deadline(self._sync_is_late, group_id, member.member_id)
        self._cancel(group.syncs, member)
        group.syncs[member.member_id] = deadline
        self._environment.deadlines.set(deadline, member.rebalance_timeout_ms / 1000)

    # -------------------------------------------------------------- heartbeat

    def heartbeat(self, group_id: str, member_id: str, instance_id: str | None, generation_id: int) -> None:
        """Handles a Heartbeat.

        :raises RebalanceInProgress: the member has to rejoin
        :raises KafkaError: it is not a member in that epoch
        """
        group = self._directory.require(group_id)
        member = _require_classic(group, member_id, instance_id, generation_id)
        self._expect_heartbeat(group, member)
        if _must_rejoin(group, member) or self._needs_assignment(group):
            self._expect_join(group, member)
            raise RebalanceInProgress

    def _needs_assignment(self, group: ConsumerGroup) -> bool:
        """Returns whether members have to rejoin so that a new assignment is computed.

        That is so if all members use the classic protocol, since no heartbeat of the consumer protocol would compute
        it. Apache Kafka 4.3.1 leaves the partitions of the last member of the consumer protocol unassigned if the group
        may not be downgraded.
        """
        return group.classic_members == len(group.members) and self._membership.is_assignment_due(group)

    def _expect_heartbeat(self, group: ConsumerGroup, member: Member) -> None:
        assert member.classic is not None
        self._leaving.expect_heartbeat(group.group_id, member.member_id, member.classic.session_timeout_ms)

    def _expect_join(self, group: ConsumerGroup, member: Member) -> None:
        """Sets the deadline by which a member that has to rejoin must have joined, unless it is set already."""
        if member.member_id in group.joins:
            return
        deadline = Deadline(self._join_is_late, group.group_id, member.member_id)
        group.joins[member.member_id] = deadline
        self._environment.deadlines.set(deadline, member.rebalance_timeout_ms / 1000)

    def _join_is_late(self, group_id: str, member_id: str) -> None:
        group = self._directory.find(group_id)
        if group is not None:
            self._leaving.fence(
                group_id, member_id, "it has not rejoined within the rebalance timeout", group.joins.get(member_id)
            )

    def _sync_is_late(self, group_id: str, member_id: str) -> None:
        group = self._directory.find(group_id)
        if group is not None:
            self._leaving.fence(
                group_id, member_id, "it has not synced within the rebalance timeout", group.syncs.get(member_id)
            )

    @staticmethod
    def _cancel(deadlines: dict[str, Deadline], member: Member) -> None:
        deadline = deadlines.pop(member.member_id, None)
        if deadline is not None:
            deadline.cancel()

    # ------------------------------------------------------------------- sync

    def sync(self, sync: Sync, reply: SyncReply) -> None:
        """Handles a SyncGroup. Replies with the partitions of the member in its epoch."""
        try:
            group = self._directory.require(sync.group_id)
            member = _require_classic(group, sync.member_id, sync.group_instance_id, sync.generation_id)
            protocol, metadata = _protocol_of(member)
            for requested, known in ((sync.protocol_type, CONSUMER_PROTOCOL), (sync.protocol_name, protocol)):
                if requested is not None and requested != known:
                    raise InconsistentGroupProtocol
            if member.epoch < group.assignment_epoch and member.state is not UNREVOKED:
                # A member that has to revoke partitions has rejoined already. The response tells it which ones it
                # keeps.
                self._expect_join(group, member)
                raise RebalanceInProgress
            assignment = assignment_of(member.assigned, version_of(metadata), self._environment.image())
        except KafkaError as error:
            reply(SyncResult.refused(error))
            return
        except MalformedMessage:
            reply(SyncResult.refused(UnknownServerError()))
            return
        self._cancel(group.syncs, member)
        self._expect_heartbeat(group, member)
        reply(SyncResult(None, sync.protocol_type, sync.protocol_name, assignment))

    # ------------------------------------------------------------------ leave

    def leave(self, group_id: str, leaving: Sequence[LeavingMember]) -> list[LeaveResult]:
        """Handles a LeaveGroup. Removes members of either protocol."""
        group = self._directory.require(group_id)
        answers: list[LeaveResult] = []
        gone: dict[str, Member] = {}
        for leaver in leaving:
            try:
                member = _leaving_member(group, leaver)
            except KafkaError as error:
                answers.append(LeaveResult(leaver.member_id, leaver.group_instance_id, error))
            else:
                gone[member.member_id] = member
                answers.append(LeaveResult(leaver.member_id, leaver.group_instance_id))
        refused: list[KafkaError] = []

        def done(error: KafkaError | None) -> None:
            if error is not None:
                refused.append(error)

        if gone:
            logger.info("group %s: %s leave", group.group_id, ", ".join(gone))
            self._leaving.remove(group, list(gone.values()), done)
        return [each._replace(error=each.error or refused[0]) for each in answers] if refused else answers


def _check_protocols(group: ConsumerGroup, join: Join) -> None:
    """Checks that the member shares a protocol with all other classic members.

    :raises InconsistentGroupProtocol: it does not
    """
    if join.protocol_type != CONSUMER_PROTOCOL:
        raise InconsistentGroupProtocol
    common = {name for name, _ in join.protocols}
    if group.classic_members:
        for member in group.members.values():
            if member.classic is not None:
                common.intersection_update(name for name, _ in member.classic.protocols)
    if not common:
        raise InconsistentGroupProtocol


def _updated(former: Member, join: Join, subscription: Subscription) -> Member:
    """Returns the member with the description in the request."""
    return former._replace(
        instance_id=former.instance_id if join.group_instance_id is None else join.group_instance_id,
        rack_id=former.rack_id if subscription.rack_id is None else subscription.rack_id,
        client_id=join.client_id,
        client_host=join.client_host,
        topic_names=subscription.topics,
        topic_regex="",
        rebalance_timeout_ms=former.rebalance_timeout_ms
        if join.rebalance_timeout_ms == -1
        else join.rebalance_timeout_ms,
        classic=ClassicProtocols(join.session_timeout_ms, tuple(join.protocols)),
    )


def _require(group: ConsumerGroup, member_id: str, instance_id: str | None) -> Member:
    """Returns the member.

    :raises UnknownMemberId: there is none with that member id or instance id
    :raises FencedInstanceId: another member id has taken the instance id over
    """
    if instance_id is None:
        return group.require(member_id)
    member = group.static_member(instance_id)
    if member is None:
        raise UnknownMemberId
    if member.member_id != member_id:
        raise FencedInstanceId
    return member


def _require_classic(group: ConsumerGroup, member_id: str, instance_id: str | None, generation_id: int) -> Member:
    """Returns the member, if it uses the classic protocol.

    :raises UnknownMemberId: there is no such member, or it uses the consumer protocol
    :raises FencedInstanceId: another member id has taken the instance id over
    :raises IllegalGeneration: the member is in another epoch
    """
    member = _require(group, member_id, instance_id)
    if member.classic is None:
        raise UnknownMemberId
    if generation_id != member.epoch:
        raise IllegalGeneration
    return member


def _leaving_member(group: ConsumerGroup, leaver: LeavingMember) -> Member:
    if leaver.group_instance_id is not None and not leaver.member_id:
        # An administrator removes the instance; its member id does not matter.
        member = group.static_member(leaver.group_instance_id)
        if member is None:
            raise UnknownMemberId
        return member
    return _require(group, leaver.member_id, leaver.group_instance_id)


def _protocol_of(member: Member) -> tuple[str, bytes]:
    assert member.classic is not None
    return preferred(member.classic.protocols)


def _must_rejoin(group: ConsumerGroup, member: Member) -> bool:
    """Returns whether the member has to rejoin.

    It has to if there is a new assignment, if it has to confirm that it revoked partitions, or if a partition that it
    waits for is free.
    """
    if member.epoch < group.assignment_epoch or member.state is UNREVOKED:
        return True
    return member.state is UNRELEASED and not _awaits_partitions(group, member)


def _awaits_partitions(group: ConsumerGroup, member: Member) -> bool:
    """Returns whether others own partitions of the member's target (Kafka's ``waitingOnUnreleasedPartition``)."""
    for topic_id, partitions in group.target_of(member).items():
        has = member.assigned.get(topic_id, {})
        if any(each not in has and not group.is_free(topic_id, each) for each in partitions):
            return True
    return False
