"""Values in Spark's columns: each format both ways, three modes for bad values, a schema registry, and the how-to."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from barnabas.pipelines.values import (
    Avro,
    Format,
    Json,
    Protobuf,
    Raw,
    Registry,
    Utf8,
    decode_value,
    encode_value,
    split,
)
from compat_tests.spark.registry import schema_registry
from compat_tests.test_documents import blocks

PROTO = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
message Order {
  message Item { string sku = 1; int32 count = 2; }
  int64 id = 1; optional string note = 2; google.protobuf.Timestamp at = 3;
  repeated Item items = 4; map<string, double> tags = 5; bool paid = 6;
}
"""
COLUMNS = (
    "id BIGINT, note STRING, at TIMESTAMP, items ARRAY<STRUCT<sku: STRING, count: INT>>, tags MAP<STRING, DOUBLE>, "
    "paid BOOLEAN"
)
AT = datetime(2026, 3, 2, 9, 30, 15, 123456, UTC)
ROWS: list[Any] = [
    (1, "träge", AT, [("x", 1), ("y", 2)], {"a": 1.5}, True),
    (2, None, AT, [], {}, False),
]


def orders(spark: SparkSession) -> DataFrame:
    """Returns two rows of structs, and a null."""
    frame = spark.createDataFrame(ROWS, COLUMNS).select(f.struct("*").alias("value"))
    return frame.unionByName(frame.limit(1).select(f.lit(None).cast(frame.schema["value"].dataType).alias("value")))


def test_each_format_there_and_back(spark: SparkSession) -> None:
    """Returns one query with a column for each way to write them."""
    with schema_registry("user:secret") as served:
        registry = Registry.at(served.url, {"basic.auth.user.info": "user:secret"})
        formats: dict[str, tuple[Format, Format]] = {
            "json": (Json(), Json(schema=COLUMNS)),
            "json_framed": (Json(registry=registry, subject="j-value"),) * 2,
            "avro_framed": (Avro(registry=registry, subject="a-value"),) * 2,
            "protobuf": (Protobuf(schema=PROTO),) * 2,
            "protobuf_framed": (
                Protobuf(schema=PROTO, registry=registry, subject="p-value"),
                Protobuf(registry=registry, subject="p-value"),
            ),
        }
        frame = source = orders(spark)
        for name, (writes, _) in formats.items():
            frame = encode_value(frame, "value", writes, into=name)
        frame = frame.drop("value").localCheckpoint()
        assert {type for _, type in frame.dtypes} == {"binary"}
        for name, (_, reads) in formats.items():
            frame = decode_value(frame, name, reads)
        expected = [None if row.value is None else row.value.asDict(True) for row in source.collect()]
        expected_json = [
            None if row is None else {**row, "at": row["at"].replace(microsecond=123000)} for row in expected
        ]
        made = frame.collect()
    for name in formats:
        rows = [None if row[name] is None else row[name].asDict(True) for row in made]
        assert rows == (expected_json if name.startswith("json") else expected), name


def test_types_that_only_avro_has(spark: SparkSession) -> None:
    schema = {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
            {"name": "trace", "type": {"type": "string", "logicalType": "uuid"}},
            {"name": "either", "type": ["null", "string", "long"]},
            {"name": "later", "type": "string", "default": "as it was"},
        ],
    }
    older = {**schema, "fields": schema["fields"][:-1]}
    trace = "3f2504e0-4f89-11d3-9a0c-0305e82c3301"
    row = {"amount": Decimal("1.50"), "day": date(2026, 3, 2), "local": datetime(2026, 3, 2), "trace": trace}
    with schema_registry() as served:
        serialize = AvroSerializer(SchemaRegistryClient({"url": served.url}), json.dumps(older))
        context = SerializationContext("r", MessageField.VALUE)
        values = [(bytearray(serialize({**row, "either": either}, context) or b""),) for either in ("text", 5, None)]
        format = Avro(schema=json.dumps(schema), registry=Registry.at(served.url))
        found = decode_value(spark.createDataFrame(values, "value BINARY"), "value", format)
        assert found.schema["value"].dataType.simpleString() == (
            "struct<amount:decimal(9,2),day:date,local:timestamp_ntz,trace:string,"
            "either:struct<member0:string,member1:bigint>,later:string>"
        )
        rows = [each.value.asDict(True) for each in found.collect()]
    sides = [{"member0": "text", "member1": None}, {"member0": None, "member1": 5}, None]
    assert rows == [{**row, "either": either, "later": "as it was"} for either in sides]


def test_bad_values_fail_are_null_or_are_split_off(spark: SparkSession) -> None:
    values = [b'{"id": 1}', b'{"id": "x"}', b"", None, b"null", b"[1]", b"\xff"]
    frame = spark.createDataFrame(
        [("orders", 3, at, value) for at, value in enumerate(values)],
        "topic STRING, partition INT, offset BIGINT, value BINARY",
    ).coalesce(1)
    json_format, proto = Json(schema="id BIGINT"), Protobuf(schema=PROTO)
    frame = frame.withColumn("other", f.when(f.col("offset") == 6, f.lit(b"\xff")).otherwise(f.lit(b"\x08\x05")))
    both = split(frame, {"other": proto, "value": json_format})
    good = both.good.select("offset", "value.id", f.col("other.id").alias("other")).orderBy("offset").collect()
    assert [tuple(row) for row in good] == [(0, 1, 5), (3, None, 5), (4, None, 5)]
    bad = both.bad.orderBy("offset").collect()
    assert [(row.offset, bytes(row.value)) for row in bad] == [(at, values[at]) for at in (1, 2, 5, 6)]
    prefix = "value: it is not JSON of the schema id BIGINT: "
    assert [row.error for row in bad[:3]] == [f'{prefix}{{"id": "x"}}', prefix, f"{prefix}[1]"]
    assert bad[3].error.startswith("other: the 1 bytes are not a message Order; value: it is not JSON of the schema")
    texts = split(frame, {"value": Utf8()}).bad.select("offset", "error").collect()
    assert [tuple(row) for row in texts] == [(6, "value: it is not UTF-8")]
    nulls = decode_value(decode_value(frame, "value", json_format, bad="null"), "other", proto, bad="null")
    assert [row.value is None for row in nulls.orderBy("offset").collect()] == [False] + [True] * 6
    with pytest.raises(PySparkException, match="other of orders-3 at offset 6: the 1 bytes are not a message Order"):
        decode_value(frame, "other", proto).collect()


def test_missing_options_are_reported_at_the_start(spark: SparkSession) -> None:
    frame = orders(spark)
    bytes_ = spark.createDataFrame([], "value BINARY")
    for run, complaint in [
        (lambda: decode_value(bytes_, "value", Json()), "json needs a schema, or a registry and a subject"),
        (lambda: decode_value(bytes_, "value", Avro(registry=Registry.at("http://one"))), "avro needs a subject"),
        (lambda: decode_value(bytes_, "value", Json(schema="BIGINT")), "json needs a schema of an object or an array"),
        (lambda: encode_value(frame, "value", Raw()), "is not binary"),
        (lambda: encode_value(frame, "value", Protobuf()), "protobuf needs a schema to write"),
        (lambda: encode_value(frame, "value", Avro(framed=True)), "are written with registry and subject"),
        (lambda: encode_value(frame, "value", Avro(schema='"string"')), "the column is struct<.*, and the schema has"),
    ]:
        with pytest.raises(ValueError, match=complaint):
            run()


def test_what_the_how_to_says(spark: SparkSession) -> None:
    with schema_registry("user:password") as served:
        page: dict[str, Any] = {}
        for kind, body in blocks("docs/how-to/decode-values.md"):
            assert kind == "python"
            exec(body.replace("http://localhost:8081", served.url), page)
        assert served.subjects["orders-value"] == [1]
