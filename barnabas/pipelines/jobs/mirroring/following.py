"""Has the topics of the target follow those of the source: which there are, how many partitions, which configs.

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
from barnabas.pipelines.jobs.mirroring.kept import SyncsReader
from barnabas.pipelines.jobs.mirroring.policy import selected, syncs_topic
from barnabas.pipelines.jobs.mirroring.spec import Spec

logger = logging.getLogger(__name__)


class Topics:
    """The topics of the source that are mirrored, and their namesakes in the target."""

    def __init__(self, spec: Spec, source: Cluster, target: Cluster) -> None:
        self._spec, self._source, self._target = spec, source, target
        self._other_way = SyncsReader(source, syncs_topic(spec.target_alias))
        self._followed: dict[str, int] = {}  # topics of the target that were seen to have so many partitions

    def look(self) -> dict[str, Topic]:
        """Those of the source that are mirrored, as they are now."""
        names = selected(self._source.topics(), self._spec.topic_patterns, self._spec.policy, self._came_from_target())
        described = self._source.describe(names) if names else {}
        return {name: topic for name, topic in described.items() if topic.leaders}

    def follow(self, topics: Iterable[Topic]) -> None:
        """Make what the target lacks: topics with the source's configs, and partitions."""
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
        """Have the configs of these topics, by their names at the source, as they are there."""
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
                logger.info("made topic %s in the target, with %d partitions", name, made.partitions)

    def _came_from_target(self) -> frozenset[str]:
        """Names tell where topics came from, unless they are left as they are: then the other mirror's record does."""
        if self._spec.policy.kind != "identity":
            return frozenset()
        return frozenset(self._other_way.refresh().topics())
