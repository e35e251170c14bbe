"""The guards of the start offsets of share groups, and of DescribeLogDirs.

Knows nothing of the state of share partitions. Apache Kafka's ``KafkaApis``.
"""

from typing import Any

from barnabas.api_handlers.answering import Answer, then
from barnabas.api_handlers.rights.guard import EachOf, Guarded, Order, with_entries
from barnabas.errors import ClusterAuthorizationFailed, GroupAuthorizationFailed, TopicAuthorizationFailed
from barnabas.security.acls import Operation, ResourceType
from barnabas.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from barnabas.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsResponse
from barnabas.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsResponse
from barnabas.wire.types import ZERO_UUID

TOPIC, GROUP, DESCRIBE = ResourceType.TOPIC, ResourceType.GROUP, Operation.DESCRIBE
Group = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
Topic = Group.DescribeShareGroupOffsetsResponseTopic

HAS_ERROR_CODE = 3
"""The first version of DescribeLogDirs whose response has an error code of its own."""


def describe_share_group_offsets(guarded: Guarded) -> Answer:
    """Needs DESCRIBE on each group and each topic; of all topics, it shows the visible ones."""
    request, access = guarded.request, guarded.access
    narrowed, hidden = [], {}
    for group in request.groups:
        names = [topic.topic_name for topic in group.topics or ()]
        visible = frozenset(names)
        if access.allows(DESCRIBE, GROUP, group.group_id, logs_refusal=False):
            visible = access.allowed(DESCRIBE, TOPIC, names)
        hidden[group.group_id] = [each for each in group.topics or () if each.topic_name not in visible]
        if hidden[group.group_id]:
            group = with_entries(group, "topics", [each for each in group.topics if each.topic_name in visible])
        narrowed.append(group)
    is_all = {group.group_id for group in request.groups if group.topics is None}

    def show(response: DescribeShareGroupOffsetsResponse) -> DescribeShareGroupOffsetsResponse:
        for group in response.groups:
            if group.group_id in is_all:
                names = (topic.topic_name for topic in group.topics)
                visible = access.allowed(DESCRIBE, TOPIC, names, logs_refusal=False)
                group.topics = [topic for topic in group.topics if topic.topic_name in visible]
            elif group.error_code == 0:
                group.topics = [*group.topics, *map(_refused_topic, hidden[group.group_id])]
        return response

    each = EachOf(DESCRIBE, GROUP, "groups", "group_id", "groups", Order.REQUEST, refuse=_refused_groups)
    return then(each(guarded._replace(request=with_entries(request, "groups", narrowed))), show)


def _refused_topic(topic: Any) -> Topic:
    error = TopicAuthorizationFailed()
    rows = [
        Topic.DescribeShareGroupOffsetsResponsePartition(
            partition_index=index, start_offset=-1, leader_epoch=0, error_code=error.code, error_message=str(error)
        )
        for index in topic.partitions
    ]
    return Topic(topic_name=topic.topic_name, topic_id=ZERO_UUID, partitions=rows)


def _refused_groups(guarded: Guarded, request: Any) -> DescribeShareGroupOffsetsResponse:
    code = GroupAuthorizationFailed.code
    return DescribeShareGroupOffsetsResponse(
        groups=[Group(group_id=each.group_id, topics=[], error_code=code) for each in request.groups]
    )


def _refused_changes(guarded: Guarded, request: AlterShareGroupOffsetsRequest) -> AlterShareGroupOffsetsResponse:
    Topic = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic
    error, topics = TopicAuthorizationFailed(), guarded.context.broker.image.topics_by_name
    return AlterShareGroupOffsetsResponse(
        responses=[
            Topic(
                topic_name=topic.topic_name,
                topic_id=topics[topic.topic_name].id if topic.topic_name in topics else ZERO_UUID,
                partitions=[
                    Topic.AlterShareGroupOffsetsResponsePartition(
                        partition_index=each.partition_index, error_code=error.code, error_message=str(error)
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _refused_deletions(guarded: Guarded, request: DeleteShareGroupOffsetsRequest) -> DeleteShareGroupOffsetsResponse:
    error = TopicAuthorizationFailed()
    return DeleteShareGroupOffsetsResponse(
        responses=[
            DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name, topic_id=ZERO_UUID, error_code=error.code, error_message=str(error)
            )
            for topic in request.topics
        ]
    )


ALTERED = EachOf(Operation.READ, TOPIC, "topics", "topic_name", "responses", refuse=_refused_changes)
DELETED = EachOf(Operation.READ, TOPIC, "topics", "topic_name", "responses", refuse=_refused_deletions)


def describe_log_dirs(guarded: Guarded) -> Answer:
    """Needs DESCRIBE on the cluster. Versions without an error code list no directories."""
    if guarded.access.on_cluster(DESCRIBE):
        return guarded.serve(guarded.request)
    if guarded.context.api_version >= HAS_ERROR_CODE:
        return guarded.refused(ClusterAuthorizationFailed)
    return DescribeLogDirsResponse(results=[])
