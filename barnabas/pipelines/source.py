"""The data source with the format name ``barnabas``: gives Spark its schema, readers and writers.

Knows nothing of how records are read and written. Every worker of Spark imports it, including those of an older Spark
that only list data sources: it imports little, and nothing that may be missing.
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
"""The first Spark that passes read limits and AvailableNow to Python sources."""


NEEDED = ("kafka", "numpy", "pandas", "pyarrow")
"""What is not installed with pyspark."""


class Unfit(ImportError):
    """This Spark is too old, or a library is missing."""


def require(version: str = pyspark.__version__, needed: Sequence[str] = NEEDED) -> None:
    """Checks the release of Spark, and that the libraries are installed.

    :raises Unfit: they are not; the message says what to install.
    """
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_SPARK:
        raise Unfit(f"the data source barnabas needs Spark 4.2 or later, this is {version}: {INSTALL}")
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        raise Unfit(f"the data source barnabas needs {', '.join(missing)}, which is not installed: {INSTALL}")


def columns(*, headers: bool) -> StructType:
    """Returns the columns of a read, which are those of Spark's own Kafka source (KafkaRecordToRowConverter)."""
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
    """Topics as tables and streams, for ``spark.read.format("barnabas")``, ``readStream``, ``write`` and
    ``writeStream``.
    """

    @classmethod
    def name(cls) -> str:
        """Returns the name for ``format()``."""
        return "barnabas"

    def schema(self) -> StructType:
        """Returns the columns. Also checks the options, so that ``load()`` already reports a mistake."""
        require()
        return columns(headers=options.read_options(self.options, options.ANY_READ).include_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Returns the reader of ``spark.read``."""
        from barnabas.pipelines.batch_reader import BatchReader

        require()
        read = options.read_options(self.options, options.BATCH_READ)
        _check(schema, read)
        return BatchReader(read)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Returns the reader of ``spark.readStream``."""
        from barnabas.pipelines.stream_reader import StreamReader

        require()
        read = options.read_options(self.options, options.STREAM_READ)
        _check(schema, read)
        return StreamReader(read)

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        """Returns the writer of ``df.write`` with ``.mode("append")``."""
        from barnabas.pipelines.sink import BatchSink

        require()
        if overwrite:
            raise BadOption('a topic cannot be overwritten: use .mode("append")')
        return BatchSink(options.write_options(self.options, options.BATCH_WRITE), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:
        """Returns the writer of ``df.writeStream``.

        Output mode complete sets `overwrite`: each micro-batch appends the whole result again, as Spark's own connector
        does (KafkaTable).
        """
        from barnabas.pipelines.sink import StreamSink

        require()
        return StreamSink(options.write_options(self.options, options.STREAM_WRITE), schema)


def _check(schema: StructType, read: options.ReadOptions) -> None:
    """Checks the columns, as Spark accepts any ``.schema(...)``."""
    expected = columns(headers=read.include_headers)
    said = [(field.name, field.dataType) for field in schema.fields]
    if said != [(field.name, field.dataType) for field in expected.fields]:
        raise BadOption(
            f"the columns of a topic are {expected.simpleString()}, not {schema.simpleString()}: omit .schema() "
            "and decode key and value with Spark's functions; includeHeaders=true adds the column headers"
        )
