"""Offsets of groups of the newer types: the member epochs that may commit and fetch, as in Apache Kafka 4.3.1, and the
expiry of offsets.
"""

import pytest

from barnabas.errors import (
    NONE,
    GroupIdNotFound,
    GroupSubscribedToTopic,
    IllegalGeneration,
    NonEmptyGroup,
    StaleMemberEpoch,
    UnknownMemberId,
    UnsupportedVersion,
)
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.list_groups import ListGroupsRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from tests.submitting import ready

EPOCH = 2
"""The epoch of a new group's first member."""


def beat(node, epoch=0, member_id="me", topics=("t",)):
    """Sends a heartbeat of a member of the consumer group g; unchanged fields are only in the first one."""
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=member_id,
        member_epoch=epoch,
        rebalance_timeout_ms=60_000 if epoch == 0 else -1,
        subscribed_topic_names=list(topics) if epoch == 0 else None,
        topic_partitions=[] if epoch == 0 else None,
    )
    answer = node.call(request, 1)
    assert answer.error_code == NONE
    return answer.member_epoch


@pytest.fixture
def node(group_node):
    """The member "me" reads t, in the first epoch of the consumer group g."""
    assert beat(group_node) == EPOCH
    return group_node


@pytest.fixture
def share_node(group_node):
    """The member "me" reads t, in the first epoch of the share group g."""
    request = ShareGroupHeartbeatRequest(
        group_id="g", member_id="me", member_epoch=0, subscribed_topic_names=["t"], rack_id=None
    )
    answer = group_node.call(request, 1)
    assert (answer.error_code, answer.member_epoch) == (NONE, EPOCH)
    return group_node


def commit(node, epoch=EPOCH, member_id="me", version=9, topic="t"):
    """Commits offset 5 of partition 0; returns the error code."""
    Topic = OffsetCommitRequest.OffsetCommitRequestTopic
    row = Topic.OffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="")
    named = {"topic_id": node.topic_id(topic)} if version >= 10 else {"name": topic}
    request = OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=epoch,
        member_id=member_id,
        topics=[Topic(**named, partitions=[row])],
    )
    return node.call(request, version).topics[0].partitions[0].error_code


@pytest.mark.parametrize("version", [9, 10])
@pytest.mark.parametrize(
    ("epoch", "member_id", "code"),
    [
        (EPOCH, "me", NONE),
        (3, "me", StaleMemberEpoch.code),
        (0, "me", StaleMemberEpoch.code),
        (-1, "me", StaleMemberEpoch.code),
        (EPOCH, "nobody", UnknownMemberId.code),
        (-1, "", UnknownMemberId.code),
    ],
)
def test_commit(node, version, epoch, member_id, code):
    assert commit(node, epoch, member_id, version) == code


def test_commit_by_a_version_that_knows_no_epochs(node):
    assert commit(node, version=8) == UnsupportedVersion.code


def test_commit_in_the_epoch_before_of_what_stayed(node):
    beat(node, member_id="you", topics=["u"])
    while beat(node, EPOCH) == EPOCH:  # until its assignment is complete
        node.clock.advance(1)
    assert [commit(node, epoch) for epoch in (2, 3, 1)] == [NONE, NONE, StaleMemberEpoch.code]
    assert commit(node, EPOCH, topic="u") == StaleMemberEpoch.code


def test_anybody_commits_to_a_group_that_is_empty(node):
    beat(node, -1)
    assert commit(node, -1, "") == NONE
    assert commit(node, EPOCH) == UnknownMemberId.code


def test_share_groups_commit_nothing(share_node):
    assert commit(share_node) == GroupIdNotFound.code
    assert commit(share_node, -1, "", version=2) == GroupIdNotFound.code


def fetch(node, member_id, epoch, version=9):
    """Fetches the offset of g; returns the error and the offset."""
    Group = OffsetFetchRequest.OffsetFetchRequestGroup
    named = {"topic_id": node.topic_id("t")} if version >= 10 else {"name": "t"}
    topics = [Group.OffsetFetchRequestTopics(**named, partition_indexes=[0])]
    request = OffsetFetchRequest(groups=[Group(group_id="g", member_id=member_id, member_epoch=epoch, topics=topics)])
    (group,) = node.call(request, version).groups
    return group.error_code, [row.committed_offset for topic in group.topics for row in topic.partitions]


@pytest.mark.parametrize("version", [9, 10])
@pytest.mark.parametrize(
    ("member_id", "epoch", "expected"),
    [
        ("me", EPOCH, (NONE, [5])),
        (None, -1, (NONE, [5])),
        ("me", 0, (StaleMemberEpoch.code, [])),
        ("me", 3, (StaleMemberEpoch.code, [])),
        ("nobody", EPOCH, (UnknownMemberId.code, [])),
        ("", -1, (UnknownMemberId.code, [])),
    ],
)
def test_fetch(node, version, member_id, epoch, expected):
    assert commit(node) == NONE
    assert fetch(node, member_id, epoch, version) == expected


def test_fetch_by_a_version_that_knows_no_epochs(node):
    assert commit(node) == NONE
    assert fetch(node, None, -1, version=8) == (NONE, [5])


def test_a_share_group_has_read_nothing(share_node):
    assert fetch(share_node, "me", 7) == (NONE, [-1])


@pytest.mark.parametrize(
    ("version", "epoch", "code"),
    [
        (5, EPOCH, NONE),
        (3, 0, IllegalGeneration.code),
        (5, 3, IllegalGeneration.code),
        (6, 3, StaleMemberEpoch.code),
    ],
)
def test_commit_in_a_transaction(node, version, epoch, code):
    node.broker.coordinators.transactions.create_topic(ready)
    producer = node.call(InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 2)
    Topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    row = Topic.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5, committed_metadata="")
    named = {"topic_id": node.topic_id("t")} if version >= 6 else {"name": "t"}
    request = TxnOffsetCommitRequest(
        transactional_id="x",
        group_id="g",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        generation_id_or_member_epoch=epoch,
        member_id="me",
        topics=[Topic(**named, partitions=[row])],
    )
    if version < 5:
        added = AddOffsetsToTxnRequest(
            transactional_id="x",
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            group_id="g",
        )
        assert node.call(added, 3).error_code == NONE
    assert node.call(request, version).topics[0].partitions[0].error_code == code


def forget_soon(node):
    """Sets the retention of offsets to a minute."""
    for shard in node.broker.coordinators.groups.shards():
        shard.config = shard.config._replace(offsets_retention_minutes=1)


def listed(node):
    return [(each.group_id, each.group_state) for each in node.call(ListGroupsRequest(), 5).groups]


def test_offsets_of_what_is_not_read_expire_and_then_the_group(node):
    assert commit(node) == commit(node, topic="u") == NONE
    epoch = EPOCH
    forget_soon(node)
    for _ in range(20):
        node.clock.advance(40)
        epoch = beat(node, epoch)
    assert node.broker.groups.fetch_offsets("g").keys() == {"t"}
    assert listed(node) == [("g", "Stable")]
    beat(node, -1)
    node.clock.advance(601)  # its offset is older than the retention time, and has no reader
    assert node.broker.groups.fetch_offsets("g") == {}
    assert listed(node) == []


def test_share_groups_stay(share_node):
    left = ShareGroupHeartbeatRequest(group_id="g", member_id="me", member_epoch=-1)
    assert share_node.call(left, 1).error_code == NONE
    forget_soon(share_node)
    share_node.clock.advance(1000)
    assert listed(share_node) == [("g", "Empty")]


def test_offset_delete(node):
    assert commit(node) == commit(node, topic="u") == NONE
    Topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
    requested = [
        Topic(name=name, partitions=[Topic.OffsetDeleteRequestPartition(partition_index=0)]) for name in ("t", "u")
    ]
    request = OffsetDeleteRequest(group_id="g", topics=requested)
    found = {each.name: each.partitions[0].error_code for each in node.call(request, 0).topics}
    assert found == {"t": GroupSubscribedToTopic.code, "u": NONE}
    assert node.broker.groups.fetch_offsets("g").keys() == {"t"}


def test_delete_groups(node):
    assert commit(node) == NONE
    request = DeleteGroupsRequest(groups_names=["g"])
    assert node.call(request, 2).results[0].error_code == NonEmptyGroup.code
    beat(node, -1)
    assert node.call(request, 2).results[0].error_code == NONE
    assert (listed(node), node.broker.groups.fetch_offsets("g")) == ([], {})
    assert node.call(request, 2).results[0].error_code == GroupIdNotFound.code
