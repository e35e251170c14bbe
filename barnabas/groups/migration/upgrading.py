"""Upgrades a classic group to a consumer group when a member of the consumer protocol joins it.

Knows nothing of that member, which then joins as it would join any group. Follows ``convertToConsumerGroup`` of Apache
Kafka's ``GroupMetadataManager``, and ``ConsumerGroup.fromClassicGroup``.
"""

import logging
from collections.abc import Iterable

from barnabas.errors import GroupIdNotFound, MalformedMessage, RebalanceInProgress
from barnabas.groups.classic_group import ClassicGroup, State
from barnabas.groups.classic_member import ClassicMember
from barnabas.groups.consumer import records
from barnabas.groups.consumer.directory import Directory
from barnabas.groups.consumer.group import NEVER, ConsumerGroup
from barnabas.groups.consumer.member import ClassicProtocols, Epochs, Member
from barnabas.groups.consumer.replay import Replay
from barnabas.groups.group import Group
from barnabas.groups.java_hash import timeline_order
from barnabas.groups.ledger import Pair
from barnabas.groups.messages import JoinResult, SyncResult
from barnabas.groups.migration.embedded import CustomAssignment, partitions_of, subscription_of
from barnabas.groups.migration.policy import policy_of

logger = logging.getLogger(__name__)


class Upgrading:
    """Upgrades classic groups."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._environment = directory.environment

    def upgrade(self, classic: ClassicGroup, new_records: list[Pair]) -> ConsumerGroup:
        """Returns the consumer group that ``classic`` becomes, and adds the records that create it.

        All members get the group's generation as their epoch, and keep their partitions. Members that wait for a
        response get REBALANCE_IN_PROGRESS, and rejoin.

        :raises GroupIdNotFound: the group stays a classic group
        """
        self._check(classic)
        # No protocol is selected before the first rebalance is complete.
        protocol = classic.protocol_name or (classic.select_protocol() if classic.members else "")
        try:
            members = _without_duplicates(self._member(classic, each, protocol) for each in classic.members.values())
        except MalformedMessage as error:
            raise _refused(classic, "the embedded consumer protocol is malformed") from error
        except CustomAssignment as error:
            why = "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default "
            raise _refused(classic, f"{why}assignor before re-attempting the upgrade") from error
        logger.info("group %s: upgraded to a consumer group in epoch %d", classic.group_id, classic.generation_id)
        changes = self._records(classic, {each.member_id: each for each in members})
        new_records.append(records.classic_group_tombstone(classic.group_id))
        new_records += changes
        self._answer_waiting(classic)
        made: dict[str, Group] = {}
        appliers = Replay(made, self._directory.new_group).appliers
        for key, value in changes:
            appliers[type(key)](key, value)
        group = made[classic.group_id]
        assert isinstance(group, ConsumerGroup)
        return group

    def needs_assignment(self, classic: ClassicGroup, group: ConsumerGroup) -> bool:
        """Returns whether a new assignment is needed, even if a static member only takes its own place.

        It is needed if the group was rebalancing, or if a partition is unassigned. Apache Kafka 4.3.1 does not check
        that.
        """
        topics = self._environment.image().topics_by_name
        return classic.state is not State.STABLE or any(
            group.is_free(topics[name].id, index)
            for name in group.topics
            if name in topics
            for index in topics[name].partitions
        )

    def _check(self, classic: ClassicGroup) -> None:
        settings = self._environment.config()
        if not policy_of(settings).allows_upgrade:
            raise _refused(classic, "online upgrade is disabled")
        if not classic.is_consumer_group:
            raise _refused(classic, "the group does not use the consumer embedded protocol")
        if len(classic.members) > settings["group.consumer.max.size"]:
            raise _refused(classic, "the group size exceeds the consumer group maximum size")

    def _member(self, classic: ClassicGroup, member: ClassicMember, protocol: str) -> Member:
        image, epoch = self._environment.image(), classic.generation_id
        subscription = subscription_of(member.metadata(protocol), image)
        # During a repeated rebalance there is no assignment. The member keeps the partitions that it reports.
        has = partitions_of(member.assignment, image) if member.assignment else subscription.owned
        assigned: Epochs = {topic_id: dict.fromkeys(partitions, epoch) for topic_id, partitions in has.items()}
        return Member(
            member.member_id,
            member.group_instance_id,
            subscription.rack_id,
            member.client_id,
            member.client_host,
            subscription.topics,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            classic=ClassicProtocols(member.session_timeout_ms, member.protocols),
            epoch=epoch,
            previous_epoch=epoch,
            assigned=assigned,
        )

    def _records(self, classic: ClassicGroup, members: dict[str, Member]) -> list[Pair]:
        group_id, epoch = classic.group_id, classic.generation_id
        in_order = [members[member_id] for member_id in timeline_order(members)]
        topics = dict.fromkeys(name for member in in_order for name in member.topic_names)
        targets = {
            member.member_id: {topic_id: frozenset(each) for topic_id, each in member.assigned.items()}
            for member in in_order
        }
        return [
            *(records.member_record(group_id, member) for member in in_order),
            records.epoch_record(group_id, epoch, self._directory.topics.hash_of(topics)),
            *(records.target_record(group_id, member_id, target) for member_id, target in targets.items()),
            records.target_epoch_record(group_id, epoch, NEVER),
            *(records.assignment_record(group_id, member) for member in in_order),
        ]

    def _answer_waiting(self, classic: ClassicGroup) -> None:
        """Replies REBALANCE_IN_PROGRESS to members that wait, so that they rejoin."""
        rebalance = self._environment.classic
        for member in classic.members.values():
            rebalance.answer_join(classic, member, JoinResult.refused(RebalanceInProgress(), member.member_id))
            rebalance.answer_sync(member, SyncResult.refused(RebalanceInProgress()))


def _without_duplicates(members: Iterable[Member]) -> list[Member]:
    """Removes partitions that several members claim from all but the first. The others get an assignment without them
    when they rejoin.
    """
    taken: set[tuple[bytes, int]] = set()
    found = []
    for member in members:
        assigned = {}
        for topic_id, partitions in member.assigned.items():
            free = {each: epoch for each, epoch in partitions.items() if (topic_id, each) not in taken}
            taken.update((topic_id, each) for each in free)
            if free:
                assigned[topic_id] = free
        found.append(member._replace(assigned=assigned))
    return found


def _refused(classic: ClassicGroup, why: str) -> GroupIdNotFound:
    return GroupIdNotFound(f"Cannot upgrade classic group {classic.group_id} to consumer group because {why}.")
