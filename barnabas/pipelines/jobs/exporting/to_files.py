"""Exports batches to Parquet, CSV or JSON files: Spark writes them, the store publishes them, parts are merged.

Knows nothing of topics.
"""

import csv
import gzip
import io
import json
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from barnabas.pipelines.jobs.causes import cause_of
from barnabas.pipelines.jobs.exporting.columns import PLACE, Shape
from barnabas.pipelines.jobs.exporting.files import Files, LocalFiles
from barnabas.pipelines.jobs.exporting.layout import Layout
from barnabas.pipelines.jobs.exporting.merging import Limits
from barnabas.pipelines.jobs.exporting.store import Store
from barnabas.pipelines.jobs.texts import AS_CSV, AS_JSON, IN_UTC

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)

WRITER_CONFIGS = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.maxConcurrentOutputFileWriters": "8",
}
"""Spark's default for timestamps, INT96, has no time zone, and most readers take it for local time. By default Spark
sorts a task's rows by their directory before it writes; several open files for each task need no sort, and keep the
rows in the order of their offsets."""

WRITER_OPTIONS: dict[str, dict[str, str]] = {
    "parquet": {},
    "csv": AS_CSV | IN_UTC,
    "json": AS_JSON | IN_UTC,
}
COMMITTER_OPTIONS = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
"""No _SUCCESS file: the store notes itself which batches are complete."""

NO_DICTIONARY = {"parquet.enable.dictionary#value": "false"}
"""For values as bytes, which rarely repeat: building their dictionary, which Parquet then gives up, is a sixth of the
CPU time of an export."""

SUFFIXES = {"none": "", "gzip": ".gz"}

SMALL_BYTES = 16 << 20
"""Local Parquet files of up to this total size are merged in memory: a Spark job would cost more than the work."""

ROW_GROUP_BYTES = 512 << 10
"""Parquet files of this mean size are merged by copying their row groups. Smaller row groups slow readers down, so
those are written anew."""


class Format(NamedTuple):
    """How files are written."""

    name: str  #: parquet, csv or json
    compression: str

    @property
    def suffix(self) -> str:
        """The suffix of visible files."""
        return f".{self.name}" + ("" if self.name == "parquet" else SUFFIXES[self.compression])


def write(df: "DataFrame", files: Files, below: str, format: Format, directories: Sequence[str]) -> str:
    """Writes these rows below a directory, whose former content is deleted; returns their schema."""
    for name, value in WRITER_CONFIGS.items():
        df.sparkSession.conf.set(name, value)
    writer = df.write.mode("overwrite").format(format.name).options(**WRITER_OPTIONS[format.name], **COMMITTER_OPTIONS)
    writer = writer.option("compression", format.compression)
    if ("value", "binary") in df.dtypes:
        writer = writer.options(**NO_DICTIONARY)
    if directories:
        writer = writer.partitionBy(*directories)
    writer.save(files.uri(below))
    return df.schema.json()


class Merger:
    """Merges the parts of one directory into one file.

    Text files are joined byte by byte. Of Parquet files the row groups are copied as they are, unless they are small;
    then their rows are read and written anew, in memory or by Spark.
    """

    def __init__(self, spark: "SparkSession", files: Files, format: Format, shape: Shape) -> None:
        self._spark, self._files, self._format, self._shape = spark, files, format, shape

    def __call__(self, parts: Sequence[str], below: str, schema: str) -> str:
        """Writes the merged file below a directory and returns its path; `schema` is the parts' schema."""
        if self._format.name != "parquet":
            merged = f"{below}/merged"
            self._files.join(parts, merged, self._first_line(schema))
            return merged
        files, size = self._files, sum(map(self._files.size, parts))
        if size >= ROW_GROUP_BYTES * len(parts):
            merged = f"{below}/merged.parquet"
            if self._copied(parts, merged):
                return merged
        if isinstance(files, LocalFiles) and size <= SMALL_BYTES and "variant" not in schema:  # pyarrow lacks the type
            return self._joined(files, parts, below)
        return self._rewritten(parts, below)

    def _copied(self, parts: Sequence[str], merged: str) -> bool:
        """Copies the parts' row groups into one file; returns False if this release of Parquet cannot.

        It refuses parts whose Parquet schemas differ, as those of two releases of Spark may for the same columns.
        """
        from py4j.protocol import Py4JJavaError

        jvm = cast(Any, self._spark._jvm)
        path, parquet = jvm.org.apache.hadoop.fs.Path, jvm.org.apache.parquet.hadoop.rewrite
        sources = jvm.java.util.ArrayList()
        for part in parts:
            sources.add(path(self._files.uri(part)))
        settings = cast(Any, self._spark)._jsc.hadoopConfiguration()
        try:
            options = parquet.RewriteOptions.Builder(settings, sources, path(self._files.uri(merged))).build()
            rewriter = parquet.ParquetRewriter(options)
            try:
                rewriter.processBlocks()
            finally:
                rewriter.close()
        except Py4JJavaError as error:
            log.warning("cannot copy row groups of %d files, writing their rows anew: %s", len(parts), cause_of(error))
            self._files.delete(merged)
            return False
        return True

    def _joined(self, files: LocalFiles, parts: Sequence[str], below: str) -> str:
        """Merges the rows in memory."""
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
        """Merges the rows by a Spark job."""
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
        """Returns the header line of a CSV file: Spark writes parts without one, so that they can be joined."""
        if self._format.name != "csv":
            return b""
        names = [field["name"] for field in json.loads(schema)["fields"]]
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow([name for name in names if name not in self._shape.directories])
        encoded = line.getvalue().encode()
        return gzip.compress(encoded, mtime=0) if self._format.compression == "gzip" else encoded


class FileTarget:
    """A directory of files, as the target of one export."""

    def __init__(
        self, spark: "SparkSession", files: Files, export: str, format: Format, shape: Shape, limits: Limits
    ) -> None:
        self._files, self._format, self._shape = files, format, shape
        self.layout = Layout(export, format.suffix)
        self._store = Store(
            files, self.layout, limits, Merger(spark, files, format, shape), merges_one=format.name == "csv"
        )

    def add(self, df: "DataFrame", batch: int) -> bool:
        """Adds the batch unless it is there, and publishes what is due; returns whether it was added."""
        directories = self._shape.directories
        added = self._store.add(batch, lambda below: write(df, self._files, below, self._format, directories))
        self.publish()
        return added

    def publish(self) -> None:
        """Makes visible what is large enough or old enough."""
        self._store.publish()

    def close(self) -> None:
        """Makes visible everything that is still held back."""
        self._store.publish(all_of_them=True)
