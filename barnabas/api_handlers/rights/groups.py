"""The guards of groups and their offsets.

Knows nothing of members. Apache Kafka's ``KafkaApis``.
"""

from collections.abc import Iterable
from typing import Any

from barnabas.api_handlers.access import Access
from barnabas.api_handlers.answering import Answer, then
from barnabas.api_handlers.consumer_group_heartbeat import consumer_group_heartbeat
from barnabas.api_handlers.outcome import NOT_REQUESTED
from barnabas.api_handlers.rights.guard import EachOf, Guarded, Order, topic_name, with_entries
from barnabas.api_handlers.streams_group_heartbeat import streams_group_heartbeat
from barnabas.api_handlers.sync_group import REQUIRES_PROTOCOL
from barnabas.errors import GroupAuthorizationFailed, TopicAuthorizationFailed
from barnabas.security.acls import Operation, ResourceType
from barnabas.wire.messages.list_groups import ListGroupsResponse
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

TOPIC, GROUP, DESCRIBE, READ = ResourceType.TOPIC, ResourceType.GROUP, Operation.DESCRIBE, Operation.READ

HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."

SEVERAL_GROUPS = 8
"""The first version of OffsetFetch with several groups."""

HAS_ERROR = 2
"""The first version of OffsetFetch with an error of the whole response."""


def sync_group(guarded: Guarded) -> Answer:
    """Needs READ on the group. A request without a protocol type or name is refused first."""
    request, version = guarded.request, guarded.context.api_version
    has_protocol = request.protocol_type is not None and request.protocol_name is not None
    if version >= REQUIRES_PROTOCOL and not has_protocol:
        return guarded.serve(request)
    if guarded.access.allows(READ, GROUP, request.group_id):
        return guarded.serve(request)
    return guarded.refused(GroupAuthorizationFailed)


def list_groups(guarded: Guarded) -> Answer:
    """Shows all groups to those with DESCRIBE on the cluster, and to others the groups that they may describe."""
    access = guarded.access

    def visible(response: ListGroupsResponse) -> ListGroupsResponse:
        names = access.allowed(DESCRIBE, GROUP, (each.group_id for each in response.groups), logs_refusal=False)
        response.groups = [each for each in response.groups if each.group_id in names]
        return response

    answer = guarded.serve(guarded.request)
    return answer if access.on_cluster(DESCRIBE, logs_refusal=False) else then(answer, visible)


def show_operations(guarded: Guarded, response: Any) -> Any:
    """Fills in the allowed operations on each group, if they were requested."""
    for group in response.groups:
        if group.authorized_operations != NOT_REQUESTED:
            group.authorized_operations = guarded.access.operations(GROUP, group.group_id)
    return response


def hide_groups(guarded: Guarded, response: Any) -> Any:
    """Hides whole groups with a topic that the sender may not describe, and fills in allowed operations."""
    names = {id(group): set(_topics_of(group)) for group in response.groups if group.error_code == 0}
    visible = guarded.access.allowed(DESCRIBE, TOPIC, (name for each in names.values() for name in each))
    response.groups = [
        _hidden_group(group) if names.get(id(group), set()) - visible else group for group in response.groups
    ]
    return show_operations(guarded, response)


def _topics_of(group: Any) -> Iterable[str]:
    """Yields the topics that the description of a group names."""
    if hasattr(group, "topology"):
        for each in group.topology.subtopologies or () if group.topology is not None else ():
            yield from each.source_topics
            yield from each.repartition_sink_topics
            yield from (topic.name for topic in (*each.state_changelog_topics, *each.repartition_source_topics))
        return
    for member in group.members:
        yield from (each.topic_name for each in member.assignment.topic_partitions)
        target = getattr(member, "target_assignment", None)
        yield from (each.topic_name for each in target.topic_partitions) if target is not None else ()


def _hidden_group(group: Any) -> Any:
    fields: dict[str, Any] = {"group_id": group.group_id, "group_state": "", "group_epoch": 0, "assignment_epoch": 0}
    if hasattr(group, "topology"):
        fields["topology"] = None
    else:
        fields["assignor_name"] = ""
    return type(group)(error_code=TopicAuthorizationFailed.code, error_message=HIDDEN_TOPICS, members=[], **fields)


def subscribed_topics(guarded: Guarded) -> Answer:
    """Needs DESCRIBE on each topic that the member names."""
    if not _may_describe(guarded, guarded.request.subscribed_topic_names or ()):
        return guarded.refused(TopicAuthorizationFailed)
    return guarded.serve(guarded.request)


def consumer_topics(guarded: Guarded) -> Answer:
    """Needs DESCRIBE on each topic that the member names; the topics that its regular expression matches are only
    filtered.
    """
    if not _may_describe(guarded, guarded.request.subscribed_topic_names or ()):
        return guarded.refused(TopicAuthorizationFailed)
    access = guarded.access
    return consumer_group_heartbeat(
        guarded.request, guarded.context, lambda names: access.allowed(DESCRIBE, TOPIC, names, logs_refusal=False)
    )


def streams_topics(guarded: Guarded) -> Answer:
    """Needs DESCRIBE on each topic of the topology, and CREATE on internal ones that are missing, or on the cluster."""
    access, topology = guarded.access, guarded.request.topology
    wanted: list[str] = []
    for each in topology.subtopologies if topology is not None else ():
        wanted += [*each.source_topics, *each.repartition_sink_topics]
        wanted += [topic.name for topic in (*each.repartition_source_topics, *each.state_changelog_topics)]
    if not _may_describe(guarded, wanted):
        return guarded.refused(TopicAuthorizationFailed)

    def creatable(names: Iterable[str]) -> frozenset[str]:
        if access.on_cluster(Operation.CREATE, logs_refusal=False):
            return frozenset(names)
        return access.allowed(Operation.CREATE, TOPIC, names)

    return streams_group_heartbeat(guarded.request, guarded.context, creatable)


def _may_describe(guarded: Guarded, names: Iterable[str]) -> bool:
    wanted = frozenset(names)
    return guarded.access.allowed(DESCRIBE, TOPIC, wanted) == wanted


# ---------------------------------------------------------------- offsets


def offset_fetch(guarded: Guarded) -> Answer:
    """Needs DESCRIBE on the group and on each topic; of all topics, it shows the visible ones."""
    if guarded.context.api_version >= SEVERAL_GROUPS:
        each = EachOf(DESCRIBE, GROUP, "groups", "group_id", "groups", refuse=_refused_groups)
        narrowed = [_narrowed(group, guarded) for group in guarded.request.groups]
        hidden = {group.group_id: refused for group, refused in narrowed}
        request = with_entries(guarded.request, "groups", [group for group, _ in narrowed])
        return then(each(guarded._replace(request=request)), lambda response: _show_groups(guarded, response, hidden))
    if not guarded.access.allows(DESCRIBE, GROUP, guarded.request.group_id):
        return _refused_group(guarded)
    request, refused = _narrowed(guarded.request, guarded)
    return then(
        guarded.serve(request), lambda response: _show(request.topics is None, response, refused, guarded.access)
    )


def _narrowed(requested: Any, guarded: Guarded) -> tuple[Any, list[Any]]:
    """Returns the request, or a group of it, with the topics that are visible, and those that are not."""
    if requested.topics is None or not guarded.access.allows(DESCRIBE, GROUP, requested.group_id, logs_refusal=False):
        return requested, []
    names = {id(topic): topic_name(topic, guarded.context) for topic in requested.topics}
    visible = guarded.access.allowed(DESCRIBE, TOPIC, (name for name in names.values() if name is not None))
    hidden = [topic for topic in requested.topics if names[id(topic)] not in (None, *visible)]
    if not hidden:
        return requested, []
    return with_entries(requested, "topics", [topic for topic in requested.topics if topic not in hidden]), hidden


def _show_groups(guarded: Guarded, response: OffsetFetchResponse, hidden: dict[str, list[Any]]) -> OffsetFetchResponse:
    is_all = {group.group_id: group.topics is None for group in guarded.request.groups}
    for group in response.groups:
        if group.error_code == 0:
            _show(is_all[group.group_id], group, hidden[group.group_id], guarded.access, guarded)
    return response


def _show(is_all: bool, answered: Any, hidden: list[Any], access: Access, guarded: Guarded | None = None) -> Any:
    """Leaves out hidden topics if all were requested, or else adds their refusals."""
    if is_all:
        names = {id(topic): topic_name(topic, guarded.context) if guarded else topic.name for topic in answered.topics}
        known = (name for name in names.values() if name is not None)
        visible = access.allowed(DESCRIBE, TOPIC, known, logs_refusal=False)
        answered.topics = [topic for topic in answered.topics if names[id(topic)] in visible]
        return answered
    answered.topics = [*answered.topics, *(_refused_topic(topic) for topic in hidden)]
    return answered


def _refused_topic(topic: Any, code: int = TopicAuthorizationFailed.code) -> Any:
    is_of_group = hasattr(topic, "topic_id")
    group = OffsetFetchResponse.OffsetFetchResponseGroup
    topic_type: Any = group.OffsetFetchResponseTopics if is_of_group else OffsetFetchResponse.OffsetFetchResponseTopic
    row: Any = topic_type.OffsetFetchResponsePartitions if is_of_group else topic_type.OffsetFetchResponsePartition
    rows = [
        row(partition_index=index, committed_offset=-1, metadata="", error_code=code)
        for index in topic.partition_indexes
    ]
    return (
        topic_type(name=topic.name, topic_id=topic.topic_id, partitions=rows)
        if is_of_group
        else topic_type(name=topic.name, partitions=rows)
    )


def _refused_groups(guarded: Guarded, request: OffsetFetchRequest) -> OffsetFetchResponse:
    code = GroupAuthorizationFailed.code
    return OffsetFetchResponse(
        groups=[
            OffsetFetchResponse.OffsetFetchResponseGroup(group_id=each.group_id, topics=[], error_code=code)
            for each in request.groups
        ]
    )


def _refused_group(guarded: Guarded) -> OffsetFetchResponse:
    """Returns the refusal of the group: at each partition in versions that have no other place for it."""
    code = GroupAuthorizationFailed.code
    if guarded.context.api_version >= HAS_ERROR:
        return OffsetFetchResponse(topics=[], error_code=code)
    return OffsetFetchResponse(topics=[_refused_topic(topic, code) for topic in guarded.request.topics or ()])


def _refused_deletion(guarded: Guarded, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    Topic = OffsetDeleteResponse.OffsetDeleteResponseTopic
    code = TopicAuthorizationFailed.code
    return OffsetDeleteResponse(
        topics=[
            Topic(
                name=topic.name,
                partitions=[
                    Topic.OffsetDeleteResponsePartition(partition_index=each.partition_index, error_code=code)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


DELETED_OFFSETS = EachOf(READ, TOPIC, "topics", "name", "topics", order=Order.FIRST, refuse=_refused_deletion)
