"""The subscribed topics in the current metadata: their ids, and the hash that shows whether they have changed.

Knows nothing of group epochs.
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
        """The hash of each topic when it was last computed."""

    def id_of(self, name: str) -> bytes | None:
        topic = self.image().topics_by_name.get(name)
        return None if topic is None else topic.id

    def forget(self, names: Iterable[str]) -> None:
        """Drops the hashes of topics that have changed."""
        for name in names:
            self._hashes.pop(name, None)

    def hash_of(self, names: Iterable[str]) -> int:
        """Returns the hash of those of the topics that exist (KIP-1101); 0 if none does."""
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
        """Returns a predicate: whether the member subscribes to the topic with that id.

        A topic that does not exist and a regular expression that is not resolved match nothing.
        """
        topics = self.image().topics_by_id
        names = member.topic_names
        by_regex = resolved.get(member.topic_regex or "", UNRESOLVED).topics

        def is_subscribed(topic_id: bytes) -> bool:
            topic = topics.get(topic_id)
            return topic is not None and (topic.name in names or topic.name in by_regex)

        return is_subscribed

    def ids_for(self, resolved: Resolved) -> Callable[[Member], frozenset[bytes]]:
        """Returns a function for the topic ids of a member's subscription. Equal subscriptions share one set."""
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
