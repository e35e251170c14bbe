"""Requests for offsets: the first and last offsets of partitions, and the committed offsets of groups.

Knows nothing of how the offsets are used.
"""

import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from kafka import errors as kafka_errors
from kafka.protocol.consumer import IsolationLevel, ListOffsetsRequest, OffsetCommitRequest, OffsetFetchRequest
from kafka.structs import OffsetAndMetadata

from barnabas.errors import KafkaError, NotLeaderOrFollower, UnknownTopicOrPartition
from barnabas.pipelines.client import TopicPartition

if TYPE_CHECKING:
    from barnabas.pipelines.client.cluster import Cluster


class ListedOffset(NamedTuple):
    """The response of ListOffsets; `offset` is -1 if there is no record since the requested time."""

    offset: int
    timestamp: int
    leader_epoch: int


NO_MEMBER, NO_GENERATION = "", -1
"""The member and generation of a commit to a group without members, as Kafka's own tools send it."""


async def list_offsets(
    cluster: "Cluster", asks: Mapping[TopicPartition, int], committed: bool
) -> dict[TopicPartition, ListedOffset]:
    """Implements `Cluster.list_offsets`: sends one request per leader at once, and retries only what failed."""
    found: dict[TopicPartition, ListedOffset] = {}

    async def attempt() -> dict[TopicPartition, ListedOffset]:
        missing = [topic_partition for topic_partition in asks if topic_partition not in found]
        sent = [
            cluster.start_send(node, _list_offsets_request({part: asks[part] for part in parts}, committed))
            for node, parts in (await cluster.by_leader(missing)).items()
        ]
        problem: Exception | None = None
        for answer in sent:
            try:
                response = await answer
            except kafka_errors.KafkaError as failed:
                problem = failed
            else:
                problem = _take_offsets(response, found) or problem
        if problem is not None:
            raise problem
        return found

    return await cluster.retrying(attempt)


def _list_offsets_request(asks: Mapping[TopicPartition, int], committed: bool) -> Any:
    topic_class = ListOffsetsRequest.ListOffsetsTopic
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED,
        topics=[
            topic_class(
                name=topic,
                partitions=[
                    topic_class.ListOffsetsPartition(
                        partition_index=partition, timestamp=asks[TopicPartition(topic, partition)]
                    )
                    for partition in partitions
                ],
            )
            for topic, partitions in _by_topic(asks).items()
        ],
        min_version=2,  # the first with an isolation level and a single offset per partition
    )


def _take_offsets(response: Any, found: dict[TopicPartition, ListedOffset]) -> KafkaError | None:
    problem = None
    for topic in response.topics:
        for answer in topic.partitions:
            topic_partition = TopicPartition(topic.name, answer.partition_index)
            if answer.error_code == UnknownTopicOrPartition.code:
                # Either the broker is not up to date, or the metadata, which a retry fetches again
                problem = _worse(problem, NotLeaderOrFollower(f"{topic_partition}: its leader does not know it"))
            elif answer.error_code:
                problem = _worse(problem, _error(answer.error_code, topic_partition))
            else:
                found[topic_partition] = ListedOffset(answer.offset, answer.timestamp, answer.leader_epoch)
    return problem


async def commit(
    cluster: "Cluster", group: str, offsets: Mapping[TopicPartition, int], metadata: str, patience: float | None
) -> None:
    """Implements `Cluster.commit`."""
    topic_class = OffsetCommitRequest.OffsetCommitRequestTopic

    async def attempt() -> None:
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=NO_GENERATION,
            member_id=NO_MEMBER,
            group_instance_id=None,
            retention_time_ms=-1,
            topics=[
                topic_class(
                    name=topic,
                    partitions=[
                        topic_class.OffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=offsets[TopicPartition(topic, partition)],
                            committed_leader_epoch=-1,
                            committed_metadata=metadata,
                        )
                        for partition in partitions
                    ],
                )
                for topic, partitions in _by_topic(offsets).items()
            ],
            max_version=9,  # later ones use topic ids
        )
        response = await _ask_coordinator(cluster, group, request)
        problem = None
        for topic in response.topics:
            for answer in topic.partitions:
                if answer.error_code:
                    error = _error(answer.error_code, TopicPartition(topic.name, answer.partition_index), group)
                    problem = _worse(problem, error)
        _raise(cluster, group, problem)

    if offsets:
        await cluster.retrying(attempt, until=None if patience is None else time.monotonic() + patience)


async def committed(
    cluster: "Cluster", group: str, topic_partitions: Iterable[TopicPartition] | None
) -> dict[TopicPartition, Any]:
    """Implements `Cluster.committed`."""
    wanted = None if topic_partitions is None else _by_topic(topic_partitions)

    async def attempt() -> dict[TopicPartition, Any]:
        topics = wanted and [
            OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=partitions)
            for topic, partitions in wanted.items()
        ]
        request = OffsetFetchRequest(group_id=group, topics=topics, require_stable=True, min_version=2, max_version=7)
        response = await _ask_coordinator(cluster, group, request)
        problem = _error(response.error_code, None, group) if response.error_code else None
        found = {}
        for topic in response.topics:
            for answer in topic.partitions:
                topic_partition = TopicPartition(topic.name, answer.partition_index)
                if answer.error_code:
                    problem = _worse(problem, _error(answer.error_code, topic_partition, group))
                elif answer.committed_offset >= 0:
                    found[topic_partition] = OffsetAndMetadata(
                        answer.committed_offset, answer.metadata or "", answer.committed_leader_epoch
                    )
        _raise(cluster, group, problem)
        return found

    return {} if wanted == {} else await cluster.retrying(attempt)


async def _ask_coordinator(cluster: "Cluster", group: str, request: Any) -> Any:
    try:
        return await cluster.send_to_coordinator(group, request)
    except kafka_errors.KafkaError:
        cluster.forget_coordinator(group)
        raise


def _raise(cluster: "Cluster", group: str, problem: KafkaError | None) -> None:
    if problem is not None:
        cluster.forget_coordinator(group)
        raise problem


def _by_topic(topic_partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in topic_partitions:
        topics.setdefault(topic, []).append(partition)
    return topics


def _error(code: int, topic_partition: TopicPartition | None, group: str | None = None) -> KafkaError:
    error = KafkaError.by_code.get(code, KafkaError.by_code[-1])
    where = str(topic_partition or "")
    return error(", ".join(filter(None, [where, f"group {group}" if group else ""])) + f": {error()}")


def _worse(one: KafkaError | None, other: KafkaError) -> KafkaError:
    """Returns the error that a retry does not resolve, if one of them is."""
    if one is None or (one.retriable and not other.retriable):
        return other
    return one
