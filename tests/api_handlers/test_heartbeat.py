"""Heartbeat: requests and responses of each version. Its effects on groups are tested in tests/groups/scenarios."""

import pytest

from barnabas.errors import (
    NONE,
    CoordinatorNotAvailable,
    FencedInstanceId,
    IllegalGeneration,
    InvalidGroupId,
    NotCoordinator,
    RebalanceInProgress,
    UnknownMemberId,
)
from barnabas.wire.messages.heartbeat import HeartbeatRequest


def beat(node, member_id, version=4, group_id="g", generation_id=1, **fields):
    request = HeartbeatRequest(group_id=group_id, generation_id=generation_id, member_id=member_id, **fields)
    return node.call(request, version).error_code


@pytest.mark.parametrize("version", range(5))
def test_a_member_lives(group_node, version):
    member_id = group_node.stable()
    for _ in range(5):
        group_node.clock.advance(9)
        assert beat(group_node, member_id, version) == NONE
    group_node.clock.advance(10)
    assert beat(group_node, member_id, version) == UnknownMemberId.code


@pytest.mark.parametrize("version", range(5))
def test_a_member_has_to_join_again(group_node, version):
    member_id = group_node.stable()
    group_node.send_join(version=3)
    assert beat(group_node, member_id, version) == RebalanceInProgress.code


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"group_id": ""}, InvalidGroupId),
        ({"group_id": "nobody's"}, UnknownMemberId),
        ({"member_id": "nobody"}, UnknownMemberId),
        ({"generation_id": 0}, IllegalGeneration),
    ],
)
def test_refusals(group_node, version, fields, error):
    requested = {"member_id": group_node.stable()} | fields
    assert beat(group_node, version=version, **requested) == error.code


@pytest.mark.parametrize("version", [3, 4])
def test_an_instance_that_goes_by_another_id(group_node, version):
    former = group_node.join(version=5, group_instance_id="i").member_id
    assert beat(group_node, former, version, group_instance_id="i") == NONE
    group_node.sync(former, 1, {former: b""})
    group_node.join(version=5, group_instance_id="i")
    assert beat(group_node, former, version, group_instance_id="i") == FencedInstanceId.code
    assert beat(group_node, former, version, group_instance_id="j") == UnknownMemberId.code


def test_without_its_topic_there_is_no_coordinator(quiet_group_node):
    assert beat(quiet_group_node, "m") == NotCoordinator.code


@pytest.mark.parametrize("version", range(5))
def test_a_coordinator_without_followers_keeps_no_member(group_node, version):
    """It may have a successor, of which it does not know: the member looks for it."""
    member_id = group_node.stable()
    group_node.lose_followers()
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id=member_id)
    response = group_node.after_the_time_out(group_node.send(request, version), version)
    assert response.error_code == CoordinatorNotAvailable.code
