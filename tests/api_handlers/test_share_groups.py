"""APIs of share groups (76, 77, 90 to 92, and DeleteGroups), with the responses of Apache Kafka 4.3.1."""

import pytest

from barnabas.cluster.controller.commands.features import FeatureUpdate, UpdateFeatures
from barnabas.errors import (
    FencedMemberEpoch,
    GroupIdNotFound,
    InvalidGroupId,
    InvalidRequest,
    NonEmptyGroup,
    NotCoordinator,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from barnabas.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from barnabas.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.share_group_describe import ShareGroupDescribeRequest
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from barnabas.wire.types import ZERO_UUID
from tests.submitting import submitted

NOT_REQUESTED = -(1 << 31)
RequestGroup = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
Altered = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
Forgotten = DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic


class Requests:
    """The requests of clients."""

    def __init__(self, node):
        self.node = node

    def beat(self, epoch, topics=None, group="g", member="m", rack=None):
        request = ShareGroupHeartbeatRequest(
            group_id=group, member_id=member, member_epoch=epoch, rack_id=rack, subscribed_topic_names=topics
        )
        return self.node.call(request, 1)

    def joined(self, *topics):
        """Returns the epoch of a member that reads all of those topics."""
        epoch = self.beat(0, list(topics)).member_epoch
        self.node.clock.advance(1)
        return self.beat(epoch).member_epoch

    def describe(self, *group_ids, operations=False):
        request = ShareGroupDescribeRequest(group_ids=list(group_ids), include_authorized_operations=operations)
        return self.node.call(request, 1).groups

    def where(self, *requested, version=1):
        """Describes offsets of each ``(group, {topic: partitions} or None)``."""
        groups = [
            RequestGroup(
                group_id=group,
                topics=None
                if topics is None
                else [
                    RequestGroup.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=partitions)
                    for name, partitions in topics.items()
                ],
            )
            for group, topics in requested
        ]
        return self.node.call(DescribeShareGroupOffsetsRequest(groups=groups), version).groups

    def alter(self, group="g", **topics):
        wanted = [
            Altered(
                topic_name=name,
                partitions=[
                    Altered.AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=start)
                    for index, start in starts.items()
                ],
            )
            for name, starts in topics.items()
        ]
        return self.node.call(AlterShareGroupOffsetsRequest(group_id=group, topics=wanted), 0)

    def forget(self, *topics, group="g"):
        wanted = [Forgotten(topic_name=name) for name in topics]
        return self.node.call(DeleteShareGroupOffsetsRequest(group_id=group, topics=wanted), 0)

    def delete(self, *group_ids):
        answer = self.node.call(DeleteGroupsRequest(groups_names=list(group_ids)), 2)
        return {each.group_id: each.error_code for each in answer.results}

    def listed(self):
        answer = self.node.call(ListGroupsRequest(states_filter=[], types_filter=[]), 5)
        return [(each.group_id, each.protocol_type, each.group_state, each.group_type) for each in answer.groups]


@pytest.fixture
def ask(group_node) -> Requests:
    return Requests(group_node)


def starts(topic):
    return [(each.partition_index, each.start_offset, each.lag, each.error_code) for each in topic.partitions]


def test_a_member_joins_stays_and_leaves(ask):
    first = ask.beat(0, ["t"])
    assert (first.error_code, first.member_id, first.member_epoch, first.heartbeat_interval_ms) == (0, "m", 2, 5000)
    assert first.assignment.topic_partitions == []
    ask.node.clock.advance(1)
    second = ask.beat(2)
    assert second.member_epoch == 3
    (topic,) = second.assignment.topic_partitions
    assert (topic.topic_id, topic.partitions) == (ask.node.topic_id("t"), [0, 1, 2])
    assert ask.beat(3).assignment is None
    left = ask.beat(-1)
    assert (left.error_code, left.member_epoch, left.heartbeat_interval_ms, left.assignment) == (0, -1, 0, None)


def test_heartbeats_that_are_refused(ask):
    assert (ask.beat(0, ["t"], member="").error_code, ask.beat(0, ["t"], member="").error_message) == (
        InvalidRequest.code,
        None,
    )
    for refused in (ask.beat(0), ask.beat(-2), ask.beat(0, ["t"], rack=" "), ask.beat(0, ["t"], group="")):
        assert refused.error_code == InvalidRequest.code
        assert refused.error_message
    assert ask.beat(1).error_code == GroupIdNotFound.code
    ask.beat(0, ["t"])
    fenced = ask.beat(7)
    assert (fenced.error_code, fenced.member_id, fenced.member_epoch) == (FencedMemberEpoch.code, None, 0)


def test_where_nobody_coordinates(quiet_group_node):
    ask = Requests(quiet_group_node)
    answer = ask.beat(0, ["t"])
    assert (answer.error_code, answer.error_message) == (NotCoordinator.code, None)
    (group,) = ask.describe("g")
    assert group.error_code == NotCoordinator.code
    (group,) = ask.where(("g", None))
    assert group.error_code == NotCoordinator.code
    assert ask.alter(t={0: 1}).error_code == NotCoordinator.code
    assert ask.forget("t").error_code == NotCoordinator.code


def test_where_share_groups_are_switched_off(ask):
    submitted(ask.node.broker.controller, UpdateFeatures([FeatureUpdate("share.version", 0, 3)]))
    answer = ask.beat(0, ["t"], group="")
    assert (answer.error_code, answer.error_message) == (UnsupportedVersion.code, None)
    assert [each.error_code for each in ask.describe("", "g")] == [UnsupportedVersion.code] * 2
    (group,) = ask.where(("g", None))
    assert (group.error_code, group.error_message) == (UnsupportedVersion.code, None)
    assert ask.alter(t={0: 1}).error_code == UnsupportedVersion.code
    assert ask.forget("t").error_code == UnsupportedVersion.code


def test_describe(ask):
    ask.joined("t", "u")
    nameless, missing, group = _by_error(ask.describe("g", "nosuch", "", operations=True))
    assert (nameless.group_id, nameless.error_code, nameless.error_message) == ("", InvalidGroupId.code, None)
    assert (missing.error_code, missing.authorized_operations) == (GroupIdNotFound.code, NOT_REQUESTED)
    assert missing.error_message
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 3, 3)
    assert (group.assignor_name, group.authorized_operations) == ("simple", 3400)
    (member,) = group.members
    assert (member.member_id, member.member_epoch, member.client_id, member.client_host) == (
        "m",
        3,
        "client",
        "/127.0.0.1",
    )
    assert sorted(member.subscribed_topic_names) == ["t", "u"]
    assigned = {each.topic_name: each.partitions for each in member.assignment.topic_partitions}
    assert assigned == {"t": [0, 1, 2], "u": [0]}


def test_offsets_of_what_nobody_has_read(ask):
    nothing, unknown, every = ask.where(("nosuch", None), ("nosuch", {"t": [0], "x": [5]}), ("g", None))
    assert (nothing.topics, every.topics) == ([], [])
    there, gone = unknown.topics
    assert (there.topic_name, there.topic_id, starts(there)) == ("t", ask.node.topic_id("t"), [(0, -1, -1, 0)])
    assert (gone.topic_name, gone.topic_id, starts(gone)) == ("x", ZERO_UUID, [(5, -1, -1, 0)])


def test_offsets_of_partitions_that_a_topic_lacks(ask):
    """Apache Kafka never responds to this."""
    (group,) = ask.where(("g", {"t": [0, 9]}))
    assert starts(group.topics[0]) == [(0, -1, -1, 0), (9, -1, -1, UnknownTopicOrPartition.code)]


def test_offsets_are_altered_where_nobody_is(ask):
    ask.node.append(ask.node.broker.partition("t", 0), 1, 2, 3)
    answer = ask.alter(t={0: 1, 1: -1, 9: 0}, x={0: 0})
    unknown, topic = answer.responses
    assert (unknown.topic_name, unknown.topic_id) == ("x", ZERO_UUID)
    assert unknown.partitions[0].error_code == UnknownTopicOrPartition.code
    assert [each.error_code for each in topic.partitions] == [0, 0, UnknownTopicOrPartition.code]
    (group,) = ask.where(("g", None))
    assert starts(group.topics[0]) == [(0, 1, 2, 0), (1, -1, -1, 0)]
    (group,) = ask.where(("g", {"t": [0]}), version=0)
    assert starts(group.topics[0]) == [(0, 1, -1, 0)]
    assert ask.listed() == [("g", "share", "Empty", "share")]

    ask.joined("t")
    assert ask.alter(t={0: 0}).error_code == NonEmptyGroup.code
    assert ask.forget("t").error_code == NonEmptyGroup.code
    assert ask.alter(group="", t={0: 0}).error_code == InvalidGroupId.code


def test_offsets_are_forgotten(ask):
    assert ask.forget("t").error_code == GroupIdNotFound.code
    ask.alter(t={0: 1}, u={0: 1})
    answer = ask.forget("t", "x", "t")
    assert [(each.topic_name, each.error_code) for each in answer.responses] == [
        ("x", UnknownTopicOrPartition.code),
        ("t", 0),
    ]
    (again,) = ask.forget("t").responses
    assert (again.topic_id, again.error_code) == (ZERO_UUID, UnknownTopicOrPartition.code)
    (group,) = ask.where(("g", None))
    assert [topic.topic_name for topic in group.topics] == ["u"]


def test_groups_are_deleted_with_their_state(ask):
    ask.joined("t")
    assert ask.delete("g") == {"g": NonEmptyGroup.code}
    ask.beat(-1)
    assert ask.delete("g") == {"g": 0}
    assert ask.delete("g") == {"g": GroupIdNotFound.code}
    assert ask.listed() == []
    (group,) = ask.where(("g", {"t": [0]}))
    assert starts(group.topics[0]) == [(0, -1, -1, 0)]


def test_a_group_is_of_one_kind(ask):
    ask.node.stable("c")
    assert ask.beat(0, ["t"], group="c").error_code == GroupIdNotFound.code
    (group,) = ask.describe("c")
    assert group.error_code == GroupIdNotFound.code
    assert ask.alter(group="c", t={0: 1}).error_code == GroupIdNotFound.code


def test_a_restart_changes_nothing(ask):
    epoch = ask.joined("t")
    broker = ask.node.broker
    ask.node.clock.advance(1)
    broker.coordinators.stop()
    broker.coordinators.start()
    assert ask.beat(epoch).member_epoch == epoch
    (group,) = ask.where(("g", None))
    assert [each[0] for each in starts(group.topics[0])] == [0, 1, 2]


def _by_error(groups):
    """Sorts groups; those without an error are last."""
    return sorted(groups, key=lambda group: (group.error_code == 0, group.group_id))
