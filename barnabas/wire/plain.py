"""Converts messages to plain values: dictionaries, lists, numbers and text, including the records in their batches.

Knows nothing of who uses the values. Secrets can be hidden.
"""

from collections.abc import Callable, Iterator
from typing import Any

from barnabas.errors import KafkaError, MalformedMessage
from barnabas.records.batch import MAGIC, MAGIC_AT, RecordBatch, batches
from barnabas.records.control import control_record_type
from barnabas.records.message_set import Message as OldMessage
from barnabas.records.message_set import messages_in, records_of_message
from barnabas.records.record import Record, records_of
from barnabas.uuids import uuid_text
from barnabas.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from barnabas.wire.schema import Field, Struct
from barnabas.wire.types import BUILTIN_KINDS, Buffer, Fixed, Sized

HIDDEN = "[hidden]"

Hides = Callable[[Struct, str], bool]
"""Whether a field of a structure is a secret."""

#: Fields of bytes that hold a message of the consumer protocol.
SUBSCRIPTIONS = {"JoinGroupRequestProtocol.metadata", "JoinGroupResponseMember.metadata"}
ASSIGNMENTS = {"SyncGroupRequestAssignment.assignment", "SyncGroupResponse.assignment"}


def plain(structure: Struct, version: int, hides: Hides = lambda structure, name: False) -> dict[str, Any]:
    """Returns the fields of a structure in a version, in the order of their declaration."""
    found: dict[str, Any] = {}
    for field in structure.wire_fields():
        if version in field.versions:
            value = getattr(structure, field.name)
            is_secret = value is not None and hides(structure, field.name)
            found[field.name] = HIDDEN if is_secret else _plain(structure, field, value, version, hides)
    return found


def _plain(structure: Struct, field: Field, value: Any, version: int, hides: Hides) -> Any:
    kind = field.kind
    if value is None:
        return None
    if field.is_array:
        single = field._replace(is_array=False)
        return [_plain(structure, single, each, version, hides) for each in value]
    if isinstance(value, Struct):
        return plain(value, version, hides)
    if isinstance(kind, Fixed) and kind.format == "16s":
        return uuid_text(value)
    if isinstance(kind, Sized) and kind.shape == "records":
        return list(plain_records(value))
    if kind is BUILTIN_KINDS[bytes]:
        return _plain_bytes(f"{type(structure).__name__}.{field.name}", value)
    return value


def _plain_bytes(name: str, value: Buffer) -> Any:
    """Returns the message of the consumer protocol in the bytes, or the bytes."""
    kind = (
        ConsumerProtocolSubscription
        if name in SUBSCRIPTIONS
        else ConsumerProtocolAssignment
        if name in ASSIGNMENTS
        else None
    )
    if kind is not None:
        try:
            return plain(kind.decode_prefixed(value), kind.versions.last)
        except MalformedMessage:
            pass  # another protocol
    return text_or_hex(bytes(value))


# ---------------------------------------------------------------- records


def plain_records(data: Buffer) -> Iterator[dict[str, Any]]:
    """Yields the batches in ``data``, or the messages of older formats, and the records in each.

    A damaged batch or record is returned as a description of the damage.
    """
    if len(data) > MAGIC_AT and data[MAGIC_AT] < MAGIC:
        yield from _plain_or_damage(messages_in(data), _plain_message)
    else:
        yield from _plain_or_damage(batches(data), _plain_batch)


def _plain_or_damage(found: Iterator[Any], plain_one: Callable[[Any], dict[str, Any]]) -> Iterator[dict[str, Any]]:
    try:
        for each in found:
            yield plain_one(each)
    except KafkaError as error:
        yield {"damage": str(error)}


def _plain_batch(batch: RecordBatch) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "base_offset": batch.base_offset,
        "last_offset": batch.last_offset,
        "count": batch.count,
        "leader_epoch": batch.partition_leader_epoch,
        "codec": batch.attributes & 7,
        "timestamp_type": "LogAppendTime" if batch.is_log_append_time else "CreateTime",
        "max_timestamp": batch.max_timestamp,
        "producer_id": batch.producer_id,
        "producer_epoch": batch.producer_epoch,
        "base_sequence": batch.base_sequence,
        "is_transactional": batch.is_transactional,
        "is_control": batch.is_control,
        "crc_ok": batch.is_intact(),
    }
    try:
        plain["codec"] = batch.compression.name.lower()
        plain["records"] = [_plain_record(each, batch.is_control) for each in records_of(batch)]
    except KafkaError as error:
        plain["damage"] = str(error)
    return plain


def _plain_message(message: OldMessage) -> dict[str, Any]:
    plain: dict[str, Any] = {
        "last_offset": message.offset,
        "magic": message.magic,
        "codec": message.codec,
        "crc_ok": message.is_intact,
    }
    try:
        plain["records"] = [_plain_record(each, False) for each in records_of_message(message)]
    except KafkaError as error:
        plain["damage"] = str(error)
    return plain


def _plain_record(record: Record, is_control: bool) -> dict[str, Any]:
    plain: dict[str, Any] = {"offset": record.offset, "timestamp": record.timestamp}
    if is_control:
        kind = control_record_type(record.key)
        plain["control_type"] = kind.name if kind is not None else "unknown"
        return plain
    plain["key"] = None if record.key is None else text_or_hex(record.key)
    plain["value"] = None if record.value is None else text_or_hex(record.value)
    if record.headers:
        plain["headers"] = [[key, None if value is None else text_or_hex(value)] for key, value in record.headers]
    return plain


# ---------------------------------------------------------------- bytes


def text_or_hex(value: bytes) -> str | dict[str, str]:
    """Returns the bytes as text, or as ``{"hex": …}`` if they are not printable text.

    >>> text_or_hex(b"tea"), text_or_hex(bytes([0, 255]))
    ('tea', {'hex': '00ff'})
    """
    text = as_printable(value)
    return {"hex": value.hex()} if text is None else text


def as_printable(value: bytes) -> str | None:
    """Returns the bytes as text if they are printable UTF-8, otherwise None."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    return text if all(letter.isprintable() or letter in "\n\t" for letter in text) else None
