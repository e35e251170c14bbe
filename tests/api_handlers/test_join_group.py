"""JoinGroup: requests and responses of each version. Its effects on groups are tested in tests/groups/scenarios."""

import pytest

from barnabas.errors import (
    NONE,
    InconsistentGroupProtocol,
    InvalidGroupId,
    InvalidSessionTimeout,
    MemberIdRequired,
    NotCoordinator,
    UnknownMemberId,
)
from barnabas.groups.coordinator import GroupCoordinator
from barnabas.wire.messages.join_group import JoinGroupRequest


@pytest.mark.parametrize("version", range(4))
def test_old_versions_join_at_once(group_node, version):
    answer = group_node.join(version=version)
    assert (answer.error_code, answer.generation_id, answer.protocol_name) == (NONE, 1, "range")
    assert answer.leader == answer.member_id
    assert answer.member_id.startswith("client-")
    assert [(each.member_id, each.metadata) for each in answer.members] == [(answer.member_id, b"range's")]


@pytest.mark.parametrize("version", range(4, 10))
def test_newer_versions_are_told_their_id_first(group_node, version):
    response = group_node.join(version=version)
    assert (response.error_code, response.generation_id, response.leader, response.members) == (
        MemberIdRequired.code,
        -1,
        "",
        [],
    )
    answer = group_node.join(version=version, member_id=response.member_id)
    assert (answer.error_code, answer.generation_id, answer.member_id) == (NONE, 1, response.member_id)
    assert answer.protocol_type == ("consumer" if version >= 7 else None)
    assert not answer.skip_assignment


@pytest.mark.parametrize("version", range(10))
def test_where_there_is_no_protocol_old_versions_see_an_empty_name(group_node, version):
    answer = group_node.join(version=version, member_id="nobody")
    assert (answer.error_code, answer.member_id) == (UnknownMemberId.code, "nobody")
    assert answer.protocol_name == ("" if version < 7 else None)


@pytest.mark.parametrize("version", [0, 5, 9])
@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"group_id": ""}, InvalidGroupId),
        ({"session_timeout_ms": 5_999}, InvalidSessionTimeout),
        ({"session_timeout_ms": 1_800_001}, InvalidSessionTimeout),
        ({"protocols": ()}, InconsistentGroupProtocol),
        ({"protocol_type": ""}, InconsistentGroupProtocol),
    ],
)
def test_refusals(group_node, version, fields, error):
    answer = group_node.join(version=version, **fields)
    assert (answer.error_code, answer.member_id) == (error.code, "")


def test_the_rebalance_time_out_is_the_sessions_where_it_is_not_told(group_node, monkeypatch):
    seen = []
    monkeypatch.setattr(GroupCoordinator, "join", lambda self, join, reply: seen.append(join))
    for version in (0, 1):
        group_node.send(
            JoinGroupRequest(
                group_id="g",
                session_timeout_ms=7_000,
                member_id="",
                protocol_type="consumer",
                protocols=[],
                **({"rebalance_timeout_ms": 9_000} if version else {}),
            ),
            version,
        )
    assert [(join.session_timeout_ms, join.rebalance_timeout_ms) for join in seen] == [(7_000, 7_000), (7_000, 9_000)]


def test_a_static_member_is_named_after_its_instance(group_node):
    answer = group_node.join(version=5, group_instance_id="i")
    assert answer.error_code == NONE
    assert answer.member_id.startswith("i-")
    assert answer.members[0].group_instance_id == "i"


def test_a_client_without_a_name(group_node):
    found = group_node.join(name=None)
    assert found.member_id.startswith("-")


def test_the_answer_waits_for_the_others(group_node):
    leader = group_node.stable()
    waiting = group_node.send_join(version=3)
    assert waiting.response is None
    assert group_node.join(version=3, member_id=leader).generation_id == 2
    answer = group_node.answer(waiting, 3)
    assert (answer.error_code, answer.generation_id, answer.leader, answer.members) == (NONE, 2, leader, [])


def test_without_its_topic_there_is_no_coordinator(quiet_group_node):
    answer = quiet_group_node.join()
    assert (answer.error_code, answer.member_id) == (NotCoordinator.code, "")


@pytest.mark.parametrize(("version", "skips"), [(8, False), (9, True)])
def test_a_static_leader_that_is_back_has_nothing_to_assign(group_node, version, skips):
    former = group_node.stable(group_instance_id=None)
    group_node.leave(former)
    static = group_node.join(version=5, group_instance_id="i")
    group_node.sync(static.member_id, 3, assignments={static.member_id: b"all"})
    back = group_node.join(version=version, group_instance_id="i")
    assert (back.error_code, back.generation_id, back.skip_assignment) == (NONE, 3, skips)
    assert back.leader == (back.member_id if skips else static.member_id)
    assert len(back.members) == skips
