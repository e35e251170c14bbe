"""How a member comes from what it has to what it is to have, without two ever having the same.

Knows nothing of groups, records or clocks. Follows Apache Kafka's ``CurrentAssignmentBuilder``: what is to go goes
first, and the member stays in its epoch until it says that it is gone; then it takes the epoch of its target, with what
is free; what others still have comes when they have given it up.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from barnabas.errors import FencedMemberEpoch
from barnabas.groups.consumer.member import NOTHING, Epochs, Member, Target
from barnabas.groups.consumer.member_states import STABLE, UNKNOWN, UNRELEASED, UNREVOKED

Owned = Mapping[bytes, Sequence[int]] | None
"""What a member says it has; None where it does not say."""


class ReconcileContext(NamedTuple):
    """Where a member is to go, and what is in its way."""

    epoch: int
    """Of the target assignment."""
    target: Target
    is_free: Callable[[bytes, int], bool]
    """Whether nobody has that partition."""
    is_subscribed: Callable[[bytes], bool]
    """Whether the member subscribes to the topic of that id, and there is one."""
    has_subscription_changed: bool = False
    """With this heartbeat: what it no longer subscribes to goes at once, whatever the target says."""


def reconcile(member: Member, context: ReconcileContext, owned: Owned) -> Member:
    """The member one step further; the same one where there is no way on.

    :raises FencedMemberEpoch: it is in a state that a newer broker put it in
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
                "The member is in a state that this broker does not know. It has to give up all its partitions, "
                "and to join again."
            )
        return _next(member, context, owned, context.epoch)
    return _next(member, context, owned, member.epoch)


def _has_any(owned: Owned, partitions: Epochs) -> bool:
    """Whether the member still has some of these; a member that does not say may have them all."""
    if owned is None:
        return True
    return any(not partitions.get(topic_id, {}).keys().isdisjoint(theirs) for topic_id, theirs in owned.items())


def _without_unsubscribed(member: Member, context: ReconcileContext, owned: Owned) -> Member:
    """The member without what it no longer subscribes to, in its epoch."""
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
    """The next step towards the target, from ``epoch``."""
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
