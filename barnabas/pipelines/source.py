"""The data source itself: what Spark asks for a schema, readers and writers, by the format name ``barnabas``.

Knows nothing of how records are read and written. Imported by every worker that Spark starts: it imports little.
"""

from typing import Any

import pyspark
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from barnabas.pipelines import options
from barnabas.pipelines.offsets import BadOption

OLDEST_SPARK = (4, 2)
"""The first whose Python sources are told how much to read, and when there is to be an end (AvailableNow)."""


class TooOld(ImportError):
    """This Spark cannot do what the source needs."""


def require_spark(version: str = pyspark.__version__) -> None:
    """Raise TooOld for a Spark before 4.2."""
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_SPARK:
        raise TooOld(
            f"the data source barnabas needs Spark 4.2 or later, this is {version}: pip install barnabas[spark]"
        )


def columns(*, headers: bool) -> StructType:
    """The columns of a read, those of Spark's own Kafka source (KafkaRecordToRowConverter)."""
    schema = StructType(
        [
            StructField("key", BinaryType()),
            StructField("value", BinaryType()),
            StructField("topic", StringType()),
            StructField("partition", IntegerType()),
            StructField("offset", LongType()),
            StructField("timestamp", TimestampType()),
            StructField("timestampType", IntegerType()),
        ]
    )
    header = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
    return schema.add("headers", ArrayType(header)) if headers else schema


class BarnabasDataSource(DataSource):
    """Topics of a cluster as tables and streams: ``spark.read.format("barnabas")`` and the other three ways."""

    @classmethod
    def name(cls) -> str:
        """What ``format()`` is given."""
        return "barnabas"

    def schema(self) -> StructType:
        """The columns; options are checked here, so that a mistake is told by ``load()`` already."""
        require_spark()
        return columns(headers=options.read_options(self.options, options.ANY_READ).include_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        """For ``spark.read``."""
        from barnabas.pipelines.batch_reader import BatchReader

        read = options.read_options(self.options, options.BATCH_READ)
        _check(schema, read)
        return BatchReader(read)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """For ``spark.readStream``."""
        from barnabas.pipelines.stream_reader import StreamReader

        require_spark()
        read = options.read_options(self.options, options.STREAM_READ)
        _check(schema, read)
        return StreamReader(read)

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        """For ``df.write``, with ``.mode("append")``."""
        from barnabas.pipelines.sink import BatchSink

        require_spark()
        if overwrite:
            raise BadOption('a topic cannot be overwritten, only added to: say .mode("append")')
        return BatchSink(options.write_options(self.options, options.BATCH_WRITE), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:
        """For ``df.writeStream``, with output mode append or update."""
        from barnabas.pipelines.sink import StreamSink

        require_spark()
        if overwrite:
            raise BadOption("a topic cannot be overwritten by each micro-batch: use output mode append or update")
        return StreamSink(options.write_options(self.options, options.STREAM_WRITE), schema)


def _check(schema: StructType, read: options.ReadOptions) -> None:
    """The columns are what they are, though Spark lets anybody say ``.schema(...)``."""
    expected = columns(headers=read.include_headers)
    said = [(field.name, field.dataType) for field in schema.fields]
    if said != [(field.name, field.dataType) for field in expected.fields]:
        raise BadOption(
            f"the columns of a topic are {expected.simpleString()}, not {schema.simpleString()}: leave .schema() out "
            "and decode key and value with Spark's functions; includeHeaders=true adds the column headers"
        )
