"""StreamOffset, limits and the distribution of work."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.pipelines.client import TopicPartition
from barnabas.pipelines.jobs.mirroring.planning import Range, limited, ranges, shared_out
from barnabas.pipelines.offsets import StreamOffset

KEYS = st.dictionaries(st.builds(TopicPartition, st.just("t"), st.integers(0, 5)), st.integers(0, 1000), min_size=1)


@given(start=KEYS, more=st.integers(0, 500), most=st.integers(1, 300))
def test_a_limit_is_shared_by_what_waits(start: dict[TopicPartition, int], more: int, most: int) -> None:
    end = {key: offset + more * (key.partition + 1) for key, offset in start.items()}
    found = limited(start, end, most)
    assert found.keys() == end.keys()
    assert all(start[key] <= found[key] <= end[key] for key in end)
    assert sum(found.values()) - sum(start.values()) <= most + len(start)
    assert more == 0 or all(found[key] > start[key] for key in end), "each partition gets on"


def test_no_limit() -> None:
    assert limited({TopicPartition("t", 0): 3}, {TopicPartition("t", 0): 3_000_000}, None) == {
        TopicPartition("t", 0): 3_000_000
    }


def _range(partition: int, size: int) -> Range:
    return Range("t", partition, 0, size, None, "s.t", 0)


def test_tasks_are_of_about_the_same_size() -> None:
    shares = shared_out([_range(number, size) for number, size in enumerate([90, 10, 40, 50, 5, 5])], 2)
    assert [sum(each.end for each in share) for share in shares] == [100, 100]
    assert sorted(each.partition for share in shares for each in share) == list(range(6))
    assert len(shared_out([_range(0, 1)], 8)) == 1
    assert shared_out([], 8) == []


def test_ranges() -> None:
    start = StreamOffset(
        {TopicPartition("a", 0): 5, TopicPartition("a", 1): 5, TopicPartition("old", 0): 50}, {"a": "1", "old": "2"}
    )
    end = StreamOffset(
        {
            TopicPartition("a", 0): 9,
            TopicPartition("a", 1): 5,
            TopicPartition("a", 2): 4,
            TopicPartition("old", 0): 3,
            TopicPartition("new", 0): 8,
        },
        {"a": "1", "old": "3", "new": "4"},
    )
    found = ranges(
        start,
        end,
        {TopicPartition("a", 0): 7, TopicPartition("a", 2): 1, TopicPartition("new", 0): 8},
        {"a": "s.a", "old": "s.old", "new": "s.new"},
        {TopicPartition("a", 0): 12},
    )
    assert found == [
        Range("a", 0, 7, 9, "1", "s.a", 12),  # the target has more than the checkpoint
        Range("a", 2, 1, 4, "1", "s.a", 0),  # a new partition
        Range("old", 0, 0, 3, "3", "s.old", 0),  # created again: from its beginning
    ]
