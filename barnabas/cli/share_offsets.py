"""Where share groups are on their partitions: what there is to tell of that, resetting it, and forgetting it.

Knows nothing of what is printed. A share group has no offsets that it has committed: it has, of each partition, the
first one that is not done with (KIP-932, KIP-1226).
"""

from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from barnabas.cli.asking import ask_coordinator
from barnabas.cli.client import check_code
from barnabas.cli.group_views import Place
from barnabas.errors import NONE, KafkaError

UNKNOWN = -1


class ShareOffset(NamedTuple):
    """Where a share group is on a partition."""

    start_offset: int | None  #: None: nobody has read it yet
    lag: int | None
    leader_epoch: int | None


def share_offsets(admin: Any, group: str) -> dict[Place, ShareOffset]:
    """Of all partitions that the group has a state of, or is about to."""
    from barnabas.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest as Request

    asked = Request(groups=[Request.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)])
    (told,) = ask_coordinator(admin, group, asked).groups
    check_code(told.error_code, told.error_message)
    found = {}
    for topic in told.topics:
        for each in topic.partitions:
            check_code(each.error_code, each.error_message)
            place = topic.topic_name, each.partition_index
            if each.start_offset == UNKNOWN:
                found[place] = ShareOffset(None, None, None)
            else:
                found[place] = ShareOffset(
                    each.start_offset, None if each.lag == UNKNOWN else each.lag, each.leader_epoch
                )
    return found


def alter_share_offsets(admin: Any, group: str, offsets: Mapping[Place, int]) -> dict[Place, str | None]:
    """Set where the group is; the name of an error, or None, of each partition."""
    from barnabas.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest as Request

    Topic = Request.AlterShareGroupOffsetsRequestTopic
    Partition = Topic.AlterShareGroupOffsetsRequestPartition
    asked = Request(
        group_id=group,
        topics=[
            Topic(
                topic_name=topic,
                partitions=[
                    Partition(partition_index=index, start_offset=offsets[topic, index]) for _, index in places
                ],
            )
            for topic, places in groupby(sorted(offsets), itemgetter(0))
        ],
    )
    told = ask_coordinator(admin, group, asked)
    check_code(told.error_code, told.error_message)
    return {
        (topic.topic_name, each.partition_index): name_of(each.error_code)
        for topic in told.responses
        for each in topic.partitions
    }


def delete_share_offsets(admin: Any, group: str, topics: Iterable[str]) -> dict[str, str | None]:
    """Have the group forget these topics; the name of an error, or None, of each."""
    from barnabas.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest as Request

    asked = Request(
        group_id=group, topics=[Request.DeleteShareGroupOffsetsRequestTopic(topic_name=topic) for topic in topics]
    )
    told = ask_coordinator(admin, group, asked)
    check_code(told.error_code, told.error_message)
    return {topic.topic_name: name_of(topic.error_code) for topic in told.responses}


def name_of(code: int) -> str | None:
    """Our name of an error; None where there is none."""
    if code == NONE:
        return None
    error = KafkaError.by_code.get(code)
    return f"Error {code}" if error is None else error.__name__
