"""Transaction markers: the control batches that end a transaction on its partitions.

Knows nothing of the transaction coordinator. Format and rules of Apache Kafka's ``EndTransactionMarker`` and
``KafkaApis.handleWriteTxnMarkersRequest`` (KIP-98, KIP-1228).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from struct import Struct
from typing import Final, Protocol

from barnabas.broker.coordinators import Coordinators
from barnabas.clock import Clock
from barnabas.cluster.replication.partition import ACKS_ALL, Partition
from barnabas.cluster.topic_names import CONSUMER_OFFSETS
from barnabas.errors import KafkaError, NotLeaderOrFollower, UnknownServerError, UnknownTopicOrPartition
from barnabas.log.producer_state import BUMPS_EPOCH
from barnabas.records.batch import RecordBatch
from barnabas.records.builder import build_batch, sign
from barnabas.records.control import ControlRecordType, control_key
from barnabas.transactions.messages import Marker, PartitionErrors, TopicPartition


class Node(Protocol):
    """The part of the broker that is used here."""

    @property
    def clock(self) -> Clock: ...

    @property
    def partitions(self) -> Mapping[tuple[str, int], Partition]: ...

    @property
    def coordinators(self) -> Coordinators: ...


_VALUE: Final = Struct(">hi")  # version, coordinator epoch
VALUE_VERSION: Final = 0

_VARYING: Final = Struct(">qqqh")  # base and max timestamp, producer id, producer epoch
_VARYING_AT: Final = 27
_VALUE_END: Final = 1  # byte after the value: the number of headers


def _template(kind: ControlRecordType) -> bytes:
    record = control_key(kind), _VALUE.pack(VALUE_VERSION, 0), 0
    return bytes(build_batch([record], is_control=True, is_transactional=True))


_TEMPLATES: Final = {True: _template(ControlRecordType.COMMIT), False: _template(ControlRecordType.ABORT)}
"""Encoded markers without a producer, by whether they commit. Copying one is faster than encoding it."""


def end_marker(marker: Marker, now_ms: int) -> RecordBatch:
    """Returns the control batch of the marker, which has one record and no sequence."""
    data = bytearray(_TEMPLATES[marker.is_commit])
    _VARYING.pack_into(data, _VARYING_AT, now_ms, now_ms, marker.producer_id, marker.producer_epoch)
    _VALUE.pack_into(data, len(data) - _VALUE_END - _VALUE.size, VALUE_VERSION, marker.coordinator_epoch)
    sign(data)
    return RecordBatch.parse(data)


def write_markers(
    node: Node,
    marker: Marker,
    partitions: Sequence[TopicPartition],
    done: Callable[[PartitionErrors], object],
) -> None:
    """Appends the marker to each of these partitions, and calls ``done`` with the errors once all markers are
    replicated or flushed.

    UNKNOWN_TOPIC_OR_PARTITION: the partition is not hosted, or its log directory is offline. Other errors are those of
    :meth:`ProducerState.check` and :meth:`ProducerState.check_end`.
    """
    now_ms = node.clock.time_ms()
    batch = end_marker(marker, now_ms)
    errors: dict[TopicPartition, KafkaError | None] = {}
    unsafe: list[tuple[TopicPartition, Partition, int]] = []
    for place in partitions:
        partition = node.partitions.get(place)
        if partition is None or partition.log.is_offline:
            errors[place] = UnknownTopicOrPartition()
            continue
        if place.topic == CONSUMER_OFFSETS and not node.coordinators.groups.is_active(place.partition):
            errors[place] = NotLeaderOrFollower()  # its group coordinator is still loading, and the sender retries
            continue
        try:
            last_offset = _append(partition, marker, batch, now_ms)
        except KafkaError as error:
            errors[place] = error
            continue
        errors[place] = None
        if place.topic == CONSUMER_OFFSETS:
            node.coordinators.groups.transaction_ended(place.partition, marker.producer_id, marker.is_commit)
        if not partition.is_safe(last_offset + 1, ACKS_ALL):
            unsafe.append((place, partition, last_offset + 1))
    if unsafe:
        _when_safe(unsafe, errors, done)
    else:
        done(errors)


def _append(partition: Partition, marker: Marker, batch: RecordBatch, now_ms: int) -> int:
    """Appends the marker to one partition, and returns its offset. :raises KafkaError: it is refused"""
    partition.check_leader()
    if marker.producer_id >= 0:
        if marker.transaction_version < 0:
            raise UnknownServerError("The marker has no transaction version")
        partition.log.producers.check_end(marker.producer_id, marker.producer_epoch, marker.transaction_version)
    if partition.produce_policy.log_append_time:
        batch = RecordBatch.parse(bytearray(batch.buffer))
        batch.retime(now_ms, log_append_time=True)
    last_offset = partition.append(batch, now_ms, acks=ACKS_ALL).last_offset
    if marker.transaction_version < BUMPS_EPOCH:  # the epoch does not identify the transaction
        partition.log.producers.verifications.pop(marker.producer_id, None)
    return last_offset


def _when_safe(
    unsafe: Sequence[tuple[TopicPartition, Partition, int]],
    errors: dict[TopicPartition, KafkaError | None],
    done: Callable[[PartitionErrors], object],
) -> None:
    waiting = len(unsafe)

    def safe(place: TopicPartition, error: KafkaError | None) -> None:
        nonlocal waiting
        errors[place] = error
        waiting -= 1
        if not waiting:
            done(errors)

    for place, partition, offset in unsafe:
        partition.when_safe(offset, ACKS_ALL, partial(safe, place))
