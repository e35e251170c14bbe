"""Describes groups of all types in one form: the state, the members, and the assignment of each member.

Knows nothing of what is printed. Each type of group is described by a request of its own.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import click

from barnabas.cli.client import check_code
from barnabas.cli.requests import send_to_coordinator
from barnabas.errors import GroupIdNotFound

TopicAndPartition = tuple[str, int]
"""A topic's name and a partition's index."""

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"


class MemberView(NamedTuple):
    """A member of a group."""

    member_id: str
    group_instance_id: str | None
    host: str
    client_id: str
    partitions: list[TopicAndPartition]  #: assigned
    epoch: int | None = None
    target_partitions: list[TopicAndPartition] | None = (
        None  #: of the target assignment; None if its type of group has none
    )
    tasks: dict[str, list[str]] = {}  #: of a streams group: "active", "standby" and "warmup" tasks
    process_id: str | None = None
    is_upgraded: bool | None = None  #: of a consumer group: whether it uses the consumer protocol


class GroupView(NamedTuple):
    """A group."""

    name: str
    type: str
    state: str
    assignor: str | None
    members: list[MemberView]
    epoch: int | None = None
    target_epoch: int | None = None  #: of the target assignment


def types_of(admin: Any) -> dict[str, str]:
    """Returns the type of each group of the cluster."""
    return {str(each["group_id"]): _lower(each.get("group_type")) or CLASSIC for each in admin.list_groups()}


def _lower(name: Any) -> str:
    return str(name or "").lower()


def describe(admin: Any, names: Iterable[str]) -> list[GroupView]:
    """Describes the groups with these names. :raises click.ClickException: one does not exist"""
    types = types_of(admin)
    return [describe_one(admin, name, types.get(name, CLASSIC)) for name in names]


def describe_one(admin: Any, name: str, type_: str) -> GroupView:
    view = _VIEWS[type_](admin, name)
    if view is None or view.state == "Dead":
        raise click.ClickException(f"There is no group {name}")
    return view


def state_of(admin: Any, name: str, type_: str | None) -> str:
    """Returns the state of a group; "Dead" if it does not exist."""
    if type_ is None:
        return "Dead"
    view = _VIEWS[type_](admin, name)
    return "Dead" if view is None else view.state


# ------------------------------------------------------------------ each type


def _classic(admin: Any, name: str) -> GroupView | None:
    group = admin.describe_groups([name])[name]
    members = [
        MemberView(
            member["member_id"],
            member.get("group_instance_id"),
            member["client_host"],
            member["client_id"],
            _assigned(member),
        )
        for member in group["members"]
    ]
    return GroupView(name, CLASSIC, group["group_state"], group["protocol_data"] or None, members)


def _assigned(member: dict[str, Any]) -> list[TopicAndPartition]:
    assignment = member.get("member_assignment")
    if not isinstance(assignment, dict):
        # The protocol type is not "consumer": only the members can parse the assignment.
        return []
    return [
        (each["topic"], partition) for each in assignment["assigned_partitions"] for partition in each["partitions"]
    ]


def _described(admin: Any, name: str, request: Any) -> Any | None:
    """Sends the describe request of a group's type; returns None if the group does not exist."""
    (group,) = send_to_coordinator(admin, name, request(group_ids=[name], include_authorized_operations=False)).groups
    if group.error_code == GroupIdNotFound.code:
        return None
    check_code(group.error_code, group.error_message)
    return group


def _partitions(assignment: Any) -> list[TopicAndPartition]:
    return sorted((each.topic_name, partition) for each in assignment.topic_partitions for partition in each.partitions)


def _consumer(admin: Any, name: str) -> GroupView | None:
    from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest

    group = _described(admin, name, ConsumerGroupDescribeRequest)
    if group is None:
        return None
    members = [
        MemberView(
            each.member_id,
            each.instance_id,
            each.client_host,
            each.client_id,
            _partitions(each.assignment),
            each.member_epoch,
            _partitions(each.target_assignment),
            is_upgraded=None if each.member_type < 0 else each.member_type > 0,
        )
        for each in group.members
    ]
    return GroupView(
        name, CONSUMER, group.group_state, group.assignor_name, members, group.group_epoch, group.assignment_epoch
    )


def _share(admin: Any, name: str) -> GroupView | None:
    from barnabas.wire.messages.share_group_describe import ShareGroupDescribeRequest

    group = _described(admin, name, ShareGroupDescribeRequest)
    if group is None:
        return None
    members = [
        MemberView(
            each.member_id, None, each.client_host, each.client_id, _partitions(each.assignment), each.member_epoch
        )
        for each in group.members
    ]
    return GroupView(
        name, SHARE, group.group_state, group.assignor_name, members, group.group_epoch, group.assignment_epoch
    )


def _streams(admin: Any, name: str) -> GroupView | None:
    from barnabas.wire.messages.streams_group_describe import StreamsGroupDescribeRequest

    group = _described(admin, name, StreamsGroupDescribeRequest)
    if group is None:
        return None
    subtopologies = () if group.topology is None else group.topology.subtopologies or ()
    read = {
        each.subtopology_id: [*each.source_topics, *(topic.name for topic in each.repartition_source_topics)]
        for each in subtopologies
    }
    members = [
        MemberView(
            each.member_id,
            each.instance_id,
            each.client_host,
            each.client_id,
            _read_by(each.assignment.active_tasks, read),
            each.member_epoch,
            _read_by(each.target_assignment.active_tasks, read),
            _tasks(each.assignment),
            each.process_id,
        )
        for each in group.members
    ]
    return GroupView(
        name, STREAMS, group.group_state, group.assignor_name, members, group.group_epoch, group.assignment_epoch
    )


def _read_by(tasks: Iterable[Any], read: Mapping[str, list[str]]) -> list[TopicAndPartition]:
    """Returns the partitions that these tasks read: those of all source topics of their subtopologies."""
    return sorted(
        (topic, partition)
        for each in tasks
        for topic in read.get(each.subtopology_id, ())
        for partition in each.partitions
    )


def _tasks(assignment: Any) -> dict[str, list[str]]:
    kinds = {
        "active": assignment.active_tasks,
        "standby": assignment.standby_tasks,
        "warmup": assignment.warmup_tasks,
    }
    return {
        kind: [f"{each.subtopology_id}_{partition}" for each in tasks for partition in each.partitions]
        for kind, tasks in kinds.items()
    }


_VIEWS: dict[str, Callable[[Any, str], GroupView | None]] = {
    CLASSIC: _classic,
    CONSUMER: _consumer,
    SHARE: _share,
    STREAMS: _streams,
}
