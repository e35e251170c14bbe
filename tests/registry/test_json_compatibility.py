"""Compatibility of JSON Schemas, keyword by keyword."""

import json

import pytest

from barnabas.registry.errors import RegistryError
from barnabas.registry.json_compatibility import breaks
from barnabas.registry.json_schema import parse


def thing(properties, *required, **other):
    return {"type": "object", "properties": properties, "required": list(required), **other}


A, B = {"type": "string"}, {"type": "integer"}
CLOSED = {"additionalProperties": False}

READABLE = [  # reader, writer
    ({}, {"type": "string"}),
    (True, {"type": "string"}),
    ({"type": "number"}, {"type": "integer"}),
    ({"type": ["string", "null"]}, {"type": "string"}),
    ({"maxLength": 5}, {"maxLength": 4}),
    ({"minimum": 1}, {"minimum": 2}),
    ({"minItems": 0}, {}),
    ({"enum": [1, 2]}, {"enum": [1]}),
    ({"enum": [1, 2]}, {"const": 1}),
    ({"multipleOf": 2}, {"multipleOf": 4}),
    (thing({"a": A}), thing({"a": A}, "a")),
    (thing({"a": A, "b": B}, **CLOSED), thing({"a": A}, **CLOSED)),
    (thing({"a": A, "b": {}}), thing({"a": A})),
    (thing({"a": A}), thing({"a": A, "b": B})),
    (thing({"a": A, "b": {**B, "default": 0}}, "a", "b", **CLOSED), thing({"a": A}, "a", **CLOSED)),
    (thing({"a": A, "b": A}), thing({"a": A}, additionalProperties=A)),
    ({"items": {"type": "number"}, "type": "array"}, {"items": B, "type": "array"}),
    ({"oneOf": [A, B]}, A),
    ({"anyOf": [A, B]}, {"anyOf": [B]}),
    ({"allOf": [{"minLength": 1}]}, {"allOf": [{"minLength": 1}, {"maxLength": 4}]}),
    ({"$ref": "#/definitions/a", "definitions": {"a": A}}, A),
    ({"not": B}, {"not": {"type": "number"}}),
    ({"properties": {"next": {"$ref": "#"}}}, {"properties": {"next": {"$ref": "#"}}}),
]

UNREADABLE = [  # reader, writer, kind of what breaks, path
    (A, B, "TYPE_CHANGED", "#/"),
    (A, {}, "TYPE_NARROWED", "#/"),
    ({"type": "integer"}, {"type": "number"}, "TYPE_NARROWED", "#/"),
    ({"maxLength": 4}, {"maxLength": 5}, "MAX_LENGTH_DECREASED", "#/maxLength"),
    ({"maxLength": 4}, {}, "MAX_LENGTH_ADDED", "#/maxLength"),
    ({"minimum": 3}, {"minimum": 2}, "MINIMUM_INCREASED", "#/minimum"),
    ({"pattern": "a"}, {}, "PATTERN_ADDED", "#/pattern"),
    ({"pattern": "a"}, {"pattern": "b"}, "PATTERN_CHANGED", "#/pattern"),
    ({"multipleOf": 4}, {"multipleOf": 2}, "MULTIPLE_OF_CHANGED", "#/multipleOf"),
    ({"uniqueItems": True}, {}, "UNIQUE_ITEMS_ADDED", "#/uniqueItems"),
    ({"enum": [1]}, {"enum": [1, 2]}, "ENUM_ARRAY_NARROWED", "#/enum"),
    ({"enum": [3]}, {"enum": [1, 2]}, "ENUM_ARRAY_CHANGED", "#/enum"),
    (thing({"a": A}, "a"), thing({"a": A}), "REQUIRED_ATTRIBUTE_ADDED", "#/properties/a"),
    (
        thing({"a": A, "b": B}, "b", **CLOSED),
        thing({"a": A}, **CLOSED),
        "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "#/properties/b",
    ),
    (thing({"a": A, "b": B}), thing({"a": A}), "PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", "#/properties/b"),
    (
        thing({"a": A}, **CLOSED),
        thing({"a": A, "b": B}, **CLOSED),
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "#/properties/b",
    ),
    (thing({}, **CLOSED), thing({}), "ADDITIONAL_PROPERTIES_REMOVED", "#/additionalProperties"),
    (
        thing({}, additionalProperties=B),
        thing({}, additionalProperties=A),
        "ADDITIONAL_PROPERTIES_NARROWED",
        "#/additionalProperties",
    ),
    (thing({"a": A}), thing({"a": B}), "TYPE_CHANGED", "#/properties/a/"),
    ({"type": "array", "items": A}, {"type": "array", "items": B}, "TYPE_CHANGED", "#/items/"),
    ({"oneOf": [A]}, {"oneOf": [A, B]}, "COMBINED_TYPE_SUBSCHEMAS_CHANGED", "#/oneOf"),
    (A, {"oneOf": [A, B]}, "COMBINED_TYPE_SUBSCHEMAS_CHANGED", "#/oneOf"),
    ({"not": A}, {}, "NOT_TYPE_EXTENDED", "#/not"),
    ({"dependencies": {"a": ["b"]}}, {}, "DEPENDENCY_ARRAY_ADDED", "#/dependencies/a"),
]


def between(reader, writer):
    return breaks(parse(json.dumps(reader), []), parse(json.dumps(writer), []), "new", "old")


@pytest.mark.parametrize(("reader", "writer"), READABLE, ids=str)
def test_readable(reader, writer):
    assert between(reader, writer) == []


@pytest.mark.parametrize(("reader", "writer", "kind", "path"), UNREADABLE, ids=str)
def test_unreadable(reader, writer, kind, path):
    (found,) = between(reader, writer)
    assert found.startswith(f'{{errorType:"{kind}"')
    assert f"path '{path}'" in found


@pytest.mark.parametrize("text", ["{", "3", '{"type":"text"}', '{"$ref":"#/definitions/a"}', '{"$ref":"other.json"}'])
def test_what_is_no_schema(text):
    with pytest.raises(RegistryError):
        parse(text, [])


@pytest.mark.parametrize("pattern", [r"^\p{L}+$", r"(?<year>\d{4})-\d\d", r"[\p{Lu}_]+", "^a|b$"])
def test_patterns_are_those_of_ecmascript(pattern):
    parse(json.dumps({"type": "string", "pattern": pattern}), [])
    with pytest.raises(RegistryError):
        parse(json.dumps({"type": "string", "pattern": f"{pattern}("}), [])


def test_references_are_by_name_and_by_id():
    other = ("other.json", json.dumps({"$id": "https://example.com/o", "definitions": {"a": A}}))
    for reference in ("other.json#/definitions/a", "https://example.com/o#/definitions/a"):
        reader = parse(json.dumps({"$ref": reference}), [other])
        assert breaks(reader, parse(json.dumps(A), []), "new", "old") == []
        assert breaks(reader, parse(json.dumps(B), []), "new", "old") != []
