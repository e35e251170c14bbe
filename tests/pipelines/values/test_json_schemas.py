import json
from typing import Any

import pytest

from barnabas.pipelines.values.json_schemas import is_json_schema, is_sparks, json_schema, spark_type

ORDER = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Order",
    "type": "object",
    "definitions": {"item": {"type": "object", "properties": {"sku": {"type": "string"}}}},
    "properties": {
        "id": {"type": "integer"},
        "small": {"type": "integer", "connect.type": "int16"},
        "amount": {"type": ["number", "null"]},
        "ratio": {"oneOf": [{"type": "null"}, {"type": "number", "connect.type": "float32"}]},
        "at": {"type": "string", "format": "date-time"},
        "day": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
        "paid": {"type": "boolean"},
        "state": {"enum": ["new", "paid", None]},
        "version": {"const": 1},
        "items": {"type": "array", "items": {"$ref": "#/definitions/item"}},
        "tags": {"type": "object", "additionalProperties": {"type": "integer"}},
        "either": {"type": ["string", "integer"]},
        "anything": {},
    },
}


def field(name: str, type: Any) -> dict[str, Any]:
    return {"name": name, "type": type, "nullable": True, "metadata": {}}


def test_each_type_of_json_schema_becomes_that_of_spark() -> None:
    item = {"type": "struct", "fields": [field("sku", "string")]}
    assert spark_type(json.dumps(ORDER)) == {
        "type": "struct",
        "fields": [
            field("id", "long"),
            field("small", "short"),
            field("amount", "double"),
            field("ratio", "float"),
            field("at", "timestamp"),
            field("day", "date"),
            field("paid", "boolean"),
            field("state", "string"),
            field("version", "long"),
            field("items", {"type": "array", "elementType": item, "containsNull": True}),
            field("tags", {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}),
            field("either", "string"),
            field("anything", "string"),
        ],
    }


def test_a_type_comes_back_from_its_document() -> None:
    inner = {"type": "array", "elementType": "float", "containsNull": True}
    type = {
        "type": "struct",
        "fields": [
            *(field(name, name) for name in ("byte", "short", "integer", "long", "float", "double", "boolean")),
            *(field(name, name) for name in ("string", "date", "timestamp")),
            field("array", inner),
            field("map", {"type": "map", "keyType": "string", "valueType": inner, "valueContainsNull": True}),
            field("struct", {"type": "struct", "fields": [field("x", "long")]}),
        ],
    }
    assert spark_type(json.dumps(json_schema(type, title="T"))) == type


@pytest.mark.parametrize(
    ("text", "document", "sparks"),
    [
        ("id BIGINT", False, False),
        ('{"type": "struct", "fields": []}', False, True),
        ('{"type": "array", "elementType": "long", "containsNull": true}', False, True),
        ('{"type": "array", "items": {"type": "integer"}}', True, False),
        ('{"type": "object"}', True, False),
    ],
)
def test_the_ways_to_write_a_schema_are_told_apart(text: str, document: bool, sparks: bool) -> None:
    assert (is_json_schema(text), is_sparks(text)) == (document, sparks)


@pytest.mark.parametrize(
    ("properties", "complaint"),
    [
        ({"x": {"$ref": "#/definitions/absent"}}, "x refers to #/definitions/absent, which is not in the document"),
        ({"x": {"$ref": "other.json"}}, "x refers to other.json; only"),
        ({"x": {"$ref": "#"}}, "which contains itself"),
        ({"x": {"$ref": "#/properties/x"}}, "which contains itself"),
    ],
)
def test_references_that_cannot_be_followed_are_named(properties: Any, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        spark_type(json.dumps({"type": "object", "properties": properties}))
