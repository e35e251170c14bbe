"""Batches to files of Parquet, CSV or JSON: Spark writes them, the store brings them into place, small ones are merged.

Knows nothing of topics.
"""

import csv
import gzip
import io
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.pipelines.jobs.exporting.columns import PLACE, Shape
from barnabas.pipelines.jobs.exporting.files import Files, LocalFiles
from barnabas.pipelines.jobs.exporting.layout import Layout
from barnabas.pipelines.jobs.exporting.merging import Limits
from barnabas.pipelines.jobs.exporting.store import Store
from barnabas.pipelines.jobs.texts import AS_CSV, AS_JSON, IN_UTC

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MICROSECONDS = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}
"""Spark's own default, INT96, has no time zone, and most readers take it for local time."""

WRITER_OPTIONS: dict[str, dict[str, str]] = {
    "parquet": {},
    "csv": AS_CSV | IN_UTC,
    "json": AS_JSON | IN_UTC,
}
SUFFIXES = {"none": "", "gzip": ".gz"}

SMALL_BYTES = 16 << 20
"""Parquet of so few bytes in all is merged here, in memory, where a job of Spark would cost more than its work."""


class Format(NamedTuple):
    """How files are written."""

    name: str  #: parquet, csv or json
    compression: str

    @property
    def suffix(self) -> str:
        """Of the names of files that readers see."""
        return f".{self.name}" + ("" if self.name == "parquet" else SUFFIXES[self.compression])


def write(df: "DataFrame", files: Files, below: str, format: Format, directories: Sequence[str]) -> str:
    """Have Spark write these rows below a directory, which is emptied; returns their schema."""
    for name, value in MICROSECONDS.items():
        df.sparkSession.conf.set(name, value)
    writer = df.write.mode("overwrite").format(format.name).options(**WRITER_OPTIONS[format.name])
    writer = writer.option("compression", format.compression)
    if directories:
        writer = writer.partitionBy(*directories)
    writer.save(files.uri(below))
    return df.schema.json()


class Merger:
    """Makes one file of several: of Parquet by its rows, of text byte by byte, in their order."""

    def __init__(self, spark: "SparkSession", files: Files, format: Format, shape: Shape) -> None:
        self._spark, self._files, self._format, self._shape = spark, files, format, shape

    def __call__(self, parts: Sequence[str], below: str, schema: str) -> str:
        if self._format.name == "parquet":
            files, knows = self._files, "variant" not in schema  # a type that pyarrow lacks
            if isinstance(files, LocalFiles) and knows and sum(map(files.size, parts)) <= SMALL_BYTES:
                return self._joined(files, parts, below)
            return self._rewritten(parts, below)
        merged = f"{below}/merged"
        self._files.join(parts, merged, self._first_line(schema))
        return merged

    def _joined(self, files: LocalFiles, parts: Sequence[str], below: str) -> str:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.concat_tables(pq.ParquetFile(files.root / part).read() for part in parts)
        if self._shape.metadata:
            table = table.sort_by([(self._shape.prefix + name, "ascending") for name in PLACE])
        (files.root / below).mkdir(parents=True)
        merged = f"{below}/merged.parquet"
        pq.write_table(table, files.root / merged, compression=self._format.compression)
        return merged

    def _rewritten(self, parts: Sequence[str], below: str) -> str:
        from pyspark.sql import functions as F

        df = self._spark.read.parquet(*map(self._files.uri, parts))
        if self._shape.metadata:
            order = [F.col(self._shape.prefix + name) for name in PLACE]
        else:
            order = [F.col("_metadata.file_name"), F.col("_metadata.row_index")]
        write(df.coalesce(1).sortWithinPartitions(*order), self._files, below, self._format, ())
        (merged,) = self._files.list(below)
        return merged.path

    def _first_line(self, schema: str) -> bytes:
        if self._format.name != "csv":
            return b""
        names = [field["name"] for field in json.loads(schema)["fields"]]
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow([name for name in names if name not in self._shape.directories])
        said = line.getvalue().encode()
        return gzip.compress(said, mtime=0) if self._format.compression == "gzip" else said


class FileTarget:
    """A directory of files, as one export's target."""

    def __init__(
        self, spark: "SparkSession", files: Files, export: str, format: Format, shape: Shape, limits: Limits
    ) -> None:
        self._files, self._format, self._shape = files, format, shape
        self.layout = Layout(export, format.suffix)
        self._store = Store(
            files, self.layout, limits, Merger(spark, files, format, shape), merges_one=format.name == "csv"
        )

    def add(self, df: "DataFrame", batch: int) -> bool:
        """Have this batch in the export, if it is not there; make visible what is due."""
        directories = self._shape.directories
        added = self._store.add(batch, lambda below: write(df, self._files, below, self._format, directories))
        self.publish()
        return added

    def publish(self) -> None:
        """Make visible what is large, or old, enough."""
        self._store.publish()

    def close(self) -> None:
        """Make visible what is still held back."""
        self._store.publish(all_of_them=True)
