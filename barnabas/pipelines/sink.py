"""The sink: writes the rows of Spark's tasks, and does not write the rows of a repeated batch twice.

Knows nothing of requests and batches. The driver imports it for each commit; modules that only tasks need are imported
when rows are written.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from barnabas.pipelines.offsets import BadOption
from barnabas.pipelines.workers import spare_the_collector

if TYPE_CHECKING:
    import pyarrow as pa

    from barnabas.pipelines.options import WriteOptions

QUERY_ID, BATCH_ID = "sql.streaming.queryId", "streaming.sql.batchId"
"""Spark's names of a task's local properties (StreamExecution, MicroBatchExecution)."""

_TEXT_OR_BYTES = (StringType, BinaryType)


class Column(NamedTuple):
    """A column of the sink: its allowed types, also in words."""

    types: tuple[type[DataType], ...]
    described: str


COLUMNS = {
    "topic": Column((StringType,), "a string"),
    "key": Column(_TEXT_OR_BYTES, "a string or binary"),
    "value": Column(_TEXT_OR_BYTES, "a string or binary"),
    "headers": Column((ArrayType,), "array<struct<key:string,value:binary>>"),
    "partition": Column((IntegerType,), "an integer"),
    "timestamp": Column((TimestampType,), "a timestamp"),
}
"""The columns to write; others are ignored, as in Spark's own sink (KafkaWriter)."""


@dataclass
class Written(WriterCommitMessage):
    """What a task has written; `skipped` if an earlier attempt wrote it."""

    records: int
    bytes: int
    skipped: bool = False


def check_columns(schema: StructType, topic: str | None) -> None:
    """Checks that rows of this schema can be written.

    :raises BadOption: they cannot; the message names the column and its allowed types.
    """
    fields = {field.name: field for field in schema.fields}
    if topic is None and "topic" not in fields:
        raise BadOption("there is no topic: set the option topic, or add a column topic")
    if "value" not in fields:
        raise BadOption(f"there is no column value, only {', '.join(fields) or 'none at all'}")
    for name, column in COLUMNS.items():
        if name in fields and not _fits(fields[name], column):
            hint = ": cast it, or make it to_json(struct(...))" if name in ("key", "value") else ""
            raise BadOption(f"column {name} is {fields[name].dataType.simpleString()}, not {column.described}{hint}")


def _fits(field: StructField, column: Column) -> bool:
    if not isinstance(field.dataType, column.types):
        return False
    if not isinstance(field.dataType, ArrayType):
        return True
    header = field.dataType.elementType
    if not isinstance(header, StructType) or len(header.fields) != 2:
        return False
    key, value = header.fields
    return (
        (key.name, value.name) == ("key", "value")
        and isinstance(key.dataType, StringType)
        and isinstance(value.dataType, BinaryType)
    )


class _Sink:
    """The common part of both sinks."""

    def __init__(self, options: "WriteOptions", schema: StructType) -> None:
        check_columns(schema, options.topic)
        self.options = options
        self.columns = tuple(name for name in COLUMNS if name in schema.fieldNames())
        self._own_id = f"barnabas-{uuid4()}"
        spare_the_collector()  # in the processes that plan each micro-batch, and that commit it

    def _write(self, rows: "Iterator[pa.RecordBatch]") -> Written:
        from barnabas.pipelines.tasks import write_exactly_once, write_rows

        if self.options.delivery == "at-least-once":
            written = write_rows(rows, self.options, self.columns)
        else:
            written = write_exactly_once(rows, self.options, self.columns, self._own_id)
        spare_the_collector()
        return written


class BatchSink(_Sink, DataSourceArrowWriter):
    """``df.write``: each task writes its rows; the commit does nothing."""

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        """Writes the rows of a task."""
        return self._write(iterator)


class StreamSink(_Sink, DataSourceStreamArrowWriter):
    """``df.writeStream``: each task of a micro-batch writes its rows; the commit does nothing."""

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        """Writes the rows of a task of a micro-batch."""
        return self._write(iterator)
