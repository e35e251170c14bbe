"""Computes the target assignment of a group, and the records of what changes in it.

Knows nothing of when that is due. Follows Apache Kafka's ``TargetAssignmentBuilder``.
"""

import logging
from typing import NamedTuple

from barnabas.groups.assigning import ASSIGNORS, Subscriber
from barnabas.groups.consumer import records
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.member import NO_TARGET, Member, Target
from barnabas.groups.consumer.subscriptions import Topics
from barnabas.groups.java_hash import hash_map_order
from barnabas.groups.ledger import Pair

logger = logging.getLogger(__name__)


class MemberTarget(NamedTuple):
    """The target of one member, with the epoch of the target assignment."""

    epoch: int
    target: Target


def assign(
    group: ConsumerGroup,
    epoch: int,
    member: Member,
    topics: Topics,
    assignor: str,
    now_ms: int,
    new_records: list[Pair],
) -> MemberTarget:
    """Computes the target assignment of the group with ``member`` as it will be, and adds the records of what changes.

    The group itself does not change. Returns the member's target.
    """
    members = dict(group.members)
    former = group.static_members.get(member.instance_id) if member.instance_id is not None else None
    if former is not None and former != member.member_id:
        members.pop(former, None)
    members[member.member_id] = member
    ids = topics.ids_for(group.resolved)
    subscribers = {
        each.member_id: Subscriber(ids(each), each.rack_id, each.instance_id, group.target_of(each))
        for each in members.values()
    }
    found = ASSIGNORS[assignor](subscribers, topics.image().topics_by_id)
    changed = [
        member_id
        for member_id in members
        if (target := found.get(member_id, NO_TARGET)) is not (known := group.target.get(member_id)) and target != known
    ]
    for member_id in hash_map_order(changed):
        new_records.append(records.target_record(group.group_id, member_id, found.get(member_id, NO_TARGET)))
    new_records.append(records.target_epoch_record(group.group_id, epoch, now_ms))
    logger.info(
        "group %s: target assignment of epoch %d: %d of %d targets changed",
        group.group_id,
        epoch,
        len(changed),
        len(members),
    )
    return MemberTarget(epoch, found.get(member.member_id, NO_TARGET))
