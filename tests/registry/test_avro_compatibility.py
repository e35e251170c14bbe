"""Schema resolution of the Avro specification: compatible and incompatible readers and writers."""

import json

import pytest

from barnabas.registry.avro import parse
from barnabas.registry.avro_compatibility import breaks


def record(*fields, **other):
    return {"type": "record", "name": "r", "fields": list(fields), **other}


def field(name, kind, **other):
    return {"name": name, "type": kind, **other}


ENUM = {"type": "enum", "name": "e", "symbols": ["A", "B"]}
FIXED = {"type": "fixed", "name": "f", "size": 4}
LIST = record(field("next", ["null", "r"]))

READABLE = [  # reader, writer
    ("int", "int"),
    ("long", "int"),
    ("float", "long"),
    ("double", "float"),
    ("double", "int"),
    ("string", "bytes"),
    ("bytes", "string"),
    (["null", "int"], "int"),
    (["null", "long"], "int"),
    ("int", ["int"]),
    (["int", "string"], ["string", "int"]),
    ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}),
    ({"type": "map", "values": "double"}, {"type": "map", "values": "float"}),
    ({**ENUM, "symbols": ["A", "B", "C"]}, ENUM),
    ({**ENUM, "symbols": ["A"], "default": "A"}, ENUM),
    (record(), record(field("a", "int"))),
    (record(field("a", "int", default=1)), record()),
    (record(field("b", "int", aliases=["a"])), record(field("a", "int"))),
    (record(name="s", aliases=["r"]), record()),
    (LIST, LIST),
    ({"type": "int", "logicalType": "date"}, "int"),
]

UNREADABLE = [  # reader, writer, kind of what breaks, path
    ("int", "long", "TYPE_MISMATCH", "/"),
    ("float", "double", "TYPE_MISMATCH", "/"),
    ("string", "int", "TYPE_MISMATCH", "/"),
    ("boolean", "int", "TYPE_MISMATCH", "/"),
    ("int", ["null", "int"], "TYPE_MISMATCH", "/"),
    (["null", "string"], "int", "MISSING_UNION_BRANCH", "/"),
    (["null", "int"], ["null", "int", "string"], "MISSING_UNION_BRANCH", "/2"),
    ({"type": "array", "items": "int"}, {"type": "array", "items": "string"}, "TYPE_MISMATCH", "/items"),
    ({"type": "map", "values": "int"}, {"type": "map", "values": "string"}, "TYPE_MISMATCH", "/values"),
    ({**ENUM, "symbols": ["A"]}, ENUM, "MISSING_ENUM_SYMBOLS", "/symbols"),
    ({**ENUM, "name": "g"}, ENUM, "NAME_MISMATCH", "/name"),
    ({**FIXED, "size": 5}, FIXED, "FIXED_SIZE_MISMATCH", "/size"),
    (record(field("a", "int")), record(), "READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/0"),
    (record(field("a", "int")), record(field("a", "string")), "TYPE_MISMATCH", "/fields/0/type"),
    (record(field("a", FIXED)), record(field("a", {**FIXED, "size": 8})), "FIXED_SIZE_MISMATCH", "/fields/0/type/size"),
    (record(name="s"), record(), "NAME_MISMATCH", "/name"),
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


def test_the_printed_form_is_that_of_java():
    given = {
        "namespace": "shop", "name": "Order", "doc": "d", "type": "record", "x": 1,
        "fields": [
            {"default": None, "name": "size", "type": ["null", {"name": "Size", "type": "enum", "symbols": ["S"]}]},
            {"name": "other", "type": "shop.Size", "doc": "o"},
            {"name": "at", "type": {"logicalType": "date", "type": "int"}},
            {"name": "tags", "type": {"items": {"type": "string"}, "type": "array"}},
        ],
    }  # fmt: skip
    assert parse(json.dumps(given), []).canonical == (
        '{"type":"record","name":"Order","namespace":"shop","doc":"d","fields":[{"name":"size","type":["null",'
        '{"type":"enum","name":"Size","symbols":["S"]}],"default":null},{"name":"other","type":"Size","doc":"o"},'
        '{"name":"at","type":{"type":"int","logicalType":"date"}},{"name":"tags","type":{"type":"array","items":'
        '"string"}}],"x":1}'
    )
