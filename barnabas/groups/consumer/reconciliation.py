"""Moves a member from the partitions that it owns to its target, so that no partition is ever owned by two members.

Knows nothing of groups, records or clocks. Follows Apache Kafka's ``CurrentAssignmentBuilder``. The member first
revokes partitions, and stays in its epoch until it confirms that. Then it takes the epoch of its target and the
partitions that are free. It gets the others when their owners have revoked them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from barnabas.errors import FencedMemberEpoch
from barnabas.groups.consumer.member import NOTHING, Epochs, Member, Target
from barnabas.groups.consumer.member_states import STABLE, UNKNOWN, UNRELEASED, UNREVOKED

Owned = Mapping[bytes, Sequence[int]] | None
"""The partitions that a member reports; None if it reports nothing."""


class ReconcileContext(NamedTuple):
    """The target of a member, and what reconciliation has to know of the group."""

    epoch: int
    """The epoch of the target assignment."""
    target: Target
    is_free: Callable[[bytes, int], bool]
    """Returns whether no member owns the partition."""
    is_subscribed: Callable[[bytes], bool]
    """Returns whether the member subscribes to the topic with that id, and the topic exists."""
    has_subscription_changed: bool = False
    """The heartbeat changes the subscription: other topics are revoked at once, also those in the target."""


def reconcile(member: Member, context: ReconcileContext, owned: Owned) -> Member:
    """Returns the member after its next step, or the same member if it cannot move yet.

    :raises FencedMemberEpoch: the member is in a state that only a newer broker knows
    """
    if member.state is STABLE:
        if member.epoch != context.epoch:
            return _next(member, context, owned, member.epoch)
        return _without_unsubscribed(member, context, owned) if context.has_subscription_changed else member
    if member.state is UNREVOKED and _has_any(owned, member.revoking):
        return _without_unsubscribed(member, context, owned) if context.has_subscription_changed else member
    if member.state is UNKNOWN:
        if owned is None or owned:
            raise FencedMemberEpoch(
                "The consumer group member is in a unknown state. "
                "The member must abandon all its partitions and rejoin."
            )
        return _next(member, context, owned, context.epoch)
    return _next(member, context, owned, member.epoch)


def _has_any(owned: Owned, partitions: Epochs) -> bool:
    """Returns whether the member still owns some of these. A member that reports nothing may own them all."""
    if owned is None:
        return True
    return any(not partitions.get(topic_id, {}).keys().isdisjoint(theirs) for topic_id, theirs in owned.items())


def _without_unsubscribed(member: Member, context: ReconcileContext, owned: Owned) -> Member:
    """Returns the member without topics that it no longer subscribes to, in the same epoch."""
    gone = [topic_id for topic_id in member.assigned if not context.is_subscribed(topic_id)]
    if not gone:
        return member
    assigned = {topic_id: have for topic_id, have in member.assigned.items() if topic_id not in gone}
    revoking = dict(member.revoking)
    for topic_id in gone:
        revoking[topic_id] = {**revoking.get(topic_id, {}), **member.assigned[topic_id]}
    if _has_any(owned, revoking):
        return member.at(member.epoch, UNREVOKED, assigned, revoking)
    return member.at(member.epoch, member.state, assigned, member.revoking)


def _next(member: Member, context: ReconcileContext, owned: Owned, epoch: int) -> Member:
    """Returns the member after a step from ``epoch`` to its target."""
    assigned: dict[bytes, Mapping[int, int]] = {}
    revoking: dict[bytes, dict[int, int]] = {}
    arriving: dict[bytes, list[int]] = {}
    has_unreleased = False
    for topic_id in dict.fromkeys((*context.target, *member.assigned)):
        wanted = context.target.get(topic_id, frozenset()) if context.is_subscribed(topic_id) else frozenset()
        has = member.assigned.get(topic_id, {})
        kept = {partition: since for partition, since in has.items() if partition in wanted}
        if kept:
            assigned[topic_id] = kept
        if len(kept) < len(has):
            revoking[topic_id] = {partition: since for partition, since in has.items() if partition not in wanted}
        if len(kept) < len(wanted):
            own = member.revoking.get(topic_id, {})
            missing = [partition for partition in wanted if partition not in kept]
            free = [partition for partition in missing if partition in own or context.is_free(topic_id, partition)]
            has_unreleased |= len(free) < len(missing)
            if free:
                arriving[topic_id] = free
    if revoking and _has_any(owned, revoking):
        return member.at(epoch, UNREVOKED, assigned, revoking)
    for topic_id, partitions in arriving.items():
        assigned[topic_id] = {**assigned.get(topic_id, {}), **dict.fromkeys(partitions, context.epoch)}
    return member.at(context.epoch, UNRELEASED if has_unreleased else STABLE, assigned, NOTHING)
