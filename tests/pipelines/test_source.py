"""The data source without Spark: its columns, its imports, and their cost."""

import json
import subprocess
import sys

import pyarrow as pa
import pytest
from pyspark.sql.datasource import CaseInsensitiveDict
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from barnabas.columnar.decoding import schema
from barnabas.pipelines.offsets import BadOption
from barnabas.pipelines.source import NEEDED, BarnabasDataSource, Unfit, columns, require
from pyspark_barnabas import DefaultSource

OPTIONS = {"kafka.bootstrap.servers": "127.0.0.1:9092", "subscribe": "orders"}


def source(**options: str) -> BarnabasDataSource:
    return BarnabasDataSource(CaseInsensitiveDict({**OPTIONS, **options}))


@pytest.mark.parametrize("headers", [False, True])
def test_columns_are_what_the_decoder_gives(headers: bool) -> None:
    """Spark refuses batches with a schema that differs in any flag."""
    expected: pa.Schema = to_arrow_schema(columns(headers=headers), timezone="UTC")
    assert expected.equals(schema(headers=headers))
    assert source(includeHeaders=str(headers)).schema() == columns(headers=headers)


def test_spark_finds_it_by_its_package() -> None:
    assert DefaultSource is BarnabasDataSource and DefaultSource.name() == "barnabas"


@pytest.mark.parametrize("version", ["3.5.8", "4.0.1", "4.1.0"])
def test_an_older_spark_is_refused_with_what_to_install(version: str) -> None:
    with pytest.raises(Unfit, match=rf"needs Spark 4.2 or later, this is {version}: pip install 'barnabas\[spark\]'"):
        require(version)


def test_a_missing_library_is_named_with_the_extra() -> None:
    require("4.2.0")
    require("5.0.0.dev1")
    with pytest.raises(Unfit, match=r"needs kavka, which is not installed: pip install 'barnabas\[spark\]'"):
        require(needed=(*NEEDED, "kavka"))


def test_other_columns_are_refused() -> None:
    with pytest.raises(BadOption, match=r"not struct<a:int>: omit \.schema\(\)"):
        source().reader(StructType().add("a", "integer"))
    with pytest.raises(BadOption, match="includeHeaders=true adds the column headers"):
        source().streamReader(columns(headers=True))


def test_a_topic_cannot_be_overwritten_by_a_batch() -> None:
    rows = StructType().add("value", "binary")
    written = BarnabasDataSource({"kafka.bootstrap.servers": "127.0.0.1:9092", "topic": "orders"})
    with pytest.raises(BadOption, match=r'use \.mode\("append"\)'):
        written.writer(rows, overwrite=True)


def test_options_are_checked_by_load() -> None:
    with pytest.raises(BadOption, match="did you mean startingOffsets"):
        source(startingOffset="earliest").schema()


def test_who_looks_for_data_sources_needs_nothing_that_may_be_missing() -> None:
    """Otherwise every query of a session would fail if barnabas is installed without its extra."""
    loaded = subprocess.run(
        [sys.executable, "-c", "import json, sys, pyspark_barnabas; print(json.dumps(list(sys.modules)))"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    modules = {name.partition(".")[0] for name in json.loads(loaded)}
    without_pyspark = subprocess.run(
        [sys.executable, "-c", "import json, sys, pyspark.sql.datasource; print(json.dumps(list(sys.modules)))"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    ).stdout
    of_pyspark = {name.partition(".")[0] for name in json.loads(without_pyspark)}
    assert not {"kafka", "numpy", "pandas", "pyarrow", "fastavro", "confluent_kafka"} & (modules - of_pyspark)
