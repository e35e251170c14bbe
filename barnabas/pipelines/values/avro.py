"""Decodes and encodes columns of Avro values with fastavro; finds the writer's schema in a registry by its id.

Knows nothing of Spark; avro_types maps schemas to types.
"""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import fastavro
import pyarrow as pa

from barnabas.pipelines.values.avro_types import (
    Named,
    NoSparkType,
    Schema,
    arrow_type,
    avro_schema,
    kind_of,
    members_of,
    without_objects,
)
from barnabas.pipelines.values.avro_unions import branch_of, from_union, to_union
from barnabas.pipelines.values.framing import HEADER_BYTES, Undecodable, header, hint_of_header, schema_id_of
from barnabas.pipelines.values.registry import Registry
from barnabas.pipelines.values.rows import Decoded, decode_rows, encode_rows

Texts = tuple[str, ...]
"""The texts of a schema in JSON, after those of the schemas that it refers to."""

WHOLE = "whole"


class Parsed(NamedTuple):
    """A schema parsed by fastavro, and its original text.

    fastavro parses any schema but a record again for each value. Such a schema is therefore wrapped in a record with
    one field, which has the same bytes.
    """

    schema: Any
    top: Schema
    named: Named


@dataclass(frozen=True)
class AvroDecoder:
    """Decodes a column of bytes. It is sent to workers, which parse its schemas once."""

    reader: Texts
    registry: Registry | None = None
    framed: bool = False

    @property
    def type(self) -> pa.DataType:
        """The type of the decoded column."""
        parsed = parse(self.reader)
        return arrow_type(parsed.top, parsed.named)

    def __call__(self, column: pa.Array) -> Decoded:
        """Decodes each value with its writer's schema, to a value of the reader's schema."""
        convert = _converter_of(self.reader)
        return decode_rows(column, lambda value: convert(self._read(value)), self.type)

    def _read(self, value: bytes) -> Any:
        writer, start = self.reader, 0
        if self.framed:
            start = HEADER_BYTES
            schema_id = schema_id_of(value)
            if self.registry is not None:
                writer = written_by(self.registry, schema_id)
        stream = io.BytesIO(value)
        stream.seek(start)
        writes, reads, wrapped, wants_names = _resolution(writer, self.reader)
        try:
            row: Any = fastavro.schemaless_reader(
                stream, writes, reads, return_record_name=wants_names, return_named_type=wants_names
            )
        except (EOFError, IndexError):
            if stream.tell() < len(value):
                raise
            raise Undecodable(f"the {len(value)} bytes end within the value{self._hint(value)}") from None
        if stream.tell() != len(value):
            left = len(value) - stream.tell()
            raise Undecodable(f"{left} of {len(value)} bytes are left over after the value{self._hint(value)}")
        return row[WHOLE] if wrapped else row

    def _hint(self, value: bytes) -> str:
        return hint_of_header(value, framed=self.framed)


@dataclass(frozen=True)
class AvroEncoder:
    """Encodes a column; writes `schema_id` before each value unless it is None."""

    schema: Texts
    schema_id: int | None = None

    def __call__(self, column: pa.Array) -> pa.Array:
        """Returns each row as bytes.

        :raises Unencodable: the schema does not allow a row.
        """
        wrapped = not _is_record(self.schema)
        parsed = parse(self.schema, wrap=wrapped)
        convert = to_union(parsed.top, parsed.named)
        before = b"" if self.schema_id is None else header(self.schema_id)

        def write(row: Any) -> bytes:
            stream = io.BytesIO()
            stream.write(before)
            datum = convert(row) if convert else row
            fastavro.schemaless_writer(stream, parsed.schema, {WHOLE: datum} if wrapped else datum)
            return stream.getvalue()

        return encode_rows(column, write)


def schema_for(type: pa.DataType) -> Texts:
    """Returns the default schema for a column of this type."""
    return (json.dumps(avro_schema(type)),)


def check_fits(schema: Texts, type: pa.DataType) -> None:
    """Checks that a column of this type can be written with the schema.

    :raises NoSparkType: it cannot; the message names the field.
    """
    parsed = parse(schema)
    _check_fits(parsed.top, parsed.named, type, ())


@lru_cache(maxsize=256)
def parse(texts: Texts, *, wrap: bool = False, objects: bool = True) -> Parsed:
    """Parses a schema.

    :param wrap: wrap it in a record with one field.
    :param objects: represent times of day and uuids as Python's objects.
    :raises ValueError: it is invalid; the message is fastavro's.
    """
    schemas: dict[str, Any] = {}
    try:
        for text in texts[:-1]:
            fastavro.parse_schema(_json(text, objects), schemas)
        top: Any = fastavro.parse_schema(_json(texts[-1], objects), schemas)
        schema = top
        if wrap:
            record = {"type": "record", "name": "barnabas.Whole", "fields": [{"name": WHOLE, "type": top}]}
            schema = fastavro.parse_schema(record, dict(schemas))
    except (fastavro.schema.SchemaParseException, fastavro.schema.UnknownType, KeyError) as error:
        raise ValueError(f"this is not an Avro schema: {type(error).__name__}: {error}") from error
    return Parsed(schema, top, Named(schemas))


@lru_cache(maxsize=1024)
def written_by(registry: Registry, schema_id: int) -> Texts:
    """Returns the schema with this id, which never changes.

    :raises Undecodable: there is none, or it is not Avro.
    """
    found = registry.by_id(schema_id)
    if found.kind != "AVRO":
        raise Undecodable(f"schema {schema_id} is {found.kind}, not Avro")
    return tuple(text for _, text in found.texts)


@lru_cache(maxsize=1024)
def _resolution(writer: Texts, reader: Texts) -> tuple[Any, Any, bool, bool]:
    """Returns both schemas for fastavro, whether they are wrapped, and whether fastavro should return names in
    unions.
    """
    wrap = not (_is_record(writer) and _is_record(reader))
    writes = parse(writer, wrap=wrap, objects=False).schema
    reads = None if writer == reader else parse(reader, wrap=wrap, objects=False).schema
    return writes, reads, wrap, _has_members(reader)


def _is_record(texts: Texts) -> bool:
    return kind_of(parse(texts).top) == "record"


@lru_cache(maxsize=256)
def _converter_of(reader: Texts) -> Callable[[Any], Any]:
    parsed = parse(reader, objects=False)
    return from_union(parsed.top, parsed.named, _has_members(reader)) or (lambda row: row)


def _has_members(reader: Texts) -> bool:
    """Whether the type contains a union of several types, so that the written type matters."""
    parsed = parse(reader)

    def look(schema: Schema) -> bool:
        schema = parsed.named.resolve(schema)
        if isinstance(schema, list):
            return len(members_of(schema, parsed.named)) > 1 or any(map(look, schema))
        if isinstance(schema, dict):
            inner = [schema[key] for key in ("items", "values") if key in schema]
            return any(map(look, [*inner, *(field["type"] for field in schema.get("fields", ()))]))
        return False

    return look(parsed.top)


def _json(text: str, objects: bool) -> Any:
    try:
        schema = json.loads(text)
    except ValueError:
        schema = text.strip()
        if not schema.isidentifier():
            raise ValueError(f"this is not an Avro schema, as it is not JSON: {text[:80]!r}") from None
    return schema if objects else without_objects(schema)


FITS: dict[str, Callable[[pa.DataType], bool]] = {
    "null": pa.types.is_null,
    "boolean": pa.types.is_boolean,
    "int": lambda type: pa.types.is_signed_integer(type) or pa.types.is_date32(type) or pa.types.is_time(type),
    "long": lambda type: pa.types.is_signed_integer(type) or pa.types.is_timestamp(type) or pa.types.is_time(type),
    "float": lambda type: pa.types.is_floating(type) or pa.types.is_signed_integer(type),
    "double": lambda type: pa.types.is_floating(type) or pa.types.is_signed_integer(type),
    "string": pa.types.is_string,
    "enum": pa.types.is_string,
    "bytes": lambda type: pa.types.is_binary(type) or pa.types.is_decimal(type),
    "fixed": lambda type: pa.types.is_binary(type) or pa.types.is_decimal(type) or pa.types.is_string(type),
    "record": pa.types.is_struct,
    "array": pa.types.is_list,
    "map": pa.types.is_map,
}
"""The types of columns that each Avro type accepts. The value of a row may still be too large."""


def _check_fits(schema: Schema, named: Named, type: pa.DataType, path: tuple[str, ...]) -> None:
    schema = named.resolve(schema)
    where = ".".join(path) or "the column"
    if isinstance(schema, list):
        members = members_of(schema, named)
        if len(members) == 1:
            return _check_fits(members[0], named, type, path)
        if branch_of(members, type) is None and not any(_fits(each, named, type) for each in members):
            raise NoSparkType(f"{where} is {type}, and the schema's union has no such type")
        return None
    if pa.types.is_null(type):
        raise NoSparkType(f"{where} is always null, and the schema has {kind_of(schema)} there")
    if not FITS[kind_of(schema)](type):
        raise NoSparkType(f"{where} is {type}, and the schema has {kind_of(schema)} there")
    if not isinstance(schema, dict):
        return None
    if "fields" in schema:
        _check_fields(schema["fields"], named, type, path)
    elif "items" in schema:
        _check_fits(schema["items"], named, type.value_type, (*path, "element"))
    elif "values" in schema:
        _check_fits(schema["values"], named, type.item_type, (*path, "value"))
    return None


def _check_fields(fields: list[dict[str, Any]], named: Named, type: pa.DataType, path: tuple[str, ...]) -> None:
    known = {field["name"]: field for field in fields}
    given = {field.name: field.type for field in type}
    for name in given:
        if name not in known:
            raise NoSparkType(f"{'.'.join((*path, name))} is not in the schema, which has {', '.join(known)}")
    for name, field in known.items():
        if name in given:
            _check_fits(field["type"], named, given[name], (*path, name))
        elif "default" not in field:
            raise NoSparkType(f"{'.'.join((*path, name))} is in the schema, without a default, and not in the columns")


def _fits(schema: Schema, named: Named, type: pa.DataType) -> bool:
    try:
        _check_fits(schema, named, type, ())
    except NoSparkType:
        return False
    return True
