"""Orders of names that Apache Kafka 4.3.1 gave."""

import pytest

from barnabas.api_handlers.hash_order import names_from_mutable, names_in_a_set, names_of_the_image


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
