"""Decodes and encodes columns of Protobuf values with Google's protobuf, with a schema registry's header or without.

Knows nothing of Spark; protobuf_types maps messages to types.
"""

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

import pyarrow as pa
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, EncodeError

from barnabas.pipelines.values.avro_types import NoSparkType
from barnabas.pipelines.values.framing import (
    Undecodable,
    Unencodable,
    header,
    hint_of_header,
    message_indexes,
    schema_id_of,
    write_message_indexes,
)
from barnabas.pipelines.values.protobuf_schemas import (
    at_indexes,
    class_of,
    from_registry,
    indexes_of,
    message_of,
)
from barnabas.pipelines.values.protobuf_types import (
    DURATION,
    JSON,
    SCALARS,
    TIMESTAMP,
    UNSIGNED,
    WRAPPERS,
    Column,
    is_map,
    message_column,
)
from barnabas.pipelines.values.registry import Registry
from barnabas.pipelines.values.rows import VALUE_ERRORS, Decoded, encode_rows, error_text

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MICROSECOND = datetime.timedelta(microseconds=1)


@dataclass(frozen=True)
class ProtobufDecoder:
    """Decodes a column of bytes as messages with this full name. It is sent to workers."""

    descriptors: bytes
    message: str
    registry: Registry | None = None
    framed: bool = False

    @property
    def type(self) -> pa.DataType:
        """The type of the decoded column."""
        return _column(self.descriptors, self.message).type

    def __call__(self, column: pa.Array) -> Decoded:
        """Returns each value as a struct; a bad value is null and has an error."""
        parse = class_of(message_of(self.descriptors, self.message)).FromString
        messages: list[Any] = []
        errors: list[str | None] = []
        for value in column.to_pylist():
            message = error = None
            if value is not None:
                try:
                    message = parse(value[self._start(value) :] if self.framed else value)
                except DecodeError:
                    hint = hint_of_header(value, framed=self.framed)
                    error = f"the {len(value)} bytes are not a message {self.message}{hint}"
                except VALUE_ERRORS as problem:
                    error = error_text(problem)
            messages.append(message)
            errors.append(error)
        return Decoded(self._columns(messages, errors), pa.array(errors, pa.string()))

    def _columns(self, messages: list[Any], errors: list[str | None]) -> pa.Array:
        """Converts all at once, or one by one if a value fits no column (such as NaN in JSON)."""
        make = _column(self.descriptors, self.message).make
        try:
            return make(messages)
        except (pa.ArrowException, json_format.Error, *VALUE_ERRORS):
            for at, message in enumerate(messages):
                try:
                    make([message])
                except (pa.ArrowException, json_format.Error, *VALUE_ERRORS) as problem:
                    messages[at], errors[at] = None, error_text(problem)
            return make(messages)

    def _start(self, value: bytes) -> int:
        schema_id = schema_id_of(value)
        indexes, start = message_indexes(value)
        if self.registry is not None:
            name = _written_by(self.registry, schema_id, indexes)
            if name != self.message:
                raise Undecodable(f"it is a {name} (schema {schema_id}), not a {self.message}")
        return start


@dataclass(frozen=True)
class ProtobufEncoder:
    """Encodes a column of structs; writes `schema_id` and the message's indexes before each value, unless it is
    None.
    """

    descriptors: bytes
    message: str
    schema_id: int | None = None

    def __call__(self, column: pa.Array) -> pa.Array:
        """Returns each row as bytes.

        :raises Unencodable: the message does not allow a row.
        """
        descriptor = message_of(self.descriptors, self.message)
        make = class_of(descriptor)
        before = b""
        if self.schema_id is not None:
            before = header(self.schema_id) + write_message_indexes(indexes_of(descriptor))

        def write(row: Any) -> bytes:
            message = make()
            try:
                _fill(message, descriptor, row)
                return before + bytes(message.SerializeToString(deterministic=True))
            except (json_format.Error, EncodeError) as problem:  # which are no ValueErrors, unlike all others
                raise Unencodable(error_text(problem)) from problem

        return encode_rows(column, write)


def check_fits(descriptors: bytes, message: str, type: pa.DataType) -> None:
    """Checks that a column of this type can be written as the message.

    :raises NoSparkType: it cannot; the message names the field.
    """
    _check_fits(message_of(descriptors, message), type, ())


@lru_cache(maxsize=256)
def _column(descriptors: bytes, message: str) -> Column:
    return message_column(message_of(descriptors, message))


@lru_cache(maxsize=1024)
def _written_by(registry: Registry, schema_id: int, indexes: tuple[int, ...]) -> str:
    """Returns the full name of the message in a value's header. The schema of an id never changes."""
    found = registry.by_id(schema_id, serialized=True)
    if found.kind != "PROTOBUF":
        raise Undecodable(f"schema {schema_id} is {found.kind}, not Protobuf")
    return at_indexes(from_registry(found), indexes)


def _fill(message: Any, descriptor: Descriptor, row: Mapping[str, Any]) -> None:
    """Sets the fields that are not null in the row."""
    fields = descriptor.fields_by_name
    for name, value in row.items():
        if value is None:
            continue
        field = fields[name]
        if is_map(field):
            _fill_map(getattr(message, name), field.message_type.fields_by_name["value"], value)
        elif field.is_repeated:
            _fill_list(getattr(message, name), field, value)
        elif field.message_type is not None:
            _fill_message(getattr(message, name), field.message_type, value)
        else:
            setattr(message, name, _scalar(field, value))


def _fill_map(target: Any, field: FieldDescriptor, values: Mapping[Any, Any]) -> None:
    for key, value in values.items():
        if field.message_type is not None:
            _fill_message(target[key], field.message_type, value)
        else:
            target[key] = _scalar(field, value)


def _fill_list(target: Any, field: FieldDescriptor, values: list[Any]) -> None:
    if field.message_type is None:
        target.extend(_scalar(field, value) for value in values)
        return
    for value in values:
        _fill_message(target.add(), field.message_type, value)


def _fill_message(target: Any, descriptor: Descriptor, value: Any) -> None:
    name = descriptor.full_name
    if not descriptor.fields:
        if value:
            target.SetInParent()
        return
    target.SetInParent()
    if name == TIMESTAMP:
        instant = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
        target.seconds, micros = divmod((instant - EPOCH) // MICROSECOND, 1_000_000)
        target.nanos = micros * 1_000
    elif name == DURATION:
        target.FromTimedelta(value)
    elif name in WRAPPERS:
        target.value = _scalar(descriptor.fields_by_name["value"], value)
    elif name in JSON:
        json_format.Parse(value, target)
    else:
        _fill(target, descriptor, value)


def _scalar(field: FieldDescriptor, value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value)
    if field.enum_type is None or not isinstance(value, str):
        return value
    named = field.enum_type.values_by_name.get(value)
    if named is None and not value.lstrip("-").isdecimal():
        raise ValueError(f"{field.name} is {value!r}, and {field.enum_type.full_name} has no such value")
    return int(value) if named is None else named.number


def _check_fits(message: Descriptor, type: pa.DataType, path: tuple[str, ...]) -> None:
    where = ".".join(path) or "the column"
    if not pa.types.is_struct(type):
        raise NoSparkType(f"{where} is {type}, and the schema has the message {message.full_name} there")
    known = {field.name: field for field in message.fields}
    for each in type:
        inner = (*path, each.name)
        if each.name not in known:
            raise NoSparkType(f"{'.'.join(inner)} is not in {message.full_name}, which has {', '.join(known)}")
        field = known[each.name]
        if is_map(field) or field.is_repeated:
            many = pa.types.is_map if is_map(field) else pa.types.is_list
            if not many(each.type):
                kind = "map" if is_map(field) else "repeated field"
                raise NoSparkType(f"{'.'.join(inner)} is {each.type}, and the schema has a {kind} there")
            held = each.type.item_type if is_map(field) else each.type.value_type
            _check_single(field.message_type.fields_by_name["value"] if is_map(field) else field, held, inner)
        else:
            _check_single(field, each.type, inner)


def _check_single(field: FieldDescriptor, type: pa.DataType, path: tuple[str, ...]) -> None:
    message = field.message_type
    if message is not None and message.fields and message.full_name not in WRAPPERS | JSON | {TIMESTAMP, DURATION}:
        return _check_fits(message, type, path)
    wanted = SCALARS[field.type] if message is None else message_column(message).type
    if not _takes(wanted, type):
        kind = field.enum_type.full_name if field.enum_type else message.full_name if message else str(wanted)
        raise NoSparkType(f"{'.'.join(path)} is {type}, and the schema has {kind} there")
    return None


def _takes(wanted: pa.DataType, given: pa.DataType) -> bool:
    """Whether a field accepts a column of this type. The number in a row may still be too large."""
    whole = pa.types.is_signed_integer(given) or (pa.types.is_decimal(given) and given.scale == 0)
    if pa.types.is_integer(wanted) or wanted == UNSIGNED:
        return bool(whole)
    if pa.types.is_floating(wanted):
        return bool(pa.types.is_floating(given) or pa.types.is_signed_integer(given))
    if pa.types.is_timestamp(wanted):
        return bool(pa.types.is_timestamp(given))
    return bool(wanted == given)
