"""The data source itself: what Spark asks for a schema, readers and writers, by the format name ``barnabas``.

Knows nothing of how records are read and written. Imported by every worker that Spark starts, and by
those of an older Spark that only look for data sources: it imports little, and nothing that may be missing.
"""

from collections.abc import Sequence
from importlib.util import find_spec
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

INSTALL = "pip install 'barnabas[spark]'"
OLDEST_SPARK = (4, 2)
"""The first whose Python sources are told how much to read, and when there is to be an end (AvailableNow)."""


NEEDED = ("kafka", "numpy", "pandas", "pyarrow")
"""What pyspark alone does not bring."""


class Unfit(ImportError):
    """This Spark is too old, or a library is missing."""


def require(version: str = pyspark.__version__, needed: Sequence[str] = NEEDED) -> None:
    """Raise Unfit, with what to install, for a Spark before 4.2 or where a library is missing."""
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_SPARK:
        raise Unfit(f"the data source barnabas needs Spark 4.2 or later, this is {version}: {INSTALL}")
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        raise Unfit(f"the data source barnabas needs {', '.join(missing)}, which is not installed: {INSTALL}")


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
        require()
        return columns(headers=options.read_options(self.options, options.ANY_READ).include_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        """For ``spark.read``."""
        from barnabas.pipelines.batch_reader import BatchReader

        require()
        read = options.read_options(self.options, options.BATCH_READ)
        _check(schema, read)
        return BatchReader(read)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """For ``spark.readStream``."""
        from barnabas.pipelines.stream_reader import StreamReader

        require()
        read = options.read_options(self.options, options.STREAM_READ)
        _check(schema, read)
        return StreamReader(read)

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        """For ``df.write``, with ``.mode("append")``."""
        from barnabas.pipelines.sink import BatchSink

        require()
        if overwrite:
            raise BadOption('a topic cannot be overwritten, only added to: say .mode("append")')
        return BatchSink(options.write_options(self.options, options.BATCH_WRITE), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:
        """For ``df.writeStream``. To overwrite is what output mode complete asks for: the whole result is written again
        with each micro-batch, behind what is there, as Spark's own connector does it (KafkaTable)."""
        from barnabas.pipelines.sink import StreamSink

        require()
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
