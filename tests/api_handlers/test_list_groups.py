"""ListGroups, with the results of Apache Kafka 4.3.1."""

import pytest

from barnabas.wire.messages.list_groups import ListGroupsRequest


@pytest.fixture
def node(group_node):
    """A stable group, one with only offsets, and one with a pending member."""
    group_node.stable("stable")
    group_node.commit("simple", p0=1)
    group_node.join("pending")
    return group_node


def list_groups(node, version, **fields):
    answer = node.call(ListGroupsRequest(**fields), version)
    assert answer.error_code == 0
    return {each.group_id: each for each in answer.groups}


@pytest.mark.parametrize("version", range(6))
def test_all(node, version):
    found = list_groups(node, version)
    assert {each.group_id: each.protocol_type for each in found.values()} == {
        "stable": "consumer",
        "simple": "",
        "pending": "",
    }
    states = {each.group_id: each.group_state for each in found.values()}
    known = {"stable": "Stable", "simple": "Empty", "pending": "Empty"}
    assert states == (known if version >= 4 else dict.fromkeys(known, ""))
    assert {each.group_type for each in found.values()} == {"classic" if version >= 5 else ""}


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (["Stable"], {"stable"}),
        (["sTABLE", "empty"], {"stable", "simple", "pending"}),
        (["PreparingRebalance", "Dead", "Assigning"], set()),
        (["no such state"], set()),
        ([""], set()),
    ],
)
def test_by_state(node, version, states, expected):
    assert set(list_groups(node, version, states_filter=states)) == expected


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (["classic"], {"stable", "simple", "pending"}),
        (["CLASSIC", "consumer"], {"stable", "simple", "pending"}),
        (["consumer", "share", "streams"], set()),
        (["no such type"], set()),
    ],
)
def test_by_type(node, types, expected):
    assert set(list_groups(node, 5, types_filter=types)) == expected


def test_by_both(node):
    assert set(list_groups(node, 5, types_filter=["classic"], states_filter=["Empty"])) == {"simple", "pending"}


def test_without_its_topic_there_are_none(quiet_group_node):
    assert list_groups(quiet_group_node, 5) == {}
