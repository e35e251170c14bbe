"""LeaveGroup: requests and responses of each version. Its effects on groups are tested in tests/groups/scenarios."""

import pytest

from barnabas.errors import NONE, CoordinatorNotAvailable, InvalidGroupId, NotCoordinator, UnknownMemberId
from barnabas.wire.messages.leave_group import LeaveGroupRequest

Member = LeaveGroupRequest.MemberIdentity


def leave(node, version, *members, group_id="g"):
    return node.call(request_for(version, *members, group_id=group_id), version)


def request_for(version, *members, group_id="g"):
    if version < 3:
        return LeaveGroupRequest(group_id=group_id, member_id=members[0].member_id)
    return LeaveGroupRequest(group_id=group_id, members=members)


def removed_members(answer):
    return [(each.member_id, each.group_instance_id, each.error_code) for each in answer.members]


@pytest.mark.parametrize("version", range(6))
def test_a_member_leaves(group_node, version):
    member_id = group_node.stable()
    answer = leave(group_node, version, Member(member_id=member_id))
    assert answer.error_code == NONE
    assert removed_members(answer) == ([] if version < 3 else [(member_id, None, NONE)])
    assert group_node.broker.groups.describe("g").state == "Empty"


@pytest.mark.parametrize("group_id", ["g", "nobody's"])
@pytest.mark.parametrize("version", range(6))
def test_somebody_who_is_not_there(group_node, version, group_id):
    group_node.stable()
    answer = leave(group_node, version, Member(member_id="nobody"), group_id=group_id)
    if version < 3:
        assert answer.error_code == UnknownMemberId.code
    else:
        assert answer.error_code == NONE
        assert removed_members(answer) == [("nobody", None, UnknownMemberId.code)]


@pytest.mark.parametrize("version", [3, 4, 5])
def test_several_at_once(group_node, version):
    member_id = group_node.stable()
    members = [
        Member(member_id=""),
        Member(member_id="", group_instance_id="i"),
        Member(member_id=member_id, group_instance_id="i"),
        Member(member_id=member_id),
        Member(member_id=member_id),
    ]
    assert removed_members(leave(group_node, version, *members)) == [
        ("", None, UnknownMemberId.code),
        ("", "i", UnknownMemberId.code),
        (member_id, "i", UnknownMemberId.code),
        (member_id, None, NONE),
        (member_id, None, UnknownMemberId.code),
    ]


@pytest.mark.parametrize("version", [3, 4, 5])
def test_an_instance_is_taken_out_by_its_name(group_node, version):
    group_node.join(version=5, group_instance_id="i")
    assert removed_members(leave(group_node, version, Member(member_id="", group_instance_id="i"))) == [("", "i", NONE)]


def test_nobody_leaves(group_node):
    group_node.stable()
    assert removed_members(leave(group_node, 5)) == []


@pytest.mark.parametrize("version", range(6))
def test_no_group_id(group_node, version):
    answer = leave(group_node, version, Member(member_id="m"), group_id="")
    assert (answer.error_code, removed_members(answer)) == (InvalidGroupId.code, [])


@pytest.mark.parametrize("version", range(6))
def test_without_its_topic_there_is_no_coordinator(quiet_group_node, version):
    answer = leave(quiet_group_node, version, Member(member_id="m"))
    assert (answer.error_code, removed_members(answer)) == (NotCoordinator.code, [])


@pytest.mark.parametrize("version", range(6))
def test_a_coordinator_without_followers_does_not_say_that_anyone_has_left(group_node, version):
    """It may have a successor, of which it does not know: the member looks for it."""
    member_id = group_node.stable()
    group_node.lose_followers()
    promise = group_node.send(request_for(version, Member(member_id=member_id)), version)
    answer = group_node.after_the_time_out(promise, version)
    assert answer.error_code == CoordinatorNotAvailable.code
    assert removed_members(answer) == []
