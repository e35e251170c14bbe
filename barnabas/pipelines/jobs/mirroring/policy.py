"""What a mirrored topic is called, where it came from, and which topics are mirrored at all.

Knows nothing of clusters: names come in. The rules are those of MirrorMaker 2 (``DefaultReplicationPolicy``,
``IdentityReplicationPolicy``, ``DefaultTopicFilter``, ``DefaultGroupFilter``; KIP-382, KIP-690).
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

EXCLUDED_TOPICS = (r".*[\-\.]internal", r".*\.replica", r"__.*")
EXCLUDED_GROUPS = (r"console-consumer-.*", r"connect-.*", r"__.*")
POLICIES = ("default", "identity")


@dataclass(frozen=True)
class Policy:
    """How topics are renamed: ``default`` puts the source's alias before the name, ``identity`` leaves it."""

    source: str  #: alias of the cluster that is read
    target: str  #: alias of the cluster that is written
    kind: str = "default"
    separator: str = "."

    def renamed(self, topic: str) -> str:
        """The name at the target."""
        return topic if self.kind == "identity" else f"{self.source}{self.separator}{topic}"

    def origin(self, topic: str) -> str | None:
        """The alias that the name of a mirrored topic begins with; None if the name tells of none."""
        if self.kind == "identity":
            return None
        alias, separator, upstream = topic.partition(self.separator)
        return alias if alias and separator and upstream else None

    def is_cycle(self, topic: str) -> bool:
        """Whether a topic of the source came from the target, over however many clusters in between."""
        while (origin := self.origin(topic)) is not None:
            if origin == self.target:
                return True
            topic = topic.removeprefix(f"{origin}{self.separator}")
        return False

    @property
    def syncs_topic(self) -> str:
        """A topic of the target: which offset of the source is which at the target."""
        return syncs_topic(self.source)

    @property
    def checkpoints_topic(self) -> str:
        """A topic of the target: MirrorMaker's translated group offsets, as its ``RemoteClusterUtils`` reads them."""
        separator = self.separator if self.kind == "default" else "."
        return f"{self.source}{separator}checkpoints{separator}internal"

    def is_internal(self, topic: str) -> bool:
        """Whether a topic is a cluster's or a mirror's own (``ReplicationPolicy.isInternalTopic``)."""
        return topic.startswith(("__", ".")) or topic.endswith(
            (".internal", "-internal", f"{self.separator}checkpoints{self.separator}internal")
        )

    @property
    def markers_group(self) -> str:
        """A group of the target: how far each partition is mirrored, committed together with its records."""
        return f"barnabas-mirror-{self.source}"

    def transactional_id(self, target_topic: str, partition: int) -> str:
        """Whoever writes a partition fences whoever did before."""
        return f"barnabas-mirror-{self.source}-{target_topic}-{partition}"


def syncs_topic(source: str) -> str:
    """The topic of syncs that a mirror from the cluster of this alias keeps in its target."""
    return f"barnabas-offset-syncs.{source}.internal"


@dataclass(frozen=True)
class Patterns:
    """Names that match any of some regular expressions from end to end, and none of some others."""

    include: tuple[str, ...]
    exclude: tuple[str, ...] = ()

    @cached_property
    def _included(self) -> re.Pattern[str]:
        return any_of(self.include)

    @cached_property
    def _excluded(self) -> re.Pattern[str]:
        return any_of(self.exclude)

    def __contains__(self, name: object) -> bool:
        return (
            isinstance(name, str)
            and self._included.fullmatch(name) is not None
            and (not self.exclude or self._excluded.fullmatch(name) is None)
        )


def any_of(patterns: Sequence[str]) -> re.Pattern[str]:
    """One expression for several. Raises ValueError, naming the one that is none."""
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as problem:
            raise ValueError(f"{pattern!r} is no regular expression: {problem}") from None
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


def split(given: Sequence[str]) -> tuple[str, ...]:
    """Patterns that were given one by one, or with commas between, as in MirrorMaker's properties.

    A comma within brackets or braces (``a{1,3}``, ``[,;]``) is part of its pattern.
    """
    found: list[str] = []
    for text in given:
        depth, pattern = 0, ""
        for place, letter in enumerate(text):
            if letter in "[{(" and not _escaped(text, place):
                depth += 1
            elif letter in "]})" and not _escaped(text, place):
                depth -= 1
            if letter == "," and depth <= 0:
                found.append(pattern.strip())
                pattern = ""
            else:
                pattern += letter
        found.append(pattern.strip())
    return tuple(pattern for pattern in found if pattern)


def _escaped(text: str, place: int) -> bool:
    slashes = len(text[:place]) - len(text[:place].rstrip("\\"))
    return slashes % 2 == 1


def selected(
    topics: Collection[str], patterns: Patterns, policy: Policy, came_from_target: Collection[str] = ()
) -> list[str]:
    """Those topics of the source that are mirrored, sorted.

    `came_from_target` are topics that a mirror the other way writes: with the identity policy names do not tell.
    """
    return sorted(
        topic
        for topic in topics
        if topic in patterns
        and not policy.is_internal(topic)
        and not policy.is_cycle(topic)
        and topic not in came_from_target
    )
