"""Downgrades a consumer group to a classic group when its last member of the consumer protocol leaves.

Knows nothing of why the member leaves. Follows ``convertToClassicGroup`` of Apache Kafka's ``GroupMetadataManager``,
and ``ClassicGroup.fromConsumerGroup``.
"""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence

from barnabas.errors import MalformedMessage
from barnabas.groups.classic_group import ClassicGroup, State
from barnabas.groups.classic_member import ClassicMember
from barnabas.groups.consumer.directory import Directory
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.member import Member
from barnabas.groups.consumer.records import tombstones_of_group
from barnabas.groups.java_hash import hash_map_order, timeline_order
from barnabas.groups.ledger import Pair, Written
from barnabas.groups.migration.embedded import OLDEST, assignment_of, version_of
from barnabas.groups.migration.policy import policy_of
from barnabas.groups.records import group_pair
from barnabas.groups.subscription import CONSUMER_PROTOCOL
from barnabas.wire.messages.group_records import ConsumerGroupTargetAssignmentMemberKey

logger = logging.getLogger(__name__)


class Downgrading:
    """Downgrades consumer groups."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._environment = directory.environment

    def is_due(self, group: ConsumerGroup, leaving: Collection[Member], joining: Member | None = None) -> bool:
        """Returns whether all remaining members, including a replacement, use the classic protocol."""
        rest = len(group.members) - len(leaving) + (joining is not None)
        classic = group.classic_members - sum(member.classic is not None for member in leaving) + (joining is not None)
        if rest == 0 or classic != rest:
            return False
        if not policy_of(self._environment.config()).allows_downgrade:
            logger.info("group %s: stays a consumer group, as its migration policy forbids a downgrade", group.group_id)
            return False
        return rest <= self._environment.classic.config.group_max_size

    def downgrade(self, group: ConsumerGroup, leaving: Sequence[Member], done: Written) -> None:
        """Removes members, and makes the group a classic group, which rebalances at once."""
        gone = {member.member_id for member in leaving}
        staying = [group.members[each] for each in timeline_order(group.members) if each not in gone]
        new_records = tombstones_of_group(
            group.group_id,
            timeline_order(group.members),
            timeline_order(group.target),
            timeline_order(group.resolved),
        )
        restored = self._commit(group, staying, group.epoch, new_records, done)
        if restored is not None:
            self._start_rebalance(restored)

    def replace(
        self,
        group: ConsumerGroup,
        leaving: Member,
        joining: Member,
        epoch: int,
        new_records: list[Pair],
        done: Written,
    ) -> None:
        """Replaces a static member by one of the classic protocol, and makes the group a classic group.

        The replacement has all partitions of the former member. So nobody has to rejoin, unless the group was
        reconciling: its assignment must not take effect while some members still have to revoke partitions.

        :param new_records: the records of the replacement so far
        """
        names = {leaving.member_id: joining.member_id}
        others = [each for each in timeline_order(group.members) if each != leaving.member_id]
        members = [*(group.members[each] for each in others), joining]
        new_records = new_records + tombstones_of_group(
            group.group_id,
            [names.get(each, each) for each in timeline_order(group.members)],
            # These records contain targets of members that had none before.
            dict.fromkeys(
                [*(names.get(each, each) for each in timeline_order(group.target)), *_targets_in(new_records)]
            ),
            timeline_order(group.resolved),
        )
        is_settled = epoch == group.assignment_epoch and all(member.is_reconciled_to(epoch) for member in members)
        restored = self._commit(group, members, epoch, new_records, done)
        if restored is not None and not is_settled:
            self._start_rebalance(restored)

    def resume(self, ended: Mapping[str, int]) -> None:
        """Starts the rebalances of groups that were downgraded just before a restart.

        No record says that they are due. Without them the partitions of the members that have left would stay
        unassigned.

        :param ended: the deleted consumer groups and their epochs
        """
        for group_id, epoch in ended.items():
            group = self._environment.groups.get(group_id)
            if isinstance(group, ClassicGroup) and group.state is State.STABLE and group.generation_id == epoch:
                self._start_rebalance(group)

    def _commit(
        self, group: ConsumerGroup, members: Sequence[Member], epoch: int, new_records: list[Pair], done: Written
    ) -> ClassicGroup | None:
        """Writes the classic group. Returns it, or None if it could not be written."""
        environment, rebalance = self._environment, self._environment.classic
        image = environment.image()
        made = self._classic_group(group.group_id, members, epoch)
        versions = {
            member_id: _version_for(member.metadata(made.protocol_name or ""))
            for member_id, member in made.members.items()
        }
        assignments = {
            each.member_id: assignment_of(group.target_of(each), versions[each.member_id], image) for each in members
        }
        logger.info("group %s: downgraded to a classic group in generation %d", group.group_id, epoch)
        environment.ledger.commit(group.group_id, [*new_records, group_pair(made, assignments)], done)
        restored = environment.groups.get(group.group_id)
        if not isinstance(restored, ClassicGroup):
            return None
        for each in members:
            member = restored.members[each.member_id]
            # The record has a member's metadata for the selected protocol alone, and its target instead of the
            # partitions that it owns. The latter count if the group becomes a consumer group again before all members
            # have rejoined.
            restored.change_protocols(member, made.members[each.member_id].protocols)
            member.assignment = assignment_of(_owned(each), versions[each.member_id], image)
            rebalance.expect_heartbeat(member)
        return restored

    def _classic_group(self, group_id: str, members: Sequence[Member], epoch: int) -> ClassicGroup:
        environment = self._environment
        made = ClassicGroup(group_id, environment.clock.time_ms(), generation_id=epoch)
        made.state = State.STABLE
        for member in members:
            assert member.classic is not None
            classic = ClassicMember(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.classic.session_timeout_ms,
                member.classic.protocols,
                environment.classic.session(made, member.member_id),
            )
            made.add(classic, CONSUMER_PROTOCOL)
        made.members = {member_id: made.members[member_id] for member_id in hash_map_order(made.members)}
        made.protocol_name = made.select_protocol()
        return made

    def _start_rebalance(self, restored: ClassicGroup) -> None:
        rebalance = self._environment.classic
        rebalance.prepare(restored, "it was a consumer group until now")
        rebalance.give_answers()


def _version_for(metadata: bytes) -> int:
    """Returns the version of the assignment for a member with that metadata.

    The metadata may be unreadable, since a member only promises to support the selected protocol. Then the oldest
    version is used: this member must not prevent the downgrade.
    """
    try:
        return version_of(metadata)
    except MalformedMessage:
        return OLDEST


def _owned(member: Member) -> dict[bytes, set[int]]:
    """Returns the partitions that the member owns, including those that it has to revoke."""
    has: dict[bytes, set[int]] = {}
    for partitions in (member.assigned, member.revoking):
        for topic_id, theirs in partitions.items():
            has.setdefault(topic_id, set()).update(theirs)
    return has


def _targets_in(new_records: Iterable[Pair]) -> list[str]:
    return [
        key.member_id
        for key, value in new_records
        if isinstance(key, ConsumerGroupTargetAssignmentMemberKey) and value is not None
    ]
