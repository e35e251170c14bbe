"""Imports new files with Spark's file source. Schema and tasks stay the same after a restart.

Knows nothing of how rows become records.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.pipelines.jobs.importing.records import as_records, chosen
from barnabas.pipelines.jobs.importing.stored_value import StoredValue
from barnabas.pipelines.jobs.running import Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

    from barnabas.pipelines.jobs.importing.options import ImportOptions

WHOLE_FILES = str(1 << 60)
STRICT = ("csv", "json")
"""Formats in which Spark by default reads a malformed row as nulls."""


class FileImport(Job):
    """Writes the rows of the files in a directory, or of those that match a pattern, to a topic."""

    name = "import"

    def __init__(self, options: "ImportOptions") -> None:
        self._options = options

    def configs(self) -> Mapping[str, str]:
        """Returns the configs by which only the sizes of files decide how they are split into tasks.

        A repeated batch must have the same tasks, even with another number of cores: each task has its transaction.
        """
        packing = {"spark.sql.files.minPartitionNum": str(self._options.min_tasks)}
        if self._options.in_order:
            packing = {"spark.sql.files.minPartitionNum": "1", "spark.sql.files.maxPartitionBytes": WHOLE_FILES}
        return {**packing, **self._options.spark_configs()}

    def start(self, spark: "SparkSession", *, once: bool, checkpoint: str) -> Sequence["StreamingQuery"]:
        """Starts one query."""
        options = self._options
        for key, value in self.configs().items():
            if key.startswith("spark.sql."):
                spark.conf.set(key, value)
        reader = spark.readStream.format(options.format).schema(self._schema(spark, checkpoint))
        reader = reader.options(**self._reader_options(), **self._source_options())
        records = as_records(chosen(reader.load(options.files), options), options)
        writer = records.writeStream.format("barnabas").options(**options.sink_options())
        writer = writer.queryName(f"import to {options.topic}").option("checkpointLocation", checkpoint)
        if once:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{int(options.poll_seconds * 1000)} milliseconds")
        return [writer.start()]

    def _reader_options(self) -> dict[str, str]:
        strict = {"mode": "FAILFAST"} if self._options.format in STRICT else {}
        return {**strict, **self._options.reader_options}

    def _source_options(self) -> dict[str, str]:
        options = self._options
        found = {"cleanSource": {"keep": "off"}.get(options.after, options.after)}
        if options.archive_to is not None:
            found["sourceArchiveDir"] = options.archive_to
        at_most = 1 if options.in_order else options.max_files_per_batch
        if at_most is not None:
            found["maxFilesPerTrigger"] = str(at_most)
        return found

    def _schema(self, spark: "SparkSession", checkpoint: str) -> "StructType | str":
        """Returns the given schema, or the one kept at the first start, or else the schema of the existing files.

        :raises ValueError: there are no files yet.
        """
        from pyspark.errors import AnalysisException
        from pyspark.sql.types import StructType

        options = self._options
        if options.schema is not None:
            return options.schema
        kept = StoredValue(spark, checkpoint, "schema")
        found = kept.read()
        if found is not None:
            schema: StructType = StructType.fromJson(found)
            return schema
        reader = spark.read.format(options.format).options(**self._reader_options())
        if options.format == "csv":
            reader = reader.option("inferSchema", self._options.reader_options.get("inferSchema", "true"))
        try:
            schema = reader.load(options.files).schema
        except AnalysisException as error:
            if error.getCondition() not in ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA"):
                raise
            raise ValueError(
                f"schema is missing: there is no file at {options.files} to infer it from; give it, or put one there"
            ) from None
        kept.write(schema.jsonValue())
        return schema
