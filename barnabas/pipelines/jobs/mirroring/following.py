"""Syncs the topics of the target with those of the source: their existence, their partitions and their configs.

Knows nothing of records and groups.
"""

import logging
from collections.abc import Collection, Iterable

from barnabas.pipelines.client.cluster import Cluster, Topic
from barnabas.pipelines.jobs.mirroring.administration import (
    NewTopic,
    alter_configs,
    create_partitions,
    create_topic,
    topic_configs,
)
from barnabas.pipelines.jobs.mirroring.configs import changes, wanted
from barnabas.pipelines.jobs.mirroring.policy import selected, syncs_topic
from barnabas.pipelines.jobs.mirroring.spec import Spec
from barnabas.pipelines.jobs.mirroring.target_state import SyncsReader

logger = logging.getLogger(__name__)


class Topics:
    """The mirrored topics of the source, and their counterparts in the target."""

    def __init__(self, spec: Spec, source: Cluster, target: Cluster) -> None:
        self._spec, self._source, self._target = spec, source, target
        self._other_way = SyncsReader(source, syncs_topic(spec.target_alias))
        self._followed: dict[str, int] = {}  # known numbers of partitions of the target's topics

    def look(self) -> dict[str, Topic]:
        """Returns the current topics of the source that are mirrored."""
        names = selected(self._source.topics(), self._spec.topic_patterns, self._spec.policy, self._came_from_target())
        described = self._source.describe(names) if names else {}
        return {name: topic for name, topic in described.items() if topic.leaders}

    def follow(self, topics: Iterable[Topic]) -> None:
        """Creates the topics, with the source's configs, and the partitions that the target lacks."""
        by_target = {self._spec.policy.renamed(topic.name): topic for topic in topics}
        lacking = {name: topic for name, topic in by_target.items() if self._followed.get(name, 0) < len(topic.leaders)}
        if not lacking:
            return
        there = self._target.describe(sorted(lacking))
        self._make({name: topic for name, topic in lacking.items() if name not in there})
        for name, found in there.items():
            count = len(lacking[name].leaders)
            if len(found.leaders) < count:
                create_partitions(self._target, name, count)
                logger.info("topic %s of the target has %d partitions now", name, count)
        self._target.forget()
        self._followed.update({name: len(topic.leaders) for name, topic in lacking.items()})

    def follow_configs(self, names: Collection[str]) -> None:
        """Changes the configs of these topics in the target to those of the source.

        :param names: the topics' names in the source.
        """
        if not self._spec.sync_configs or not names:
            return
        renamed = {self._spec.policy.renamed(name): name for name in names}
        here = topic_configs(self._source, names)
        there = topic_configs(self._target, renamed)
        different = {
            target: change
            for target, name in renamed.items()
            if target in there
            and name in here
            and (change := changes(here[name], there[target], self._spec.exclude_configs))
        }
        if different:
            alter_configs(self._target, different)
            logger.info("configs changed in the target: %s", different)

    def _make(self, lacking: dict[str, Topic]) -> None:
        configs = topic_configs(self._source, [topic.name for topic in lacking.values()]) if lacking else {}
        for name, topic in lacking.items():
            own = wanted(configs.get(topic.name, {}), self._spec.exclude_configs) if self._spec.sync_configs else {}
            made = NewTopic(name, len(topic.leaders), self._spec.replication_factor, own)
            if create_topic(self._target, made):
                logger.info("created topic %s in the target, with %d partitions", name, made.partitions)

    def _came_from_target(self) -> frozenset[str]:
        """Returns the topics that the mirror in the other direction writes, by its offset syncs.

        With the default policy the names show the origin, so this is empty.
        """
        if self._spec.policy.kind != "identity":
            return frozenset()
        return frozenset(self._other_way.refresh().topics())
