"""DeleteGroups: each case as Apache Kafka 4.3.1 answered it (versions 0-2)."""

import pytest

from barnabas.errors import NONE, CoordinatorNotAvailable, GroupIdNotFound, NonEmptyGroup, NotCoordinator
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest


def delete(node, version, *group_ids):
    results = node.call(DeleteGroupsRequest(groups_names=group_ids), version).results
    assert all((each.error_message is not None) == (version >= 3 and each.error_code != NONE) for each in results)
    codes = {each.group_id: each.error_code for each in results}
    assert len(codes) == len(results), "told twice"
    return codes


@pytest.mark.parametrize("version", range(4))
def test_empty_ones_go(group_node, version):
    member_id = group_node.stable("a")
    group_node.commit("b", p0=1)
    assert delete(group_node, version, "a", "b", "c", "a") == {
        "a": NonEmptyGroup.code,
        "b": NONE,
        "c": GroupIdNotFound.code,
    }
    group_node.leave(member_id, "a")
    assert delete(group_node, version, "a", "b") == {"a": NONE, "b": GroupIdNotFound.code}
    assert group_node.broker.groups.list_groups() == []
    assert group_node.broker.groups.fetch_offsets("b") == {}


def test_none(group_node):
    assert delete(group_node, 2) == {}


def test_the_empty_name(group_node):
    assert delete(group_node, 2, "") == {"": GroupIdNotFound.code}
    group_node.commit("", p0=1)
    assert delete(group_node, 2, "") == {"": NONE}


def test_without_its_topic_there_is_no_coordinator(quiet_group_node):
    assert delete(quiet_group_node, 2, "g") == {"g": NotCoordinator.code}


@pytest.mark.parametrize("version", range(4))
def test_a_coordinator_without_followers_does_not_say_which_groups_there_are(group_node, version):
    """It may have a successor, of which it does not know."""
    group_node.stable("a")
    group_node.lose_followers()
    promise = group_node.send(DeleteGroupsRequest(groups_names=["a", "c"]), version)
    response = group_node.after_the_time_out(promise, version)
    assert [each.error_code for each in response.results] == [CoordinatorNotAvailable.code] * 2
