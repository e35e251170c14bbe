"""Orders of names that Apache Kafka 4.3.1 gave."""

import pytest

from barnabas.api_handlers.hash_order import hash_set_order, names_from_mutable, names_in_a_set, names_of_the_image


def names(count):
    return [f"n{index}-{'xyzwv'[index % 5] * (index % 7)}" for index in range(count)]


GIVEN = {
    11: [3, 7, 8, 0, 9, 5, 2, 4, 1, 10, 6],
    12: [7, 8, 0, 9, 2, 3, 5, 4, 11, 1, 10, 6],
    24: [7, 8, 2, 14, 12, 21, 3, 15, 16, 1, 17, 0, 9, 18, 13, 23, 20, 19, 5, 4, 11, 10, 6, 22],
    25: [7, 8, 2, 14, 12, 21, 3, 15, 16, 1, 17, 0, 9, 24, 18, 13, 23, 20, 19, 5, 4, 11, 10, 6, 22],
}


@pytest.mark.parametrize("count", GIVEN)
def test_all_topics(count):
    """A set that is made at once is larger than one that grew, just where it is three quarters full."""
    listed = names(count)
    assert names_of_the_image(listed) == [listed[index] for index in GIVEN[count]]


def test_topics_that_are_asked_for():
    asked = ["m1", "m2", "m3", "m4", "m5", "m6", "m7"]
    assert names_in_a_set(asked[:4]) == asked[:4]
    assert names_in_a_set(asked) == ["m7", "m2", "m4", "m1", "m6", "m3", "m5"]


def test_topics_that_are_made_for_the_asking():
    assert names_from_mutable(["anew", "bnew"]) == ["bnew", "anew"]
    assert names_from_mutable(["__transaction_state", "__share_group_state"]) == [
        "__share_group_state",
        "__transaction_state",
    ]


@pytest.mark.parametrize(
    ("added", "told"),
    [
        ([("m1", index) for index in range(12)], {"m1": [5, 4, 3, 2, 1, 0, 11, 10, 9, 8, 7, 6]}),
        ([("m1", index) for index in range(13)], {"m1": [5, 4, 3, 2, 1, 0, 12, 11, 10, 9, 8, 7, 6]}),
        (
            [("log", 3), ("log", 7), ("log", 18), ("log", 12), ("m2", 3), ("m2", 2), ("m2", 11), ("events", 19),
             ("events", 0), ("events", 5), ("m1", 7), ("m1", 0)],
            {"events": [19, 5, 0], "log": [18, 3, 12, 7], "m2": [3, 2, 11], "m1": [0, 7]},
        ),
    ],
)  # fmt: skip
def test_partitions_of_a_transaction(added, told):
    topics = {}
    for topic, index in hash_set_order(added):
        topics.setdefault(topic, []).append(index)
    assert list(topics.items()) == list(told.items())
