"""Schemas of JSON values: Spark's DDL and JSON of types, and JSON Schema documents, read and written.

Knows nothing of values. JSON Schema lacks some types of Spark, which are recognized by ``format`` or by Kafka Connect's
extensions (``connect.type``, ``title``):

| JSON Schema | Spark |
| --- | --- |
| boolean, integer, number, string | BOOLEAN, BIGINT, DOUBLE, STRING |
| integer or number with connect.type int8, int16, int32, float32 | TINYINT, SMALLINT, INT, FLOAT |
| string of format date, date-time | DATE, TIMESTAMP |
| object with properties | STRUCT |
| object with additionalProperties alone | MAP of STRING |
| array | ARRAY |
| enum, const | the type of its values |
| anyOf, oneOf, or several types, of null and one other | that other |
| all else, several types among it | STRING: the JSON text |
"""

import json
from collections.abc import Mapping
from typing import Any

CONNECT = {
    "int8": "byte",
    "int16": "short",
    "int32": "integer",
    "int64": "long",
    "float32": "float",
    "float64": "double",
}
PLAIN = {"boolean": "boolean", "integer": "long", "number": "double", "string": "string"}
FORMATS = {"date": "date", "date-time": "timestamp"}
OF_VALUES = {bool: "boolean", int: "long", float: "double", str: "string"}
ANYTHING = "string"


def is_json_schema(text: str) -> bool:
    """Returns whether this is a JSON Schema document, instead of Spark's JSON of a type or a DDL text."""
    try:
        document = json.loads(text)
    except ValueError:
        return False
    return isinstance(document, dict) and not (
        document.get("type") in ("struct", "map", "array") and _is_sparks(document)
    )


def is_sparks(text: str) -> bool:
    """Returns whether this is a type in Spark's JSON."""
    try:
        document = json.loads(text)
    except ValueError:
        return False
    return isinstance(document, dict) and _is_sparks(document)


def _is_sparks(document: Mapping[str, Any]) -> bool:
    return bool({"fields", "elementType", "keyType"} & document.keys())


def spark_type(text: str) -> Any:
    """Returns the type of a JSON Schema document, in Spark's JSON.

    :raises ValueError: Spark has no such type.
    """
    document = json.loads(text)
    return _spark_type(document, document, ())


def _spark_type(schema: Any, document: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    schema = _without_null(_resolved(schema, document, path), document, path)
    if not isinstance(schema, dict):
        return ANYTHING
    for values in (schema.get("enum"), [schema["const"]] if "const" in schema else None):
        if values and "type" not in schema:
            of = {type(value) for value in values if value is not None}
            return OF_VALUES.get(of.pop(), ANYTHING) if len(of) == 1 else ANYTHING
    kind = schema.get("type", "object" if "properties" in schema else None)
    if isinstance(kind, list):
        kinds = [each for each in kind if each != "null"]
        kind = kinds[0] if len(kinds) == 1 else "number" if set(kinds) == {"integer", "number"} else None
    if kind == "object":
        return _object_type(schema, document, path)
    if kind == "array":
        inner = _spark_type(schema.get("items", {}), document, (*path, "items"))
        return {"type": "array", "elementType": inner, "containsNull": True}
    if kind == "string" and schema.get("format") in FORMATS:
        return FORMATS[schema["format"]]
    if kind in ("integer", "number") and schema.get("connect.type") in CONNECT:
        return CONNECT[schema["connect.type"]]
    return PLAIN.get(kind or "", ANYTHING)


def _object_type(schema: Mapping[str, Any], document: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    if schema.get("properties"):
        fields = [
            {"name": name, "type": _spark_type(each, document, (*path, name)), "nullable": True, "metadata": {}}
            for name, each in schema["properties"].items()
        ]
        return {"type": "struct", "fields": fields}
    inner = schema.get("additionalProperties", {})
    value = _spark_type(inner if isinstance(inner, dict) else {}, document, (*path, "additionalProperties"))
    return {"type": "map", "keyType": "string", "valueType": value, "valueContainsNull": True}


def _resolved(schema: Any, document: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """Returns what a reference within the document refers to."""
    followed: list[str] = []
    while isinstance(schema, dict) and "$ref" in schema:
        reference = schema["$ref"]
        where = ".".join(path) or "the schema"
        if not reference.startswith("#"):
            raise ValueError(f"{where} refers to {reference}; only references #/... within the document are supported")
        if reference in followed or len(path) > 100:
            raise ValueError(f"{where} refers to {reference}, which contains itself: Spark has no recursive types")
        followed.append(reference)
        schema = document
        for part in filter(None, reference[1:].split("/")):
            name = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(schema, dict) or name not in schema:
                raise ValueError(f"{where} refers to {reference}, which is not in the document")
            schema = schema[name]
    return schema


def _without_null(schema: Any, document: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """Returns the schema of a choice between null and one other schema."""
    if not isinstance(schema, dict):
        return schema
    for choice in ("anyOf", "oneOf"):
        others = [each for each in schema.get(choice, ()) if each != {"type": "null"}]
        if len(others) == 1:
            return _without_null(_resolved(others[0], document, path), document, path)
    return schema


WRITTEN: Mapping[str, dict[str, Any]] = {
    "boolean": {"type": "boolean"},
    "byte": {"type": "integer", "connect.type": "int8"},
    "short": {"type": "integer", "connect.type": "int16"},
    "integer": {"type": "integer", "connect.type": "int32"},
    "long": {"type": "integer"},
    "float": {"type": "number", "connect.type": "float32"},
    "double": {"type": "number"},
    "string": {"type": "string"},
    "date": {"type": "string", "format": "date"},
    "timestamp": {"type": "string", "format": "date-time"},
    "timestamp_ntz": {"type": "string"},
    "binary": {"type": "string", "contentEncoding": "base64"},
}


def json_schema(type: Any, *, title: str | None = None) -> dict[str, Any]:
    """Returns the JSON Schema document of a type in Spark's JSON; null is allowed wherever Spark allows it."""
    head = {"$schema": "http://json-schema.org/draft-07/schema#", **({"title": title} if title else {})}
    return {**head, **_json_schema(type)}


def _json_schema(type: Any) -> dict[str, Any]:
    if isinstance(type, str):
        if type.startswith("decimal"):
            return {"type": "number"}
        return WRITTEN.get(type, {"type": "string"})
    if type["type"] == "array":
        return {"type": "array", "items": _or_null(_json_schema(type["elementType"]), type["containsNull"])}
    if type["type"] == "map":
        values = _or_null(_json_schema(type["valueType"]), type["valueContainsNull"])
        return {"type": "object", "additionalProperties": values}
    properties = {field["name"]: _or_null(_json_schema(field["type"]), field["nullable"]) for field in type["fields"]}
    required = [field["name"] for field in type["fields"] if not field["nullable"]]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def _or_null(schema: dict[str, Any], nullable: bool) -> dict[str, Any]:
    return {"oneOf": [{"type": "null"}, schema]} if nullable else schema
