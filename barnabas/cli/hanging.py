"""Transactions that hang: open on a partition, and unknown to the coordinator that would have to end them (KIP-664).

Knows nothing of what is printed. What is open for no longer than transactions may be is not looked at, since its
coordinator may yet end it; of the rest, what a coordinator has among the partitions of an open transaction is in order.
"""

import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import click

from barnabas.clock import Clock

AT_ONCE = 500
"""Topics, or partitions, that are asked about in one go."""

PATIENCE_S = 10.0
PAUSE_S = 0.1


class Hanging(NamedTuple):
    """An open transaction of one partition that nobody will end."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int  #: -1: no transaction of this producer has ended there yet
    start_offset: int
    last_timestamp: int  #: milliseconds since 1970, of its last batch
    duration_minutes: int  #: since then


def find_hanging(
    admin: Any, topic: str | None, partition: int | None, broker_id: int | None, *, longer_than_ms: int, clock: Clock
) -> list[Hanging]:
    """Those of a partition, of a topic, of a broker's replicas (of a topic); by partition and offset."""
    places = [(topic, partition)] if topic and partition is not None else list(_partitions(admin, topic, broker_id))
    suspects = list(_open_for_long(admin, places, broker_id, longer_than_ms, clock.time_ms()))
    if not suspects:
        return []
    expected = _expected(admin, sorted({each.producer_id for each in suspects}), clock)
    return sorted(each for each in suspects if (each.topic, each.partition) not in expected.get(each.producer_id, ()))


def transaction_at(admin: Any, place: Any, start_offset: int) -> tuple[int, int, int]:
    """Producer id, producer epoch and coordinator epoch of the transaction that began at that offset of a partition.

    Raises:
        click.ClickException: there is none.
    """
    for each in admin.describe_producers([place])[place].active_producers:
        if each.current_transaction_start_offset == start_offset:
            return each.producer_id, each.producer_epoch, each.coordinator_epoch
    raise click.ClickException(f"No open transaction of {place.topic}-{place.partition} began at offset {start_offset}")


def described(admin: Any, transactional_id: str, *, clock: Clock) -> Any:
    """What the coordinator tells of the transactional id. A coordinator that is only coming up is given time for it."""
    from kafka.errors import RetriableError

    deadline = clock.monotonic() + PATIENCE_S
    while True:
        try:
            return admin.describe_transactions([transactional_id])[transactional_id]
        except RetriableError:
            if clock.monotonic() > deadline:
                raise
            time.sleep(PAUSE_S)


def _partitions(admin: Any, topic: str | None, broker_id: int | None) -> Iterator[tuple[str, int]]:
    for topics in _parts([topic] if topic else sorted(admin.list_topics())):
        for told in admin.describe_topics(topics):
            if told["error_code"] and topic:
                raise click.ClickException(f"There is no topic {topic}")
            for each in told["partitions"]:
                if broker_id is None or broker_id in each["replica_nodes"]:
                    yield told["name"], each["partition_index"]


def _open_for_long(
    admin: Any, places: list[tuple[str, int]], broker_id: int | None, longer_than_ms: int, now_ms: int
) -> Iterator[Hanging]:
    from kafka import TopicPartition

    for asked in _parts([TopicPartition(*place) for place in places]):
        for place, state in admin.describe_producers(asked, broker_id=broker_id).items():
            for each in state.active_producers:
                duration_ms = now_ms - each.last_timestamp
                if each.current_transaction_start_offset >= 0 and duration_ms > longer_than_ms:
                    yield Hanging(
                        place.topic,
                        place.partition,
                        each.producer_id,
                        each.producer_epoch,
                        each.coordinator_epoch,
                        each.current_transaction_start_offset,
                        each.last_timestamp,
                        duration_ms // 60_000,
                    )


def _expected(admin: Any, producer_ids: list[int], clock: Clock) -> dict[int, set[tuple[str, int]]]:
    """The partitions on which the coordinator of each producer, should it have one, will write an end."""
    from kafka.errors import TransactionalIdNotFoundError

    expected = {}
    for listed in admin.list_transactions(producer_id_filters=producer_ids).values():
        for each in listed:
            try:
                told = described(admin, each.transactional_id, clock=clock)
            except TransactionalIdNotFoundError:  # it has just expired
                continue
            expected[each.producer_id] = {tuple(place) for place in told.topic_partitions}
    return expected


def _parts(items: list[Any]) -> Iterable[list[Any]]:
    return (items[at : at + AT_ONCE] for at in range(0, len(items), AT_ONCE))
