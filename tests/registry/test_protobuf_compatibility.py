"""Updates of a message type, by the rules of Protobuf's language guide."""

import base64
import importlib

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto

from barnabas.registry.errors import RegistryError
from barnabas.registry.protobuf import parse
from barnabas.registry.protobuf_compatibility import breaks


def proto(body, syntax="proto3", package="shop"):
    return f'syntax = "{syntax}"; package {package}; {body}'


READABLE = [  # reader, writer
    ("message M { int32 a = 1; string b = 2; }", "message M { int32 a = 1; }"),
    ("message M { }", "message M { int32 a = 1; }"),
    ("message M { int32 b = 1; }", "message M { int32 a = 1; }"),
    ("message M { int64 a = 1; }", "message M { bool a = 1; }"),
    ("message M { int64 a = 1; }", "message M { E a = 1; } enum E { X = 0; }"),
    ("message M { bytes a = 1; }", "message M { string a = 1; }"),
    ("message M { fixed32 a = 1; }", "message M { sfixed32 a = 1; }"),
    ("message M { repeated string a = 1; }", "message M { string a = 1; }"),
    ("message M { oneof o { int32 a = 1; } }", "message M { int32 a = 1; }"),
    ("message M { } enum E { X = 0; Y = 1; }", "message M { } enum E { X = 0; }"),
    ("message M { map<string, int64> a = 1; }", "message M { map<string, int32> a = 1; }"),
    ("message M { M a = 1; } message N { }", "message M { M a = 1; }"),
    ("message M { optional int32 a = 1; }", "message M { int32 a = 1; }"),
]

UNREADABLE = [  # reader, writer, kind of what breaks, path
    ("message M { string a = 1; }", "message M { int32 a = 1; }", "FIELD_SCALAR_KIND_CHANGED", "#/M/1"),
    ("message M { sint32 a = 1; }", "message M { int32 a = 1; }", "FIELD_SCALAR_KIND_CHANGED", "#/M/1"),
    ("message M { M a = 1; }", "message M { int32 a = 1; }", "FIELD_KIND_CHANGED", "#/M/1"),
    ("message N { }", "message M { }", "MESSAGE_REMOVED", "#/M"),
    ("message M { }", "message M { message I { } }", "MESSAGE_REMOVED", "#/M.I"),
    ("message M { J a = 1; } message I { } message J { }", "message M { I a = 1; } message I { }",
     "FIELD_NAMED_TYPE_CHANGED", "#/M/1"),
    ("message M { I a = 1; } message I { string b = 1; }", "message M { I a = 1; } message I { int32 b = 1; }",
     "FIELD_SCALAR_KIND_CHANGED", "#/I/1"),
    ("message M { repeated int32 a = 1; }", "message M { int32 a = 1; }", "FIELD_NUMERIC_LABEL_CHANGED", "#/M/1"),
    ("message M { oneof o { int32 a = 1; } }", "message M { oneof o { int32 a = 1; int32 b = 2; } }",
     "ONEOF_FIELD_REMOVED", "#/M/o/2"),
    ("message M { oneof o { int32 a = 1; int32 b = 2; } }", "message M { int32 a = 1; int32 b = 2; }",
     "MULTIPLE_FIELDS_MOVED_TO_ONEOF", "#/M/o"),
    ("message M { oneof o { int32 a = 1; int32 b = 2; } }", "message M { oneof o { int32 a = 1; } int32 b = 2; }",
     "FIELD_MOVED_TO_EXISTING_ONEOF", "#/M/o"),
    ("message M { map<string, string> a = 1; }", "message M { map<string, int32> a = 1; }",
     "FIELD_SCALAR_KIND_CHANGED", "#/M/1/value"),
]  # fmt: skip


def between(reader, writer):
    return breaks(parse(reader, []), parse(writer, []), "new", "old")


@pytest.mark.parametrize(("reader", "writer"), READABLE, ids=str)
def test_readable(reader, writer):
    assert between(proto(reader), proto(writer)) == []


@pytest.mark.parametrize(("reader", "writer", "kind", "path"), UNREADABLE, ids=str)
def test_unreadable(reader, writer, kind, path):
    (found,) = between(proto(reader), proto(writer))
    assert found.startswith(f'{{errorType:"{kind}"')
    assert f"path '{path}'" in found


def test_required_fields_and_packages():
    one, other = "message M { required int32 a = 1; }", "message M { }"
    for reader, writer, kind in (one, other, "REQUIRED_FIELD_ADDED"), (other, one, "REQUIRED_FIELD_REMOVED"):
        assert kind in between(proto(reader, "proto2"), proto(writer, "proto2"))[0]
    assert "PACKAGE_CHANGED" in between(proto(other, package="a"), proto(other, package="b"))[0]


EVERYTHING = """
syntax = "proto2";
package shop.v1;
import public "google/protobuf/timestamp.proto";
option java_package = "com.shop";
message Order {
  // a comment
  option deprecated = true;
  reserved 20, 30 to 39;
  reserved "gone";
  required string id = 1 [default = "a\\"b", json_name = "ID"];
  optional Inner.Kind kind = 2 [default = NEW];
  repeated int32 amounts = 3 [packed = true];
  map<string, Inner> inner = 4;
  oneof how { string card = 5; google.protobuf.Timestamp cash = 6; }
  extensions 100 to max;
  message Inner { enum Kind { NEW = 0; OLD = 1 [deprecated = true]; } optional bytes b = 1; }
}
extend Order { optional string more = 100; }
service Orders { rpc Get (Order) returns (stream Order); }
"""


def test_the_printed_form_says_the_same_and_is_stable():
    first = parse(EVERYTHING, [])
    again = parse(first.canonical, [])
    assert (again.canonical, again.file) == (first.canonical, first.file)
    assert "comment" not in first.canonical
    serialized = first.formatted("serialized")
    assert parse(serialized, []).canonical == first.canonical
    assert base64.b64decode(serialized) == first.file.SerializeToString(deterministic=True)


@pytest.mark.parametrize(
    "text", ["message", 'import "none.proto";', 'syntax = "proto3"; message A { B b = 1; }', "AAAA"]
)
def test_what_is_no_schema(text):
    with pytest.raises(RegistryError):
        parse(text, [])


def test_an_import_is_by_the_name_of_the_reference():
    size = ("shop/size.proto", proto("message Size { int32 n = 1; }"))
    text = proto('import "shop/size.proto"; message Shirt { Size size = 1; }')
    assert parse(text, [size]).file.dependency == ["shop/size.proto"]
    with pytest.raises(RegistryError):
        parse(text, [("../size.proto", size[1])])


@pytest.mark.parametrize("imported", ["google/protobuf/any.proto", "google/type/money.proto", "confluent/meta.proto"])
def test_what_clients_take_for_known_is_imported_without_a_reference(imported):
    assert imported in parse(proto(f'import "{imported}"; message M {{ int32 a = 1; }}'), []).files


@pytest.mark.parametrize(
    ("module", "imported"), [("meta_pb2", "confluent/meta.proto"), ("type.decimal_pb2", "confluent/type/decimal.proto")]
)
def test_imports_of_confluent_are_those_of_its_client(module, imported):
    theirs = importlib.import_module(f"confluent_kafka.schema_registry.confluent.{module}").DESCRIPTOR
    found = FileDescriptorProto()
    theirs.CopyToProto(found)
    found.ClearField("options")
    ours = parse(proto(f'import "{imported}"; message M {{ }}'), []).files[imported]
    for message in ours.message_type:
        for field in (*message.field, *(each for nested in message.nested_type for each in nested.field)):
            field.ClearField("json_name")
    for field in ours.extension:
        field.ClearField("json_name")
    assert ours == found


def test_what_is_no_schema_is_said_by_the_compiler():
    with pytest.raises(RegistryError, match="Expected message name"):
        parse("message", [])
    with pytest.raises(RegistryError, match=r'default\.proto:2:3: "N" is not defined'):
        parse('syntax = "proto3"; message M {\n  N n = 1;\n}', [])
    with pytest.raises(RegistryError, match=r"m\.proto: File not found"):
        parse('syntax = "proto3"; import "m.proto";', [])


CUSTOM = """
import "confluent/meta.proto"; import "google/protobuf/descriptor.proto";
extend google.protobuf.MessageOptions { string owner = 50001; repeated int32 rooms = 50002; bytes seal = 50003; }
message M {
  option (owner) = "\\"Olga\\" é"; option (rooms) = 1; option (rooms) = 2; option (seal) = "\\001x";
  string card = 1 [(confluent.field_meta).tags = "PII", (confluent.field_meta).doc = "a number", deprecated = true];
  enum E { X = 0 [(confluent.enum_value_meta) = {tags: "a" tags: "b" params: {key: "k" value: "v"}}]; }
}
"""


def test_custom_options_are_kept_of_texts_and_descriptors():
    schema = parse(proto(CUSTOM), [])
    assert '[deprecated = true, (confluent.field_meta) = { doc: "a number" tags: "PII" }]' in schema.canonical
    assert parse(schema.canonical, []).canonical == schema.canonical
    again = parse(schema.formatted("serialized"), [])
    assert (again.canonical, again.file) == (schema.canonical, schema.file)
    importing = parse(proto('import "m.proto"; message N { M m = 1; }'), [("m.proto", schema.formatted("serialized"))])
    assert importing.files["m.proto"].message_type == schema.file.message_type


def test_groups_are_kept_as_text_and_refused_as_a_descriptor():
    text = proto("message M { optional group G = 1 { optional int32 a = 1; } }", syntax="proto2")
    schema = parse(text, [])
    assert schema.canonical == text
    with pytest.raises(RegistryError, match="groups"):
        parse(schema.formatted("serialized"), [])


def test_a_descriptor_that_is_not_valid_is_refused():
    found = parse(proto("message M { int32 a = 1; }"), []).file
    found.message_type[0].field[0].number = -1
    with pytest.raises(RegistryError):
        parse(base64.b64encode(found.SerializeToString()).decode(), [])
