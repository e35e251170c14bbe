import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from barnabas.pipelines.jobs.streaming.options import StreamOptions
from barnabas.pipelines.jobs.streaming.spec import Table, parse_table
from barnabas.pipelines.options import STREAM_READ, STREAM_WRITE, read_options, write_options
from barnabas.pipelines.values.formats import Avro, Json, Protobuf, Raw, Utf8
from barnabas.pipelines.values.registry import Registry


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("orders", Table("orders", "orders", None, "stream")),
        ("orders=topic:shop.orders", Table("orders", "shop.orders", None, "stream")),
        (
            "orders,topic=shop.orders,format=json,schema=id BIGINT, at TIMESTAMP,watermark=at 10 minutes",
            Table(
                "orders",
                "shop.orders",
                None,
                "stream",
                value=Json(schema="id BIGINT, at TIMESTAMP"),
                watermark=("at", "10 minutes"),
            ),
        ),
        (
            "c=topic:customers,read=latest,format=avro,registry=http://one,key.format=utf8,headers=true",
            Table(
                "c",
                "customers",
                None,
                "latest",
                value=Avro(registry=Registry.at("http://one"), subject="customers-value"),
                key=Utf8(),
                headers=True,
            ),
        ),
        (
            "o,key.format=protobuf,key.schema=@k.proto,key.message=K,option.failOnDataLoss=false",
            Table(
                "o",
                "o",
                None,
                "stream",
                key=Protobuf(schema="@k.proto", message="K"),
                options={"failOnDataLoss": "false"},
            ),
        ),
        ("c=files:/data/c", Table("c", None, "/data/c", "batch")),
        (
            "c=files:in/*.csv,format=csv,schema=id INT, name STRING,read=stream,option.header=true",
            Table(
                "c",
                None,
                "in/*.csv",
                "stream",
                file_format="csv",
                file_schema="id INT, name STRING",
                options={"header": "true"},
            ),
        ),
    ],
)
def test_a_table_is_said_in_a_line(text: str, meant: Table) -> None:
    assert parse_table(text) == meant


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "does not begin with a name"),
        ("my-orders=topic:orders", "does not begin with a name"),
        ("o=orders", "table o: it is made of 'orders', but must be of topic:NAME or files:PATH"),
        ("o=topic:a,files=b", "table o: it is said twice what it is made of"),
        ("o,topic=a,files=b", "of a topic, or of files, not of both"),
        ("o,read=once", "table o: read is 'once', but must be one of stream, batch, latest"),
        ("o,headers=yes", "headers is 'yes', but must be true or false"),
        ("o,format=yaml", "table o: the format 'yaml' is unknown"),
        ("o,fromat=json", "'fromat' in 'fromat=json' is not an option of it; did you mean format"),
        ("o,watermark=at", "watermark is 'at', but must be a column and an interval"),
        ("o,watermark=at soon", "watermark is 'at soon', but must be a column and an interval"),
        ("c=files:x,read=latest", "read=latest is for topics"),
        ("c=files:x,read=stream", "read=stream needs a schema"),
        ("c=files:x,key.format=utf8", r"key\.format is for topics, not for files"),
        ("c=files:x,headers=true", "headers is for topics, not for files"),
    ],
)
def test_what_is_wrong_with_a_table_is_named(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_table(text)


def described(**given: Any) -> StreamOptions:
    return StreamOptions(**{"tables": ("orders",), "to": "out", "sql": "SELECT 1", **given})


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"sql": None}, "either transform or sql must be given"),
        ({"transform": "x.py"}, "either transform or sql must be given"),
        ({"tables": ()}, "table is missing"),
        ({"tables": ("a", "a=topic:b")}, "there are two tables a"),
        ({"to": " "}, "to is empty"),
        ({"format": "yaml"}, "the format 'yaml' is unknown"),
        ({"undecodable": "dead-letter"}, "undecodable dead-letter needs dead_letters"),
        ({"undecodable": "null", "dead_letters": "dead"}, "by which nothing would go there"),
        ({"undecodable": "ignore"}, "undecodable is 'ignore', but must be one of fail, null, dead-letter"),
        ({"dead_letters": "out"}, "dead_letters and to are the same topic"),
        ({"state_partitions": 0}, "state_partitions is 0"),
        ({"max_offsets_per_batch": 0}, "max_offsets_per_batch is 0"),
        ({"output_mode": "all"}, "output_mode is 'all', but must be one of append, update, complete"),
    ],
)
def test_what_is_wrong_with_the_options_is_named(given: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        described(**given)


def test_subjects_are_those_of_the_topic() -> None:
    options = described(format="avro,registry=http://one", key_format="avro,registry=http://one,subject=mine")
    assert options.value_format == Avro(registry=Registry.at("http://one"), subject="out-value")
    assert options.encoded_key_format == Avro(registry=Registry.at("http://one"), subject="mine")
    assert described().value_format is None


def test_exactly_once_reads_what_was_committed_and_settings_go_where_they_belong() -> None:
    client = {"security.protocol": "SSL", "compression.type": "lz4", "fetch.max.wait.ms": "5"}
    options = described(client=client, commit_group="g", max_offsets_per_batch=7)
    assert options.stream_options() == {
        "kafka.bootstrap.servers": "localhost:9092",
        "kafka.security.protocol": "SSL",
        "kafka.fetch.max.wait.ms": "5",
        "kafka.isolation.level": "read_committed",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "7",
        "commitGroup": "g",
    }
    assert options.sink_options("out") == {
        "kafka.bootstrap.servers": "localhost:9092",
        "kafka.security.protocol": "SSL",
        "kafka.compression.type": "lz4",
        "topic": "out",
        "delivery": "exactly-once",
    }
    assert "kafka.isolation.level" not in described(delivery="at-least-once").source_options()


def test_settings_of_readers_alone_are_not_the_sinks() -> None:
    """Each side refuses unknown settings."""
    client = {"client.rack": "a", "fetch.max.wait.ms": "10", "check.crcs": "false", "linger.ms": "5"}
    options = described(client=client)
    assert read_options({**options.stream_options(), "subscribe": "orders"}, STREAM_READ).rack == "a"
    assert write_options(options.sink_options("out"), STREAM_WRITE).topic == "out"


@pytest.mark.parametrize(
    ("given", "does"),
    [({}, "fail"), ({"dead_letters": "dead"}, "dead-letter"), ({"undecodable": "null"}, "null")],
)
def test_bad_records_go_where_there_is_a_place_for_them(given: dict[str, Any], does: str) -> None:
    assert described(**given).bad_records == does


def test_a_statement_may_be_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "query.sql").write_text("SELECT *\nFROM orders;\n")
    assert described(sql=f"@{tmp_path}/query.sql").statement() == "SELECT *\nFROM orders"
    with pytest.raises(ValueError, match="sql names the file absent, which is not there"):
        described(sql="@absent").statement()


def test_options_are_read_without_spark() -> None:
    code = "import sys, barnabas.pipelines.jobs.stream; assert not {'pyspark', 'pyarrow', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_raw_is_what_a_table_is_if_nothing_is_said() -> None:
    assert (parse_table("t").value, parse_table("t").key) == (Raw(), Raw())
