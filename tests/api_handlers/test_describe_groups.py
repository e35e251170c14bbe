"""DescribeGroups: each case as Apache Kafka 4.3.1 answered it."""

import pytest

from barnabas.errors import NONE, GroupIdNotFound, NotCoordinator
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest

NOT_REQUESTED = -(1 << 31)
ALL_OF_A_GROUP = 3400


def describe(node, version, *group_ids, operations=False):
    fields = {"include_authorized_operations": True} if operations else {}
    return node.call(DescribeGroupsRequest(groups=group_ids, **fields), version).groups


@pytest.mark.parametrize("version", range(7))
def test_a_stable_group(group_node, version):
    member_id = group_node.stable(assignment=b"all")
    (group,) = describe(group_node, version, "g")
    assert (group.error_code, group.error_message, group.group_id) == (NONE, None, "g")
    assert (group.group_state, group.protocol_type, group.protocol_data) == ("Stable", "consumer", "range")
    (member,) = group.members
    assert (member.member_id, member.group_instance_id) == (member_id, None)
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (b"range's", b"all")
    assert group.authorized_operations == NOT_REQUESTED


def test_while_it_rebalances_nothing_is_told_of_what_members_said(group_node):
    group_node.stable(assignment=b"all")
    group_node.send_join(version=5, group_instance_id="i", name="other")
    (group,) = describe(group_node, 4, "g")
    assert (group.group_state, group.protocol_type, group.protocol_data) == ("PreparingRebalance", "consumer", "")
    found = [(each.client_id, each.group_instance_id, each.member_metadata) for each in group.members]
    assert found == [("client", None, b""), ("other", "i", b"")]
    assert [each.member_assignment for each in group.members] == [b"all", b""]


def test_a_simple_consumers_group(group_node):
    group_node.commit(p0=1)
    (group,) = describe(group_node, 6, "g")
    assert (group.error_code, group.group_state, group.protocol_type, group.members) == (NONE, "Empty", "", [])


@pytest.mark.parametrize("group_id", ["nobody's", ""])
@pytest.mark.parametrize("version", range(7))
def test_a_group_that_is_not_there_is_dead(group_node, version, group_id):
    (group,) = describe(group_node, version, group_id)
    is_told = version >= 6
    assert group.error_code == (GroupIdNotFound.code if is_told else NONE)
    assert (group.error_message is not None) == is_told
    assert (group.group_id, group.group_state, group.protocol_type, group.members) == (group_id, "Dead", "", [])


@pytest.mark.parametrize("version", [3, 4, 5, 6])
def test_what_one_may_do(group_node, version):
    group_node.stable()
    known, unknown = describe(group_node, version, "g", "nobody's", operations=True)
    if known.group_id != "g":
        known, unknown = unknown, known
    assert known.authorized_operations == ALL_OF_A_GROUP
    assert unknown.authorized_operations == (ALL_OF_A_GROUP if version < 6 else NOT_REQUESTED)


def test_several(group_node):
    group_ids = [f"group-{number}" for number in range(8)]
    assert [each.group_id for each in describe(group_node, 5, *group_ids)] == group_ids


def test_a_group_that_is_requested_twice(group_node):
    assert [each.group_id for each in describe(group_node, 5, "a", "a")] == ["a", "a"]


def test_none(group_node):
    assert describe(group_node, 5) == []


@pytest.mark.parametrize("version", range(7))
def test_without_its_topic_there_is_no_coordinator(quiet_group_node, version):
    (group,) = describe(quiet_group_node, version, "g", operations=version >= 3)
    assert (group.error_code, group.error_message, group.group_state) == (NotCoordinator.code, None, "")
    assert group.authorized_operations == NOT_REQUESTED
