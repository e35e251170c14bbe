"""Committed and pending offsets together."""

from barnabas.offsets.committed import CommittedOffset
from barnabas.offsets.group_offsets import GroupOffsets
from barnabas.offsets.pending import Transaction

ONE = Transaction(0, 1)


def offset(value):
    return CommittedOffset(value, -1, "", 1000)


def test_positions_are_the_committed_ones_then_the_pending_ones():
    offsets = GroupOffsets()
    offsets.put_pending(ONE, "g", "t", 0, offset(1))
    offsets.put_pending(ONE, "g", "t", 1, offset(1))
    offsets.put("g", "t", 1, offset(2))
    assert list(offsets.positions("g")) == [("t", 1), ("t", 0)]
    assert [offsets.has("g", "t", partition) for partition in (0, 1, 2)] == [True, True, False]


def test_removing_while_looking_takes_all_away():
    offsets = GroupOffsets()
    for partition in (0, 1):
        offsets.put("g", "t", partition, offset(1))
        offsets.put_pending(ONE, "g", "u", partition, offset(1))
    for topic, partition in offsets.positions("g"):
        offsets.remove("g", topic, partition)
    offsets.end(ONE, is_commit=True)
    assert offsets.of("g") == {}


def test_which_groups_know_a_topic_by_commits_and_by_transactions():
    offsets = GroupOffsets()
    offsets.put("g", "t", 0, offset(1))
    assert offsets.groups_of("t") == ["g"]
    for group_id in ("g", "h"):
        offsets.put_pending(ONE, group_id, "t", 0, offset(2))
    assert offsets.groups_of("t") == ["g", "h"]
    offsets.clear()
    assert offsets.groups_of("t") == []
    offsets.end(ONE, is_commit=True)
    assert offsets.of("g") == {}


def test_an_end_commits_or_forgets():
    offsets = GroupOffsets()
    offsets.put("g", "t", 0, offset(1))
    offsets.put_pending(ONE, "g", "t", 0, offset(2))
    offsets.end(ONE, is_commit=False)
    assert offsets.get("g", "t", 0) == offset(1)
    offsets.put_pending(ONE, "g", "t", 0, offset(3))
    offsets.end(ONE, is_commit=True)
    assert offsets.get("g", "t", 0) == offset(3)
    assert list(offsets.unstable("g")) == []
