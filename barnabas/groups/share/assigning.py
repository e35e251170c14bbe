"""Who of a share group is to read what: what goes into the assignor, and what of its answer a member is told.

Knows nothing of epochs or records. Only share partitions that have a state are given to anybody.
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
"""The one that there is for share groups (Kafka's ``SimpleAssignor``)."""

NO_TOPICS_HASH = 0


def hash_of(topic_names: Collection[str], image: ClusterView) -> int:
    """Of those of the topics that there are; it changes with their ids, partitions and racks."""
    topics = [image.topics_by_name[name] for name in topic_names if name in image.topics_by_name]
    if not topics:
        return NO_TOPICS_HASH
    return group_hash({topic.name: topic_hash(topic, image.brokers) for topic in topics})


def _topic_ids(names: Sequence[str], image: ClusterView) -> frozenset[bytes]:
    return frozenset(image.topics_by_name[name].id for name in names if name in image.topics_by_name)


def assign(group: ShareGroup, updated: ShareMember, image: ClusterView) -> dict[str, Partitions]:
    """What each member of the group is to read, with that member as it is about to be."""
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


def readable(target: Partitions, subscribed: Sequence[str], image: ClusterView) -> Partitions:
    """What a member may be told of what is meant for it: of topics that there are and that it still wants."""
    wanted = _topic_ids(subscribed, image)
    return {topic_id: partitions for topic_id, partitions in target.items() if topic_id in wanted}


def has_unassigned_partitions(group: ShareGroup, image: ClusterView) -> bool:
    """Whether share partitions have a state, but were not there yet when it was last worked out who reads what.

    Not while it is to be worked out again anyhow.
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
