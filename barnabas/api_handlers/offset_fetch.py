"""OffsetFetch (API key 9): the committed offsets of groups.

Knows nothing of who may fetch them. A partition without a committed offset has offset -1 and no error, even if the
partition or the group does not exist. Apache Kafka 4 has dropped version 0, which is handled like version 1.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import derived, error_shape, resolve_with_error
from barnabas.api_handlers.registry import api
from barnabas.errors import NONE, KafkaError, UnknownTopicId, UnstableOffsetCommit
from barnabas.offsets.committed import NO_LEADER_EPOCH, NO_OFFSET, CommittedOffset, Partitions, Topics
from barnabas.offsets.pending import Position
from barnabas.wire.message import Response
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

RequestGroup = OffsetFetchRequest.OffsetFetchRequestGroup
Group = OffsetFetchResponse.OffsetFetchResponseGroup
GroupTopic = Group.OffsetFetchResponseTopics
Topic = OffsetFetchResponse.OffsetFetchResponseTopic

ASKS_FOR_COORDINATOR = 1
"""Clients of older versions never look for the coordinator."""

SEVERAL_GROUPS = 8
BY_ID = 10

NOTHING = CommittedOffset(NO_OFFSET, NO_LEADER_EPOCH, "", -1)

UNSTABLE = CommittedOffset(NO_OFFSET, NO_LEADER_EPOCH, "", -1)
"""Stands for the offset of a partition with a pending offset."""


class Offsets(NamedTuple):
    """The committed offsets of a group, and its partitions with pending ones."""

    committed: Topics
    unstable: Mapping[str, Partitions]
    """:data:`UNSTABLE` for each partition with a pending offset, by topic; empty without ``require_stable``."""

    def positions(self) -> list[tuple[str, Sequence[int]]]:
        """Returns all committed positions."""
        return [(name, list(partitions)) for name, partitions in self.committed.items()]

    def of(self, topic: str) -> Partitions:
        """Returns the offsets of a topic, or UNSTABLE."""
        committed, unstable = self.committed.get(topic, {}), self.unstable.get(topic)
        return {**committed, **unstable} if unstable else committed


@api(OffsetFetchRequest)
def offset_fetch(request: OffsetFetchRequest, context: Context) -> OffsetFetchResponse | Later[OffsetFetchResponse]:
    """Responds with the offsets of each group: of the requested partitions, or of all.

    Pending offsets are not returned. With ``require_stable`` a partition with a pending offset has
    UNSTABLE_OFFSET_COMMIT instead of its committed offset, and the client retries; and the response waits until what
    the coordinator has written before is durable.
    """
    version = context.api_version
    if version >= ASKS_FOR_COORDINATOR and not request.require_stable:
        return _response(request, [_committed(context, *each) for each in _requested(request, version)], context)
    later: Later[OffsetFetchResponse] = Later()

    def found(offsets: Sequence[Offsets | KafkaError]) -> None:
        try:
            later.resolve(_response(request, offsets, context))
        except KafkaError as refusal:
            resolve_with_error(later, request, refusal, version)

    if version >= ASKS_FOR_COORDINATOR:
        _find_stable(_requested(request, version), context, found)
    else:
        context.broker.coordinators.groups.create_topic(
            lambda error: found([error or _committed(context, request.group_id)])
        )
    return later


def _requested(request: OffsetFetchRequest, version: int) -> list[tuple[Any, ...]]:
    """Returns the id of each group, and the member of it whose request this is."""
    if version < SEVERAL_GROUPS:
        return [(request.group_id,)]
    return [(group.group_id, group.member_id, group.member_epoch) for group in request.groups]


def _response(
    request: OffsetFetchRequest, found: Sequence[Offsets | KafkaError], context: Context
) -> OffsetFetchResponse:
    """:param found: the offsets of each group, or its error :raises KafkaError: the error of the only group"""
    if context.api_version >= SEVERAL_GROUPS:
        groups = [_group(group, offsets, context) for group, offsets in zip(request.groups, found, strict=True)]
        return OffsetFetchResponse(groups=groups)
    (offsets,) = found
    if isinstance(offsets, KafkaError):
        raise offsets
    if request.topics is None:
        positions = offsets.positions()
    else:
        positions = [(topic.name, topic.partition_indexes) for topic in request.topics]
    return OffsetFetchResponse(
        topics=[
            Topic(name=name, partitions=_rows(Topic.OffsetFetchResponsePartition, indexes, offsets.of(name)))
            for name, indexes in positions
        ]
    )


def _committed(context: Context, *requested: Any) -> Offsets | KafkaError:
    """Returns the offsets of a group, or why it refuses."""
    try:
        return Offsets(context.broker.groups.fetch_offsets(*requested), {})
    except KafkaError as error:
        return error


def _find_stable(
    requested: Sequence[tuple[Any, ...]], context: Context, done: Callable[[list[Offsets | KafkaError]], None]
) -> None:
    """Calls ``done`` with the offsets of each group, or its error, once each coordinator has replied."""
    found: dict[int, Offsets | KafkaError] = {}

    def add(index: int, offsets: Offsets | KafkaError) -> None:
        found[index] = offsets
        if len(found) == len(requested):
            done([found[each] for each in range(len(requested))])

    def reply(index: int, error: KafkaError | None, committed: Topics, pending: Collection[Position]) -> None:
        add(index, error or Offsets(committed, _unstable(pending)))

    for index, (group_id, *member) in enumerate(requested):
        try:
            context.broker.groups.fetch_stable_offsets(group_id, partial(reply, index), *member)
        except KafkaError as error:
            add(index, error)
    if not requested:
        done([])


def _unstable(pending: Collection[Position]) -> Mapping[str, Partitions]:
    unstable: dict[str, dict[int, CommittedOffset]] = {}
    for topic, partition in pending:
        unstable.setdefault(topic, {})[partition] = UNSTABLE
    return unstable


@error_shape(OffsetFetchRequest)
def _refused(request: OffsetFetchRequest, error: KafkaError, version: int) -> Response:
    return derived(request, error, version, committed_offset=NO_OFFSET)


def _group(group: RequestGroup, offsets: Offsets | KafkaError, context: Context) -> Group:
    if isinstance(offsets, KafkaError):
        return Group(group_id=group.group_id, topics=[], error_code=offsets.code)
    by_id = context.api_version >= BY_ID
    if group.topics is None:
        topics = _all_topics(offsets, by_id, context)
    else:
        topics = _requested_topics(group, offsets, by_id, context)
    return Group(group_id=group.group_id, topics=topics)


def _all_topics(offsets: Offsets, by_id: bool, context: Context) -> list[GroupTopic]:
    image = context.broker.image
    topics = []
    for name, indexes in offsets.positions():
        topic = image.topics_by_name.get(name)
        if not by_id:
            topics.append(_group_topic(indexes, offsets.of(name), name=name))
        elif topic is not None:  # a topic that does not exist has no id
            topics.append(_group_topic(indexes, offsets.of(name), topic_id=topic.id))
    return topics


def _requested_topics(group: RequestGroup, offsets: Offsets, by_id: bool, context: Context) -> list[GroupTopic]:
    known, unknown = [], []
    for topic in group.topics or ():
        if not by_id:
            known.append(_group_topic(topic.partition_indexes, offsets.of(topic.name), name=topic.name))
            continue
        name = context.broker.topic_name(topic.topic_id)
        if name is None:
            code = UnknownTopicId.code
            unknown.append(_group_topic(topic.partition_indexes, {}, code, topic_id=topic.topic_id))
        else:
            known.append(_group_topic(topic.partition_indexes, offsets.of(name), topic_id=topic.topic_id))
    return known + unknown


def _group_topic(indexes: Sequence[int], committed: Partitions, code: int = NONE, **topic: Any) -> GroupTopic:
    return GroupTopic(partitions=_rows(GroupTopic.OffsetFetchResponsePartitions, indexes, committed, code), **topic)


def _rows(row: Any, indexes: Sequence[int], committed: Partitions, code: int = NONE) -> list[Any]:
    """Returns the partitions of a response, as instances of ``row``: two structs have the same fields."""
    rows = []
    for index in indexes:
        offset = committed.get(index, NOTHING)
        rows.append(
            row(
                partition_index=index,
                committed_offset=offset.offset,
                committed_leader_epoch=offset.leader_epoch,
                metadata=offset.metadata,
                error_code=UnstableOffsetCommit.code if offset is UNSTABLE else code,
            )
        )
    return rows
