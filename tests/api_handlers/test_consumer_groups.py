"""ConsumerGroupHeartbeat and ConsumerGroupDescribe: each case as Apache Kafka 4.3.1 answered it."""

import pytest

from barnabas.config import BrokerConfig
from barnabas.errors import (
    NONE,
    FencedMemberEpoch,
    GroupIdNotFound,
    InvalidGroupId,
    InvalidRequest,
    NotCoordinator,
    UnsupportedVersion,
)
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.update_features import UpdateFeaturesRequest

NOT_REQUESTED = -(1 << 31)
ALL_OF_A_GROUP = 3400
Owned = ConsumerGroupHeartbeatRequest.TopicPartitions


def beat(node, member_id="m", epoch=0, *, version=1, **fields):
    if epoch == 0:
        joining = {"rebalance_timeout_ms": 60_000, "topic_partitions": [], "subscribed_topic_names": ["t"]}
        fields = joining | fields
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id=member_id, member_epoch=epoch, **fields)
    return node.call(request, version)


def assignment(answer):
    if answer.assignment is None:
        return None
    return {each.topic_id: each.partitions for each in answer.assignment.topic_partitions}


def describe(node, version, *group_ids, operations=False):
    request = ConsumerGroupDescribeRequest(group_ids=list(group_ids), include_authorized_operations=operations)
    return node.call(request, version).groups


def named(partitions):
    return [(each.topic_name, each.partitions) for each in partitions.topic_partitions]


@pytest.mark.parametrize("version", [0, 1])
def test_a_member_joins_and_hears_what_to_read(group_node, version):
    t = group_node.topic_id("t")
    answer = beat(group_node, version=version)
    assert (answer.error_code, answer.error_message, answer.member_id) == (NONE, None, "m")
    assert (answer.member_epoch, answer.heartbeat_interval_ms) == (2, 5000)
    assert assignment(answer) == {t: [0, 1, 2]}
    answer = beat(group_node, epoch=2, version=version, topic_partitions=[Owned(topic_id=t, partitions=[0, 1, 2])])
    assert (answer.error_code, answer.member_epoch, assignment(answer)) == (NONE, 2, None)


def test_partitions_may_come_in_several_entries(group_node):
    t = group_node.topic_id("t")
    beat(group_node)
    owned = [Owned(topic_id=t, partitions=[0]), Owned(topic_id=t, partitions=[2, 1])]
    answer = beat(
        group_node,
        epoch=2,
        topic_partitions=owned,
        rebalance_timeout_ms=1,
        subscribed_topic_names=["t"],
    )
    assert (answer.error_code, assignment(answer)) == (NONE, {t: [0, 1, 2]})


def test_in_version_0_the_broker_makes_the_member_id(group_node):
    answer = beat(group_node, "", version=0)
    assert (answer.error_code, len(answer.member_id)) == (NONE, 22)
    assert beat(group_node, "", version=1).error_code == InvalidRequest.code


def test_an_error_says_nothing_else(group_node):
    beat(group_node)
    answer = beat(group_node, epoch=7)
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (FencedMemberEpoch.code, None, 0)
    assert (answer.heartbeat_interval_ms, answer.assignment) == (0, None)
    assert answer.error_message


def test_whoever_leaves_is_told_the_epoch_that_it_said(group_node):
    beat(group_node, instance_id="i")
    for epoch in (-2, -1):
        answer = beat(group_node, epoch=epoch, instance_id="i")
        assert (answer.error_code, answer.member_id, answer.member_epoch) == (NONE, "m", epoch)
        assert (answer.heartbeat_interval_ms, answer.assignment) == (0, None)


@pytest.mark.parametrize("version", [0, 1])
def test_a_group_is_described(group_node, version):
    beat(group_node, instance_id="i", rack_id="r", server_assignor="range")
    (group,) = describe(group_node, version, "g")
    assert (group.error_code, group.error_message, group.group_id) == (NONE, None, "g")
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 2, 2)
    assert (group.assignor_name, group.authorized_operations) == ("range", NOT_REQUESTED)
    (member,) = group.members
    assert (member.member_id, member.instance_id, member.rack_id, member.member_epoch) == ("m", "i", "r", 2)
    assert (member.client_id, member.client_host) == ("client", "/127.0.0.1")
    assert (member.subscribed_topic_names, member.subscribed_topic_regex) == (["t"], "")
    assert named(member.assignment) == named(member.target_assignment) == [("t", [0, 1, 2])]
    assert member.member_type == (1 if version else -1)


def test_what_has_to_be_given_up_is_still_the_members(group_node):
    node = group_node
    beat(node, "a")
    node.clock.advance(1)
    beat(node, "b")
    beat(node, "a", epoch=2)
    (group,) = describe(node, 1, "g")
    assert group.group_state == "Reconciling"
    (a,) = [each for each in group.members if each.member_id == "a"]
    assert (named(a.assignment), named(a.target_assignment)) == ([("t", [0, 1, 2])], [("t", [0, 1])])


@pytest.mark.parametrize("version", [0, 1])
def test_groups_that_there_are_not(group_node, version):
    group_node.commit(group_id="simple", p0=1)
    errors = {each.group_id: each for each in describe(group_node, version, "nobody's", "simple", "", operations=True)}
    assert {group_id: each.error_code for group_id, each in errors.items()} == {
        "": InvalidGroupId.code,
        "nobody's": GroupIdNotFound.code,
        "simple": GroupIdNotFound.code,
    }
    assert [group_id for group_id, each in errors.items() if each.error_message is None] == [""]
    assert {each.authorized_operations for each in errors.values()} == {NOT_REQUESTED}
    assert {(each.group_state, each.group_epoch, each.assignor_name) for each in errors.values()} == {("", 0, "")}


def test_what_one_may_do(group_node):
    beat(group_node)
    (group,) = describe(group_node, 0, "g", operations=True)
    assert group.authorized_operations == ALL_OF_A_GROUP


def test_where_the_cluster_knows_no_such_groups(group_node):
    lowered = UpdateFeaturesRequest.FeatureUpdateKey(feature="group.version", max_version_level=0, upgrade_type=2)
    assert group_node.call(UpdateFeaturesRequest(timeout_ms=1000, feature_updates=[lowered]), 2).error_code == NONE
    assert beat(group_node).error_code == UnsupportedVersion.code
    assert beat(group_node, "", epoch=1).error_code == UnsupportedVersion.code
    assert [each.error_code for each in describe(group_node, 1, "g", "")] == [UnsupportedVersion.code] * 2


def test_where_such_groups_are_not_served(group_node, monkeypatch):
    config = BrokerConfig.from_properties(
        {**group_node.broker.config.originals, "group.coordinator.rebalance.protocols": "classic"}
    )
    monkeypatch.setattr(group_node.broker, "config", config)
    assert beat(group_node).error_code == UnsupportedVersion.code
    assert [each.error_code for each in describe(group_node, 1, "g")] == [UnsupportedVersion.code]


def test_without_its_topic_there_is_no_coordinator(quiet_group_node):
    for epoch in (0, 1, -1):
        assert beat(quiet_group_node, epoch=epoch).error_code == NotCoordinator.code
    (group,) = describe(quiet_group_node, 1, "g")
    assert (group.error_code, group.error_message) == (NotCoordinator.code, None)
