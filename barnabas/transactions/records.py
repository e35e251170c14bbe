"""A transactional id as a record of ``__transaction_state``, there and back.

Knows nothing of logs or batches.
"""

import logging
import struct
from collections.abc import Iterable, Iterator

from barnabas.errors import MalformedMessage
from barnabas.transactions.messages import Record, TopicPartition
from barnabas.transactions.states import State
from barnabas.transactions.transaction import NOTHING, Facts
from barnabas.wire.messages.transaction_records import (
    TransactionLogValue,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)

logger = logging.getLogger(__name__)

OLDEST_VERSION, VERSION = 0, 1
"""Of the value; the newer one has the ids to either side, and is written from transaction.version 1 on."""

KNOWN_VERSIONS = tuple(struct.pack(">h", version) for version in (OLDEST_VERSION, VERSION))

STATES = frozenset(State)

LONGEST_ID = (1 << 15) - 1
"""Bytes of UTF-8; requests may bring longer ones, for which a record's key has no place."""


def record_of(transactional_id: str, facts: Facts, transaction_version: int) -> Record:
    """The record that keeps these facts, as it is written at a level of transaction.version."""
    value = TransactionLogValue(
        producer_id=facts.producer_id,
        previous_producer_id=facts.previous_producer_id,
        next_producer_id=facts.next_producer_id,
        producer_epoch=facts.producer_epoch,
        transaction_timeout_ms=facts.timeout_ms,
        transaction_status=facts.state,
        transaction_partitions=None if facts.state is State.EMPTY else _by_topic(facts.partitions),
        transaction_last_update_timestamp_ms=facts.update_time_ms,
        transaction_start_timestamp_ms=facts.start_time_ms,
        client_transaction_version=facts.client_version,
    )
    return encode_key(transactional_id), encode_value(value, VERSION if transaction_version else OLDEST_VERSION)


def tombstone(transactional_id: str) -> Record:
    """The record that takes a transactional id away."""
    return encode_key(transactional_id), None


def latest(records: Iterable[Record]) -> Iterator[tuple[str, Facts | None]]:
    """Each transactional id with what was kept of it last, or None where it was taken away.

    Only the last record of each is decoded. What a newer broker wrote is passed over: records of other kinds, and
    values of versions that aren't known here.
    :raises MalformedMessage: a record is none
    """
    last: dict[bytes, bytes | None] = {}
    unknown = 0
    for key, value in records:
        if value is None or value[:2] in KNOWN_VERSIONS:
            last[key] = value
        else:
            unknown += 1
    if unknown:
        logger.warning("%d records are of a newer broker's version, and passed over", unknown)
    for key, value in last.items():
        transactional_id = decode_key(key)
        if transactional_id is not None:
            yield transactional_id, None if value is None else facts_of(value)


def facts_of(value: bytes) -> Facts:
    """What a record's value says. :raises MalformedMessage: it is none"""
    kept = decode_value(value)
    if kept.transaction_status not in STATES:
        raise MalformedMessage(f"a transaction has no state {kept.transaction_status}")
    partitions = kept.transaction_partitions
    return Facts(
        State(kept.transaction_status),
        kept.producer_id,
        kept.producer_epoch,
        kept.transaction_timeout_ms,
        {TopicPartition(each.topic, index): None for each in partitions for index in each.partition_ids}
        if partitions
        else NOTHING,
        kept.transaction_start_timestamp_ms,
        kept.transaction_last_update_timestamp_ms,
        kept.previous_producer_id,
        kept.next_producer_id,
        client_version=kept.client_transaction_version,
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> list[TransactionLogValue.PartitionsSchema]:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return [TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=ids) for topic, ids in topics.items()]
