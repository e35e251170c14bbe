"""Polls for a condition until a deadline. Uses clients only by their adapters."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from compat_tests.adapters import Consumer, Place, Record
from compat_tests.adapters.base import WAIT_S


def read(consumer: Consumer, count: int, seconds: float = WAIT_S) -> list[Record]:
    """Returns the next ``count`` records; fails if there are fewer or more."""
    records: list[Record] = []
    deadline = time.monotonic() + seconds
    while len(records) < count:
        assert time.monotonic() < deadline, f"{len(records)} of {count} records after {seconds} s: {state_of(consumer)}"
        records += consumer.poll(0.2)
    assert len(records) == count, f"{len(records)} records instead of {count}"
    return records


def poll_until(
    consumers: Sequence[Consumer], reached: Callable[[], bool], what: str, seconds: float = WAIT_S
) -> list[Record]:
    """Polls all consumers until the condition holds; returns their records."""
    records: list[Record] = []
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}: {[state_of(each) for each in consumers]}"
        records += (record for polled in poll_all(consumers) for record in polled)
    return records


def poll_all(consumers: Sequence[Consumer], seconds: float = 0.2) -> list[list[Record]]:
    """Polls each consumer in its own thread, as its program would; returns the records of each.

    Members that are polled in turns wait for each other, and kafka-python 3.0.12 forgets a join that ends while it is
    not polled: such a group may never settle, with Apache Kafka either.
    """
    if not consumers:
        return []
    with ThreadPoolExecutor(len(consumers)) as threads:
        return list(threads.map(lambda consumer: consumer.poll(seconds), consumers))


def state_of(consumer: Consumer) -> dict[Place, object]:
    """Describes the consumer's positions and its partitions' bounds, for a failed test's message."""
    return {place: (consumer.position(place), consumer.bounds(place)) for place in sorted(consumer.assignment())}
