"""Reads an export: lists its files, checks their columns, and finds the records of each partition.

Knows nothing of how records are written.
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from barnabas.pipelines.jobs.backfilling.options import BackfillOptions, Offsets
from barnabas.pipelines.jobs.backfilling.plan import Range, Span
from barnabas.pipelines.jobs.exporting.files import Files, LocalFiles
from barnabas.pipelines.jobs.exporting.layout import HOME

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

NEEDED = {
    "topic": ("string",),
    "partition": ("int",),
    "offset": ("bigint",),
    "timestamp": ("timestamp",),
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "headers": ("array<struct<key:string,value:binary>>",),
}
"""The columns that a record needs, and the types that hold them unchanged."""

SETTINGS = {
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",  # a topic may be called 2026
    "spark.sql.session.timeZone": "UTC",
}


def parquet_files(files: Files) -> dict[str, int]:
    """Returns the sizes of the export's files by path: those in its Delta log, or else all that end in ``.parquet``."""
    there = {entry.path: entry.size for entry in files.list("")}
    if isinstance(files, LocalFiles) and (files.root / "_delta_log").is_dir():
        import pyarrow as pa
        from deltalake import DeltaTable

        actions = pa.table(DeltaTable(str(files.root)).get_add_actions())
        named = {path.replace("%3D", "=") for path in actions["path"].to_pylist()}
        return {path: size for path, size in there.items() if path in named}
    return {path: size for path, size in there.items() if path.endswith(".parquet")}


def holds_back(files: Files) -> bool:
    """Returns whether an export to this directory holds records back that are not visible yet."""
    return any(entry.path.endswith(".part") for entry in files.list(HOME))


def read(spark: "SparkSession", files: Files, paths: Sequence[str], options: BackfillOptions) -> "DataFrame":
    """Returns the export's records, with the columns of NEEDED.

    :raises ValueError: a column is missing, or has a type that does not hold it unchanged.
    """
    from pyspark.sql import functions as F

    session = spark.newSession()
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    df = session.read.option("basePath", files.uri("")).parquet(*map(files.uri, paths))
    prefix = options.metadata_prefix
    names = {name: name if name == "value" or name not in NEEDED else prefix + name for name in NEEDED}
    if prefix and "topic" in df.columns:
        names["topic"] = "topic"  # a column from the names of directories has no prefix
    missing = [name for name in names.values() if name not in df.columns]
    if missing:
        raise ValueError(
            f"{options.source} lacks the column{'s' if len(missing) > 1 else ''} {', '.join(missing)}: export with "
            "with_metadata (which Parquet and Delta have unless told otherwise), and without flatten"
        )
    for name, types in NEEDED.items():
        found = df.schema[names[name]].dataType.simpleString()
        if found not in types:
            raise ValueError(
                f"column {names[name]} of {options.source} is {found}, not {' or '.join(types)}: a record cannot be "
                "made of it as it was; export with key_format=raw and value_format=raw"
            )
    return df.select([F.col(f"`{names[name]}`").alias(name) for name in NEEDED]).where(_wanted(options))


def _wanted(options: BackfillOptions) -> "Column":
    """Returns the condition that selects the records."""
    from pyspark.sql import functions as F

    wanted = [F.lit(True)]
    if options.topics:
        wanted.append(F.col("topic").isin(*options.topics))
    after, before = options.times()
    if after is not None:
        wanted.append(F.col("timestamp") >= F.timestamp_millis(F.lit(after)))
    if before is not None:
        wanted.append(F.col("timestamp") < F.timestamp_millis(F.lit(before)))
    start, end = options.offsets()
    wanted += [~(its & (F.col("offset") < offset)) for its, offset in _each(start)]
    wanted += [~(its & (F.col("offset") >= offset)) for its, offset in _each(end)]
    return reduce(lambda left, right: left & right, wanted)


def _each(offsets: Offsets) -> Iterator[tuple["Column", int]]:
    """Yields for each partition the condition that a row belongs to it, and its offset."""
    from pyspark.sql import functions as F

    for topic, partitions in offsets.items():
        for partition, offset in partitions.items():
            yield (F.col("topic") == topic) & (F.col("partition") == partition), offset


def spans(df: "DataFrame") -> tuple[list[Span], int]:
    """Returns the records of each partition, sorted by partition, and the oldest timestamp in ms.

    :raises ValueError: there are records without topic, partition, offset or timestamp.
    """
    from pyspark.sql import functions as F

    place = ("topic", "partition", "offset", "timestamp")
    rows = (
        df.groupBy("topic", "partition")
        .agg(
            F.count("*").alias("records"),
            F.min("offset").alias("start"),
            (F.max("offset") + 1).alias("end"),
            F.unix_millis(F.min("timestamp")).alias("oldest"),
            *(F.count_if(F.col(name).isNull()).alias(f"no_{name}") for name in place),
        )
        .collect()
    )
    for name in place:
        without = sum(row[f"no_{name}"] for row in rows)
        if without:
            raise ValueError(f"{without} records of the export have null in the column {name}: they have no place")
    found = sorted(Span(row.topic, row.partition, row.records, row.start, row.end) for row in rows)
    return found, min((row.oldest for row in rows), default=0)


def within(df: "DataFrame", ranges: Sequence[Range]) -> "DataFrame":
    """Returns the records of these ranges, in the order of their offsets, with a task for each range."""
    from pyspark.sql import functions as F

    def holds(piece: Range) -> "Column":
        its = (F.col("topic") == piece.topic) & (F.col("partition") == piece.partition)
        return its & (F.col("offset") >= piece.start) & (F.col("offset") < piece.end)

    numbers = [part for number, piece in enumerate(ranges) for part in (F.lit(_place(piece)), F.lit(number))]
    task = F.create_map(*numbers)[F.concat(F.col("topic"), F.lit("-"), F.col("partition"))]
    chosen = df.where(reduce(lambda left, right: left | right, map(holds, ranges)))
    return chosen.repartitionById(len(ranges), task).sortWithinPartitions("topic", "partition", "offset")


def _place(piece: Range) -> str:
    return f"{piece.topic}-{piece.partition}"
