"""OffsetCommit, with the results of Apache Kafka 4.3.1; versions 0 and 1 by 3.9's schemas."""

import pytest

from barnabas.errors import (
    NONE,
    FencedInstanceId,
    GroupIdNotFound,
    IllegalGeneration,
    NotCoordinator,
    OffsetMetadataTooLarge,
    UnknownMemberId,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.wire.messages.offset_commit import OffsetCommitRequest

Topic = OffsetCommitRequest.OffsetCommitRequestTopic
Partition = Topic.OffsetCommitRequestPartition

MISSING = UnknownTopicOrPartition.code


def topic(name, *partitions, topic_id=bytes(16), metadata=""):
    """Returns a topic with (partition, offset)s."""
    rows = [
        Partition(partition_index=index, committed_offset=offset, committed_metadata=metadata)
        for index, offset in partitions
    ]
    return Topic(name=name, topic_id=topic_id, partitions=rows)


def commit(node, version, *topics, group_id="g", **fields):
    """Commits offsets; returns topics with (partition, error code)s."""
    answer = node.call(OffsetCommitRequest(group_id=group_id, topics=topics, **fields), version)
    return [
        (
            each.topic_id if version >= 10 else each.name,
            [(row.partition_index, row.error_code) for row in each.partitions],
        )
        for each in answer.topics
    ]


def committed(node, group_id="g"):
    offsets = node.broker.groups.fetch_offsets(group_id)
    return {(name, index): row.offset for name, rows in offsets.items() for index, row in rows.items()}


@pytest.mark.parametrize("version", range(10))
def test_a_simple_consumer(group_node, version):
    found = commit(group_node, version, topic("t", (0, 5), (2, 6)), topic("u", (0, -1)))
    assert found == [("t", [(0, NONE), (2, NONE)]), ("u", [(0, NONE)])]
    assert committed(group_node) == {("t", 0): 5, ("t", 2): 6, ("u", 0): -1}


@pytest.mark.parametrize("version", range(1, 10))
def test_a_member(group_node, version):
    member_id = group_node.stable()
    mine = {"member_id": member_id, "generation_id_or_member_epoch": 1}
    assert commit(group_node, version, topic("t", (0, 5)), **mine) == [("t", [(0, NONE)])]
    for wrong, error in (
        ({"generation_id_or_member_epoch": 0}, IllegalGeneration),
        ({"generation_id_or_member_epoch": -1}, IllegalGeneration),
        ({"member_id": "nobody"}, UnknownMemberId),
        ({"member_id": ""}, UnknownMemberId),
        ({"member_id": "", "generation_id_or_member_epoch": -1}, UnknownMemberId),
    ):
        assert commit(group_node, version, topic("t", (0, 9)), **(mine | wrong)) == [("t", [(0, error.code)])]
    assert committed(group_node) == {("t", 0): 5}


@pytest.mark.parametrize("version", [7, 8, 9])
def test_an_instance_that_goes_by_another_id(group_node, version):
    former = group_node.join(version=5, group_instance_id="i").member_id
    group_node.sync(former, 1, {former: b""})
    group_node.join(version=5, group_instance_id="i")
    stale = {"member_id": former, "generation_id_or_member_epoch": 1, "group_instance_id": "i"}
    assert commit(group_node, version, topic("t", (0, 5)), **stale) == [("t", [(0, FencedInstanceId.code)])]


@pytest.mark.parametrize("version", range(1, 10))
def test_with_a_generation_there_must_be_a_group(group_node, version):
    error = GroupIdNotFound if version >= 9 else IllegalGeneration
    found = commit(group_node, version, topic("t", (0, 5)), generation_id_or_member_epoch=0, member_id="m")
    assert found == [("t", [(0, error.code)])]
    assert group_node.broker.groups.list_groups() == []


@pytest.mark.parametrize("version", range(10))
def test_the_topic_is_looked_at_first(group_node, version):
    fields = {"generation_id_or_member_epoch": 3, "member_id": "nobody"} if version else {}
    assert commit(group_node, version, topic("v", (0, 5)), **fields) == [("v", [(0, MISSING)])]
    assert commit(group_node, version, topic("", (0, 5)), **fields) == [("", [(0, MISSING)])]


def test_what_is_missing_is_told_first(group_node):
    found = commit(group_node, 8, topic("t", (0, 1), (3, 1), (-1, 1)), topic("v", (0, 1)), topic("u", (0, 1)))
    assert found == [("t", [(3, MISSING), (-1, MISSING), (0, NONE)]), ("v", [(0, MISSING)]), ("u", [(0, NONE)])]


def test_a_topic_twice(group_node):
    assert commit(group_node, 8, topic("t", (0, 1)), topic("t", (0, 2), (0, 3))) == [
        ("t", [(0, NONE)]),
        ("t", [(0, NONE), (0, NONE)]),
    ]
    assert committed(group_node) == {("t", 0): 3}


def test_nothing(group_node):
    assert commit(group_node, 8) == []
    assert commit(group_node, 8, topic("t")) == []
    assert group_node.broker.groups.list_groups() == []


def test_the_empty_group(group_node):
    assert commit(group_node, 8, topic("t", (0, 1)), group_id="") == [("t", [(0, NONE)])]
    assert committed(group_node, "") == {("t", 0): 1}


def test_by_id(group_node):
    t, nobody, zero = group_node.topic_id("t"), b"n" * 16, bytes(16)
    found = commit(
        group_node,
        10,
        topic("", (0, 1), (9, 1), topic_id=t),
        topic("", (0, 1), topic_id=nobody),
        topic("", (0, 1), topic_id=zero),
    )
    unknown = UnknownTopicId.code
    assert found == [(t, [(9, MISSING), (0, NONE)]), (nobody, [(0, unknown)]), (zero, [(0, unknown)])]
    assert committed(group_node) == {("t", 0): 1}


def test_the_topics_id_is_kept(group_node):
    commit(group_node, 8, topic("t", (0, 1)))
    assert group_node.broker.groups.fetch_offsets("g")["t"][0].topic_id == group_node.topic_id("t")


@pytest.mark.parametrize(
    ("metadata", "error"),
    [("m" * 4096, NONE), ("m" * 4097, OffsetMetadataTooLarge.code), ("é" * 4096, NONE), ("𝄞" * 2049, 12)],
)
def test_metadata_is_measured_as_java_does(group_node, metadata, error):
    assert commit(group_node, 8, topic("t", (0, 1), metadata=metadata)) == [("t", [(0, error)])]


def test_null_metadata_is_empty(group_node):
    commit(group_node, 8, topic("t", (0, 1), metadata=None))
    assert group_node.broker.groups.fetch_offsets("g")["t"][0].metadata == ""


@pytest.mark.parametrize("version", [2, 3, 4])
def test_a_commit_may_say_how_long_it_is_kept(group_node, version):
    commit(group_node, version, topic("t", (0, 1)), retention_time_ms=60_000)
    row = group_node.broker.groups.fetch_offsets("g")["t"][0]
    assert row.expire_timestamp_ms - row.commit_timestamp_ms == 60_000


@pytest.mark.parametrize("version", [6, 9])
def test_the_leader_epoch_is_kept(group_node, version):
    row = Partition(partition_index=0, committed_offset=1, committed_leader_epoch=7, committed_metadata="")
    commit(group_node, version, Topic(name="t", partitions=[row]))
    assert group_node.broker.groups.fetch_offsets("g")["t"][0].leader_epoch == 7


def test_without_its_topic_there_is_no_coordinator(quiet_group_node):
    assert commit(quiet_group_node, 8, topic("t", (0, 1))) == [("t", [(0, NotCoordinator.code)])]


def test_who_never_asks_for_a_coordinator(quiet_group_node):
    """Version 0 is older than coordinators: the request creates the offsets topic."""
    assert commit(quiet_group_node, 0, topic("nobody", (0, 5))) == [("nobody", [(0, MISSING)])]
    assert commit(quiet_group_node, 0, topic("t", (0, 5))) == [("t", [(0, NONE)])]
    assert committed(quiet_group_node) == {("t", 0): 5}
