"""ConsumerGroupDescribe (API key 69): the members of consumer groups, their assignments and targets (KIP-848).

Knows nothing of how partitions are assigned.
"""

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.describe_groups import GROUP_OPERATIONS
from barnabas.api_handlers.outcome import NOT_REQUESTED, message_of
from barnabas.api_handlers.rebalance_protocols import CONSUMER, require_protocol
from barnabas.api_handlers.registry import api
from barnabas.errors import KafkaError
from barnabas.groups.consumer.messages import DescribedMember, NamedPartitions
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse

Described = ConsumerGroupDescribeResponse.DescribedGroup
Assignment = ConsumerGroupDescribeResponse.Assignment

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1
"""The protocol of a member (KIP-1099)."""


@api(ConsumerGroupDescribeRequest)
def consumer_group_describe(request: ConsumerGroupDescribeRequest, context: Context) -> ConsumerGroupDescribeResponse:
    """Describes each group."""
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_REQUESTED
    return ConsumerGroupDescribeResponse(
        groups=[_describe(group_id, operations, context) for group_id in request.group_ids]
    )


def _describe(group_id: str, operations: int, context: Context) -> Described:
    try:
        require_protocol(CONSUMER, context)
        group = context.broker.groups.consumer.describe(group_id)
    except KafkaError as error:
        return Described(
            error_code=error.code,
            error_message=message_of(error),
            group_id=group_id,
            group_state="",
            group_epoch=0,
            assignment_epoch=0,
            assignor_name="",
            members=[],
        )
    return Described(
        group_id=group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor,
        members=[_member(each) for each in group.members],
        authorized_operations=operations,
    )


def _member(member: DescribedMember) -> Described.Member:
    return Described.Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=member.topic_names,
        subscribed_topic_regex=member.topic_regex,
        assignment=_assignment(member.assignment),
        target_assignment=_assignment(member.target_assignment),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def _assignment(partitions: NamedPartitions) -> Assignment:
    return Assignment(
        topic_partitions=[
            ConsumerGroupDescribeResponse.TopicPartitions(topic_id=topic_id, topic_name=name, partitions=indexes)
            for topic_id, name, indexes in partitions
        ]
    )
