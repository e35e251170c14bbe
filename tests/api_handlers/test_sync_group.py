"""SyncGroup: requests and responses of each version. Its effects on groups are tested in tests/groups/scenarios."""

import pytest

from barnabas.errors import (
    NONE,
    IllegalGeneration,
    InconsistentGroupProtocol,
    InvalidGroupId,
    NotCoordinator,
    UnknownMemberId,
)
from barnabas.wire.messages.sync_group import SyncGroupRequest

PROTOCOL = {"protocol_type": "consumer", "protocol_name": "range"}


def protocol_of(version):
    """Returns the protocol fields of a version."""
    return PROTOCOL if version >= 5 else {}


@pytest.mark.parametrize("version", range(6))
def test_the_assignment(group_node, version):
    member_id = group_node.stable(assignment=b"partitions")
    answer = group_node.sync(member_id, 1, version=version, **protocol_of(version))
    assert (answer.error_code, answer.assignment) == (NONE, b"partitions")
    assert (answer.protocol_type, answer.protocol_name) == (("consumer", "range") if version >= 5 else (None, None))


@pytest.mark.parametrize("version", range(6))
@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"group_id": ""}, InvalidGroupId),
        ({"group_id": "nobody's"}, UnknownMemberId),
        ({"generation_id": 2}, IllegalGeneration),
        ({"member_id": "nobody"}, UnknownMemberId),
    ],
)
def test_refusals(group_node, version, fields, error):
    member_id = group_node.stable()
    requested = {"member_id": member_id, "generation_id": 1} | protocol_of(version) | fields
    answer = group_node.sync(version=version, **requested)
    assert (answer.error_code, answer.assignment) == (error.code, b"")
    assert (answer.protocol_type, answer.protocol_name) == (None, None)


@pytest.mark.parametrize("missing", ["protocol_type", "protocol_name"])
def test_the_protocol_has_to_be_told_before_anything_is_looked_at(group_node, missing):
    answer = group_node.sync("nobody", 9, group_id="", version=5, **(PROTOCOL | {missing: None}))
    assert answer.error_code == InconsistentGroupProtocol.code


@pytest.mark.parametrize("wrong", [{"protocol_type": "connect"}, {"protocol_name": "sticky"}])
def test_another_protocol(group_node, wrong):
    member_id = group_node.stable()
    answer = group_node.sync(member_id, 1, version=5, **(PROTOCOL | wrong))
    assert answer.error_code == InconsistentGroupProtocol.code


def test_without_its_topic_there_is_no_coordinator(quiet_group_node):
    assert quiet_group_node.sync("m", 1).error_code == NotCoordinator.code


def test_a_follower_waits_for_the_leader(group_node):
    leader = group_node.stable()
    waiting = group_node.send_join(version=3)
    group_node.join(version=3, member_id=leader)
    follower = group_node.answer(waiting, 3).member_id
    request = SyncGroupRequest(group_id="g", generation_id=2, member_id=follower, assignments=[])
    promise = group_node.send(request, 3)
    assert promise.response is None
    group_node.sync(leader, 2, {leader: b"0", follower: b"1"})
    assert group_node.answer(promise, 3).assignment == b"1"
