import datetime
import io
import json
import uuid
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from hypothesis import given
from hypothesis import strategies as st

from barnabas.pipelines.values.avro import AvroDecoder, AvroEncoder, check_fits, schema_for
from barnabas.pipelines.values.avro_types import Named, NoSparkType
from barnabas.pipelines.values.avro_unions import from_union
from barnabas.pipelines.values.framing import Undecodable, Unencodable, header
from barnabas.pipelines.values.registry import Registry, RegistryFailed
from compat_tests.spark.registry import SchemaRegistry, Stored, schema_registry

ORDER: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": ["null", "string"], "default": None},
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "seen", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "hour", "type": {"type": "long", "logicalType": "time-micros"}},
        {"name": "trace", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {"name": "before", "type": ["null", "State"]},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 4}},
        {"name": "tags", "type": {"type": "map", "values": "double"}},
        {
            "name": "items",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "Item",
                    "fields": [{"name": "sku", "type": "string"}, {"name": "count", "type": ["null", "int"]}],
                },
            },
        },
        {"name": "either", "type": ["null", "boolean", "string", "long", "Item", {"type": "array", "items": "int"}]},
        {"name": "wide", "type": ["int", "null", "long"]},
    ],
}
AT = datetime.datetime(2024, 2, 29, 12, 30, 15, 123000, tzinfo=datetime.UTC)


def order(number: int, **others: Any) -> dict[str, Any]:
    """Returns a row as fastavro writes it."""
    return {
        "id": number,
        "customer": f"customer {number}",
        "amount": Decimal("12.34"),
        "at": AT,
        "seen": AT.replace(microsecond=123456),
        "local": AT.replace(tzinfo=None),
        "day": AT.date(),
        "hour": datetime.time(1, 2, 3, 4),
        "trace": str(uuid.UUID(int=number)),
        "state": "PAID",
        "before": None,
        "hash": b"\0\1\2\3",
        "tags": {"a": 1.5},
        "items": [{"sku": "x", "count": None}, {"sku": "y", "count": 2}],
        "either": None,
        "wide": 1 << 40,
        **others,
    }


def written(schema: Any, *rows: Any) -> pa.Array:
    values = []
    for row in rows:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, schema, row)
        values.append(stream.getvalue())
    return pa.array(values, pa.binary())


def decode(column: pa.Array, schema: Any, **others: Any) -> list[Any]:
    """Returns the rows, all of which must be decoded."""
    made = AvroDecoder((json.dumps(schema),), **others)(column)
    assert made.errors.null_count == len(column), made.errors.to_pylist()
    return list(made.values.to_pylist())


def complaint(value: bytes, schema: Any, **others: Any) -> str:
    made = AvroDecoder((json.dumps(schema),), **others)(pa.array([value], pa.binary()))
    assert made.values.null_count == 1
    return str(made.errors[0].as_py())


def test_each_type_of_avro_becomes_that_of_spark() -> None:
    [row] = decode(written(ORDER, order(7)), ORDER)
    assert row == {
        **order(7),
        "hour": ((1 * 60 + 2) * 60 + 3) * 1_000_000 + 4,
        "tags": [("a", 1.5)],
        "either": None,
    }


def members(**given: Any) -> dict[str, Any]:
    return {f"member{number}": given.get(f"member{number}") for number in range(5)}


def test_a_union_becomes_a_struct_of_which_one_is_set() -> None:
    item = ("shop.Item", {"sku": "z", "count": 3})
    rows = [order(n, either=value) for n, value in enumerate([True, "text", 1 << 50, item, [1, 2], None])]
    assert [row["either"] for row in decode(written(ORDER, *rows), ORDER)] == [
        members(member0=True),
        members(member1="text"),
        members(member2=1 << 50),
        members(member3={"sku": "z", "count": 3}),
        members(member4=[1, 2]),
        None,
    ]


def test_what_is_decoded_is_written_as_the_same_bytes() -> None:
    item = ("shop.Item", {"sku": "z", "count": 3})
    values = written(ORDER, *[order(n, either=e) for n, e in enumerate([None, "text", 1 << 50, item, [1, 2]])])
    decoder = AvroDecoder((json.dumps(ORDER),))
    made = decoder(values).values
    check_fits((json.dumps(ORDER),), decoder.type)
    assert AvroEncoder((json.dumps(ORDER),))(made).equals(values)


def test_a_column_without_a_schema_is_written_by_one_made_of_its_type() -> None:
    made = AvroDecoder((json.dumps(ORDER),))(written(ORDER, order(1), order(2, customer=None))).values
    texts = schema_for(made.type)
    check_fits(texts, made.type)
    assert AvroDecoder(texts)(AvroEncoder(texts)(made)).values.equals(made)


LEAVES: Any = st.sampled_from(
    [
        (pa.int32(), st.integers(-(1 << 31), (1 << 31) - 1)),
        (pa.int64(), st.integers(-(1 << 63), (1 << 63) - 1)),
        (pa.float64(), st.floats(allow_nan=False)),
        (pa.bool_(), st.booleans()),
        (pa.string(), st.text(max_size=5)),
        (pa.binary(), st.binary(max_size=5)),
        (pa.date32(), st.dates()),
        (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(datetime.UTC))),
        (pa.timestamp("us"), st.datetimes()),
        (pa.time64("us"), st.times()),
        (pa.decimal128(12, 3), st.decimals(-(10**8), 10**8, places=3)),
    ]
)


def _nested(inner: Any) -> Any:
    return st.one_of(
        inner.map(lambda leaf: (pa.list_(pa.field("element", leaf[0])), st.lists(st.none() | leaf[1], max_size=3))),
        inner.map(lambda leaf: (pa.map_(pa.string(), leaf[0]), st.dictionaries(st.text(max_size=3), leaf[1]))),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda leaves: (
                pa.struct([pa.field(f"f{at}", leaf[0]) for at, leaf in enumerate(leaves)]),
                st.fixed_dictionaries({f"f{at}": st.none() | leaf[1] for at, leaf in enumerate(leaves)}),
            )
        ),
    )


@given(st.recursive(LEAVES, _nested, max_leaves=6), st.data())
def test_columns_of_any_type_come_back(kind: Any, data: Any) -> None:
    """Times of day are decoded as the numbers of Spark's own Avro source."""
    rows = data.draw(st.lists(st.none() | kind[1], max_size=5))
    column = pa.array(rows, kind[0])
    texts = schema_for(column.type)
    made = AvroDecoder(texts)(AvroEncoder(texts)(column))
    assert made.errors.null_count == len(rows)
    assert made.values.to_pylist() == column.cast(AvroDecoder(texts).type).to_pylist()


@pytest.mark.parametrize(
    ("schema", "row"),
    [("string", "text"), (["null", "long"], None), ({"type": "array", "items": "int"}, [1, 2]), ("double", 1.5)],
)
def test_a_schema_need_not_be_a_record(schema: Any, row: Any) -> None:
    values = written(schema, row)
    assert decode(values, schema) == [row]
    if row is not None:
        assert AvroEncoder((json.dumps(schema),))(pa.array([row])).equals(values)


def test_a_schema_that_has_grown_reads_what_was_written_before() -> None:
    old = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}, {"name": "gone", "type": "string"}]}
    new = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "number", "aliases": ["n"], "type": "long"},
            {"name": "added", "type": "string", "default": "as it was"},
        ],
    }
    with schema_registry() as registry:
        client = SchemaRegistryClient({"url": registry.url})
        ids = [client.register_schema("r-value", Schema(json.dumps(each), "AVRO")) for each in (old, new)]
        values = [
            header(ids[0]) + written(old, {"n": 1, "gone": "x"})[0].as_py(),
            header(ids[1]) + written(new, {"number": 2, "added": "y"})[0].as_py(),
        ]
        rows = decode(pa.array(values * 50), new, registry=Registry.at(registry.url), framed=True)
        assert rows == [{"number": 1, "added": "as it was"}, {"number": 2, "added": "y"}] * 50
        assert sum("/schemas/ids/" in request for request in registry.requests) == 2, "each schema is requested once"


def test_confluents_serializer_and_deserializer_agree() -> None:
    context = SerializationContext("orders", MessageField.VALUE)
    with schema_registry("user:secret") as registry:
        settings = {"basic.auth.user.info": "user:secret"}
        client = SchemaRegistryClient({"url": registry.url, **settings})
        serialize = AvroSerializer(client, json.dumps(ORDER))
        values = pa.array([serialize(order(n), context) for n in range(3)], pa.binary())
        known = Registry.at(registry.url, settings)
        decoder = AvroDecoder((known.latest("orders-value").text,), known, True)
        made = decoder(values)
        assert [row["id"] for row in made.values.to_pylist()] == [0, 1, 2]
        schema_id = known.register("orders-value", json.dumps(ORDER), "AVRO")
        again = AvroEncoder((json.dumps(ORDER),), schema_id)(made.values)
        assert again.equals(values)
        assert AvroDeserializer(client)(again[2].as_py(), context) == {**order(2), "trace": uuid.UUID(int=2)}


def test_a_schema_may_use_names_of_others(registry: SchemaRegistry) -> None:
    item = {"type": "record", "name": "shop.Item", "fields": [{"name": "sku", "type": "string"}]}
    basket = {
        "type": "record",
        "name": "shop.Basket",
        "fields": [{"name": "items", "type": {"type": "array", "items": "shop.Item"}}],
    }
    client = SchemaRegistryClient({"url": registry.url})
    client.register_schema("item", Schema(json.dumps(item), "AVRO"))
    uses = [SchemaReference("shop.Item", "item", 1)]
    schema_id = client.register_schema("basket-value", Schema(json.dumps(basket), "AVRO", uses))
    known = Registry.at(registry.url)
    texts = tuple(text for _, text in known.latest("basket-value").texts)
    value = header(schema_id) + written([item, basket], {"items": [{"sku": "a"}, {"sku": "b"}]})[0].as_py()[1:]
    made = AvroDecoder(texts, known, True)(pa.array([value]))
    assert made.values.to_pylist() == [{"items": [{"sku": "a"}, {"sku": "b"}]}]


def test_bytes_that_are_no_value_say_why() -> None:
    value = written(ORDER, order(1))[0].as_py()
    assert "end within the value" in complaint(value[:-3], ORDER)
    assert "2 of" in complaint(value + b"xx", ORDER)
    assert "schema registry's header" in complaint(header(1) + value, ORDER)
    assert "not the 0x00" in complaint(b"\1" + value, ORDER, framed=True)


@given(st.binary(max_size=80))
def test_any_bytes_are_a_row_or_a_complaint(value: bytes) -> None:
    made = AvroDecoder((json.dumps(ORDER),))(pa.array([value, None], pa.binary()))
    assert (made.values[0].as_py() is None) == (made.errors[0].as_py() is not None)
    assert made.values[1].as_py() is made.errors[1].as_py() is None


def test_a_bad_value_costs_its_own_row_alone() -> None:
    """The third value is decoded, but has a number with too many digits for its column."""
    schema = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}
    too_long = written({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 1}, Decimal("12345678.9"))
    column = pa.concat_arrays([written(schema, Decimal("1.5")), pa.array([None], pa.binary()), too_long])
    made = AvroDecoder((json.dumps(schema),))(column)
    assert made.values.to_pylist() == [Decimal("1.5"), None, None]
    assert [bool(error) for error in made.errors.to_pylist()] == [False, False, True]


def test_a_value_of_no_type_of_its_union_is_the_value_s_fault() -> None:
    convert = from_union(["null", "bytes", "boolean"], Named({}), False)
    assert convert is not None and convert(b"x") == {"member0": b"x"}
    with pytest.raises(Undecodable, match="a str is of no type of the union"):
        convert("x")


def test_ids_that_are_unknown_are_the_values_fault_and_silence_the_registrys(registry: SchemaRegistry) -> None:
    known = Registry.at(registry.url, {"max.retries": "0"})
    assert "schema 99 is not in the registry" in complaint(header(99) + b"x", ORDER, registry=known, framed=True)
    registry.register("text", Stored('{"type": "object"}', "JSON", ()))
    assert "schema 1 is JSON, not Avro" in complaint(header(1) + b"x", ORDER, registry=known, framed=True)
    with schema_registry() as gone:
        silent = Registry.at(gone.url, {"max.retries": "0"})
    with pytest.raises(RegistryFailed, match=f"{silent.url} does not answer about schema 5"):
        AvroDecoder((json.dumps(ORDER),), silent, True)(pa.array([header(5)]))


@pytest.mark.parametrize(
    ("schema", "complaint"),
    [
        ("{", "as it is not JSON"),
        ('{"type": "enum", "name": "E"}', "not an Avro schema: KeyError: 'symbols'"),
        ('{"type": "record", "name": "R", "fields": [{"name": "x", "type": "S"}]}', "not an Avro schema: UnknownType"),
        (
            '{"type": "record", "name": "R", "fields": [{"name": "next", "type": ["null", "R"]}]}',
            "next is a R within a R",
        ),
        ('{"type": "bytes", "logicalType": "decimal", "precision": 39, "scale": 1}', "39 digits"),
    ],
)
def test_a_schema_that_cannot_be_says_why(schema: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        _ = AvroDecoder((schema,)).type


@pytest.mark.parametrize(
    ("type", "complaint"),
    [
        (pa.struct([("id", pa.int64()), ("colour", pa.string())]), "colour is not in the schema, which has id, "),
        (pa.struct([("id", pa.string())]), "id is string, and the schema has long there"),
        (pa.struct([("id", pa.int64())]), "amount is in the schema, without a default"),
        (pa.int32(), "the column is int32, and the schema has record there"),
    ],
)
def test_a_column_that_does_not_fit_is_refused_by_name(type: pa.DataType, complaint: str) -> None:
    with pytest.raises(NoSparkType, match=complaint):
        check_fits((json.dumps(ORDER),), type)


def test_a_row_that_cannot_be_written_is_shown() -> None:
    with pytest.raises(Unencodable, match=r"in the row \{'state': 'LOST'\}"):
        schema = {"type": "record", "name": "R", "fields": [{"name": "state", "type": ORDER["fields"][9]["type"]}]}
        AvroEncoder((json.dumps(schema),))(pa.array([{"state": "LOST"}]))
