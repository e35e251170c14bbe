"""Encodes and decodes the records of ``__transaction_state``.

Knows nothing of logs or batches.
"""

import struct
from collections.abc import Iterable

from barnabas.errors import MalformedMessage
from barnabas.transactions.messages import Record, TopicPartition, by_topic
from barnabas.transactions.states import State
from barnabas.transactions.transaction import NOTHING, Facts
from barnabas.wire.messages.transaction_records import (
    TransactionLogValue,
    decode_value,
    encode_key,
    encode_value,
)

OLDEST_VERSION, VERSION = 0, 1
"""Of the value. The newer one also has the previous and the next producer id; transaction.version 1 and up write it."""

KNOWN_VERSIONS = tuple(struct.pack(">h", version) for version in (OLDEST_VERSION, VERSION))

STATES = frozenset(State)

LONGEST_ID = (1 << 15) - 1
"""Bytes of UTF-8 of a transactional id. Requests may have longer ones, for which the key of a record has no place."""


def record_of(transactional_id: str, facts: Facts, transaction_version: int) -> Record:
    """Returns the record of these facts, as it is written at that level of transaction.version."""
    value = TransactionLogValue(
        producer_id=facts.producer_id,
        previous_producer_id=facts.previous_producer_id,
        next_producer_id=facts.next_producer_id,
        producer_epoch=facts.producer_epoch,
        transaction_timeout_ms=facts.timeout_ms,
        transaction_status=facts.state,
        transaction_partitions=None if facts.state is State.EMPTY else _partitions(facts.partitions),
        transaction_last_update_timestamp_ms=facts.update_time_ms,
        transaction_start_timestamp_ms=facts.start_time_ms,
        client_transaction_version=facts.client_version,
    )
    return encode_key(transactional_id), encode_value(value, VERSION if transaction_version else OLDEST_VERSION)


def tombstone(transactional_id: str) -> Record:
    """Returns the tombstone of a transactional id."""
    return encode_key(transactional_id), None


def is_known(value: bytes) -> bool:
    """Returns whether the value is of a version that this broker can decode."""
    return value[:2] in KNOWN_VERSIONS


def facts_of(value: bytes) -> Facts:
    """Decodes the value of a record. :raises MalformedMessage: it is not one"""
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


def _partitions(partitions: Iterable[TopicPartition]) -> list[TransactionLogValue.PartitionsSchema]:
    return [
        TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=ids)
        for topic, ids in by_topic(partitions).items()
    ]
