"""Java's hash codes and iteration orders, from a Java virtual machine and Apache Kafka 4.3.1."""

import pytest

from barnabas.groups.java_hash import (
    hash_code,
    hash_map_order,
    partition_of,
    timeline_order,
)


def codes(numbers):
    """Returns strings with these hash codes."""
    return [chr(number) for number in numbers]


@pytest.mark.parametrize(
    ("text", "code"),
    [("", 0), ("g", 103), ("simple", -902286926), ("é", 233), ("𝄞", 1772394), ("polygenelubricants", -(1 << 31))],
)
def test_hash_code(text, code):
    assert hash_code(text) == code


@pytest.mark.parametrize(
    ("group_id", "partition"),
    [("g", 3), ("simple", 26), ("bad", 35), ("big", 36), ("readers", 28), ("polygenelubricants", 0)],
)
def test_where_apache_kafka_keeps_a_group(group_id, partition):
    assert partition_of(group_id, 50) == partition


@pytest.mark.parametrize(
    ("keys", "order"),
    [
        (codes(range(3)), codes([2, 0, 1])),
        (codes(range(6)), codes([5, 0, 2, 4, 1, 3])),
        (codes(range(12)), codes([0, 5, 10, 2, 7, 4, 9, 1, 6, 11, 3, 8])),
        (codes(range(13)), codes([0, 5, 10, 2, 7, 12, 4, 9, 1, 6, 11, 3, 8])),
        ([f"topic-{7 * number}" for number in range(5)], ["topic-28", "topic-7", "topic-14", "topic-21", "topic-0"]),
        (["t", "u"], ["u", "t"]),
        ([], []),
    ],
)
def test_the_order_of_a_timeline_hash_map(keys, order):
    assert timeline_order(keys) == order


def test_a_hash_map_grows():
    keys = [f"protocol-{number}" for number in range(13)]
    assert sorted(hash_map_order(keys)) == sorted(keys)
    assert hash_map_order(["roundrobin", "range"]) == ["range", "roundrobin"]


def test_long_texts_have_hashes_as_short_ones_have():
    # The code of two strings is that of the first times 31 for each character of the second, plus that of the second.
    half = "x" * 200
    code = hash_code(half) * pow(31, 200, 1 << 32) + hash_code(half)
    assert hash_code(half + half) % (1 << 32) == code % (1 << 32)
