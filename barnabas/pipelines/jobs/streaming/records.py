"""Makes records of the rows of a result, and dead letters of records that cannot be decoded.

Knows nothing of where rows come from.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType, BinaryType, DataType, MapType, StringType, StructType

from barnabas.pipelines.values.columns import ERROR, encoded
from barnabas.pipelines.values.formats import Format, Json, Raw

KEPT = {"_key": "key", "_headers": "headers", "_timestamp": "timestamp"}
"""Columns of a table that a record of the result keeps, if the result still has them."""

OF_THE_SOURCE = ("_topic", "_partition", "_offset")
"""Columns that name the source of a row. They are not written."""

OF_THE_SINK = ("key", "value", "headers", "partition", "timestamp")

STAGES = {"key": "KEY_CONVERTER", "value": "VALUE_CONVERTER"}
"""Kafka Connect's names of the stages in which decoding fails."""

ERRORS = "__connect.errors."
CLASS = "barnabas.pipelines.values.framing.Undecodable"


def as_records(result: DataFrame, key: Format | None, value: Format | None) -> DataFrame:
    """Returns the result as records for the sink.

    A result that has a column ``value``, and besides it only columns of records (``key``, ``headers``, ``partition``,
    ``timestamp``), consists of records already. Otherwise all its columns together are the value. ``_key``,
    ``_headers`` and ``_timestamp`` become the record's key, headers and timestamp.

    :raises ValueError: the result has no column for the value.
    """
    plain = [name for name in result.columns if name not in KEPT and name not in OF_THE_SOURCE]
    if not plain:
        raise ValueError("the result has no column that could be the value")
    columns: dict[str, Column] = {}
    types = {field.name: field.dataType for field in result.schema}
    for kept, name in KEPT.items():
        if kept in types:
            columns[name] = _key(result[kept], types[kept], key) if name == "key" else result[kept]
    if "value" in plain and set(plain) <= set(OF_THE_SINK):
        columns |= {name: result[name] for name in plain}
        if "key" in plain:
            columns["key"] = _key(result["key"], types["key"], key)
        columns["value"] = _value(result["value"], types["value"], value)
    else:
        row = StructType([result.schema[name] for name in plain])
        columns["value"] = _value(f.struct(*[result[name] for name in plain]), row, value)
    return result.select(*[column.alias(name) for name, column in columns.items()])


def dead_letters(bad: DataFrame, job: str) -> DataFrame:
    """Returns the records unchanged but for added headers, which name the source of a record and the error.

    The headers are those of Kafka Connect's DeadLetterQueueReporter.
    """
    stage = f.coalesce(*[f.when(f.col(ERROR).startswith(f"{name}: "), name_of) for name, name_of in _stages()])
    said = {
        "topic": f.col("topic"),
        "partition": f.col("partition"),
        "offset": f.col("offset"),
        "timestamp": f.unix_millis("timestamp"),
        "connector.name": f.lit(job),
        "stage": stage,
        "exception.class.name": f.lit(CLASS),
        "exception.message": f.col(ERROR),
    }
    added = f.array(
        *[
            f.struct(f.lit(ERRORS + name).alias("key"), column.cast(StringType()).cast(BinaryType()).alias("value"))
            for name, column in said.items()
        ]
    )
    headers = f.when(f.col("headers").isNull(), added).otherwise(f.concat("headers", added))
    return bad.select("key", "value", headers.alias("headers"), "timestamp")


def _stages() -> list[tuple[str, Column]]:
    return [(name, f.lit(stage)) for name, stage in STAGES.items()]


def _key(column: Column, type: DataType, format: Format | None) -> Column:
    return encoded(column, type, format or (Json() if isinstance(type, StructType) else Raw()))


def _value(column: Column, type: DataType, format: Format | None) -> Column:
    structured = isinstance(type, StructType | ArrayType | MapType)
    return encoded(column, type, format or (Json() if structured else Raw()))
