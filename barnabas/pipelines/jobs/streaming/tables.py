"""Makes tables of topics and files. Their columns are the fields of the value, and ``_key``, ``_offset`` and the like.

Knows nothing of how tables are used.
"""

from collections.abc import Mapping
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from barnabas.pipelines.jobs.streaming.options import StreamOptions
from barnabas.pipelines.jobs.streaming.spec import Table
from barnabas.pipelines.values.columns import Split, decode_value, split
from barnabas.pipelines.values.formats import Format, Raw

OWN = ("key", "topic", "partition", "offset", "timestamp", "headers")
"""A record's columns besides its value. In a table their names begin with an underscore."""


class Made(NamedTuple):
    """Tables by name, and the records that could not be decoded: as read, with a column ``error``."""

    tables: Mapping[str, DataFrame]
    bad: DataFrame | None


def make_tables(spark: SparkSession, options: StreamOptions, starting: Mapping[str, str]) -> Made:
    """Returns all tables of the job.

    :param starting: starting offsets by topic, in Spark's JSON, which override the options.
    """
    tables: dict[str, DataFrame] = {}
    bad: list[DataFrame] = []
    apart = options.bad_records == "dead-letter"
    for table in options.parsed_tables:
        if table.topic is None:
            tables[table.name] = _watermarked(_files(spark, table), table)
            continue
        records = _topic(spark, table, options, starting)
        if table.read == "latest":
            records = _latest(records)
        tables[table.name] = _watermarked(_as_table(_decoded(records, table, options.bad_records), table), table)
        if apart and _formats(table):
            streamed = _topic(spark, table, options, starting, always_streams=True)
            bad.append(split(streamed, _formats(table)).bad)
    letters = None
    for each in bad:
        letters = each if letters is None else letters.unionByName(each)
    return Made(tables, letters)


def _files(spark: SparkSession, table: Table) -> DataFrame:
    reader = spark.readStream if table.read == "stream" else spark.read
    described = reader.format(table.file_format).options(**table.options)
    if table.file_schema is not None:
        described = described.schema(table.file_schema)
    return described.load(table.files)


def _topic(
    spark: SparkSession,
    table: Table,
    options: StreamOptions,
    starting: Mapping[str, str],
    *,
    always_streams: bool = False,
) -> DataFrame:
    """Returns the records of the table's topic, with headers if the table has them or dead letters need them."""
    assert table.topic is not None
    streams = always_streams or table.read == "stream"
    said = dict(options.stream_options() if streams else options.source_options())
    if streams and table.read != "stream":
        said["startingOffsets"] = "earliest"  # the table itself is read from the beginning too
    elif streams and table.topic in starting:
        said["startingOffsets"] = starting[table.topic]
    if always_streams:
        said.pop("commitGroup", None)  # only the main query reports its lag
    if table.headers or options.bad_records == "dead-letter":
        said["includeHeaders"] = "true"
    reader = spark.readStream if streams else spark.read
    return reader.format("barnabas").options(**{**said, "subscribe": table.topic, **table.options}).load()


def _formats(table: Table) -> dict[str, Format]:
    """Returns the formats of the columns that are decoded; keys come first, as in Kafka Connect."""
    return {name: each for name, each in (("key", table.key), ("value", table.value)) if not isinstance(each, Raw)}


def _latest(records: DataFrame) -> DataFrame:
    """Returns the newest record of each key, unless it is a tombstone. A key's records are all in one partition."""
    columns = records.columns
    newest = records.where("key IS NOT NULL").groupBy("key").agg(f.max_by(f.struct(*columns), "offset").alias("newest"))
    return newest.select("newest.*").where("value IS NOT NULL")


def _decoded(records: DataFrame, table: Table, bad: str) -> DataFrame:
    formats = _formats(table)
    if bad == "dead-letter" and formats:
        found: Split = split(records, formats)
        return found.good
    for name, each in formats.items():
        records = decode_value(records, name, each, bad="null" if bad == "null" else "fail")
    return records


def _as_table(records: DataFrame, table: Table) -> DataFrame:
    """Returns the fields of a struct value, or else the value; then the record's other columns.

    :raises ValueError: a field has the name of one of these columns.
    """
    own = [f.col(name).alias(f"_{name}") for name in OWN if name != "headers" or table.headers]
    value = records.schema["value"].dataType
    if not isinstance(value, StructType):
        return records.select(f.col("value"), *own)
    taken = {f"_{name}" for name in OWN} & set(value.names)
    if taken:
        raise ValueError(f"table {table.name}: its values have a field {min(taken)}, which is a column of each record")
    return records.select(*[f.col("value")[name].alias(name) for name in value.names], *own)


def _watermarked(frame: DataFrame, table: Table) -> DataFrame:
    if table.watermark is None:
        return frame
    column, delay = table.watermark
    if column not in frame.columns:
        raise ValueError(
            f"table {table.name}: watermark names the column {column}, which is not among {', '.join(frame.columns)}"
        )
    return frame.withWatermark(column, delay)
