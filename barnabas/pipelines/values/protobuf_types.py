"""Maps fields of Protobuf messages to types of Arrow and Spark, and creates their columns.

Knows nothing of bytes: it converts parsed messages to columns. The table:

| Protobuf | Spark |
| --- | --- |
| bool, float, double | BOOLEAN, FLOAT, DOUBLE |
| int32, sint32, sfixed32 | INT |
| int64, sint64, sfixed64; uint32, fixed32 | BIGINT |
| uint64, fixed64 | DECIMAL(20, 0) |
| string, bytes | STRING, BINARY |
| enum | STRING: its name, or its number where the schema has no name for it |
| message, group | STRUCT |
| a message without fields | BOOLEAN: true, or null where it is not set |
| repeated, map | ARRAY, MAP |
| a field of a oneof | as it is, null if it is not the one that is set |
| google.protobuf.Timestamp | TIMESTAMP (nanoseconds are cut off) |
| google.protobuf.Duration | INTERVAL DAY TO SECOND (likewise) |
| google.protobuf.Int32Value, StringValue, ... | the value's type, null if it is not set |
| google.protobuf.Struct, Value, ListValue | STRING: JSON |

A field with presence (``optional``, ``oneof``, messages) is null if it is not set; others have their default. Recursive
messages have no type in Spark.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

import pyarrow as pa
from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from barnabas.pipelines.values.avro_types import INSTANT, NoSparkType

INTERVAL = pa.duration("us")
UNSIGNED = pa.decimal128(20, 0)

SCALARS: Mapping[int, pa.DataType] = {
    FieldDescriptor.TYPE_BOOL: pa.bool_(),
    FieldDescriptor.TYPE_FLOAT: pa.float32(),
    FieldDescriptor.TYPE_DOUBLE: pa.float64(),
    FieldDescriptor.TYPE_INT32: pa.int32(),
    FieldDescriptor.TYPE_SINT32: pa.int32(),
    FieldDescriptor.TYPE_SFIXED32: pa.int32(),
    FieldDescriptor.TYPE_INT64: pa.int64(),
    FieldDescriptor.TYPE_SINT64: pa.int64(),
    FieldDescriptor.TYPE_SFIXED64: pa.int64(),
    FieldDescriptor.TYPE_UINT32: pa.int64(),
    FieldDescriptor.TYPE_FIXED32: pa.int64(),
    FieldDescriptor.TYPE_UINT64: UNSIGNED,
    FieldDescriptor.TYPE_FIXED64: UNSIGNED,
    FieldDescriptor.TYPE_STRING: pa.string(),
    FieldDescriptor.TYPE_BYTES: pa.binary(),
    FieldDescriptor.TYPE_ENUM: pa.string(),
}

WRAPPERS = {
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}
JSON = {"google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue"}
TIMESTAMP, DURATION = "google.protobuf.Timestamp", "google.protobuf.Duration"


class Column(NamedTuple):
    """A type, and a function that creates its column from Python values, with None for null."""

    type: pa.DataType
    make: Callable[[Sequence[Any]], pa.Array]


def message_column(message: Descriptor, path: tuple[str, ...] = (), within: tuple[str, ...] = ()) -> Column:
    """Returns the column of messages of this type.

    :raises NoSparkType: Spark has no type for a field; the message names it.
    """
    name = message.full_name
    if name in WRAPPERS:
        inner = _scalar_column(message.fields_by_name["value"])
        return Column(inner.type, lambda messages: inner.make([None if m is None else m.value for m in messages]))
    if name in WELL_KNOWN:
        return WELL_KNOWN[name]
    if not message.fields:
        return Column(
            pa.bool_(), lambda messages: pa.array([None if m is None else True for m in messages], pa.bool_())
        )
    if name in within:
        raise NoSparkType(f"{'.'.join(path)} is a {name} within a {name}: Spark has no recursive types")
    return _struct_column(message, path, (*within, name))


def _struct_column(message: Descriptor, path: tuple[str, ...], within: tuple[str, ...]) -> Column:
    if not message.fields:
        raise NoSparkType(
            f"{'.'.join(path) or message.full_name} is a message without fields: Spark has no such struct"
        )
    names = [field.name for field in message.fields]
    columns = [_field_column(field, (*path, field.name), within) for field in message.fields]
    take = [_taken(field) for field in message.fields]
    fields = [pa.field(name, column.type) for name, column in zip(names, columns, strict=True)]

    def make(messages: Sequence[Message | None]) -> pa.Array:
        there = [each for each in messages if each is not None]
        arrays = [column.make(get(there)) for column, get in zip(columns, take, strict=True)]
        made = pa.StructArray.from_arrays(arrays, fields=fields)
        return made if len(there) == len(messages) else _spread(made, messages)

    return Column(pa.struct(fields), make)


def _spread(made: pa.Array, messages: Sequence[Any]) -> pa.Array:
    """Inserts nulls where a value is missing."""
    places: list[int | None] = []
    count = 0
    for each in messages:
        places.append(None if each is None else count)
        count += each is not None
    return made.take(pa.array(places, pa.int64()))


def _taken(field: FieldDescriptor) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Returns a function that reads the values of a field from messages."""
    get, name = attrgetter(field.name), field.name
    if field.has_presence:
        return lambda messages: [get(message) if message.HasField(name) else None for message in messages]
    return lambda messages: list(map(get, messages))


def _field_column(field: FieldDescriptor, path: tuple[str, ...], within: tuple[str, ...]) -> Column:
    if is_map(field):
        entry = field.message_type.fields_by_name
        keys = _single_column(entry["key"], path, within)
        return _map_column(keys, _single_column(entry["value"], (*path, "value"), within))
    single = _single_column(field, path, within)
    return _list_column(single) if field.is_repeated else single


def is_map(field: FieldDescriptor) -> bool:
    """Whether a repeated field is a map."""
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _single_column(field: FieldDescriptor, path: tuple[str, ...], within: tuple[str, ...]) -> Column:
    if field.message_type is not None:
        return message_column(field.message_type, path, within)
    return _scalar_column(field)


def _scalar_column(field: FieldDescriptor) -> Column:
    type = SCALARS[field.type]
    if field.enum_type is not None:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return Column(
            type, lambda values: pa.array([None if n is None else names.get(n, str(n)) for n in values], type)
        )
    if type == UNSIGNED:
        return Column(type, lambda values: pa.array(values, pa.uint64()).cast(UNSIGNED))
    return Column(type, lambda values: pa.array(values, type))


def _list_column(single: Column) -> Column:
    type = pa.list_(pa.field("element", single.type))

    def make(lists: Sequence[Sequence[Any]]) -> pa.Array:
        flat = single.make(list(chain.from_iterable(lists)))
        return pa.ListArray.from_arrays(_ends(lists), flat, type=type)

    return Column(type, make)


def _map_column(keys: Column, values: Column) -> Column:
    type = pa.map_(keys.type, values.type)

    def make(maps: Sequence[Mapping[Any, Any]]) -> pa.Array:
        made_keys = keys.make(list(chain.from_iterable(maps)))
        made_values = values.make([each[key] for each in maps for key in each])
        return pa.MapArray.from_arrays(_ends(maps), made_keys, made_values, type=type)

    return Column(type, make)


def _ends(groups: Iterable[Sequence[Any] | Mapping[Any, Any]]) -> pa.Array:
    ends = [0]
    for group in groups:
        ends.append(ends[-1] + len(group))
    return pa.array(ends, pa.int32())


def _micros(message: Any) -> int | None:
    return None if message is None else message.seconds * 1_000_000 + message.nanos // 1_000


def _json(message: Any) -> str | None:
    return None if message is None else json_format.MessageToJson(message, indent=None, ensure_ascii=False)


WELL_KNOWN: Mapping[str, Column] = {
    TIMESTAMP: Column(INSTANT, lambda messages: pa.array(map(_micros, messages), pa.int64()).cast(INSTANT)),
    DURATION: Column(INTERVAL, lambda messages: pa.array(map(_micros, messages), pa.int64()).cast(INTERVAL)),
    **dict.fromkeys(JSON, Column(pa.string(), lambda messages: pa.array(map(_json, messages), pa.string()))),
}
