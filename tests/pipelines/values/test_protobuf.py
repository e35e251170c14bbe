import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import given
from hypothesis import strategies as st

from barnabas.pipelines.values.avro_types import NoSparkType
from barnabas.pipelines.values.framing import Unencodable, header
from barnabas.pipelines.values.protobuf import ProtobufDecoder, ProtobufEncoder, check_fits
from barnabas.pipelines.values.protobuf_schemas import (
    at_indexes,
    class_of,
    from_file,
    from_registry,
    from_text,
    indexes_of,
    message_of,
    registered,
)
from barnabas.pipelines.values.registry import Registry
from compat_tests.spark.registry import SchemaRegistry

SHOP = """
syntax = "proto3";
package shop;
import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";

message Order {
  enum State { NEW = 0; PAID = 1; }
  message Item { string sku = 1; uint64 count = 2; }
  message Nothing {}

  int64 id = 1;
  string customer = 2;
  optional int32 priority = 3;
  State state = 4;
  google.protobuf.Timestamp at = 5;
  google.protobuf.Duration took = 6;
  google.protobuf.StringValue note = 7;
  google.protobuf.UInt64Value large = 8;
  google.protobuf.Struct extra = 9;
  repeated Item items = 10;
  map<string, Item> by_name = 11;
  map<int32, State> states = 12;
  oneof payment { string card = 13; Item voucher = 14; Nothing free = 15; }
  repeated int32 numbers = 16;
  bytes raw = 17;
  uint32 small = 18;
  float ratio = 19;
}

message Refund { Order.Item item = 1; }
"""
DESCRIPTORS = from_text(SHOP)
ORDER = ProtobufDecoder(DESCRIPTORS, "shop.Order")
Order: Any = class_of(message_of(DESCRIPTORS, "shop.Order"))
AT = datetime.datetime(1969, 12, 31, 23, 59, 58, 123456, tzinfo=datetime.UTC)


def full() -> Any:
    order = Order(
        id=-7, customer="träge", priority=0, state=1, numbers=[3, -4], raw=b"\xff", small=4_000_000_000, ratio=0.5
    )
    order.at.FromDatetime(AT)
    order.took.FromTimedelta(datetime.timedelta(days=2, microseconds=5))
    order.note.value = ""
    order.large.value = (1 << 64) - 1
    order.extra["a"] = [1, None, "x"]
    order.items.add(sku="x", count=1 << 63)
    order.items.add()
    order.by_name["n"].sku = "y"
    order.states[3] = 1
    order.states[4] = 9
    order.voucher.sku = "v"
    return order


ROW = {
    "id": -7,
    "customer": "träge",
    "priority": 0,
    "state": "PAID",
    "at": AT,
    "took": datetime.timedelta(days=2, microseconds=5),
    "note": "",
    "large": Decimal((1 << 64) - 1),
    "extra": '{"a": [1.0, null, "x"]}',
    "items": [{"sku": "x", "count": Decimal(1 << 63)}, {"sku": "", "count": Decimal(0)}],
    "by_name": [("n", {"sku": "y", "count": Decimal(0)})],
    "states": [(3, "PAID"), (4, "9")],
    "card": None,
    "voucher": {"sku": "v", "count": Decimal(0)},
    "free": None,
    "numbers": [3, -4],
    "raw": b"\xff",
    "small": 4_000_000_000,
    "ratio": 0.5,
}
EMPTY = {
    "id": 0,
    "customer": "",
    "state": "NEW",
    "items": [],
    "by_name": [],
    "states": [],
    "numbers": [],
    "raw": b"",
    "small": 0,
    "ratio": 0.0,
}


def test_each_type_of_protobuf_becomes_that_of_spark() -> None:
    free = Order()
    free.free.SetInParent()
    made = ORDER(pa.array([full().SerializeToString(), None, b"", free.SerializeToString()], pa.binary()))
    assert made.errors.null_count == 4
    rows = made.values.to_pylist()
    assert [{**row, "states": sorted(row["states"])} if row else row for row in rows] == [
        ROW,
        None,
        {**dict.fromkeys(ROW), **EMPTY},
        {**dict.fromkeys(ROW), **EMPTY, "free": True},
    ]


def test_what_is_decoded_is_written_as_the_same_bytes() -> None:
    free = Order()
    free.free.SetInParent()
    values = pa.array([each.SerializeToString(deterministic=True) for each in (full(), Order(), free)] + [None])
    check_fits(DESCRIPTORS, "shop.Order", ORDER.type)
    assert ProtobufEncoder(DESCRIPTORS, "shop.Order")(ORDER(values).values).equals(values)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_row_or_a_complaint(value: bytes) -> None:
    made = ORDER(pa.array([value, None], pa.binary()))
    assert (made.values[0].as_py() is None) == (made.errors[0].as_py() is not None)
    assert made.values[1].as_py() is made.errors[1].as_py() is None


def test_a_bad_value_costs_its_own_row_alone() -> None:
    """The third value is decoded, but JSON has no number for one of its fields."""
    odd = Order()
    odd.extra["a"] = float("nan")
    made = ORDER(pa.array([b"", b"\xff", odd.SerializeToString(), b"\0\0\0\0\1\0" + full().SerializeToString()]))
    assert [row is None for row in made.values.to_pylist()] == [False, True, True, True]
    first, *others = made.errors.to_pylist()
    assert first is None
    assert others[0] == "the 1 bytes are not a message shop.Order"
    assert "schema registry's header" in others[2]


def test_confluents_serializer_and_deserializer_agree(registry: SchemaRegistry) -> None:
    client = SchemaRegistryClient({"url": registry.url})
    context = SerializationContext("orders", MessageField.VALUE)
    serialize = ProtobufSerializer(Order, client)
    values = pa.array([serialize(full(), context), serialize(Order(id=5), context)])
    known = Registry.at(registry.url)
    descriptors = from_registry(known.latest("orders-value", serialized=True))
    made = ProtobufDecoder(descriptors, "shop.Order", known, True)(values)
    assert made.errors.null_count == 2
    assert [row["id"] for row in made.values.to_pylist()] == [-7, 5]
    schema_id = registered(known, "orders-value", descriptors, "shop.Order")
    again = ProtobufEncoder(descriptors, "shop.Order", schema_id)(made.values)
    deserialize = ProtobufDeserializer(Order, {}, client)
    assert [deserialize(value.as_py(), context) for value in again] == [full(), Order(id=5)]


def test_another_message_of_the_schema_is_told_from_the_one_that_is_wanted(registry: SchemaRegistry) -> None:
    client = SchemaRegistryClient({"url": registry.url})
    context = SerializationContext("orders", MessageField.VALUE)
    item: Any = class_of(message_of(DESCRIPTORS, "Item"))(sku="x")
    value = ProtobufSerializer(type(item), client)(item, context)
    known = Registry.at(registry.url)
    made = ProtobufDecoder(DESCRIPTORS, "shop.Order", known, True)(pa.array([value, header(9) + b"\0"]))
    assert made.errors.to_pylist() == [
        "it is a shop.Order.Item (schema 1), not a shop.Order",
        f"schema 9 is not in the registry {registry.url}",
    ]
    made = ProtobufDecoder(DESCRIPTORS, "shop.Order.Item", known, True)(pa.array([value]))
    assert made.values.to_pylist() == [{"sku": "x", "count": Decimal(0)}]


def test_a_registry_that_gives_text_and_imports(registry: SchemaRegistry) -> None:
    registry.serialized = False
    client = SchemaRegistryClient({"url": registry.url})
    money = 'syntax = "proto3"; package money; message Amount { int64 cents = 1; }'
    bill = 'syntax = "proto3"; import "money/amount.proto"; message Bill { money.Amount total = 1; }'
    client.register_schema("amount", Schema(money, "PROTOBUF"))
    from confluent_kafka.schema_registry import SchemaReference

    uses = [SchemaReference("money/amount.proto", "amount", 1)]
    client.register_schema("bills-value", Schema(bill, "PROTOBUF", uses))
    descriptors = from_registry(Registry.at(registry.url).latest("bills-value", serialized=True))
    assert ProtobufDecoder(descriptors, "Bill").type == pa.struct([("total", pa.struct([("cents", pa.int64())]))])
    schema_id = registered(Registry.at(registry.url), "others-value", descriptors, "Bill")
    assert registry.subjects["money/amount.proto"] and registry.schemas[schema_id - 1].references == (
        ("money/amount.proto", "money/amount.proto", 1),
    )
    registry.serialized = True
    again = from_registry(Registry.at(registry.url).latest("others-value", serialized=True))
    assert ProtobufDecoder(again, "Bill").type == ProtobufDecoder(descriptors, "Bill").type


@pytest.mark.parametrize("name", ["shop.Order", "shop.Order.Item", "shop.Order.Nothing", "shop.Refund"])
def test_indexes_lead_to_the_message_that_they_are_of(name: str) -> None:
    assert at_indexes(DESCRIPTORS, indexes_of(message_of(DESCRIPTORS, name))) == name


def test_schemas_from_files(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "part.proto").write_text('syntax = "proto3"; message Part { string of = 1; }')
    main = tmp_path / "main.proto"
    main.write_text('syntax = "proto3"; import "parts/part.proto"; message Main { Part part = 1; }')
    made = tmp_path / "main.desc"
    made.write_bytes(from_file(main))
    assert message_of(from_file(made), None).full_name == "Main"
    assert message_of(from_file(main), "Part").full_name == "Part"
    made.write_bytes(b"no descriptors")
    with pytest.raises(ValueError, match=r"main\.desc is not a descriptor set"):
        from_file(made)
    with pytest.raises(ValueError, match="there is no file"):
        from_file(tmp_path / "absent.proto")


@pytest.mark.parametrize(
    ("text", "message", "complaint"),
    [
        ("message {", None, r"cannot be compiled: schema\.proto:1:9"),
        ('syntax = "proto3"; message A { B b = 1; }', None, '"B" is not defined'),
        ('syntax = "proto3"; message A { int32 x = 1; }', "Other", "Other is not in the schema, which has A"),
        ('syntax = "proto3"; enum E { X = 0; }', None, "has no message"),
    ],
)
def test_a_schema_that_cannot_be_says_why(text: str, message: str | None, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        message_of(from_text(text), message)


def test_a_message_within_itself_has_no_type_in_spark() -> None:
    descriptors = from_text('syntax = "proto3"; message Node { repeated Node children = 1; }')
    with pytest.raises(NoSparkType, match="children is a Node within a Node"):
        _ = ProtobufDecoder(descriptors, "Node").type


@pytest.mark.parametrize(
    ("type", "complaint"),
    [
        (pa.struct([("colour", pa.string())]), r"colour is not in shop\.Order, which has id, customer"),
        (pa.struct([("id", pa.string())]), "id is string, and the schema has int64 there"),
        (pa.struct([("items", pa.string())]), "items is string, and the schema has a repeated field there"),
        (pa.struct([("state", pa.int64())]), r"state is int64, and the schema has shop\.Order\.State there"),
        (pa.struct([("voucher", pa.struct([("skew", pa.string())]))]), r"voucher\.skew is not in"),
        (pa.string(), "the column is string"),
    ],
)
def test_a_column_that_does_not_fit_is_refused_by_name(type: pa.DataType, complaint: str) -> None:
    with pytest.raises(NoSparkType, match=complaint):
        check_fits(DESCRIPTORS, "shop.Order", type)


def test_a_row_that_cannot_be_written_is_shown() -> None:
    with pytest.raises(Unencodable, match=r"state is 'LOST', and shop\.Order\.State has no such value, in the row"):
        ProtobufEncoder(DESCRIPTORS, "shop.Order")(pa.array([{"state": "LOST"}]))
    with pytest.raises(Unencodable, match=r"ParseError: .*, in the row \{'extra': 'no JSON'\}"):
        ProtobufEncoder(DESCRIPTORS, "shop.Order")(pa.array([{"extra": "no JSON"}]))
    proto2 = from_text('syntax = "proto2"; message M { required int32 a = 1; optional int32 b = 2; }')
    with pytest.raises(Unencodable, match=r"EncodeError: .*missing required fields: a, in the row \{'b': 1\}"):
        ProtobufEncoder(proto2, "M")(pa.array([{"b": 1}], pa.struct([("b", pa.int32())])))
