"""Committed offsets."""

from barnabas.offsets.committed import CommittedOffset, CommittedOffsets


def committed(offset):
    return CommittedOffset(offset, -1, "", 1000)


def test_nobody_has_committed_anything():
    offsets = CommittedOffsets()
    assert offsets.of("g") == {}
    assert offsets.get("g", "t", 0) is None
    assert list(offsets.positions("g")) == []
    offsets.remove("g", "t", 0)


def test_the_last_commit_counts():
    offsets = CommittedOffsets()
    offsets.put("g", "t", 0, committed(1))
    offsets.put("g", "t", 0, committed(2))
    offsets.put("h", "t", 0, committed(3))
    assert offsets.get("g", "t", 0).offset == 2
    assert offsets.of("h") == {"t": {0: committed(3)}}


def test_what_is_removed_leaves_nothing_behind():
    offsets = CommittedOffsets()
    for partition in (0, 1):
        offsets.put("g", "t", partition, committed(1))
    assert list(offsets.positions("g")) == [("t", 0), ("t", 1)]
    for topic, partition in offsets.positions("g"):
        offsets.remove("g", topic, partition)
    assert offsets.of("g") == {}
    assert offsets.groups_of("t") == []
    offsets.remove("g", "t", 0)


def test_which_groups_know_a_topic():
    offsets = CommittedOffsets()
    for group_id, topic in (("g", "t"), ("h", "u"), ("i", "t")):
        offsets.put(group_id, topic, 0, committed(1))
    assert offsets.groups_of("t") == ["g", "i"]
    offsets.clear()
    assert offsets.groups_of("t") == []


def test_one_expires_a_retention_after_it_was_last_needed():
    assert not committed(1).is_expired(5000, 5999, 1000)
    assert committed(1).is_expired(5000, 6000, 1000)


def test_one_that_says_when_it_expires_does_then():
    offset = CommittedOffset(1, -1, "", 1000, expire_timestamp_ms=9000)
    assert not offset.is_expired(0, 8999, 1)
    assert offset.is_expired(9000, 9000, 1_000_000)
