"""DescribeShareGroupOffsets (API key 90): where the partitions of share groups begin, and what is left (KIP-932).

Knows nothing of how the share coordinator keeps it.
"""

from collections.abc import Callable, Sequence

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.rebalance_protocols import SHARE, require_protocol
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.share_state import by_topic
from barnabas.errors import InvalidGroupId, KafkaError, UnknownTopicOrPartition
from barnabas.share.messages import Outcome, Outcomes, TopicPartition
from barnabas.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from barnabas.wire.types import ZERO_UUID

Asked = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
Group = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
Topic = Group.DescribeShareGroupOffsetsResponseTopic
Partition = Topic.DescribeShareGroupOffsetsResponsePartition
Answer = DescribeShareGroupOffsetsResponse | Later[DescribeShareGroupOffsetsResponse]

NOTHING = -1
"""No start offset, no lag: nobody has read there yet, or it is not known."""


@api(DescribeShareGroupOffsetsRequest)
def describe_share_group_offsets(request: DescribeShareGroupOffsetsRequest, context: Context) -> Answer:
    """Tell of the partitions asked for, or of all that a group has; answered when the last of the groups is."""
    later: Later[DescribeShareGroupOffsetsResponse] = Later()
    found: dict[int, Group] = {}

    def described(index: int, group: Group) -> None:
        found[index] = group
        if len(found) == len(request.groups):
            later.resolve(DescribeShareGroupOffsetsResponse(groups=[found[each] for each in sorted(found)]))

    def describe(index: int, asked: Asked) -> None:
        try:
            require_protocol(SHARE, context)
        except KafkaError as error:
            described(index, Group(group_id=asked.group_id, topics=[], error_code=error.code))
            return
        try:
            _describe(asked, context, lambda group: described(index, group))
        except KafkaError as error:
            refused = Group(group_id=asked.group_id, topics=[], error_code=error.code, error_message=str(error))
            described(index, refused)

    for index, asked in enumerate(request.groups):
        describe(index, asked)
    return later if request.groups else DescribeShareGroupOffsetsResponse(groups=[])


def _describe(asked: Asked, context: Context, reply: Callable[[Group], object]) -> None:
    """Ask for one group. Whether there is such a group does not matter: what nobody has begun begins nowhere."""
    partitions: list[TopicPartition] = []
    lacking: Outcomes = {}
    unknown: list[Topic] = []
    if asked.topics is not None:
        if not asked.group_id:
            raise InvalidGroupId
        partitions, lacking, unknown = _known(asked.topics, context)
    elif asked.group_id:
        kept = context.broker.groups.share.initialized(asked.group_id)
        partitions = [(topic_id, index) for topic_id, indexes in kept.items() for index in indexes]

    def found(outcomes: Outcomes) -> None:
        topics = [_topic(*each, context) for each in by_topic({**outcomes, **lacking})]
        reply(Group(group_id=asked.group_id, topics=topics + unknown))

    context.broker.persister.summary(asked.group_id, partitions, found)


def _known(
    topics: Sequence[Asked.DescribeShareGroupOffsetsRequestTopic], context: Context
) -> tuple[list[TopicPartition], Outcomes, list[Topic]]:
    """The partitions that there are, those that their topics lack, and answers about topics that there are not."""
    partitions: list[TopicPartition] = []
    lacking: Outcomes = {}
    unknown = []
    for asked in topics:
        topic = context.broker.image.topics_by_name.get(asked.topic_name)
        if topic is None:
            rows = [Partition(partition_index=each, start_offset=NOTHING, leader_epoch=0) for each in asked.partitions]
            unknown.append(Topic(topic_name=asked.topic_name, topic_id=ZERO_UUID, partitions=rows))
            continue
        for index in asked.partitions:
            if index in topic.partitions:
                partitions.append((topic.id, index))
            else:
                lacking[topic.id, index] = Outcome(UnknownTopicOrPartition)
    return partitions, lacking, unknown


def _topic(topic_id: bytes, outcomes: Sequence[tuple[int, Outcome]], context: Context) -> Topic:
    name = context.broker.topic_name(topic_id) or ""
    rows = [_partition(name, index, outcome, context) for index, outcome in outcomes]
    return Topic(topic_name=name, topic_id=topic_id, partitions=rows)


def _partition(topic: str, index: int, outcome: Outcome, context: Context) -> Partition:
    error = outcome.error
    try:
        lag = NOTHING if error is not None else _lag(topic, index, outcome, context)
    except KafkaError as failure:
        error, lag = type(failure), NOTHING
    if error is not None:
        return Partition(
            partition_index=index,
            start_offset=NOTHING,
            leader_epoch=0,
            error_code=error.code,
            error_message=outcome.message or str(error()),
        )
    state = outcome.state
    return Partition(partition_index=index, start_offset=state.start_offset, leader_epoch=state.leader_epoch, lag=lag)


def _lag(topic: str, index: int, outcome: Outcome, context: Context) -> int:
    """How many records the group has yet to deal with (KIP-1226)."""
    start_offset, done = outcome.state.start_offset, outcome.state.delivery_complete_count
    if start_offset == NOTHING or done == NOTHING:
        return NOTHING
    return context.broker.partition(topic, index).log.high_watermark - start_offset - done
