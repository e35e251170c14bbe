"""OffsetFetch, with the results of Apache Kafka 4.3.1; version 0 as 1."""

import pytest

from barnabas.errors import NONE, NotCoordinator, UnknownTopicId
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest

Topic = OffsetFetchRequest.OffsetFetchRequestTopic
Group = OffsetFetchRequest.OffsetFetchRequestGroup
GroupTopic = Group.OffsetFetchRequestTopics
CommitTopic = OffsetCommitRequest.OffsetCommitRequestTopic

NOTHING = (-1, -1, "", NONE)


def row(index, offset, epoch, metadata):
    return CommitTopic.OffsetCommitRequestPartition(
        partition_index=index,
        committed_offset=offset,
        committed_leader_epoch=epoch,
        committed_metadata=metadata,
    )


@pytest.fixture
def node(group_node):
    """Group g has committed 5 and 6 in t, nothing in its third partition, and 3 in u, with leader epoch 7."""
    topics = [
        CommitTopic(name="t", partitions=[row(0, 5, -1, "m"), row(1, 6, -1, "m")]),
        CommitTopic(name="u", partitions=[row(0, 3, 7, None)]),
    ]
    group_node.call(OffsetCommitRequest(group_id="g", topics=topics), 9)
    return group_node


def rows(topics, version):
    """Returns topics with the fields of their partitions; leader epochs since version 5."""
    return [
        (
            each.topic_id if version >= 10 else each.name,
            {
                row.partition_index: (
                    row.committed_offset,
                    row.committed_leader_epoch,
                    row.metadata,
                    row.error_code,
                )
                for row in each.partitions
            },
        )
        for each in topics
    ]


def fetch(node, version, topics, group_id="g", error=NONE, **fields):
    """Fetches the offsets of one group, with the version's request; returns rows."""
    if version < 8:
        answer = node.call(request_for(version, topics, group_id, **fields), version)
        assert answer.error_code == (error if version >= 2 else NONE)
        return rows(answer.topics, version)
    (group,) = fetch_groups(node, version, (group_id, topics), **fields)
    assert (group.group_id, group.error_code) == (group_id, error)
    return rows(group.topics, version)


def request_for(version, topics, group_id="g", **fields):
    if version >= 8:
        return request_for_groups(version, (group_id, topics), **fields)
    requested = topics and [Topic(name=name, partition_indexes=indexes) for name, indexes in topics]
    return OffsetFetchRequest(group_id=group_id, topics=requested, **fields)


def fetch_groups(node, version, *groups, **fields):
    return node.call(request_for_groups(version, *groups, **fields), version).groups


def request_for_groups(version, *groups, **fields):
    key = "topic_id" if version >= 10 else "name"
    requested = [
        Group(
            group_id=group_id,
            topics=topics
            if topics is None
            else [GroupTopic(partition_indexes=indexes, **{key: name}) for name, indexes in topics],
        )
        for group_id, topics in groups
    ]
    return OffsetFetchRequest(groups=requested, **fields)


@pytest.mark.parametrize("version", range(10))
def test_requested_partitions(node, version):
    epoch = 7 if version >= 5 else -1
    assert fetch(node, version, [("t", [0, 2, 99, -1]), ("v", [0]), ("u", [0])]) == [
        ("t", {0: (5, -1, "m", NONE), 2: NOTHING, 99: NOTHING, -1: NOTHING}),
        ("v", {0: NOTHING}),
        ("u", {0: (3, epoch, "", NONE)}),
    ]


@pytest.mark.parametrize("version", range(10))
@pytest.mark.parametrize("group_id", ["nobody's", ""])
def test_of_a_group_that_is_not_there(node, version, group_id):
    assert fetch(node, version, [("t", [0, 1])], group_id) == [("t", {0: NOTHING, 1: NOTHING})]


@pytest.mark.parametrize("version", range(2, 10))
def test_all_topics(node, version):
    epoch = 7 if version >= 5 else -1
    found = [("t", {0: (5, -1, "m", NONE), 1: (6, -1, "m", NONE)}), ("u", {0: (3, epoch, "", NONE)})]
    assert sorted(fetch(node, version, None)) == found
    assert fetch(node, version, None, "nobody's") == []


@pytest.mark.parametrize("version", range(7, 11))
def test_without_transactions_nothing_is_unstable(node, version):
    stable = fetch(node, version, None)
    assert fetch(node, version, None, require_stable=True) == stable


@pytest.mark.parametrize("version", range(7, 11))
def test_a_coordinator_without_followers_sends_no_stable_offsets(node, version):
    """It may have a successor, of which it does not know: Apache Kafka's sends NOT_COORDINATOR then."""
    node.lose_followers()
    topics = [(node.topic_id("t") if version >= 10 else "t", [0])]
    ((_, offsets),) = fetch(node, version, topics)
    assert offsets[0] == (5, -1, "m", NONE)
    promise = node.send(request_for(version, topics, require_stable=True), version)
    response = node.after_the_time_out(promise, version)
    assert (response.groups[0] if version >= 8 else response).error_code == NotCoordinator.code


@pytest.mark.parametrize("version", range(10))
def test_no_topics_and_a_topic_twice(node, version):
    assert fetch(node, version, []) == []
    assert fetch(node, version, [("t", []), ("t", [1])]) == [("t", {}), ("t", {1: (6, -1, "m", NONE)})]


@pytest.mark.parametrize("version", [8, 9])
def test_several_groups(node, version):
    node.commit("h", p2=8)
    answer = fetch_groups(node, version, ("h", None), ("nobody's", None), ("g", [("t", [1])]), ("h", []))
    assert [(group.group_id, rows(group.topics, version)) for group in answer] == [
        ("h", [("t", {2: (8, -1, "", NONE)})]),
        ("nobody's", []),
        ("g", [("t", {1: (6, -1, "m", NONE)})]),
        ("h", []),
    ]
    assert fetch_groups(node, version) == []


@pytest.mark.parametrize("version", [9, 10])
def test_a_member_of_no_classic_group_is_not_looked_at(node, version):
    requested = Group(group_id="g", member_id="nobody", member_epoch=3, topics=[])
    (group,) = node.call(OffsetFetchRequest(groups=[requested]), version).groups
    assert group.error_code == NONE


def test_by_id(node):
    t, u, nobody, zero = node.topic_id("t"), node.topic_id("u"), b"n" * 16, bytes(16)
    unknown = (-1, -1, "", UnknownTopicId.code)
    # Unknown topics come last.
    assert fetch(node, 10, [(nobody, [0, 1]), (t, [0, 9]), (zero, [0]), (u, [0])]) == [
        (t, {0: (5, -1, "m", NONE), 9: NOTHING}),
        (u, {0: (3, 7, "", NONE)}),
        (nobody, {0: unknown, 1: unknown}),
        (zero, {0: unknown}),
    ]
    assert {topic_id for topic_id, _ in fetch(node, 10, None)} == {t, u}


@pytest.mark.parametrize("version", range(1, 10))
def test_without_its_topic_there_is_no_coordinator(quiet_group_node, version):
    found = fetch(quiet_group_node, version, [("t", [0])], error=NotCoordinator.code)
    assert found == ([] if version >= 2 else [("t", {0: (-1, -1, "", NotCoordinator.code)})])


def test_who_never_asks_for_a_coordinator(quiet_group_node):
    """Version 0 is older than coordinators: the request creates the offsets topic."""
    assert fetch(quiet_group_node, 0, [("t", [0])]) == [("t", {0: (-1, -1, "", NONE)})]
