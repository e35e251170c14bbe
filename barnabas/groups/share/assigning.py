"""Assigns partitions to the members of a share group.

Knows nothing of epochs and records. Only share partitions with initialized state are assigned.
"""

from collections.abc import Collection, Sequence

from barnabas.groups.assigning.simple import assign_simply
from barnabas.groups.assigning.subscriber import Subscriber
from barnabas.groups.assigning.topic_hash import group_hash, topic_hash
from barnabas.groups.environment import ClusterView
from barnabas.groups.share.messages import Partitions
from barnabas.groups.share.share_group import ShareGroup
from barnabas.groups.share.share_member import ShareMember
from barnabas.groups.share.state_metadata import Topic, partitions_of

ASSIGNOR = "simple"
"""The only assignor of share groups (Kafka's ``SimpleAssignor``)."""

NO_TOPICS_HASH = 0


def hash_of(topic_names: Collection[str], image: ClusterView) -> int:
    """Returns the hash of those of the topics that exist. It changes with their ids, partitions and racks."""
    topics = [image.topics_by_name[name] for name in topic_names if name in image.topics_by_name]
    if not topics:
        return NO_TOPICS_HASH
    return group_hash({topic.name: topic_hash(topic, image.brokers) for topic in topics})


def _topic_ids(names: Sequence[str], image: ClusterView) -> frozenset[bytes]:
    return frozenset(image.topics_by_name[name].id for name in names if name in image.topics_by_name)


def assign(group: ShareGroup, updated: ShareMember, image: ClusterView) -> dict[str, Partitions]:
    """Returns the target of each member, with ``updated`` as it will be."""
    members = {
        member.member_id: Subscriber(
            _topic_ids(member.subscribed_topic_names, image),
            member.rack_id,
            assigned=group.target.get(member.member_id, {}),
        )
        for member in {**group.members, updated.member_id: updated}.values()
    }
    wanted = frozenset[bytes]().union(*(each.topic_ids for each in members.values()))
    initialized = group.state.initialized
    topics = {each: Topic(image.topics_by_id[each].name, partitions_of(initialized, each)) for each in wanted}
    return {
        member_id: {topic_id: tuple(sorted(partitions)) for topic_id, partitions in found.items()}
        for member_id, found in assign_simply(members, topics).items()
    }


def subscribed_part(target: Partitions, subscribed: Sequence[str], image: ClusterView) -> Partitions:
    """Returns the part of a target whose topics exist and are subscribed to."""
    wanted = _topic_ids(subscribed, image)
    return {topic_id: partitions for topic_id, partitions in target.items() if topic_id in wanted}


def has_unassigned_partitions(group: ShareGroup, image: ClusterView) -> bool:
    """Returns whether share partitions were initialized after the last assignment.

    Returns False if a new assignment is due anyway.
    """
    if group.epoch != group.assignment_epoch or group.is_empty or group.assigned_state is group.state:
        return False
    given: dict[bytes, set[int]] = {}
    for target in group.target.values():
        for topic_id, partitions in target.items():
            given.setdefault(topic_id, set()).update(partitions)
    wanted = _topic_ids(sorted(group.subscribed_topic_names()), image)
    if all(
        topic.partitions <= given.get(topic_id, set())
        for topic_id, topic in group.state.initialized.items()
        if topic_id in wanted
    ):
        group.assigned_state = group.state
        return False
    return True
