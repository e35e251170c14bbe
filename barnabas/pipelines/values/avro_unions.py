"""Converts between Avro's unions of several types and structs of members, and values that no column accepts.

Knows nothing of bytes: creates converters of Python values from a schema.
"""

import uuid
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa

from barnabas.pipelines.values.avro_types import Named, Schema, kind_of, members_of
from barnabas.pipelines.values.framing import Undecodable

Converter = Callable[[Any], Any]

OF_PYTHON: dict[type, tuple[str, ...]] = {
    bool: ("boolean",),
    int: ("int", "long", "float", "double"),
    float: ("double", "float"),
    str: ("string", "enum"),
    bytes: ("bytes", "fixed"),
    list: ("array",),
    dict: ("map", "record"),
    datetime: ("long",),
    date: ("int",),
    time: ("int", "long"),
    Decimal: ("bytes", "fixed"),
}
"""The members of a union for a Python type, in order of preference."""

NAMED = ("record", "enum", "fixed")


def from_union(schema: Schema, named: Named, tuples: bool) -> Converter | None:
    """Returns a converter from fastavro's values to the column's, or None if they are the same.

    :param tuples: fastavro returns named types in unions as tuples of name and value.
    """
    schema = named.resolve(schema)
    if isinstance(schema, list):
        members = members_of(schema, named)
        if len(members) == 1:
            return from_union(members[0], named, tuples)
        return _to_struct(members, named, tuples) if members else None
    convert = _inner(schema, lambda inner: from_union(inner, named, tuples))
    if _is_fixed_uuid(schema):
        convert = _uuid_text
    if tuples and kind_of(schema) in NAMED:
        return _unwrapping(convert)
    return _or_null(convert)


def to_union(schema: Schema, named: Named) -> Converter | None:
    """Returns a converter from the column's values to fastavro's, or None if they are the same."""
    schema = named.resolve(schema)
    if isinstance(schema, list):
        members = members_of(schema, named)
        if len(members) == 1:
            return to_union(members[0], named)
        return _from_struct(members, named) if members else None
    if _is_fixed_uuid(schema):
        return _or_null(_uuid_bytes)
    return _or_null(_inner(schema, lambda inner: to_union(inner, named)))


def branch_of(members: Sequence[Schema], type: pa.DataType) -> Sequence[Schema] | None:
    """Returns the members if the column is a struct of them, or None if it is one of them."""
    names = [f"member{number}" for number in range(len(members))]
    return members if pa.types.is_struct(type) and [field.name for field in type] == names else None


def _is_fixed_uuid(schema: Schema) -> bool:
    """Returns whether the schema is a uuid that fastavro returns as bytes; a uuid as text needs no conversion."""
    return isinstance(schema, dict) and schema["type"] == "fixed" and schema.get("logicalType") == "uuid"


def _uuid_text(value: bytes) -> str:
    return str(uuid.UUID(bytes=value))


def _uuid_bytes(value: str) -> bytes:
    return uuid.UUID(value).bytes


def _inner(schema: Schema, make: Callable[[Schema], Converter | None]) -> Converter | None:
    """Returns the converter of the content of a record, an array or a map."""
    if not isinstance(schema, dict):
        return None
    if "fields" in schema:
        made = {field["name"]: convert for field in schema["fields"] if (convert := make(field["type"]))}

        def of_record(row: Any) -> Any:
            return {**row, **{name: convert(row[name]) for name, convert in made.items() if name in row}}

        return of_record if made else None
    if "items" in schema and (of_item := make(schema["items"])):
        return lambda items: [of_item(item) for item in items]
    if "values" in schema and (of_value := make(schema["values"])):
        return lambda mapping: {key: of_value(value) for key, value in mapping.items()}
    return None


def _or_null(convert: Converter | None) -> Converter | None:
    if convert is None:
        return None
    return lambda value: None if value is None else convert(value)


def _unwrapping(convert: Converter | None) -> Converter:
    def unwrap(value: Any) -> Any:
        if type(value) is tuple:
            value = value[1]
        return value if value is None or convert is None else convert(value)

    return unwrap


def _to_struct(members: Sequence[Schema], named: Named, tuples: bool) -> Converter:
    resolved = [named.resolve(member) for member in members]
    by_name = {each["name"]: at for at, each in enumerate(resolved) if isinstance(each, dict) and "name" in each}
    by_kind: dict[str, int] = {}
    for at, each in enumerate(resolved):
        by_kind.setdefault(kind_of(each), at)
    convert = [from_union(member, named, tuples) for member in members]

    def to_struct(value: Any) -> Any:
        if value is None:
            return None
        if type(value) is tuple:
            at = by_name[value[0]]
            value = value[1]
        else:
            at = _place(value, resolved, by_kind)
        chosen = convert[at]
        return {f"member{at}": chosen(value) if chosen else value}

    return to_struct


def _place(value: Any, members: Sequence[Schema], by_kind: dict[str, int]) -> int:
    """Returns the member of the union for a value without a name: for a record by its fields, for an integer by its
    size.
    """
    if isinstance(value, dict):
        for at, member in enumerate(members):
            if isinstance(member, dict) and {field["name"] for field in member.get("fields", ())} == value.keys():
                return at
    kinds = OF_PYTHON.get(type(value), ())
    if type(value) is int and not -(1 << 31) <= value < 1 << 31:
        kinds = kinds[1:]
    for kind in kinds:
        if kind in by_kind:
            return by_kind[kind]
    raise Undecodable(f"a {type(value).__name__} is of no type of the union")


def _from_struct(members: Sequence[Schema], named: Named) -> Converter:
    resolved = [named.resolve(member) for member in members]
    convert = [to_union(member, named) for member in members]
    names = {f"member{at}" for at in range(len(members))}

    def from_struct(value: Any) -> Any:
        if not isinstance(value, dict) or value.keys() != names:
            return value
        for at, member in enumerate(resolved):
            inner = value[f"member{at}"]
            if inner is not None:
                chosen = convert[at]
                inner = chosen(inner) if chosen else inner
                if isinstance(member, dict) and kind_of(member) not in NAMED:
                    return inner
                return (member["name"] if isinstance(member, dict) else member, inner)
        return None

    return from_struct
