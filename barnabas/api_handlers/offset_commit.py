"""OffsetCommit (API key 8): a group keeps how far it has read.

Knows nothing of who may commit, which the group says; only that a topic has to be there, which is looked at first.
Versions 0 and 1, which Apache Kafka 4 has dropped, are taken for what they say: a simple consumer's, and a member's.
Version 0 kept offsets in ZooKeeper; they are kept here, where Kafka 3 without ZooKeeper refused them.
"""

from typing import NamedTuple

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.by_topic import Answers, merged
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.cluster.image import TopicImage
from barnabas.errors import KafkaError, UnknownTopicId, UnknownTopicOrPartition
from barnabas.groups.messages import OffsetCommit, OffsetToCommit
from barnabas.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse

AskedTopic = OffsetCommitRequest.OffsetCommitRequestTopic
Topic = OffsetCommitResponse.OffsetCommitResponseTopic

ASKS_FOR_COORDINATOR = 1
"""Clients that speak an earlier version never ask who coordinates their group."""

KNOWS_GROUP_ID_NOT_FOUND = 9
BY_ID = 10


class TopicKey(NamedTuple):
    """A topic as the request names it: by name up to version 9, by id from 10 on."""

    name: str
    id: bytes


class Sorted(NamedTuple):
    """The partitions of a request: those that there are none of, with their errors, and those that there are."""

    refused: list[tuple[TopicKey, tuple[int, int]]]
    taken: list[tuple[TopicKey, list[OffsetToCommit]]]


@api(OffsetCommitRequest, versions="0-10")
def offset_commit(request: OffsetCommitRequest, context: Context) -> OffsetCommitResponse | Later[OffsetCommitResponse]:
    """Commit what is about partitions that there are; answered when it is written."""
    found = _sort(request, context)
    if not found.taken:
        return _response(merged(found.refused, []))
    if context.api_version < ASKS_FOR_COORDINATOR:
        context.broker.group_log.create_topic()
    later: Later[OffsetCommitResponse] = Later()
    offsets = [each for _, of_topic in found.taken for each in of_topic]
    commit = OffsetCommit(
        request.group_id,
        offsets,
        request.generation_id_or_member_epoch,
        request.member_id,
        request.group_instance_id,
        request.retention_time_ms,
        context.api_version >= KNOWS_GROUP_ID_NOT_FOUND,
    )

    def answer(codes: list[int]) -> None:
        left = iter(codes)
        answers = [(key, [(each.partition, next(left)) for each in of_topic]) for key, of_topic in found.taken]
        later.resolve(_response(merged(found.refused, answers)))

    try:
        context.broker.groups.commit_offsets(commit, answer)
    except KafkaError as error:
        answer([error.code] * len(offsets))
    return later


def _sort(request: OffsetCommitRequest, context: Context) -> Sorted:
    """Look at the topics before anybody looks at the group."""
    found = Sorted([], [])
    for topic in request.topics:
        image, missing = _topic(topic, context)
        key = TopicKey(topic.name, topic.topic_id)
        taken = []
        for each in topic.partitions:
            index = each.partition_index
            if image is None or index not in image.partitions:
                found.refused.append((key, (index, missing.code)))
                continue
            offset, epoch, metadata = each.committed_offset, each.committed_leader_epoch, each.committed_metadata
            taken.append(OffsetToCommit(image.name, index, offset, epoch, metadata, image.id))
        if taken:
            found.taken.append((key, taken))
    return found


def _topic(topic: AskedTopic, context: Context) -> tuple[TopicImage | None, type[KafkaError]]:
    """The topic, and what to say of partitions that are not there."""
    image = context.broker.image
    if context.api_version < BY_ID:
        return image.topics_by_name.get(topic.name), UnknownTopicOrPartition
    found = image.topics_by_id.get(topic.topic_id)
    return found, UnknownTopicId if found is None else UnknownTopicOrPartition


def _response(answers: Answers[TopicKey, tuple[int, int]]) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            Topic(
                name=key.name,
                topic_id=key.id,
                partitions=[
                    Topic.OffsetCommitResponsePartition(partition_index=index, error_code=code)
                    for index, code in of_topic
                ],
            )
            for key, of_topic in answers
        ]
    )
