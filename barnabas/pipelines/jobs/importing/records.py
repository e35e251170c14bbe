"""Makes records of rows. Columns or SQL expressions give the key, value, partition, timestamp and headers.

Knows nothing of where rows come from.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.pipelines.jobs.causes import cause_of
from barnabas.pipelines.jobs.texts import AS_JSON

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from barnabas.pipelines.jobs.importing.options import ImportOptions


def chosen(rows: "DataFrame", options: "ImportOptions") -> "DataFrame":
    """Returns the rows that match ``where``, with the columns of ``select``.

    :raises ValueError: an expression is wrong; the message names the option.
    """
    for name, texts in (("where", (options.where,) if options.where else ()), ("select", options.select)):
        for text in texts:
            _resolved(rows, name, text)
    if options.where:
        rows = rows.where(options.where)
    return rows.selectExpr(*options.select) if options.select else rows


def as_records(rows: "DataFrame", options: "ImportOptions") -> "DataFrame":
    """Returns a record for each row: key and value, and partition, timestamp and headers if the options give them.

    :raises ValueError: a column or an expression of an option is wrong; the message names the option.
    """
    from pyspark.sql import functions as F

    records = {"key": _key(rows, options.key), "value": _value(rows, options)}
    if options.partition is not None:
        records["partition"] = _resolved(rows, "partition", options.partition).cast("int")
    if options.timestamp is not None:
        records["timestamp"] = _timestamp(rows, options.timestamp)
    if options.headers:
        records["headers"] = F.array(*(
            F.struct(
                F.lit(name).alias("key"),
                _bytes(rows, _resolved(rows, f"header {name}", text)).alias("value"),
            )
            for name, text in options.headers.items()
        ))  # fmt: skip
    return rows.select(*(column.alias(name) for name, column in records.items()))


def _resolved(rows: "DataFrame", option: str, text: str) -> "Column":
    """Returns the column of this name, or else the column of this SQL expression.

    :raises ValueError: it is neither.
    """
    from pyspark.errors import AnalysisException, ParseException
    from pyspark.sql import functions as F

    try:
        if text in rows.columns:
            return F.col(f"`{text.replace('`', '``')}`")
        column = F.expr(text)
        _ = rows.select(column).schema
    except (AnalysisException, ParseException) as error:
        raise ValueError(
            f"{option} {text!r} is neither a column nor an SQL expression of the rows: {cause_of(error)}"
        ) from None
    return column


def _type(rows: "DataFrame", column: "Column") -> str:
    return rows.select(column.alias("it")).schema["it"].dataType.simpleString()


def _bytes(rows: "DataFrame", column: "Column") -> "Column":
    """Returns the column as bytes: bytes unchanged, nested values as JSON, other values as Spark's text in UTF-8."""
    from pyspark.sql import functions as F

    kind = _type(rows, column)
    if kind == "binary":
        return column
    if kind.startswith(("struct", "array", "map", "variant")):
        return F.to_json(column, AS_JSON).cast("binary")
    return column.cast("string").cast("binary")


def _key(rows: "DataFrame", texts: Sequence[str]) -> "Column":
    from pyspark.sql import functions as F

    if not texts:
        return F.lit(None).cast("binary")
    columns = [_resolved(rows, "key", text) for text in texts]
    if len(columns) == 1:
        return _bytes(rows, columns[0])
    return F.to_json(F.struct(*columns), AS_JSON).cast("binary")


def _value(rows: "DataFrame", options: "ImportOptions") -> "Column":
    from pyspark.sql import functions as F

    from barnabas.pipelines.values import Json, Raw, Utf8
    from barnabas.pipelines.values.columns import encoded

    encoding = options.encoding()
    if isinstance(encoding, Raw | Utf8):
        return _bytes(rows, _resolved(rows, "value_column", options.value_column or "value"))
    row = F.struct(*(_resolved(rows, "columns", name) for name in options.columns or rows.columns))
    if encoding == Json():
        return F.to_json(row, AS_JSON).cast("binary")
    return encoded(row, rows.select(row.alias("row")).schema["row"].dataType, encoding)


def _timestamp(rows: "DataFrame", text: str) -> "Column":
    from pyspark.sql import functions as F

    column = _resolved(rows, "timestamp", text)
    kind = _type(rows, column)
    if kind in ("bigint", "int"):
        return F.timestamp_millis(column)
    if kind.startswith(("decimal", "double", "float", "boolean", "binary", "struct", "array", "map")):
        raise ValueError(f"timestamp {text!r} is {kind}, but must be a timestamp, a date, text, or milliseconds")
    return column.cast("timestamp")
