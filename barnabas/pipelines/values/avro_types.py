"""Maps Avro schemas to types of Arrow and Spark, and types to Avro schemas.

Knows nothing of bytes. The table is that of Spark's own Avro source, as far as that supports a type:

| Avro | Spark |
| --- | --- |
| boolean, int, long, float, double | BOOLEAN, INT, BIGINT, FLOAT, DOUBLE |
| string, enum, uuid | STRING |
| bytes, fixed, duration | BINARY |
| record | STRUCT |
| array, map | ARRAY, MAP of STRING |
| decimal (of bytes or fixed) | DECIMAL of its precision and scale, 38 digits at most |
| date | DATE |
| timestamp-millis, timestamp-micros | TIMESTAMP |
| local-timestamp-millis, local-timestamp-micros | TIMESTAMP_NTZ |
| time-millis, time-micros | INT of milliseconds, BIGINT of microseconds since midnight |
| union of null and one type | that type |
| unions of int and long, of float and double (with null or not) | BIGINT, DOUBLE |
| other unions | STRUCT of ``member0``, ``member1``, ... (null not counted), all but one of which are null |

All fields are nullable, as in Spark's ``from_avro``. Recursive types have no type in Spark.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

Schema = str | list[Any] | dict[str, Any]

INSTANT = pa.timestamp("us", "UTC")
MOST_DIGITS = 38

PRIMITIVES: Mapping[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}

LOGICAL: Mapping[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): INSTANT,
    ("long", "timestamp-micros"): INSTANT,
    ("long", "local-timestamp-millis"): pa.timestamp("us"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("fixed", "uuid"): pa.string(),
}

WIDENED = ({"int", "long"}, "long"), ({"float", "double"}, "double")

NOT_CONVERTED = {"time-millis", "time-micros", "uuid"}
"""Logical types that Spark gets as plain values, while fastavro would create objects."""


class NoSparkType(ValueError):
    """Spark has no type for a schema, or the schema has none for a column; the message names the field."""


class Named:
    """The named types of a schema by full name, as parsed by fastavro."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self.schemas = schemas

    def resolve(self, schema: Schema) -> Schema:
        """Returns the schema that a name stands for, or the schema itself."""
        if isinstance(schema, str) and schema not in PRIMITIVES:
            return self.schemas[schema]  # type: ignore[no-any-return]
        if isinstance(schema, dict) and isinstance(schema["type"], dict | list):
            return self.resolve(schema["type"])
        return schema


def kind_of(schema: Schema) -> str:
    """Returns ``union``, ``record``, ``int`` ... for a resolved schema."""
    if isinstance(schema, list):
        return "union"
    return schema if isinstance(schema, str) else str(schema["type"]).replace("error", "record")


def arrow_type(schema: Schema, named: Named, path: tuple[str, ...] = (), within: tuple[str, ...] = ()) -> pa.DataType:
    """Returns the Arrow type of a schema parsed by fastavro.

    :param path: leads to the schema.
    :param within: the records around it.
    """
    schema = named.resolve(schema)
    match kind_of(schema), schema:
        case "union", list(branches):
            return _union_type(branches, named, path, within)
        case "record", dict(record):
            name = record["name"]
            if name in within:
                raise NoSparkType(f"{'.'.join(path)} is a {name} within a {name}: Spark has no recursive types")
            return pa.struct(
                [
                    pa.field(field["name"], arrow_type(field["type"], named, (*path, field["name"]), (*within, name)))
                    for field in record["fields"]
                ]
            )
        case "array", dict(array):
            return pa.list_(pa.field("element", arrow_type(array["items"], named, (*path, "element"), within)))
        case "map", dict(mapping):
            return pa.map_(pa.string(), arrow_type(mapping["values"], named, (*path, "value"), within))
        case kind, dict(logical) if logical.get("logicalType") == "decimal":
            digits = logical["precision"]
            if digits > MOST_DIGITS:
                raise NoSparkType(f"{'.'.join(path)} has {digits} digits, but Spark's decimals at most {MOST_DIGITS}")
            return pa.decimal128(digits, logical.get("scale", 0))
        case kind, dict(logical):
            return LOGICAL.get((kind, logical.get("logicalType", "")), PRIMITIVES[kind])
        case kind, _:
            return PRIMITIVES[kind]


def members_of(branches: Sequence[Schema], named: Named) -> list[Schema]:
    """Returns the types of a union without null; two widths of a number become the wider one."""
    members = [each for each in branches if kind_of(named.resolve(each)) != "null"]
    for narrow_and_wide, wide in WIDENED:
        if len(members) == 2 and {each for each in members if isinstance(each, str)} == narrow_and_wide:
            return [wide]
    return members


def _union_type(
    branches: Sequence[Schema], named: Named, path: tuple[str, ...], within: tuple[str, ...]
) -> pa.DataType:
    members = members_of(branches, named)
    if not members:
        return pa.null()
    if len(members) == 1:
        return arrow_type(members[0], named, path, within)
    return pa.struct(
        [
            pa.field(f"member{number}", arrow_type(each, named, (*path, f"member{number}"), within))
            for number, each in enumerate(members)
        ]
    )


def without_objects(schema: Any) -> Any:
    """Returns the schema's JSON without the logical types that are read as plain values."""
    if isinstance(schema, list):
        return [without_objects(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: without_objects(value) if key in ("type", "items", "values", "fields") else value
        for key, value in schema.items()
        if not (key == "logicalType" and value in NOT_CONVERTED and schema.get("type") != "fixed")
    }


WRITTEN: Sequence[tuple[Any, Schema]] = (
    (pa.types.is_null, "null"),
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_int8, "int"),
    (pa.types.is_int16, "int"),
    (pa.types.is_int32, "int"),
    (pa.types.is_int64, "long"),
    (pa.types.is_float32, "float"),
    (pa.types.is_float64, "double"),
    (pa.types.is_string, "string"),
    (pa.types.is_large_string, "string"),
    (pa.types.is_binary, "bytes"),
    (pa.types.is_large_binary, "bytes"),
    (pa.types.is_date32, {"type": "int", "logicalType": "date"}),
    (pa.types.is_time64, {"type": "long", "logicalType": "time-micros"}),
)


def avro_schema(type: pa.DataType, path: tuple[str, ...] = ("topLevelRecord",), nullable: bool = False) -> Schema:
    """Returns the default schema for a column of this type; records are named after their position."""
    schema = _avro_schema(type, path)
    return ["null", schema] if nullable and schema != "null" else schema


def _avro_schema(type: pa.DataType, path: tuple[str, ...]) -> Schema:
    if pa.types.is_struct(type):
        fields = []
        for field in type:
            schema = avro_schema(field.type, (*path, field.name), field.nullable)
            fields.append({"name": field.name, "type": schema, **({"default": None} if field.nullable else {})})
        record: dict[str, Any] = {"type": "record", "name": path[-1], "fields": fields}
        return {**record, "namespace": ".".join(path[:-1])} if len(path) > 1 else record
    if pa.types.is_map(type):
        return {"type": "map", "values": avro_schema(type.item_type, (*path, "value"), type.item_field.nullable)}
    if pa.types.is_list(type):
        return {"type": "array", "items": avro_schema(type.value_type, (*path, "element"), type.value_field.nullable)}
    if pa.types.is_decimal(type):
        return {"type": "bytes", "logicalType": "decimal", "precision": type.precision, "scale": type.scale}
    if pa.types.is_timestamp(type):
        return {"type": "long", "logicalType": "timestamp-micros" if type.tz else "local-timestamp-micros"}
    for fits, schema in WRITTEN:
        if fits(type):
            return schema
    raise NoSparkType(f"{'.'.join(path[1:]) or 'the column'} is {type}, which Avro has no type for")
