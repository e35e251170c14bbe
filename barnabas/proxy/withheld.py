"""Removes secrets from a recording, and on request the contents of records.

Knows nothing of files. A batch whose records are removed or hashed keeps offsets, timestamps, counts and codec, so that
a broker handles it in the same way when it is replayed.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Any, Final

from barnabas.errors import KafkaError
from barnabas.records.batch import MAGIC, MAGIC_AT, Compression, RecordBatch, batches
from barnabas.records.builder import recompress, write_record
from barnabas.records.message_set import Message as OldMessage
from barnabas.records.message_set import build_messages, build_wrapper, messages_in, records_of_message
from barnabas.records.record import Header, records_of
from barnabas.wire.message import Message, Request
from barnabas.wire.schema import Field, Struct
from barnabas.wire.secrets import CONFIG_VALUES, SECRETS, is_secret
from barnabas.wire.types import Buffer, Sized

SHORTEST_HASH: Final = 8
"""The shortest hash. A hash is as long as the original, but not so short that collisions are frequent."""

Change = Callable[[bytes], bytes]
"""Returns the replacement of a key, a value or the value of a header."""


class Records(Enum):
    """How keys and values of records are recorded."""

    WHOLE = "whole"
    HASH = "hash"
    NONE = "none"


def change_of(records: Records, key: bytes) -> Change | None:
    """Returns the function that replaces keys and values; None if they are kept.

    :param key: the secret key of this recording's hashes, so that short or known values cannot be guessed
    """
    if records is Records.WHOLE:
        return None
    if records is Records.NONE:
        return lambda value: b""
    return lambda value: hashlib.shake_256(key + value).digest(max(len(value), SHORTEST_HASH)) if value else b""


class Withholding:
    """Removes secrets, and keys and values if so configured, from messages before they are recorded."""

    def __init__(self, change: Change | None, requests: Mapping[int, type[Request]]) -> None:
        self._change = change
        self._touched = {
            cls
            for request in requests.values()
            for cls in (request, request.response)
            if _has_secrets(cls) or (change is not None and _has_records(cls))
        }

    def touches(self, message: type[Message]) -> bool:
        """Returns whether such messages may contain something to be removed."""
        return message in self._touched

    def withhold(self, message: Struct) -> bool:
        """Removes secrets from a message, and changes its records. Returns whether there were secrets."""
        had_secrets = False
        for structure, field in _fields(message):
            value = getattr(structure, field.name)
            if _is_records(field):
                if self._change is not None and value:
                    setattr(structure, field.name, changed_records(value, self._change))
            elif value and is_secret(structure, field.name):
                setattr(structure, field.name, value[:0])
                had_secrets = True
        return had_secrets


def _fields(structure: Any) -> Iterator[tuple[Any, Field]]:
    """Yields each field of a structure and of those in it that has no structures."""
    for field in structure.wire_fields():
        if not isinstance(field.kind, type):
            yield structure, field
            continue
        value = getattr(structure, field.name)
        for each in (value or ()) if field.is_array else () if value is None else (value,):
            yield from _fields(each)


def _is_records(field: Field) -> bool:
    return isinstance(field.kind, Sized) and field.kind.shape == "records"


def _has_records(structure: type[Struct]) -> bool:
    return any(
        _has_records(field.kind) if isinstance(field.kind, type) else _is_records(field)
        for field in structure.wire_fields()
    )


def _has_secrets(structure: type[Struct]) -> bool:
    return any(
        _has_secrets(field.kind)
        if isinstance(field.kind, type)
        else f"{structure.__qualname__}.{field.name}" in SECRETS | CONFIG_VALUES
        for field in structure.wire_fields()
    )


# ---------------------------------------------------------------- records


def changed_records(data: Buffer, change: Change) -> bytes:
    """Returns batches, or messages of older formats, with other keys and values; none if they cannot be read."""
    try:
        if len(data) > MAGIC_AT and data[MAGIC_AT] < MAGIC:
            return b"".join(_changed_message(each, change) for each in messages_in(data))
        return b"".join(_changed_batch(each, change) for each in batches(data))
    except KafkaError:
        return b""


def _changed_batch(batch: RecordBatch, change: Change) -> Buffer:
    if batch.is_control:
        return batch.buffer
    body = bytearray()
    for record in records_of(batch):
        write_record(
            body,
            0 if batch.is_log_append_time else record.timestamp - batch.base_timestamp,
            record.offset - batch.base_offset,
            _changed(record.key, change),
            _changed(record.value, change),
            [_changed_header(header, change) for header in record.headers],
        )
    return recompress(batch, bytes(body), batch.compression).buffer


def _changed_header(header: Header, change: Change) -> Header:
    return header[0], _changed(header[1], change)


def _changed(value: bytes | None, change: Change) -> bytes | None:
    return None if value is None else change(value)


def _changed_message(message: OldMessage, change: Change) -> bytes:
    records = [
        each._replace(key=_changed(each.key, change), value=_changed(each.value, change))
        for each in records_of_message(message)
    ]
    by_broker = message.is_log_append_time
    if not message.codec:
        return b"".join(build_messages(records, message.magic, log_append_time=by_broker))
    return build_wrapper(records, message.magic, Compression(message.codec), log_append_time=by_broker)
