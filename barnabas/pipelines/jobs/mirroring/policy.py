"""The replication policy: the names of mirrored topics, their origin, and which topics are mirrored.

Knows nothing of clusters: names are passed in. The rules are those of MirrorMaker 2 (``DefaultReplicationPolicy``,
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
    """How topics are renamed: ``default`` prefixes the source's alias, ``identity`` keeps the name."""

    source: str  #: alias of the cluster that is read
    target: str  #: alias of the cluster that is written
    kind: str = "default"
    separator: str = "."

    def renamed(self, topic: str) -> str:
        """Returns the topic's name in the target."""
        return topic if self.kind == "identity" else f"{self.source}{self.separator}{topic}"

    def origin(self, topic: str) -> str | None:
        """Returns the alias that the name of a mirrored topic begins with, or None if it has none."""
        if self.kind == "identity":
            return None
        alias, separator, upstream = topic.partition(self.separator)
        return alias if alias and separator and upstream else None

    def is_cycle(self, topic: str) -> bool:
        """Returns whether a topic of the source was mirrored from the target, directly or through other clusters."""
        while (origin := self.origin(topic)) is not None:
            if origin == self.target:
                return True
            topic = topic.removeprefix(f"{origin}{self.separator}")
        return False

    @property
    def syncs_topic(self) -> str:
        """The offset syncs topic, in the target."""
        return syncs_topic(self.source)

    @property
    def checkpoints_topic(self) -> str:
        """The checkpoints topic, in the target: translated group offsets for MirrorMaker's ``RemoteClusterUtils``."""
        separator = self.separator if self.kind == "default" else "."
        return f"{self.source}{separator}checkpoints{separator}internal"

    def is_internal(self, topic: str) -> bool:
        """Returns whether a topic is internal to a cluster or a mirror (``ReplicationPolicy.isInternalTopic``)."""
        return topic.startswith(("__", ".")) or topic.endswith(
            (".internal", "-internal", f"{self.separator}checkpoints{self.separator}internal")
        )

    @property
    def markers_group(self) -> str:
        """The group in the target whose committed offsets are the markers: the progress of each partition."""
        return f"barnabas-mirror-{self.source}"

    def transactional_id(self, target_topic: str, partition: int) -> str:
        """Returns the transactional id of a partition's producer, by which a new producer fences the previous one."""
        return f"barnabas-mirror-{self.source}-{target_topic}-{partition}"


def syncs_topic(source: str) -> str:
    """Returns the offset syncs topic of a mirror whose source has this alias."""
    return f"barnabas-offset-syncs.{source}.internal"


@dataclass(frozen=True)
class Patterns:
    """The names that fully match any of `include`, and none of `exclude`; both are regular expressions."""

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
    """Combines several regular expressions into one that matches any of them.

    :raises ValueError: one of them is invalid; the message names it.
    """
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as problem:
            raise ValueError(f"{pattern!r} is not a regular expression: {problem}") from None
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


def split(given: Sequence[str]) -> tuple[str, ...]:
    """Splits patterns at commas, as in MirrorMaker's properties.

    A comma within brackets, braces or parentheses (``a{1,3}``, ``[,;]``) is part of its pattern.
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
    """Returns the topics of the source that are mirrored, sorted.

    :param came_from_target: topics that the mirror in the other direction writes; with the identity policy their names
        do not show it.
    """
    return sorted(
        topic
        for topic in topics
        if topic in patterns
        and not policy.is_internal(topic)
        and not policy.is_cycle(topic)
        and topic not in came_from_target
    )
