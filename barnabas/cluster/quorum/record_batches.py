"""Encodes and decodes record batches of metadata records.

Knows nothing of files, nor of what the records mean. The layouts are those of Apache Kafka's ``MetadataRecordSerde``
and raft ``BatchBuilder``. The cluster's ``metadata.version`` decides which version of a record is written.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from barnabas.records.batch import RecordBatch, batches
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlRecordType, control_key, control_record_type
from barnabas.records.record import records_of
from barnabas.wire.message import Message
from barnabas.wire.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    decode_metadata_record,
    encode_metadata_record,
)

MAX_BATCH_BYTES = 8 << 20
"""The maximum size of a batch; more records are split into several batches (``KafkaRaftClient.MAX_BATCH_SIZE_BYTES``).
"""

_RECORD_OVERHEAD = 24
_BATCH_OVERHEAD = 1024

_SINCE: dict[type, tuple[tuple[int, int], ...]] = {
    RegisterBrokerRecord: ((30, 4), (17, 3), (8, 2), (7, 1)),
    PartitionRecord: ((23, 2), (17, 1)),
    PartitionChangeRecord: ((23, 2), (17, 1)),
}
"""Pairs of metadata.version and the record version that may be written from it on (``MetadataVersion``)."""


class Control(NamedTuple):
    """A control record, which describes the log itself, not the cluster."""

    type: ControlRecordType | None  #: None if it is unknown
    value: bytes


def record_version(record: Any, metadata_version: int) -> int:
    """Returns the newest version that all nodes can read; for a broker registration change, the oldest possible."""
    if isinstance(record, BrokerRegistrationChangeRecord):
        if record.cordoned_log_dirs is not None:
            return 3
        return 2 if record.log_dirs else int(record.in_controlled_shutdown != 0)
    for since, version in _SINCE.get(type(record), ()):
        if metadata_version >= since:
            return version
    return 0


def as_read(record: Any, metadata_version: int) -> Any:
    """Returns the record as a reader decodes it: without the fields that its version lacks."""
    version = record_version(record, metadata_version)
    since = _SINCE.get(type(record))
    if since is None or version == since[0][1]:
        return record
    return type(record).decode(record.encode(version=version), version=version)


class EncodedBatch(NamedTuple):
    """A batch to append, and its records as a reader decodes them."""

    data: bytearray
    records: list[Any]


def encode_batches(
    records: Iterable[Any], *, metadata_version: int, timestamp: int, epoch: int, base_offset: int = 0
) -> Iterator[EncodedBatch]:
    """Encodes the records into as few batches as possible, with consecutive offsets."""
    values: list[tuple[None, bytes, int]] = []
    read: list[Any] = []
    size = 0
    for record in records:
        value = encode_metadata_record(record, record_version(record, metadata_version))
        if values and size + len(value) + _RECORD_OVERHEAD > MAX_BATCH_BYTES - _BATCH_OVERHEAD:
            yield EncodedBatch(build_batch(values, base_offset=base_offset, leader_epoch=epoch), read)
            base_offset += len(values)
            values, read, size = [], [], 0
        values.append((None, value, timestamp))
        read.append(as_read(record, metadata_version))
        size += len(value) + _RECORD_OVERHEAD
    if values:
        yield EncodedBatch(build_batch(values, base_offset=base_offset, leader_epoch=epoch), read)


def control_batch(
    records: Iterable[tuple[ControlRecordType, Message, int]], *, timestamp: int, epoch: int, base_offset: int = 0
) -> bytearray:
    """Encodes control records, each given with the version to write, into one batch."""
    return build_batch(
        [(control_key(kind), message.encode(version=version), timestamp) for kind, message, version in records],
        base_offset=base_offset,
        leader_epoch=epoch,
        is_control=True,
    )


class Decoded(NamedTuple):
    """A batch and its decoded records."""

    batch: RecordBatch
    records: list[Any]  #: metadata records, or :class:`Control`


def decode_batches(data: bytes | bytearray | memoryview) -> Iterator[Decoded]:
    """Decodes the batches in ``data`` one after the other.

    :raises CorruptMessage: a batch does not match its CRC
    :raises InvalidRecord: a record does not fit its batch, or the key of a control record is too short
    :raises MalformedMessage: a record has an unknown type or is truncated
    """
    for batch in batches(data):
        batch.check_crc()
        if batch.is_control:
            yield Decoded(
                batch,
                [Control(control_record_type(each.key), bytes(each.value or b"")) for each in records_of(batch)],
            )
        else:
            yield Decoded(batch, [decode_metadata_record(each.value or b"") for each in records_of(batch)])
