"""The orders in which Apache Kafka 4.3.1 answered: the names are those that it was asked about."""

import pytest

from barnabas.api_handlers.hash_order import (
    by_topic_from_immutable,
    by_topic_from_mutable,
    concurrent_order,
    mutable_order,
    topic_order,
)


def asked(**topics):
    return {(topic, index): index for topic, indexes in topics.items() for index in indexes}


@pytest.mark.parametrize(
    ("topic", "count", "order"),
    [
        ("topic-1", 2, [1, 0]),
        ("bb", 8, [1, 0, 7, 6, 5, 4, 3, 2]),
        ("a519501", 12, [1, 0, 3, 2, 9, 8, 11, 10, 5, 4, 7, 6]),
        ("topic-1", 20, [4, 3, 2, 1, 0, 12, 11, 10, 9, 8, 7, 6, 5, 19, 18, 17, 16, 15, 14, 13]),
    ],
)
def test_partitions_of_a_mutable_map(topic, count, order):
    assert by_topic_from_mutable(asked(**{topic: range(count)})) == [(topic, order)]


@pytest.mark.parametrize(
    ("topic", "partitions", "order"),
    [
        ("topic-1", [48, 28], [28, 48]),
        ("a519501", range(8), [5, 1, 4, 0, 7, 2, 3, 6]),
        ("bb", range(12), [9, 0, 10, 11, 5, 1, 6, 2, 7, 3, 8, 4]),
        ("topic-1", range(20), [7, 6, 1, 14, 17, 16, 5, 10, 0, 4, 18, 9, 13, 8, 2, 11, 12, 19, 15, 3]),
    ],
)
def test_partitions_of_an_immutable_map(topic, partitions, order):
    keys = mutable_order([(topic, index) for index in partitions])
    assert by_topic_from_immutable({key: key[1] for key in keys}) == [(topic, order)]


def test_a_few_partitions_among_many_are_a_hash_table_too():
    several = {"topic-442621": [14, 35, 31], "a553259": [48, 43, 14], "topic-800798": [18, 59, 1]}
    keys = mutable_order([(topic, index) for topic, indexes in several.items() for index in sorted(indexes)])
    assert dict(by_topic_from_immutable({key: key[1] for key in keys})) == several


def test_topics():
    assert topic_order(["Z998500", "x.y_971512", "topic-362493"]) == ["topic-362493", "Z998500", "x.y_971512"]
    assert topic_order([]) == []


def test_all_of_the_transaction_log():
    beside = [(f"other-{number}", 0) for number in range(71)]
    keys = concurrent_order([*(("__transaction_state", index) for index in range(50)), *beside])
    order = [index for topic, index in keys if topic == "__transaction_state"]
    assert order[:12] == [42, 17, 34, 9, 26, 1, 18, 16, 49, 8, 41, 0]
    assert order[-4:] == [2, 35, 27, 19]


def test_nothing_is_lost_where_hashes_collide():
    names = ["AaAa", "BBBB", "AaBB", "BBAa"]  # one String.hashCode
    assert topic_order(names) == names
    answers = asked(**{name: range(40) for name in names})
    for grouped in (by_topic_from_mutable(answers), by_topic_from_immutable(answers)):
        assert {(topic, index) for topic, indexes in grouped for index in indexes} == set(answers)
