"""Handles heartbeats of members that join or stay: group epoch, target assignment, and reconciliation.

Knows nothing of requests. A command reads the group, computes records and a response, and passes the records to the
ledger. The ledger alone changes what is in records. Follows Apache Kafka's ``GroupMetadataManager``.
"""

import base64
import logging
from collections.abc import Iterable
from typing import Protocol

from barnabas.errors import KafkaError
from barnabas.groups.assigning import ASSIGNORS, names_of
from barnabas.groups.assigning.interval import may_assign
from barnabas.groups.classic_group import ClassicGroup
from barnabas.groups.consumer import checks, records, regexes
from barnabas.groups.consumer.directory import Directory, wrong_kind
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.leaving import Leaving
from barnabas.groups.consumer.member import NO_TARGET, Member
from barnabas.groups.consumer.messages import JOINING, Heartbeat, HeartbeatReply, HeartbeatResult, Visible
from barnabas.groups.consumer.reconciliation import Owned, ReconcileContext, reconcile
from barnabas.groups.consumer.targets import MemberTarget, assign
from barnabas.groups.ledger import Pair, log_failure

logger = logging.getLogger(__name__)


class Upgrade(Protocol):
    """Turns a classic group into a consumer group when its first member of the consumer protocol joins."""

    def upgrade(self, classic: ClassicGroup, new_records: list[Pair], /) -> ConsumerGroup:
        """Returns the consumer group, and adds the records that create it.

        :raises GroupIdNotFound: the group stays a classic group
        """

    def needs_assignment(self, classic: ClassicGroup, group: ConsumerGroup, /) -> bool:
        """Returns whether a new assignment is needed, whichever member joins."""


class Membership:
    """The members of all consumer groups of the coordinator."""

    def __init__(self, directory: Directory, leaving: Leaving, upgrade: Upgrade) -> None:
        self.directory = directory
        self.environment = directory.environment
        self.topics = directory.topics
        self._leaving = leaving
        self._upgrade = upgrade
        self.new_topics_at = self.environment.image().offset
        """The metadata offset at which a topic was last created."""

    # ------------------------------------------------------------- heartbeats

    def heartbeat(self, request: Heartbeat, reply: HeartbeatReply) -> None:
        """Handles a heartbeat of a member that joins or stays.

        :raises KafkaError: the request is refused, and nothing has changed
        """
        environment = self.environment
        new_records: list[Pair] = []
        found = environment.groups.get(request.group_id)
        group = (
            self._group_to_join(request.group_id, new_records)
            if request.member_epoch == JOINING
            else self.directory.require(request.group_id, "Consumer group")
        )
        checks.check_room(group, request.member_id, environment.config()["group.consumer.max.size"])
        if not request.member_id:
            request = request._replace(member_id=self.new_member_id())
        former = self._former(group, request, new_records)
        member = former.updated(request)

        has_new_topics = member.topic_names != former.topic_names
        if not member.is_described_as(former):
            new_records.append(records.member_record(group.group_id, member))
        regex = regexes.change(
            group,
            former,
            member,
            new_records,
            now_ms=environment.clock.time_ms(),
            new_topics_at=self.new_topics_at,
            refresh_interval_ms=lambda: environment.config()["group.consumer.regex.refresh.interval.ms"],
        )
        is_due = has_new_topics or regex.is_known
        if isinstance(found, ClassicGroup) and found.members:
            is_due = is_due or self._upgrade.needs_assignment(found, group)
        epoch = self.next_epoch(group, former, member, new_records, is_due=is_due)
        member_target = self.target(group, epoch, former, member, new_records)
        member = self.reconcile(
            group, member, member_target, has_new_topics or regex.has_changed, request.owned, new_records
        )
        interval_ms: int = environment.group_settings(group.group_id)["consumer.heartbeat.interval.ms"]
        result = HeartbeatResult(
            member_id=member.member_id,
            member_epoch=member.epoch,
            heartbeat_interval_ms=interval_ms,
            assignment=_assignment(member) if request.is_full or member.assigned != former.assigned else None,
        )

        def done(error: KafkaError | None) -> None:
            reply(result if error is None else HeartbeatResult.refused(error))

        self.environment.ledger.commit(group.group_id, new_records, done)
        if isinstance(found, ClassicGroup):
            self._leaving.expect_all(group.group_id)
        else:
            self._leaving.expect_heartbeat(group.group_id, member.member_id)
        if not member.is_where(former):
            self._leaving.expect_revocation(group.group_id, member)
        if regex.due:
            self._resolve_regexes(group.group_id, regex.due, request.visible)

    def _group_to_join(self, group_id: str, new_records: list[Pair]) -> ConsumerGroup:
        """Returns the group that a member joins. A new one is visible once its records are written.

        A classic group is upgraded, or replaced if it is empty.
        """
        group = self.environment.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if group is None:
            return self.directory.new_group(group_id)
        if isinstance(group, ClassicGroup):
            if not group.is_empty:
                return self._upgrade.upgrade(group, new_records)
            new_records.append(records.classic_group_tombstone(group_id))
            return self.directory.new_group(group_id)
        raise wrong_kind(group_id)

    def new_member_id(self) -> str:
        """Returns a random UUID in URL-safe base64, as clients generate one. It does not start with a hyphen."""
        member_id = "-"
        while member_id.startswith("-"):
            digits = bytes.fromhex(self.environment.new_uuid().replace("-", ""))
            member_id = base64.urlsafe_b64encode(digits).decode().rstrip("=")
        return member_id

    def _former(self, group: ConsumerGroup, request: Heartbeat, new_records: list[Pair]) -> Member:
        """Returns the member before this heartbeat: the stored one, a new one, or the successor of a static member."""
        if request.member_epoch != JOINING:
            member = (
                group.require(request.member_id)
                if request.instance_id is None
                else checks.static_member(group, request)
            )
            checks.check_epoch(member, request)
            return member
        if request.instance_id is None or (member_before := group.static_member(request.instance_id)) is None:
            return group.members.get(request.member_id) or Member(request.member_id)
        checks.check_released(member_before, request)
        return self.replace(group, member_before, request.member_id, new_records)

    def replace(self, group: ConsumerGroup, member: Member, member_id: str, new_records: list[Pair]) -> Member:
        """Replaces a static member by a new member id, with the same target and the same partitions."""
        successor = member._replace(member_id=member_id, epoch=0, previous_epoch=0)
        new_records += records.tombstones_of_member(group.group_id, member.member_id)
        new_records.append(records.member_record(group.group_id, successor))
        new_records.append(
            records.target_record(group.group_id, member_id, group.target.get(member.member_id, NO_TARGET))
        )
        new_records.append(records.assignment_record(group.group_id, successor))
        return successor

    # ------------------------------------------------------------------ steps

    def next_epoch(
        self, group: ConsumerGroup, former: Member, member: Member, new_records: list[Pair], *, is_due: bool
    ) -> int:
        """Returns the group epoch with ``member`` in the place of ``former``.

        It rises if the subscription or a subscribed topic has changed.
        """
        now_ms = self.environment.clock.time_ms()
        if not is_due and not group.is_refresh_due(now_ms):
            return group.epoch
        epoch = group.epoch
        known = former if former.member_id in group.members else group.static_member(member.instance_id)
        metadata_hash = self.topics.hash_of(group.topics_with(known, member))
        if is_due or metadata_hash != group.metadata_hash:
            epoch += 1
            new_records.append(records.epoch_record(group.group_id, epoch, metadata_hash))
            logger.info("group %s: group epoch %d", group.group_id, epoch)
        group.refreshed(now_ms, epoch)
        if group.keeps_partition_metadata:
            new_records.append(records.partition_metadata_tombstone(group.group_id))
        return epoch

    def target(
        self, group: ConsumerGroup, epoch: int, former: Member, member: Member, new_records: list[Pair]
    ) -> MemberTarget:
        """Returns the member's target.

        Computes a new target assignment if the group epoch is ahead, and the interval since the last one is over.
        """
        if epoch > group.assignment_epoch and self._may_assign(group):
            assignor = self.assignor_of(group, former, member)
            now_ms = self.environment.clock.time_ms()
            return assign(group, epoch, member, self.topics, assignor, now_ms, new_records)
        return MemberTarget(group.assignment_epoch, group.target_of(member))

    def _may_assign(self, group: ConsumerGroup) -> bool:
        """Returns whether the interval since the last assignment is over."""
        interval_ms: int = self.environment.group_settings(group.group_id)["consumer.assignment.interval.ms"]
        return may_assign(group.assignment_time_ms, interval_ms, self.environment.clock.time_ms())

    def is_assignment_due(self, group: ConsumerGroup) -> bool:
        """Returns whether the next request of a member would compute a new target assignment."""
        if group.epoch > group.assignment_epoch:
            return self._may_assign(group)
        now_ms = self.environment.clock.time_ms()
        if not group.is_refresh_due(now_ms):
            return False
        if self.topics.hash_of(group.topics) != group.metadata_hash:
            return True
        group.refreshed(now_ms, group.epoch)
        return False

    def assignor_of(self, group: ConsumerGroup, former: Member | None = None, member: Member | None = None) -> str:
        """Returns the assignor that most members prefer, if this broker has it; the default otherwise."""
        name = group.assignor(former, member)
        return name if name in ASSIGNORS else names_of(self.environment.config()["group.consumer.assignors"])[0]

    def reconcile(
        self,
        group: ConsumerGroup,
        member: Member,
        member_target: MemberTarget,
        has_subscription_changed: bool,
        owned: Owned,
        new_records: list[Pair],
    ) -> Member:
        """Returns the member after the next step to its target."""
        if not has_subscription_changed and member.is_reconciled_to(member_target.epoch):
            return member
        is_subscribed = self.topics.subscription_of(member, group.resolved)
        context = ReconcileContext(
            member_target.epoch, member_target.target, group.is_free, is_subscribed, has_subscription_changed
        )
        further = reconcile(member, context, owned)
        if further != member:
            new_records.append(records.assignment_record(group.group_id, further))
        return further

    def _resolve_regexes(self, group_id: str, due: Iterable[str], visible: Visible | None) -> None:
        """Resolves regular expressions, once the members that subscribe by them are written."""
        group = self.directory.find(group_id)
        if group is None:
            return
        now_ms = self.environment.clock.time_ms()
        new_records, epoch = regexes.resolve(group, list(due), self.topics, now_ms, visible)
        if epoch != group.epoch:
            group.refreshed(now_ms, epoch)
        self.environment.ledger.commit(group_id, new_records, log_failure(group_id, "resolved regular expressions"))


def _assignment(member: Member) -> list[tuple[bytes, list[int]]]:
    """Returns the assignment for the response, without partitions that the member has to revoke."""
    return [(topic_id, sorted(member.assigned[topic_id])) for topic_id in member.assigned]
