"""What the topics that members subscribe to come to: their ids, and one number that says whether they have changed.

Knows nothing of groups' epochs. Looks at the cluster as it is at the moment of asking.
"""

from collections.abc import Callable, Iterable, Mapping

from barnabas.groups.assigning.topic_hash import group_hash, topic_hash
from barnabas.groups.consumer.member import Member
from barnabas.groups.consumer.resolved_regex import UNRESOLVED, ResolvedRegex
from barnabas.groups.environment import ClusterView, TopicView

Resolved = Mapping[str, ResolvedRegex]


class Topics:
    """The topics of the cluster, for all groups of a coordinator."""

    def __init__(self, image: Callable[[], ClusterView]) -> None:
        self.image = image
        self._hashes: dict[str, tuple[TopicView, int]] = {}
        """The hash of each topic as it was when it was last asked for."""

    def id_of(self, name: str) -> bytes | None:
        topic = self.image().topics_by_name.get(name)
        return None if topic is None else topic.id

    def forget(self, names: Iterable[str]) -> None:
        """These topics are no longer what they were."""
        for name in names:
            self._hashes.pop(name, None)

    def hash_of(self, names: Iterable[str]) -> int:
        """KIP-1101's hash over what there is of these topics; 0 where there is nothing."""
        image = self.image()
        hashes: dict[str, int] = {}
        for name in names:
            topic = image.topics_by_name.get(name)
            if topic is None:
                continue
            known = self._hashes.get(name)
            if known is None or known[0] is not topic:
                known = self._hashes[name] = topic, topic_hash(topic, image.brokers)
            hashes[name] = known[1]
        return group_hash(hashes)

    def subscription_of(self, member: Member, resolved: Resolved) -> Callable[[bytes], bool]:
        """Whether the member subscribes to the topic of an id, and there is such a topic.

        A pattern that was not resolved stands for nothing.
        """
        topics = self.image().topics_by_id
        names = member.topic_names
        by_regex = resolved.get(member.topic_regex or "", UNRESOLVED).topics

        def is_subscribed(topic_id: bytes) -> bool:
            topic = topics.get(topic_id)
            return topic is not None and (topic.name in names or topic.name in by_regex)

        return is_subscribed

    def ids_for(self, resolved: Resolved) -> Callable[[Member], frozenset[bytes]]:
        """Which topics a member subscribes to, by their ids: members with the same subscription get the same object."""
        topics = self.image().topics_by_name
        found: dict[tuple[frozenset[str], str | None], frozenset[bytes]] = {}

        def ids(member: Member) -> frozenset[bytes]:
            subscription = member.topic_names, member.topic_regex
            known = found.get(subscription)
            if known is None:
                names = member.topic_names | resolved.get(member.topic_regex or "", UNRESOLVED).topics
                known = found[subscription] = frozenset(topics[name].id for name in names if name in topics)
            return known

        return ids
