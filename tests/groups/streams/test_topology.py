"""Topologies and their topics."""

import pytest

from barnabas.errors import UnknownServerError
from barnabas.groups.streams.topology import CopartitionGroup, Subtopology, TopicInfo, copartitioned


def subtopology(*, sources: list[int], repartition_sources: list[int]) -> Subtopology:
    """Returns a subtopology that reads ``a``, ``b`` and ``r``, with a copartition group of these indexes."""
    return Subtopology(
        subtopology_id="0",
        source_topics=["a", "b"],
        source_topic_regex=[],
        state_changelog_topics=[],
        repartition_sink_topics=[],
        repartition_source_topics=[TopicInfo(name="r", partitions=0, replication_factor=0, topic_configs=[])],
        copartition_groups=[
            CopartitionGroup(
                source_topics=sources, source_topic_regex=[], repartition_source_topics=repartition_sources
            )
        ],
    )


def test_copartitioned_topics_are_named_by_their_numbers() -> None:
    assert copartitioned(subtopology(sources=[1], repartition_sources=[0])) == [{"b", "r"}]


@pytest.mark.parametrize(("sources", "repartition_sources"), [([2], []), ([-1], []), ([0], [1]), ([0], [-1])])
def test_a_number_without_a_topic_is_refused(sources: list[int], repartition_sources: list[int]) -> None:
    with pytest.raises(UnknownServerError):
        copartitioned(subtopology(sources=sources, repartition_sources=repartition_sources))
