"""Configures a topology for the topics of the cluster: number of tasks, and internal topics to create.

Knows nothing of groups and members. Follows ``InternalTopicManager``.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from barnabas.errors import StreamsInvalidTopology, UnknownServerError
from barnabas.groups.environment import TopicView
from barnabas.groups.streams.states import Status
from barnabas.groups.streams.topology import Subtopology, TopicInfo, Topology, copartitioned, inputs

MAX_NAMED_TOPICS = 5
"""The maximum number of topics that a status names."""

BROKERS_DEFAULT = -1


class InternalTopic(NamedTuple):
    """A repartition or changelog topic with its configuration (``ConfiguredInternalTopic``)."""

    name: str
    partitions: int
    replication_factor: int
    """0 for the broker's default."""
    configs: tuple[tuple[str, str], ...]


class ConfiguredSubtopology(NamedTuple):
    tasks: int
    """The number of tasks: that of the partitions of the largest source topic."""
    source_topics: frozenset[str]
    repartition_sources: Mapping[str, InternalTopic]
    repartition_sinks: frozenset[str]
    changelogs: Mapping[str, InternalTopic]

    @property
    def is_stateful(self) -> bool:
        return bool(self.changelogs)


class Problem(NamedTuple):
    """Why a topology is not ready: a status for its members."""

    status: Status
    detail: str


class ConfiguredTopology(NamedTuple):
    """A topology with its tasks and internal topics (Kafka's ``ConfiguredTopology``)."""

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    """By subtopology id, sorted. None if the number of tasks is unknown."""
    missing: Mapping[str, InternalTopic]
    """The internal topics to create."""
    problem: Problem | None

    @property
    def is_ready(self) -> bool:
        return self.problem is None


NOT_COMPUTED = "Failed to compute number of partitions for all repartition topics"


class _NotReady(Exception):
    def __init__(self, status: Status, detail: str) -> None:
        super().__init__(detail)
        self.problem = Problem(status, detail)


PartitionsOf = Callable[[str], int | None]


def configure(topology: Topology, topics: Mapping[str, TopicView]) -> ConfiguredTopology:
    """Configures the topology for these topics.

    :raises StreamsInvalidTopology: the topology is invalid, independently of the existing topics
    """
    try:
        subtopologies, missing = _configured(topology, topics)
    except _NotReady as error:
        return ConfiguredTopology(topology.epoch, None, {}, error.problem)
    problem = None
    if missing:
        detail = f"Internal topics are missing: {_named(missing)}"
        problem = Problem(Status.MISSING_INTERNAL_TOPICS, detail)
    return ConfiguredTopology(topology.epoch, subtopologies, missing, problem)


def _configured(
    topology: Topology, topics: Mapping[str, TopicView]
) -> tuple[dict[str, ConfiguredSubtopology], dict[str, InternalTopic]]:
    absent = {name for each in topology.subtopologies.values() for name in each.source_topics if name not in topics}
    if absent:
        raise _NotReady(Status.MISSING_SOURCE_TOPICS, f"Source topics {_named(absent)} are missing.")
    decided: dict[str, int] = {}

    def partitions_of(topic: str) -> int | None:
        return len(topics[topic].partitions) if topic in topics else decided.get(topic)

    _decide_repartitions(topology, partitions_of, decided)
    _enforce_copartitioning(topology, partitions_of, decided)
    _decide_changelogs(topology, partitions_of, decided)
    found = topology.subtopologies
    subtopologies = {each: _subtopology(found[each], partitions_of, decided) for each in sorted(found)}
    return subtopologies, _missing(topology, subtopologies, topics)


# ---------------------------------------------------------------- numbers of partitions


def _decide_repartitions(topology: Topology, partitions_of: PartitionsOf, decided: dict[str, int]) -> None:
    """Decides partition counts of repartition topics: that of the largest source topic of the subtopology that
    writes it (``RepartitionTopics``)."""
    subtopologies = topology.subtopologies.values()
    for subtopology in subtopologies:
        decided.update(
            (each.name, each.partitions) for each in subtopology.repartition_source_topics if each.partitions
        )
    own = dict(decided)  # topics that exist do not count here, as in Apache Kafka
    is_open = True
    while is_open:
        is_open = has_progressed = False
        for subtopology in subtopologies:
            for sink in subtopology.repartition_sink_topics:
                if sink in own:
                    continue
                count = _largest_input(subtopology, partitions_of, own)
                if count is None:
                    is_open = True
                else:
                    own[sink] = count
                    has_progressed = True
        if is_open and not has_progressed:
            raise StreamsInvalidTopology(f"{NOT_COMPUTED}. There may be loops in the topology that cannot be resolved.")
    for subtopology in subtopologies:
        for info in subtopology.repartition_source_topics:
            if info.name not in own:
                raise StreamsInvalidTopology(
                    f"{NOT_COMPUTED}, because a repartition source topic is never used as a sink topic."
                )
    decided.update(own)


def _largest_input(subtopology: Subtopology, partitions_of: PartitionsOf, decided: Mapping[str, int]) -> int | None:
    repartitioned = [decided.get(each.name) for each in subtopology.repartition_source_topics]
    sources = [partitions_of(each) for each in subtopology.source_topics]
    return max((each for each in (*repartitioned, *sources) if each is not None), default=None)


def _enforce_copartitioning(topology: Topology, partitions_of: PartitionsOf, decided: dict[str, int]) -> None:
    """Makes the partition counts in each copartition group equal (``CopartitionedTopicsEnforcer``)."""
    infos = [info for each in topology.subtopologies.values() for info in each.repartition_source_topics]
    fixed = {each.name for each in infos if each.partitions}
    flexible = {each.name for each in infos if not each.partitions}
    for subtopology in topology.subtopologies.values():
        for group in copartitioned(subtopology):
            decided.update(_enforced(group, fixed, flexible, partitions_of))


def _enforced(group: set[str], fixed: set[str], flexible: set[str], partitions_of: PartitionsOf) -> dict[str, int]:
    """Returns the partition counts of the group's repartition topics."""
    counts = {each: _known(partitions_of, each) for each in sorted(group)}
    repartitioned = {each: count for each, count in counts.items() if each in fixed or each in flexible}
    if not counts:
        return {}
    if len(repartitioned) < len(counts):
        shared = _same({each: count for each, count in counts.items() if each not in repartitioned})
    elif fixed:
        # Those of the whole topology, not only of this group, as in Apache Kafka.
        shared = _same({each: _known(partitions_of, each) for each in sorted(fixed)})
    else:
        shared = max(repartitioned.values())
    for name, count in repartitioned.items():
        if name in fixed and count != shared:
            detail = f"Number of partitions [{count}] of repartition topic [{name}] doesn't match"
            detail += f" number of partitions [{shared}] of the source topic."
            raise _NotReady(Status.INCORRECTLY_PARTITIONED_TOPICS, detail)
    return dict.fromkeys(repartitioned, shared)


def _same(counts: Mapping[str, int]) -> int:
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name}={count}" for name, count in counts.items())
        detail = f"Following topics do not have the same number of partitions: [{{{listed}}}]"
        raise _NotReady(Status.INCORRECTLY_PARTITIONED_TOPICS, detail)
    return next(iter(counts.values()))


def _decide_changelogs(topology: Topology, partitions_of: PartitionsOf, decided: dict[str, int]) -> None:
    """Decides partition counts of changelog topics: the number of tasks of the subtopology (``ChangelogTopics``)."""
    for subtopology in topology.subtopologies.values():
        tasks = _task_count(subtopology, partitions_of)
        decided.update((each.name, tasks) for each in subtopology.state_changelog_topics)


def _task_count(subtopology: Subtopology, partitions_of: PartitionsOf) -> int:
    counts = [_known(partitions_of, each) for each in inputs(subtopology)]
    if not counts:
        raise StreamsInvalidTopology(f"No source topics found for subtopology {subtopology.subtopology_id}")
    return max(counts)


def _known(partitions_of: PartitionsOf, topic: str) -> int:
    count = partitions_of(topic)
    if count is None:
        raise UnknownServerError(f"Number of partitions is not set for topic: {topic}")
    return count


# ---------------------------------------------------------------- internal topics


def _subtopology(
    subtopology: Subtopology, partitions_of: PartitionsOf, decided: Mapping[str, int]
) -> ConfiguredSubtopology:
    def internal(infos: list[TopicInfo]) -> dict[str, InternalTopic]:
        return {each.name: _internal(each, each.partitions or decided[each.name]) for each in infos}

    return ConfiguredSubtopology(
        _task_count(subtopology, partitions_of),
        frozenset(subtopology.source_topics),
        internal(subtopology.repartition_source_topics),
        frozenset(subtopology.repartition_sink_topics),
        internal(subtopology.state_changelog_topics),
    )


def _internal(info: TopicInfo, partitions: int) -> InternalTopic:
    configs = {each.key: each.value for each in info.topic_configs}
    return InternalTopic(info.name, partitions, info.replication_factor, tuple(configs.items()))


def _missing(
    topology: Topology, subtopologies: Mapping[str, ConfiguredSubtopology], topics: Mapping[str, TopicView]
) -> dict[str, InternalTopic]:
    expected = {
        name: topic
        for each in subtopologies.values()
        for name, topic in (*each.repartition_sources.items(), *each.changelogs.items())
    }
    for name in sorted(topology.required_topics):
        if name in topics and name in expected:
            count, wanted = len(topics[name].partitions), expected.pop(name).partitions
            if count != wanted:
                detail = f"Existing topic {name} has different number of partitions: expected {wanted}, found {count}"
                raise _NotReady(Status.INCORRECTLY_PARTITIONED_TOPICS, detail)
    return expected


def _named(topics: Mapping[str, object] | set[str]) -> str:
    names = sorted(topics)
    more = f", and {len(names) - MAX_NAMED_TOPICS} more" if len(names) > MAX_NAMED_TOPICS else ""
    return ", ".join(names[:MAX_NAMED_TOPICS]) + more
