"""Finds hanging transactions, which are open on a partition, but unknown to every transaction coordinator (KIP-664).

Knows nothing of what is printed. A transaction younger than the maximum transaction timeout is left out, because its
coordinator may still end it. An older one hangs if no coordinator has an open transaction with its producer and
partition.
"""

import time
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import click

from barnabas.clock import Clock

MAX_PER_REQUEST = 500
"""Topics or partitions in one request."""

PATIENCE_S = 10.0
PAUSE_S = 0.1


class Hanging(NamedTuple):
    """An open transaction on one partition that no coordinator will end."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int  #: of the last marker for this producer on the partition; -1 if there is none
    start_offset: int
    last_timestamp: int  #: of its last batch, in milliseconds since 1970
    duration_minutes: int  #: since ``last_timestamp``


def find_hanging(
    admin: Any, topic: str | None, partition: int | None, broker_id: int | None, *, longer_than_ms: int, clock: Clock
) -> list[Hanging]:
    """Returns the hanging transactions of a partition, a topic, a broker's replicas, or a topic's replicas on a broker.

    They are sorted by partition and offset.
    """
    topic_partitions = (
        [(topic, partition)] if topic and partition is not None else list(_partitions(admin, topic, broker_id))
    )
    suspects = list(_open_for_long(admin, topic_partitions, broker_id, longer_than_ms, clock.time_ms()))
    if not suspects:
        return []
    expected = _expected(admin, sorted({each.producer_id for each in suspects}), clock)
    return sorted(each for each in suspects if (each.topic, each.partition) not in expected.get(each.producer_id, ()))


def transaction_at(admin: Any, topic_partition: Any, start_offset: int) -> tuple[int, int, int]:
    """Returns producer id, producer epoch and coordinator epoch of the open transaction with that start offset.

    :raises click.ClickException: the partition has none
    """
    for each in admin.describe_producers([topic_partition])[topic_partition].active_producers:
        if each.current_transaction_start_offset == start_offset:
            return each.producer_id, each.producer_epoch, each.coordinator_epoch
    raise click.ClickException(
        f"Could not find any open transactions starting at offset {start_offset} on partition "
        f"{topic_partition.topic}-{topic_partition.partition}"
    )


def describe_transaction(admin: Any, transactional_id: str, *, clock: Clock) -> Any:
    """Describes a transactional id; retries for a while if the coordinator is not available yet."""
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
    for topics in _chunks([topic] if topic else sorted(admin.list_topics())):
        for found in admin.describe_topics(topics):
            if found["error_code"] and topic:
                raise click.ClickException(f"There is no topic {topic}")
            for each in found["partitions"]:
                if broker_id is None or broker_id in each["replica_nodes"]:
                    yield found["name"], each["partition_index"]


def _open_for_long(
    admin: Any, topic_partitions: list[tuple[str, int]], broker_id: int | None, longer_than_ms: int, now_ms: int
) -> Iterator[Hanging]:
    from kafka import TopicPartition

    for chunk in _chunks([TopicPartition(*topic_partition) for topic_partition in topic_partitions]):
        for topic_partition, state in admin.describe_producers(chunk, broker_id=broker_id).items():
            for each in state.active_producers:
                duration_ms = now_ms - each.last_timestamp
                if each.current_transaction_start_offset >= 0 and duration_ms > longer_than_ms:
                    yield Hanging(
                        topic_partition.topic,
                        topic_partition.partition,
                        each.producer_id,
                        each.producer_epoch,
                        each.coordinator_epoch,
                        each.current_transaction_start_offset,
                        each.last_timestamp,
                        duration_ms // 60_000,
                    )


def _expected(admin: Any, producer_ids: list[int], clock: Clock) -> dict[int, set[tuple[str, int]]]:
    """Returns, by producer id, the partitions of the open transaction that its coordinator will end."""
    from kafka.errors import TransactionalIdNotFoundError

    expected = {}
    for listed in admin.list_transactions(producer_id_filters=producer_ids).values():
        for each in listed:
            try:
                transaction = describe_transaction(admin, each.transactional_id, clock=clock)
            except TransactionalIdNotFoundError:  # it has just expired
                continue
            expected[each.producer_id] = {tuple(topic_partition) for topic_partition in transaction.topic_partitions}
    return expected


def _chunks(items: list[Any]) -> Iterable[list[Any]]:
    return (items[at : at + MAX_PER_REQUEST] for at in range(0, len(items), MAX_PER_REQUEST))
