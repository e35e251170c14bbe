"""Hashes of topics and groups, as Apache Kafka 4.3.1 computed them."""

from types import SimpleNamespace

import pytest

from barnabas.groups.assigning.topic_hash import group_hash, topic_hash

RACKS = {1: "a", 2: "b", 3: None}
BROKERS = {broker_id: SimpleNamespace(rack=rack) for broker_id, rack in RACKS.items()}
ID = bytes.fromhex("00000000000000010000000000000002")


def topic(*replicas, name="orders", id=ID):
    partitions = {index: SimpleNamespace(replicas=each) for index, each in enumerate(replicas)}
    return SimpleNamespace(name=name, id=id, partitions=partitions)


@pytest.mark.parametrize(
    ("hashed", "number"),
    [
        (topic((1, 3), (1, 2), (3,)), 8688614760773221863),
        (topic((1, 3), (2, 1), (4,)), 8688614760773221863),
        (topic(*[(3,)] * 300), 924677151016922371),
        (topic(()), -5957280043149270389),
        (topic(name="ü", id=b"\xf0" + ID[1:]), 4506236005662472286),
    ],
)
def test_topic(hashed, number):
    assert topic_hash(hashed, BROKERS) == number


def test_group():
    assert group_hash({"ü": 4506236005662472286, "orders": -5957280043149270389}) == -8443699667704786510
    assert group_hash({"orders": 8688614760773221863}) == -4826393907473607630
    assert group_hash({}) == 0
