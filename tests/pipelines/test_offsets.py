"""The offsets of a read, in tables of cases. Ranges are those of Spark 4.2's own connector."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.pipelines.client import EARLIEST, LATEST, TopicPartition
from barnabas.pipelines.offsets import (
    BadOption,
    Position,
    Range,
    StreamOffset,
    by_topic,
    of_topics,
    parsed_offsets,
    parsed_partitions,
    plan,
    rate_limited,
    resolve,
    split,
)

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def broker(begin: int, end: int, times: Mapping[int, int] | None = None):
    """Returns the ListOffsets of a fake whose partitions are all alike; -1 for a time without a record."""

    def ask(asks: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        answers = {EARLIEST: begin, LATEST: end, **(times or {})}
        return {partition: answers.get(at, -1) for partition, at in asks.items()}

    return ask


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (Position("o", everywhere=EARLIEST), {A0: 3, A1: 3}),
        (Position("o", everywhere=LATEST), {A0: 20, A1: 20}),
        (Position("o", each={A0: 7, A1: LATEST}), {A0: 7, A1: 20}),
        (Position("o", each={A0: 99, A1: EARLIEST}), {A0: 99, A1: 3}),
        (Position("o", everywhere=1000, by_time=True), {A0: 11, A1: 11}),
        (Position("o", each={A0: 1000, A1: 5000}, by_time=True), {A0: 11, A1: 20}),
    ],
)
def test_positions_become_offsets(position: Position, expected: dict[TopicPartition, int]) -> None:
    assert resolve(position, [A1, A0], broker(3, 20, {1000: 11})) == expected


def test_no_record_that_young_is_an_error_if_it_is_to_be_one() -> None:
    position = Position("startingTimestamp", everywhere=5000, by_time=True)
    with pytest.raises(BadOption, match="startingTimestamp: a-0 has no record with a time of 5000 ms or later"):
        resolve(position, [A0], broker(0, 20), nothing_that_young="error")


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ({A0: 1}, "missing: a-1"),
        ({A0: 1, A1: 1, B0: 1}, "not read: b-0"),
        ({A0: 1, B0: 1}, "missing: a-1; not read: b-0"),
    ],
)
def test_every_partition_must_be_named(named: dict[TopicPartition, int], words: str) -> None:
    with pytest.raises(BadOption, match="startingOffsets must name every partition") as refused:
        Position("startingOffsets", each=named).of([A0, A1])
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("limit", "start", "end", "limited"),
    [
        (10, {A0: 0, A1: 0}, {A0: 100, A1: 100}, {A0: 5, A1: 5}),
        (10, {A0: 0, A1: 0}, {A0: 90, A1: 10}, {A0: 9, A1: 1}),
        (10, {A0: 0, A1: 0}, {A0: 1000, A1: 1}, {A0: 9, A1: 1}),
        (10, {A0: 50, A1: 7}, {A0: 53, A1: 8}, {A0: 53, A1: 8}),
        (1, {A0: 0, A1: 0}, {A0: 5, A1: 5}, {A0: 1, A1: 1}),
        (10, {A0: 5}, {A0: 5}, {A0: 5}),
        (10, {A0: 5}, {A0: 3}, {A0: 3}),
        (10, {A0: 0}, {A0: 100, B0: 4}, {A0: 10, B0: 4}),
        (7, {A0: 0, A1: 0}, {A0: 2, A1: 4}, {A0: 2, A1: 4}),
    ],
)
def test_a_limit_is_shared_by_what_is_waiting(
    limit: int, start: dict[TopicPartition, int], end: dict[TopicPartition, int], limited: dict[TopicPartition, int]
) -> None:
    assert rate_limited(limit, start, end) == limited


@given(
    limit=st.integers(1, 10**7),
    waiting=st.dictionaries(st.integers(0, 20), st.tuples(st.integers(0, 10**12), st.integers(0, 10**9)), min_size=1),
)
def test_whatever_the_limit_nobody_starves_and_nothing_is_overrun(
    limit: int, waiting: dict[int, tuple[int, int]]
) -> None:
    start = {TopicPartition("t", number): begin for number, (begin, _) in waiting.items()}
    end = {TopicPartition("t", number): begin + size for number, (begin, size) in waiting.items()}
    limited = rate_limited(limit, start, end)
    assert limited.keys() == end.keys()
    for partition, to in limited.items():
        assert start[partition] <= to <= end[partition]
        assert to > start[partition] or end[partition] == start[partition]
    assert sum(limited[part] - start[part] for part in limited) <= limit + len(waiting)


AS_SPARK = [  # sizes of the partitions, minPartitions, maxRecordsPerPartition -> (partition, size) of each task
    ([], None, None, []),
    ([5, 0, 7], None, None, [(0, 5), (2, 7)]),
    ([100, 2, 2, 2, 20011, 2], 1, None, [(0, 100), (1, 2), (2, 2), (3, 2), (4, 20011), (5, 2)]),
    ([3, 3, 3], 5, None, [(0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (2, 2)]),
    ([10], 5, None, [(0, 2), (0, 2), (0, 2), (0, 2), (0, 2)]),
    ([5000, 5000, 1001, 20011], 4, None, [(0, 5000), (1, 5000), (2, 1001), (3, 20011)]),
    ([10, 10, 5000, 7, 10], 3, None, [(0, 10), (1, 10), (2, 5000), (3, 7), (4, 10)]),
    ([20011], 4, None, [(0, 5002), (0, 5003), (0, 5003), (0, 5003)]),
    ([2, 100, 2, 10, 0, 7], 1, 1000, [(0, 2), (1, 100), (2, 2), (3, 10), (5, 7)]),
    ([5000, 1001, 10, 7, 1001], 5, None, [(0, 5000), (1, 1001), (2, 10), (3, 7), (4, 1001)]),
    ([2, 1001, 5000, 5000], 4, None, [(0, 2), (1, 1001), (2, 5000), (3, 5000)]),
    ([10, 7, 10], 5, None, [(0, 5), (0, 5), (1, 7), (2, 5), (2, 5)]),
    ([0, 1001], 4, 1000, [(1, 250), (1, 250), (1, 250), (1, 251)]),
    ([20011], 3, None, [(0, 6670), (0, 6670), (0, 6671)]),
    ([20011, 100], 5, None, [(0, 5002), (0, 5003), (0, 5003), (0, 5003), (1, 100)]),
    ([1001, 100, 2, 20011], 3, 9000, [(0, 1001), (1, 100), (2, 2), (3, 6670), (3, 6670), (3, 6671)]),
]


@pytest.mark.parametrize(("sizes", "least", "most", "tasks"), AS_SPARK)
def test_ranges_are_split_as_spark_s_connector_splits_them(
    sizes: list[int], least: int | None, most: int | None, tasks: list[tuple[int, int]]
) -> None:
    ranges = [Range("t", number, 1000, 1000 + size) for number, size in enumerate(sizes)]
    assert [(part.partition, part.size) for part in split(ranges, min_partitions=least, max_records=most)] == tasks


@given(
    sizes=st.lists(st.integers(0, 10**6), max_size=6),
    least=st.none() | st.integers(1, 40),
    most=st.none() | st.integers(10**5, 10**6),
)
def test_however_it_is_split_every_offset_is_read_once(sizes: list[int], least: int | None, most: int | None) -> None:
    ranges = [Range("t", number, 7, 7 + size, "id") for number, size in enumerate(sizes)]
    parts = split(ranges, min_partitions=least, max_records=most)
    for range_ in ranges:
        at = 7
        for part in parts:
            if part.partition == range_.partition:
                assert part.start == at < part.end and part.topic_id == "id"
                at = part.end
        assert at == range_.end
    if most is not None:
        assert all(part.size <= most for part in parts)


def test_offsets_are_the_same_text_for_the_same_place() -> None:
    one = StreamOffset({B0: 1, A1: 5, A0: 23}, {"b": "y", "a": "x"})
    assert json.dumps(one.to_json()) == '{"a": {"0": 23, "1": 5}, "b": {"0": 1}, "#ids": {"a": "x", "b": "y"}}'
    assert StreamOffset.from_json(json.loads(json.dumps(one.to_json()))) == one
    assert StreamOffset.from_json({"a": {"0": 23}}) == StreamOffset({A0: 23})  # of Spark's own source
    begun = StreamOffset({A0: 5}, {}, begun_at={A0: 3})
    assert StreamOffset.from_json(begun.to_json()) == begun
    assert by_topic(of_topics({"t": {"10": 1, "2": 3}})) == {"t": {"2": 3, "10": 1}}


def test_a_micro_batch_goes_on_where_the_last_one_ended() -> None:
    start, end = StreamOffset({A0: 5, A1: 7}, {"a": "x"}), StreamOffset({A0: 9, A1: 7}, {"a": "x"})
    assert plan(start, end, {}) == ([Range("a", 0, 5, 9, "x"), Range("a", 1, 7, 7, "x")], [])


@pytest.mark.parametrize(
    ("start", "end", "beginnings", "ranges", "loss"),
    [
        # partitions added, a topic that matches newly
        (StreamOffset({A0: 5}), StreamOffset({A0: 6, A1: 2}), {A1: 0}, [("a", 0, 5, 6), ("a", 1, 0, 2)], None),
        (StreamOffset({A0: 5}), StreamOffset({A0: 5, B0: 2}), {B0: 0}, [("a", 0, 5, 5), ("b", 0, 0, 2)], None),
        # a new partition that has lost records before they were read
        (
            StreamOffset({}),
            StreamOffset({A0: 9}),
            {A0: 4},
            [("a", 0, 4, 9)],
            "the records before offset 4 of this new partition are lost",
        ),
        # deleted
        (StreamOffset({A0: 5, B0: 1}), StreamOffset({A0: 6}), {}, [("a", 0, 5, 6)], "b-0: lost"),
        (StreamOffset({A0: 5}), StreamOffset({A0: 6, A1: 3}), {}, [("a", 0, 5, 6)], "a-1: deleted before its first"),
        # deleted and created again
        (
            StreamOffset({A0: 5}, {"a": "x"}),
            StreamOffset({A0: 9}, {"a": "y"}),
            {A0: 0},
            [("a", 0, 0, 9)],
            "topic a was deleted and created again",
        ),
        # truncated by an unclean election
        (StreamOffset({A0: 5}), StreamOffset({A0: 3}), {}, [], "a-0: it ends at offset 3, but was read up to offset 5"),
        # a checkpoint without ids, of Spark's own source or of brokers before 2.8
        (StreamOffset({A0: 5}), StreamOffset({A0: 6}, {"a": "x"}), {}, [("a", 0, 5, 6)], None),
    ],
)
def test_what_a_micro_batch_reads_and_what_it_will_not_find(
    start: StreamOffset,
    end: StreamOffset,
    beginnings: dict[TopicPartition, int],
    ranges: list[tuple[str, int, int, int]],
    loss: str | None,
) -> None:
    planned = plan(start, end, beginnings)
    assert [range_[:4] for range_ in planned.ranges] == ranges
    if loss is None:
        assert planned.losses == []
    else:
        assert len(planned.losses) == 1 and loss in planned.losses[0]


def test_json_of_options() -> None:
    assert parsed_offsets("o", '{"a": {"0": 5, "1": -2}, "b": {"0": -1}}') == {A0: 5, A1: EARLIEST, B0: LATEST}
    assert parsed_partitions("assign", '{"b": [0], "a": [1, 0, 1]}') == [A0, A1, B0]
    for nothing in ("{}", "[]", "5", ""):
        with pytest.raises(BadOption):
            parsed_offsets("o", nothing)
        with pytest.raises(BadOption):
            parsed_partitions("assign", nothing)
