"""Describes, alters and deletes the offsets of share groups.

Knows nothing of what is printed. A share group does not commit offsets: it has a share-partition start offset (SPSO)
for each partition (KIP-932, KIP-1226).
"""

from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from barnabas.cli.client import check_code, error_name
from barnabas.cli.group_views import TopicAndPartition
from barnabas.cli.requests import send_to_coordinator

UNKNOWN = -1


class ShareOffset(NamedTuple):
    """The start offset of a share group on a partition."""

    start_offset: int | None  #: None if it is not initialized yet
    lag: int | None
    leader_epoch: int | None


def share_offsets(admin: Any, group: str) -> dict[TopicAndPartition, ShareOffset]:
    """Returns the offsets of all partitions that the group has initialized or will initialize."""
    from barnabas.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest as Request

    request = Request(groups=[Request.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)])
    (response,) = send_to_coordinator(admin, group, request).groups
    check_code(response.error_code, response.error_message)
    found = {}
    for topic in response.topics:
        for each in topic.partitions:
            check_code(each.error_code, each.error_message)
            topic_partition = topic.topic_name, each.partition_index
            if each.start_offset == UNKNOWN:
                found[topic_partition] = ShareOffset(None, None, None)
            else:
                found[topic_partition] = ShareOffset(
                    each.start_offset, None if each.lag == UNKNOWN else each.lag, each.leader_epoch
                )
    return found


def alter_share_offsets(
    admin: Any, group: str, offsets: Mapping[TopicAndPartition, int]
) -> dict[TopicAndPartition, str | None]:
    """Sets the start offsets of partitions; returns the name of an error, or None, for each."""
    from barnabas.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest as Request

    Topic = Request.AlterShareGroupOffsetsRequestTopic
    Partition = Topic.AlterShareGroupOffsetsRequestPartition
    request = Request(
        group_id=group,
        topics=[
            Topic(
                topic_name=topic,
                partitions=[
                    Partition(partition_index=index, start_offset=offsets[topic, index])
                    for _, index in topic_partitions
                ],
            )
            for topic, topic_partitions in groupby(sorted(offsets), itemgetter(0))
        ],
    )
    response = send_to_coordinator(admin, group, request)
    check_code(response.error_code, response.error_message)
    return {
        (topic.topic_name, each.partition_index): error_name(each.error_code)
        for topic in response.responses
        for each in topic.partitions
    }


def delete_share_offsets(admin: Any, group: str, topics: Iterable[str]) -> dict[str, str | None]:
    """Deletes the group's offsets of topics; returns the name of an error, or None, for each."""
    from barnabas.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest as Request

    request = Request(
        group_id=group, topics=[Request.DeleteShareGroupOffsetsRequestTopic(topic_name=topic) for topic in topics]
    )
    response = send_to_coordinator(admin, group, request)
    check_code(response.error_code, response.error_message)
    return {topic.topic_name: error_name(topic.error_code) for topic in response.responses}
