"""The endpoints of members and the partitions that they serve, for interactive queries
(``EndpointToPartitionsManager``).

Knows nothing of when members get them.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.groups.environment import TopicView
from barnabas.groups.streams.configuring import ConfiguredTopology
from barnabas.groups.streams.member import Member
from barnabas.groups.streams.messages import EndpointPartitions


def endpoints_of(
    members: Iterable[Member], configured: ConfiguredTopology | None, topics: Mapping[str, TopicView]
) -> list[EndpointPartitions]:
    """Returns the partitions that the tasks of each member with an endpoint read, without topics that do not exist."""
    found = []
    for member in members:
        if member.user_endpoint is not None:
            active = _partitions(member.assigned.active, configured, topics)
            standby = _partitions(member.assigned.standby, configured, topics)
            found.append(EndpointPartitions(member.user_endpoint, active, standby))
    return found


def _partitions(
    tasks: Mapping[str, Iterable[int]], configured: ConfiguredTopology | None, topics: Mapping[str, TopicView]
) -> list[tuple[str, list[int]]]:
    subtopologies: Mapping[str, Any] = (configured and configured.subtopologies) or {}
    found = []
    for each, its_partitions in tasks.items():
        if each not in subtopologies:
            continue
        partitions = sorted(its_partitions)
        read = subtopologies[each].source_topics | subtopologies[each].repartition_sources.keys()
        # If the topic has fewer partitions than the member has tasks, the first ones, as in Apache Kafka.
        found += [(name, partitions[: len(topics[name].partitions)]) for name in sorted(read) if name in topics]
    return found
