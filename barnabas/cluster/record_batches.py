"""Metadata records and the record batches that hold them: values in, batches out, and back.

Knows nothing of files or of what the records mean. Layouts of Apache Kafka's ``MetadataRecordSerde`` and raft
``BatchBuilder``; which version of a record is written, the cluster's ``metadata.version`` says.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from barnabas.records.batch import RecordBatch, batches
from barnabas.records.builder import build_batch
from barnabas.records.record import records_of
from barnabas.wire.message import Message
from barnabas.wire.messages.control_records import ControlRecordType, decode_control_key, encode_control_key
from barnabas.wire.messages.metadata_records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    decode_metadata_record,
    encode_metadata_record,
)

MAX_BATCH_BYTES = 8 << 20
"""Records of more than that are written in several batches (``KafkaRaftClient.MAX_BATCH_SIZE_BYTES``)."""

_RECORD_OVERHEAD = 24
_BATCH_OVERHEAD = 1024

_SINCE: dict[type, tuple[tuple[int, int], ...]] = {
    RegisterBrokerRecord: ((30, 4), (17, 3), (8, 2), (7, 1)),
    PartitionRecord: ((23, 2), (17, 1)),
    PartitionChangeRecord: ((23, 2), (17, 1)),
}
"""From which metadata.version on which version of a record may be written (``MetadataVersion``)."""


class Control(NamedTuple):
    """A control record: not about the cluster, but about the log itself."""

    type: int
    value: bytes


def record_version(record: Any, metadata_version: int) -> int:
    """The newest version that every node of the cluster can read; of a changed registration the oldest that will do."""
    if isinstance(record, BrokerRegistrationChangeRecord):
        if record.cordoned_log_dirs is not None:
            return 3
        return 2 if record.log_dirs else int(record.in_controlled_shutdown != 0)
    for since, version in _SINCE.get(type(record), ()):
        if metadata_version >= since:
            return version
    return 0


def as_read(record: Any, metadata_version: int) -> Any:
    """The record as it will be read again: without what its older version has no place for."""
    version = record_version(record, metadata_version)
    since = _SINCE.get(type(record))
    if since is None or version == since[0][1]:
        return record
    return type(record).decode(record.encode(version=version), version=version)


def encode_batches(
    records: Iterable[Any], *, metadata_version: int, timestamp: int, epoch: int, base_offset: int = 0
) -> Iterator[bytearray]:
    """The records in as few batches as they fit in, offsets following one another."""
    values: list[tuple[None, bytes, int]] = []
    size = 0
    for record in records:
        value = encode_metadata_record(record, record_version(record, metadata_version))
        if values and size + len(value) + _RECORD_OVERHEAD > MAX_BATCH_BYTES - _BATCH_OVERHEAD:
            yield build_batch(values, base_offset=base_offset, leader_epoch=epoch)
            base_offset += len(values)
            values, size = [], 0
        values.append((None, value, timestamp))
        size += len(value) + _RECORD_OVERHEAD
    if values:
        yield build_batch(values, base_offset=base_offset, leader_epoch=epoch)


def control_batch(
    records: Iterable[tuple[ControlRecordType, Message, int]], *, timestamp: int, epoch: int, base_offset: int = 0
) -> bytearray:
    """One batch of control records, each given with the version that it is to be written in."""
    return build_batch(
        [(encode_control_key(kind), message.encode(version=version), timestamp) for kind, message, version in records],
        base_offset=base_offset,
        leader_epoch=epoch,
        is_control=True,
    )


class Decoded(NamedTuple):
    """What a batch says."""

    batch: RecordBatch
    records: list[Any]  #: metadata records, or :class:`Control`


def decode_batches(data: bytes | bytearray | memoryview) -> Iterator[Decoded]:
    """What the batches in ``data`` say, one after the other.

    :raises CorruptMessage: a batch that is not what its checksum says
    :raises MalformedMessage: a record that nobody knows
    """
    for batch in batches(data):
        batch.check_crc()
        if batch.is_control:
            yield Decoded(
                batch,
                [Control(decode_control_key(each.key or b""), bytes(each.value or b"")) for each in records_of(batch)],
            )
        else:
            yield Decoded(batch, [decode_metadata_record(each.value or b"") for each in records_of(batch)])
