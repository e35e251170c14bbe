"""A reader's requests to a cluster: partitions, their first and last offsets, and topic ids.

Knows nothing of how the responses are used.
"""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.errors import UnknownTopicOrPartition
from barnabas.pipelines.client import EARLIEST, LATEST, NEW_TOPIC_PATIENCE, TopicPartition
from barnabas.pipelines.offsets import BadOption, PartitionOffsets, Position, StreamOffset, resolve
from barnabas.pipelines.options import ReadOptions

if TYPE_CHECKING:
    from barnabas.pipelines.client.cluster import Cluster, Topic


def cluster_of(options: ReadOptions) -> "Cluster":
    """Returns this process's client of the cluster. Imports kafka-python, which takes a while."""
    from barnabas.pipelines.client.cluster import Cluster

    return Cluster.of(options.client)


def subscribed(options: ReadOptions, *, missing_is_gone: bool = False) -> dict[str, "Topic"]:
    """Returns the topics to read, from new metadata.

    :param missing_is_gone: leave out topics that do not exist.
    :raises UnknownTopicOrPartition: a named topic does not exist.
    """
    cluster = cluster_of(options)
    if options.pattern is not None:
        return cluster.matching(options.pattern)
    names = options.topics or tuple(dict.fromkeys(partition.topic for partition in options.assigned or ()))
    deadline = time.monotonic() + NEW_TOPIC_PATIENCE
    while True:
        topics = cluster.describe(names)
        missing = [name for name in names if name not in topics]
        if not missing or missing_is_gone:
            return topics
        if time.monotonic() > deadline:
            raise UnknownTopicOrPartition(
                f"{options.subscription}: topic {missing[0]} does not exist at "
                f"{options.client['bootstrap.servers']}; check its name"
            )
        cluster.run(cluster.pause)


def partitions_of(options: ReadOptions, topics: Mapping[str, "Topic"]) -> list[TopicPartition]:
    """Returns all partitions of these topics, or those of `assign`.

    :raises BadOption: a partition of `assign` does not exist.
    """
    if options.assigned is None:
        return [TopicPartition(topic.name, partition) for topic in topics.values() for partition in topic.leaders]
    for part in options.assigned:
        topic = topics.get(part.topic)
        if topic is not None and part.partition not in topic.leaders:
            raise BadOption(f"assign: {part} does not exist, topic {part.topic} has {len(topic.leaders)} partitions")
    return [part for part in options.assigned if part.topic in topics]


def ids_of(topics: Mapping[str, "Topic"]) -> dict[str, str]:
    """Returns topic ids as text, of the topics that have one."""
    return {topic.name: str(topic.id) for topic in topics.values() if topic.id is not None}


def offsets_of(options: ReadOptions, asks: PartitionOffsets) -> PartitionOffsets:
    """Returns the offsets for EARLIEST, LATEST or times."""
    listed = cluster_of(options).list_offsets(asks, committed=options.committed) if asks else {}
    return {partition: listed[partition].offset for partition in asks}


def positioned(options: ReadOptions, position: Position, partitions: list[TopicPartition]) -> PartitionOffsets:
    """Returns the offsets for an option."""
    strategy = options.nothing_that_young if position is options.starting else "latest"
    return resolve(position, partitions, lambda asks: offsets_of(options, asks), nothing_that_young=strategy)


def beginnings_of(options: ReadOptions, start: StreamOffset, end: StreamOffset) -> PartitionOffsets:
    """Returns the first offset of each partition of `end` for which `start` has no offset to continue at."""
    going_on = start.still(end)
    return offsets_of(options, {partition: EARLIEST for partition in end.at if partition not in going_on})


def latest(options: ReadOptions) -> StreamOffset:
    """Returns the end offset of each partition that is read. Topics that do not exist have none."""
    for last_try in (False, True):
        topics = subscribed(options, missing_is_gone=True)
        asks = dict.fromkeys(partitions_of(options, topics), LATEST)
        try:
            return StreamOffset(offsets_of(options, asks), ids_of(topics))
        except UnknownTopicOrPartition:  # deleted between the two requests
            if last_try:
                raise
    raise AssertionError("one of two tries returns or raises")
