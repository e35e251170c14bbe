"""Cooperative rebalancing: a member that keeps a partition never stops reading it."""

import contextlib
from collections.abc import Iterator

import pytest

from compat_tests.adapters import CLIENTS, Client
from compat_tests.waiting import poll_until

PARTITIONS = 6


@pytest.fixture(params=["confluent_kafka", "kafka_python"])
def client(request: pytest.FixtureRequest, bootstrap: str) -> Iterator[Client]:
    with contextlib.closing(CLIENTS[request.param](bootstrap)) as made:
        yield made


def test_kept_partitions_are_never_revoked(client: Client, topic: str, group: str) -> None:
    client.create_topic(topic, PARTITIONS)
    everything = {(topic, index) for index in range(PARTITIONS)}
    first = client.consumer(group=group, assignor="cooperative-sticky")
    first.subscribe([topic])
    poll_until([first], lambda: first.assignment() == everything, "one member has all")
    second = client.consumer(group=group, assignor="cooperative-sticky")
    second.subscribe([topic])
    owned_by_first: list[frozenset[tuple[str, int]]] = []

    def shared() -> bool:
        owned_by_first.append(frozenset(first.assignment()))
        mine, others = first.assignment(), second.assignment()
        return len(mine) == len(others) == 3 and mine | others == everything

    poll_until([first, second], shared, "two members share")
    kept = first.assignment()
    assert all(kept <= owned for owned in owned_by_first), "a kept partition was revoked on the way"
    second.close()
    poll_until([first], lambda: first.assignment() == everything, "one member has all again")
