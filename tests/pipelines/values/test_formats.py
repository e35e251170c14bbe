import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.pipelines.values.formats import (
    Avro,
    BadFormat,
    Format,
    Json,
    Protobuf,
    Raw,
    Utf8,
    parse_format,
    parse_options,
)
from barnabas.pipelines.values.registry import Registry, RegistryFailed
from compat_tests.spark.registry import schema_registry


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("raw", Raw()),
        ("utf8", Utf8()),
        ("json,schema=id BIGINT, name STRING", Json(schema="id BIGINT, name STRING")),
        ('avro,framed=true,schema={"type": "string"}', Avro(schema='{"type": "string"}', framed=True)),
        ("protobuf,message=shop.Order,schema=@shop.desc", Protobuf(schema="@shop.desc", message="shop.Order")),
        (
            "avro,registry=http://one:8081,subject=orders,registry.timeout=3",
            Avro(registry=Registry.at("http://one:8081", {"timeout": "3"}), subject="orders"),
        ),
        ("avro,registry=http://one:8081", Avro(registry=Registry.at("http://one:8081"), subject="topic-value")),
    ],
)
def test_a_format_is_said_in_a_line(text: str, meant: Format) -> None:
    assert parse_format(text, subject="topic-value") == meant


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("xml", "format 'xml' is unknown; known are raw, utf8, json, avro, protobuf"),
        ("json,schma=id INT", "'schma' in .* is not an option of it; did you mean schema"),
        ("json,message=X", "json has no option 'message'"),
        ("json,schema=a INT,schema=b INT", "schema is given twice"),
        ("avro,registry.timeout=3", r"registry\.timeout is given, but not registry"),
        (
            "avro,registry=one:8081",
            "the schema registry's settings are wrong: url is 'one:8081', but must be like http://host:8081",
        ),
        ("avro,registry=http://one,registry.timeout=x", r"registry\.timeout is 'x', but must be a number"),
        ("avro,registry=http://one,registry.colour=x", "unknown settings colour"),
        ("avro,framed=perhaps", "framed is 'perhaps', but must be true or false"),
        ("raw,schema=x", "raw has no option 'schema'; its options are none"),
    ],
)
def test_a_format_that_there_is_not_is_named(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_format(text)


def test_options_end_where_the_next_begins() -> None:
    head, options = parse_options("orders, a=1,b=x, y=z,c.d=2", {"a", "b", "c.*"}, first="topic")
    assert (head, options) == ("orders", {"a": "1", "b": "x, y=z", "c.d": "2"})


def test_a_schema_may_be_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "order.ddl").write_text("id BIGINT")
    assert Json(schema=f"@{tmp_path}/order.ddl").text() == "id BIGINT"
    with pytest.raises(BadFormat, match="absent does not exist"):
        Json(schema=f"@{tmp_path}/absent").text()


def test_values_have_a_header_where_there_is_a_registry() -> None:
    registry = Registry.at("http://one")
    assert [Avro(registry=registry).is_framed, Avro().is_framed] == [True, False]
    assert [Avro(registry=registry, framed=False).is_framed, Avro(framed=True).is_framed] == [False, True]


def test_a_password_is_not_shown_and_a_wrong_one_is_reported() -> None:
    with schema_registry("user:right") as served:
        registry = Registry.at(served.url, {"basic.auth.user.info": "user:wrong"})
        assert "wrong" not in repr(registry)
        with pytest.raises(RegistryFailed, match=r"refuses subject orders: .*HTTP 401"):
            registry.latest("orders")


def test_a_subject_that_is_not_there_is_named() -> None:
    with schema_registry() as served, pytest.raises(ValueError, match="subject 'orders' is not in the registry"):
        Registry.at(served.url).latest("orders")


def test_the_command_line_reads_the_formats_without_spark_and_arrow() -> None:
    code = (
        "import sys, barnabas.pipelines.values as v; v.parse_format('json,schema=a INT'); "
        "assert not {'pyspark', 'pyarrow', 'fastavro', 'urllib.request', 'google.protobuf'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
