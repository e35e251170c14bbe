"""The checks of a heartbeat that come first: the values of its fields, and the identity of the member.

Knows nothing of records. The checks and their order are those of Apache Kafka's ``GroupCoordinatorService`` and
``GroupMetadataManager``.
"""

from collections.abc import Sequence
from typing import Final

from barnabas.errors import (
    FencedInstanceId,
    FencedMemberEpoch,
    GroupMaxSizeReached,
    InvalidRequest,
    UnknownMemberId,
    UnknownServerError,
    UnreleasedInstanceId,
    UnsupportedAssignor,
)
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.member import Member
from barnabas.groups.consumer.messages import JOINING, LEAVING_STATIC, Heartbeat
from barnabas.groups.records import has_place_for

TRIMMED: Final = "".join(map(chr, range(33)))
"""The characters that Java's ``String.trim`` removes."""


def check_shape(request: Heartbeat, assignors: Sequence[str]) -> None:
    """Checks the fields of a heartbeat, without looking at its group.

    :raises InvalidRequest: a field is missing or has an invalid value
    :raises UnsupportedAssignor: the assignor is not one of ``assignors``
    """
    if request.brings_id or request.member_epoch != JOINING:
        _demand(not _is_blank(request.member_id), "MemberId can't be empty.")
    _demand(not _is_blank(request.group_id), "GroupId can't be empty.")
    _demand(request.instance_id is None or not _is_blank(request.instance_id), "InstanceId can't be empty.")
    _demand(request.rack_id is None or not _is_blank(request.rack_id), "RackId can't be empty.")
    if request.member_epoch == JOINING:
        _demand(request.rebalance_timeout_ms != -1, "RebalanceTimeoutMs must be provided in first request.")
        _demand(request.owned is not None and not request.owned, "TopicPartitions must be empty when (re-)joining.")
        _demand(
            request.topic_names is not None or request.topic_regex is not None,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        )
    elif request.member_epoch == LEAVING_STATIC:
        _demand(request.instance_id is not None, "InstanceId can't be null.")
    else:
        _demand(request.member_epoch > LEAVING_STATIC, "MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        supported = f"Supported assignors: {', '.join(assignors)}"
        raise UnsupportedAssignor(f"ServerAssignor {request.server_assignor} is not supported. {supported}.")
    texts = (request.group_id, request.member_id, request.instance_id, request.rack_id, request.topic_regex)
    if not has_place_for(*texts):
        raise UnknownServerError("A text is too long for a record.")


def _demand(is_so: bool, otherwise: str) -> None:
    if not is_so:
        raise InvalidRequest(otherwise)


def _is_blank(text: str) -> bool:
    return not text.strip(TRIMMED)


def check_room(group: ConsumerGroup, member_id: str, max_size: int) -> None:
    """Checks that the group has room for the member.

    :raises GroupMaxSizeReached: the member is new, and the group has ``max_size`` members
    """
    if len(group.members) >= max_size and member_id not in group.members:
        raise GroupMaxSizeReached(f"The consumer group has reached its maximum capacity of {max_size} members.")


def check_epoch(member: Member, request: Heartbeat) -> None:
    """Checks the epoch of the heartbeat.

    :raises FencedMemberEpoch: it is neither the member's epoch, nor the previous one with partitions that the member
        has
    """
    if request.member_epoch == member.epoch:
        return
    if (
        request.member_epoch == member.previous_epoch
        and member.epoch > request.member_epoch
        and member.has_all(request.owned)
    ):
        return  # the response with the new epoch may be lost
    greater = "greater" if request.member_epoch > member.epoch else "smaller"
    raise FencedMemberEpoch(
        f"The consumer group member has a {greater} member epoch ({request.member_epoch}) than the one known by the "
        f"group coordinator ({member.epoch}). The member must abandon all its partitions and rejoin."
    )


def static_member(group: ConsumerGroup, request: Heartbeat) -> Member:
    """Returns the static member that the heartbeat names by its instance id and member id.

    :raises UnknownMemberId: no member has that instance id
    :raises FencedInstanceId: another member id has taken the instance id over
    """
    member = group.static_member(request.instance_id)
    if member is None:
        raise UnknownMemberId(f"Instance id {request.instance_id} is unknown.")
    if member.member_id != request.member_id:
        static = f"Static member {request.member_id} with instance id {request.instance_id}"
        raise FencedInstanceId(f"{static} was fenced by member {member.member_id}.")
    return member


def check_released(member: Member, request: Heartbeat) -> None:
    """Checks that the static member with this instance id has left.

    :raises UnreleasedInstanceId: it has not
    """
    if member.classic is None and member.epoch != LEAVING_STATIC:
        raise UnreleasedInstanceId(
            f"Static member {request.member_id} with instance id {request.instance_id} cannot join the group because "
            f"the instance id is owned by {member.member_id} member."
        )
