"""The upper limit of any Python source of Spark: a source whose Arrow batches are prepared.

Of topics it knows only the columns of a record.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

SCHEMA = "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
ROWS_AT_ONCE = 16_384


class Ready(DataSource):
    """Options: ``rows`` in all, ``bytes`` of a value, ``partitions``."""

    @classmethod
    def name(cls) -> str:
        return "ready"

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        return ReadyReader(*(int(self.options[name]) for name in ("rows", "bytes", "partitions")))


class ReadyReader(DataSourceReader):
    """Yields the same batch repeatedly."""

    def __init__(self, rows: int, size: int, partitions: int) -> None:
        self.rows, self.size, self.count = rows, size, partitions

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(index) for index in range(self.count)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        batch = ready(self.size)
        left = self.rows // self.count
        while left:
            rows = min(left, ROWS_AT_ONCE)
            yield batch.slice(0, rows)
            left -= rows


def ready(size: int) -> pa.RecordBatch:
    """Returns the records of one partition, in Spark's form."""
    rows = range(ROWS_AT_ONCE)
    columns = {
        "key": pa.array([b"%08d" % row for row in rows], pa.binary()),
        "value": pa.array([b"v" * size for _ in rows], pa.binary()),
        "topic": pa.array(["bench" for _ in rows], pa.string()),
        "partition": pa.array([0 for _ in rows], pa.int32()),
        "offset": pa.array(rows, pa.int64()),
        "timestamp": pa.array(rows, pa.timestamp("us", "UTC")),
        "timestampType": pa.array([0 for _ in rows], pa.int32()),
    }
    return pa.record_batch(columns)
