"""Pending offsets."""

from barnabas.offsets.committed import CommittedOffset
from barnabas.offsets.pending import PendingOffsets, Transaction

ONE, TWO, ELSEWHERE = Transaction(0, 1), Transaction(0, 2), Transaction(7, 1)


def offset(value):
    return CommittedOffset(value, -1, "", 1000)


def listed(ended):
    return [(group_id, topic, partition, each.offset) for group_id, topic, partition, each in ended]


def test_nobody_has_written_anything():
    pending = PendingOffsets()
    assert not pending
    assert pending.commit(ONE) == []
    pending.abort(ONE)
    pending.remove("g", "t", 0)
    pending.supersede("g", "t", 0)
    assert (pending.positions("g"), pending.groups_of("t")) == ([], [])


def test_a_commit_gives_the_last_of_each_partition():
    pending = PendingOffsets()
    pending.put(ONE, "g", "t", 0, offset(1))
    pending.put(ONE, "h", "t", 0, offset(2))
    pending.put(ONE, "g", "t", 0, offset(3))
    assert pending.groups_of("t") == ["g", "h"]
    assert sorted(listed(pending.commit(ONE))) == [("g", "t", 0, 3), ("h", "t", 0, 2)]
    assert not pending
    assert pending.commit(ONE) == []


def test_an_abort_leaves_nothing():
    pending = PendingOffsets()
    pending.put(ONE, "g", "t", 0, offset(1))
    pending.put(TWO, "g", "t", 1, offset(2))
    pending.abort(ONE)
    assert pending.positions("g") == [("t", 1)]
    assert pending.commit(ONE) == []


def test_another_partitions_marker_ends_nothing_here():
    pending = PendingOffsets()
    pending.put(ONE, "g", "t", 0, offset(1))
    pending.put(ELSEWHERE, "h", "t", 0, offset(2))
    assert listed(pending.commit(ELSEWHERE)) == [("h", "t", 0, 2)]
    assert listed(pending.commit(ONE)) == [("g", "t", 0, 1)]


def test_what_is_earlier_than_something_committed_does_not_count():
    pending = PendingOffsets()
    pending.put(ONE, "g", "t", 0, offset(1))
    pending.put(TWO, "g", "t", 0, offset(2))
    assert listed(pending.commit(TWO)) == [("g", "t", 0, 2)]
    assert pending.positions("g") == [("t", 0)]
    assert pending.commit(ONE) == []
    assert not pending
    pending.put(ONE, "g", "t", 0, offset(3))
    pending.supersede("g", "t", 0)
    assert pending.positions("g") == [("t", 0)]
    assert pending.commit(ONE) == []


def test_what_is_removed_is_removed_for_all():
    pending = PendingOffsets()
    for partition in (0, 1):
        pending.put(ONE, "g", "t", partition, offset(1))
        pending.put(TWO, "g", "t", partition, offset(2))
    pending.remove("g", "t", 0)
    pending.remove("g", "t", 0)
    assert pending.positions("g") == [("t", 1)]
    assert listed(pending.commit(ONE)) == [("g", "t", 1, 1)]
    pending.remove("g", "t", 1)
    assert not pending
    assert pending.commit(TWO) == []
