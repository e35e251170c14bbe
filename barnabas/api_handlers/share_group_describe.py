"""ShareGroupDescribe (API key 77): the members of share groups and their assignments (KIP-932).

Knows nothing of how partitions are assigned.
"""

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.describe_groups import GROUP_OPERATIONS
from barnabas.api_handlers.outcome import NOT_REQUESTED
from barnabas.api_handlers.rebalance_protocols import SHARE, require_protocol
from barnabas.api_handlers.registry import api
from barnabas.errors import InvalidGroupId, KafkaError, UnsupportedVersion
from barnabas.groups.share.messages import DescribedMember
from barnabas.wire.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse

Described = ShareGroupDescribeResponse.DescribedGroup


@api(ShareGroupDescribeRequest)
def share_group_describe(request: ShareGroupDescribeRequest, context: Context) -> ShareGroupDescribeResponse:
    """Describes each group."""
    try:
        require_protocol(SHARE, context)
    except UnsupportedVersion as error:
        return ShareGroupDescribeResponse(groups=[_refused(group_id, error) for group_id in request.group_ids])
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_REQUESTED
    return ShareGroupDescribeResponse(
        groups=[_describe(group_id, operations, context) for group_id in request.group_ids]
    )


def _describe(group_id: str, operations: int, context: Context) -> Described:
    try:
        group = context.broker.groups.share.describe(group_id)
    except KafkaError as error:
        return _refused(group_id, error)
    return Described(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor,
        members=[_member(member) for member in group.members],
        authorized_operations=operations,
    )


def _member(member: DescribedMember) -> Described.Member:
    return Described.Member(
        member_id=member.member_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.subscribed_topic_names),
        assignment=ShareGroupDescribeResponse.Assignment(
            topic_partitions=[
                ShareGroupDescribeResponse.TopicPartitions(
                    topic_id=topic_id, topic_name=name, partitions=list(partitions)
                )
                for topic_id, name, partitions in member.assignment
            ]
        ),
    )


def _refused(group_id: str, error: KafkaError) -> Described:
    return Described(
        error_code=error.code,
        error_message=None if isinstance(error, InvalidGroupId | UnsupportedVersion) else str(error),
        group_id=group_id,
        group_state="",
        group_epoch=0,
        assignment_epoch=0,
        assignor_name="",
        members=[],
    )
