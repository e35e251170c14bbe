"""DescribeShareGroupOffsets (API key 90): the start offsets and the lag of share groups (KIP-932).

Knows nothing of how the share coordinator stores them.
"""

from collections.abc import Callable, Sequence
from functools import partial

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.rebalance_protocols import SHARE, require_protocol
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.share_state import by_topic
from barnabas.broker.latest_offsets import Offsets, latest_offsets
from barnabas.errors import InvalidGroupId, KafkaError, UnknownTopicOrPartition
from barnabas.share.messages import Outcome, Outcomes, TopicPartition
from barnabas.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from barnabas.wire.types import ZERO_UUID

RequestGroup = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
Group = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
Topic = Group.DescribeShareGroupOffsetsResponseTopic
Partition = Topic.DescribeShareGroupOffsetsResponsePartition
Answer = DescribeShareGroupOffsetsResponse | Later[DescribeShareGroupOffsetsResponse]

NOTHING = -1
"""There is no start offset, or the lag is unknown."""


@api(DescribeShareGroupOffsetsRequest)
def describe_share_group_offsets(request: DescribeShareGroupOffsetsRequest, context: Context) -> Answer:
    """Describes the requested partitions, or all of a group. Responds when all groups are described."""
    later: Later[DescribeShareGroupOffsetsResponse] = Later()
    found: dict[int, Group] = {}

    def described(index: int, group: Group) -> None:
        found[index] = group
        if len(found) == len(request.groups):
            later.resolve(DescribeShareGroupOffsetsResponse(groups=[found[each] for each in sorted(found)]))

    def describe(index: int, group: RequestGroup) -> None:
        try:
            require_protocol(SHARE, context)
        except KafkaError as error:
            described(index, Group(group_id=group.group_id, topics=[], error_code=error.code))
            return
        try:
            _describe(group, context, lambda result: described(index, result))
        except KafkaError as error:
            refused = Group(group_id=group.group_id, topics=[], error_code=error.code, error_message=str(error))
            described(index, refused)

    for index, group in enumerate(request.groups):
        describe(index, group)
    return later if request.groups else DescribeShareGroupOffsetsResponse(groups=[])


def _describe(group: RequestGroup, context: Context, reply: Callable[[Group], object]) -> None:
    """Describes one group. A group that does not exist has no start offsets."""
    partitions: list[TopicPartition] = []
    lacking: Outcomes = {}
    unknown: list[Topic] = []
    if group.topics is not None:
        if not group.group_id:
            raise InvalidGroupId
        partitions, lacking, unknown = _known(group.topics, context)
    elif group.group_id:
        initialized = context.broker.groups.share.initialized(group.group_id)
        partitions = [(topic_id, index) for topic_id, indexes in initialized.items() for index in indexes]

    def summarized(outcomes: Outcomes) -> None:
        broker = context.broker
        wanted = [(broker.topic_name(at[0]) or "", at[1]) for at, outcome in outcomes.items() if _has_lag(outcome)]
        latest_offsets(broker.peers, broker.image, wanted, partial(found, outcomes))

    def found(outcomes: Outcomes, ends: Offsets) -> None:
        topics = [_topic(*each, ends, context) for each in by_topic({**outcomes, **lacking})]
        reply(Group(group_id=group.group_id, topics=topics + unknown))

    context.broker.persister.summary(group.group_id, partitions, summarized)


def _known(
    topics: Sequence[RequestGroup.DescribeShareGroupOffsetsRequestTopic], context: Context
) -> tuple[list[TopicPartition], Outcomes, list[Topic]]:
    """Returns the partitions that exist, the outcomes of those that do not, and the topics that do not exist."""
    partitions: list[TopicPartition] = []
    lacking: Outcomes = {}
    unknown = []
    for requested in topics:
        topic = context.broker.image.topics_by_name.get(requested.topic_name)
        if topic is None:
            rows = [
                Partition(partition_index=each, start_offset=NOTHING, leader_epoch=0) for each in requested.partitions
            ]
            unknown.append(Topic(topic_name=requested.topic_name, topic_id=ZERO_UUID, partitions=rows))
            continue
        for index in requested.partitions:
            if index in topic.partitions:
                partitions.append((topic.id, index))
            else:
                lacking[topic.id, index] = Outcome(UnknownTopicOrPartition())
    return partitions, lacking, unknown


def _topic(topic_id: bytes, outcomes: Sequence[tuple[int, Outcome]], ends: Offsets, context: Context) -> Topic:
    name = context.broker.topic_name(topic_id) or ""
    rows = [_partition(index, outcome, ends.get((name, index))) for index, outcome in outcomes]
    return Topic(topic_name=name, topic_id=topic_id, partitions=rows)


def _partition(index: int, outcome: Outcome, end: int | KafkaError | None) -> Partition:
    """Returns the row of a partition.

    :param end: the end offset for consumers; None if it is not needed
    """
    error = end if outcome.error is None else outcome.error
    if isinstance(error, KafkaError):
        return Partition(
            partition_index=index,
            start_offset=NOTHING,
            leader_epoch=0,
            error_code=error.code,
            error_message=str(error),
        )
    state = outcome.state
    # How many records the group has not completed yet (KIP-1226).
    lag = NOTHING if not isinstance(end, int) else end - state.start_offset - state.delivery_complete_count
    return Partition(partition_index=index, start_offset=state.start_offset, leader_epoch=state.leader_epoch, lag=lag)


def _has_lag(outcome: Outcome) -> bool:
    return outcome.error is None and NOTHING not in (outcome.state.start_offset, outcome.state.delivery_complete_count)
