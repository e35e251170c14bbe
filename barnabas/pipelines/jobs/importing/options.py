"""The options of the import job: the files or the table, and how rows become records.

Knows nothing of how the job works. Imported without Spark.
"""

from collections.abc import Mapping

from barnabas.pipelines.jobs.options import (
    ClusterOptions,
    Rules,
    check,
    configs_of_jars,
    delivery_option,
    option,
    options,
    properties_option,
)
from barnabas.pipelines.values import Format, Raw, Utf8, parse_format

FORMATS = ("parquet", "csv", "json", "text", "orc")


@options
class ImportOptions(ClusterOptions):
    """The options of ``barnabas pipeline import``: the files or the table, and how rows become records."""

    topic: str = option("The topic that the rows go to.")

    files: str | None = option(
        "A directory, or a pattern such as `in/*.csv`: each file that is or appears there is imported once. A file "
        "must come into being whole, by a rename.",
        default=None,
        metavar="PATH",
    )
    format: str = option("What the files are.", default="parquet", choices=FORMATS)
    schema: str | None = option(
        "The columns of the files, as in `id BIGINT, name STRING`. Without it, it is inferred from the files that are "
        "there at the first start, and kept with the checkpoint.",
        default=None,
        metavar="DDL",
    )
    reader_options: Mapping[str, str] = option(
        "An option of Spark's reader of that format, such as `header=true`. A row that cannot be read is an error, "
        "unless `mode` says otherwise.",
        default_factory=dict,
        flags=("--reader-option",),
    )
    max_files_per_batch: int | None = option(
        "How many files a batch has at most; else all there are.", default=None, least=1
    )
    min_tasks: int = option(
        "Share the files of a batch among as many tasks at least, if they are large enough: a task has 4 MiB or more. "
        "How many cores there are makes no difference, so that a batch that is repeated has the same tasks; do not "
        "change this while one is unfinished.",
        default=4,
        least=1,
    )
    in_order: bool = option(
        "Keep the order of the rows within a file, and of the files by their time: one file a batch, one task a file.",
        default=False,
    )
    after: str = option(
        "What becomes of a file that is imported: it is kept, moved below `archive_to`, or deleted. Spark does that "
        "when a later batch is done.",
        default="keep",
        choices=("keep", "archive", "delete"),
    )
    archive_to: str | None = option("Where files are moved to with `after` archive.", default=None, metavar="DIR")

    jdbc_url: str | None = option(
        "The database that rows come from, instead of files: `jdbc:postgresql://host/shop`.", default=None
    )
    table: str | None = option("The table of the database.", default=None)
    query: str | None = option("Or a SELECT statement.", default=None, metavar="SQL")
    increasing: tuple[str, ...] = option(
        "The column by which new rows are known: an id or a time that only grows. Two for a time that several rows "
        "share: `--increasing changed --increasing id`. Rows are imported in its order, each once.",
        default=(),
        metavar="COLUMN",
    )
    jdbc_properties: Mapping[str, str] = properties_option(
        "User, password, and what else the driver and Spark's JDBC reader take (`driver`, `fetchsize`).",
    )
    driver_jars: tuple[str, ...] = option("The jar of the database's driver.", default=(), metavar="FILE")
    batch_rows: int = option(
        "How many rows of a table a batch has at most; it is one transaction with `delivery` exactly-once.",
        default=100_000,
        least=1,
    )
    delay_seconds: float = option(
        "Leave rows of a table that are younger, by the time in `increasing`, to the next batch: transactions may "
        "still add to them.",
        default=0.0,
        least=0,
    )
    poll_seconds: float = option("How often to look for new files or rows.", default=2.0, above=0)

    select: tuple[str, ...] = option(
        "Columns, or SQL expressions with a name (`upper(name) AS name`), to go on with; else all columns.",
        default=(),
        metavar="SQL",
    )
    where: str | None = option("Take only rows for which this SQL expression is true.", default=None, metavar="SQL")
    key: tuple[str, ...] = option(
        "The column, or SQL expression, that is the key; of several, a JSON object. Without it records have no key.",
        default=(),
        metavar="COLUMN",
    )
    value_format: str = option(
        "What the value is: the row as a `json` object, as `avro,schema=@row.avsc`, `avro,registry=http://host:8081`, "
        "`protobuf,schema=@order.proto`; one column (`value_column`), as it is: `raw`.",
        default="json",
        metavar="FORMAT",
    )
    value_column: str | None = option(
        "The column or SQL expression that is the value with `value_format` raw; for text files it is `value`.",
        default=None,
        metavar="COLUMN",
    )
    columns: tuple[str, ...] = option("The columns that are in the value; else all.", default=(), metavar="COLUMN")
    partition: str | None = option(
        "The column or SQL expression that is the partition; else it comes from the key.",
        default=None,
        metavar="COLUMN",
    )
    timestamp: str | None = option(
        "The column or SQL expression that is the record's time: a timestamp, or milliseconds since 1970; else now.",
        default=None,
        metavar="COLUMN",
    )
    headers: Mapping[str, str] = option(
        "A header by its name, from a column or SQL expression: `file=_metadata.file_name`.",
        default_factory=dict,
        flags=("--header",),
        metavar="NAME=COLUMN",
    )
    delivery: str = delivery_option()

    def __post_init__(self) -> None:
        check(self, self._rules)

    def _rules(self) -> Rules:
        of_tables = self.jdbc_url is not None
        is_plain = isinstance(self.encoding(), Raw | Utf8)
        return (
            ((self.files is None) != of_tables, "either files or jdbc_url must be given: where rows come from"),
            (of_tables and (self.table is None) == (self.query is None), "with jdbc_url, give either table or query"),
            (
                of_tables and not 1 <= len(self.increasing) <= 2,
                "with jdbc_url, increasing must name the column that only grows, or two",
            ),
            (not of_tables and bool(self.table or self.query or self.increasing), "table, query and increasing are "
             "for jdbc_url, not for files"),
            ((self.after == "archive") != (self.archive_to is not None), "after archive and archive_to go together"),
            (self.in_order and self.max_files_per_batch not in (None, 1), "in_order means max_files_per_batch 1"),
            (
                is_plain and self.value_column is None and self.format != "text",
                f"value_format {self.value_format} needs value_column: which column is the value",
            ),
            (not is_plain and self.value_column is not None, "value_column is for value_format raw"),
            (not self.topic.strip(), "topic is empty"),
        )  # fmt: skip

    def encoding(self) -> Format:
        """Returns the format of the value."""
        return parse_format(self.value_format, subject=f"{self.topic}-value")

    def sink_options(self) -> dict[str, str]:
        """Returns the options of the data source that writes the records."""
        return {**self.kafka_options(), "topic": self.topic, "delivery": self.delivery}

    def spark_configs(self) -> dict[str, str]:
        """Returns the Spark configs that the session needs: the driver's jars.

        :raises ValueError: one of the jars does not exist.
        """
        return configs_of_jars(self.driver_jars)
