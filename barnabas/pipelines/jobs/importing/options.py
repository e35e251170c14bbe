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

    topic: str = option("The target topic.")

    files: str | None = option(
        "A directory, or a pattern such as `in/*.csv`: each existing or new file is imported once. A file must be "
        "created complete, by a rename.",
        default=None,
        metavar="PATH",
    )
    format: str = option("The format of the files.", default="parquet", choices=FORMATS)
    schema: str | None = option(
        "The columns of the files, as in `id BIGINT, name STRING`. By default it is inferred from the files at the "
        "first start, and kept in the checkpoint.",
        default=None,
        metavar="DDL",
    )
    reader_options: Mapping[str, str] = option(
        "An option of Spark's reader of that format, such as `header=true`. A row that cannot be read is an error, "
        "unless `mode` allows it.",
        default_factory=dict,
        flags=("--reader-option",),
    )
    max_files_per_batch: int | None = option(
        "The maximum number of files of a batch. Default: all.", default=None, least=1
    )
    min_tasks: int = option(
        "The minimum number of tasks of a batch, if its files are large enough: a task has 4 MiB or more. "
        "The number of cores has no influence, so that a repeated batch has the same tasks. Do not change it while a "
        "batch is unfinished.",
        default=4,
        least=1,
    )
    in_order: bool = option(
        "Keep the order of the rows within a file, and of the files by their time: one file a batch, one task a file.",
        default=False,
    )
    after: str = option(
        "What happens to an imported file: it is kept, moved below `archive_to`, or deleted. Spark does that "
        "when a later batch is done.",
        default="keep",
        choices=("keep", "archive", "delete"),
    )
    archive_to: str | None = option("The directory of moved files, with `after` archive.", default=None, metavar="DIR")

    jdbc_url: str | None = option(
        "The database to import from, instead of files: `jdbc:postgresql://host/shop`.", default=None
    )
    table: str | None = option("The table of the database.", default=None)
    query: str | None = option("A SELECT statement, instead of a table.", default=None, metavar="SQL")
    increasing: tuple[str, ...] = option(
        "The column that identifies new rows: an id or a time that only increases. Two, if several rows may have the "
        "same time: `--increasing changed --increasing id`. Rows are imported in this order, each once.",
        default=(),
        metavar="COLUMN",
    )
    jdbc_properties: Mapping[str, str] = properties_option(
        "User, password, and other settings of the driver and of Spark's JDBC reader (`driver`, `fetchsize`).",
    )
    driver_jars: tuple[str, ...] = option("The jar of the database's driver.", default=(), metavar="FILE")
    batch_rows: int = option(
        "The maximum number of rows of a batch of a table; with `delivery` exactly-once it is one transaction.",
        default=100_000,
        least=1,
    )
    delay_seconds: float = option(
        "Leave younger rows of a table, by the time in `increasing`, to a later batch, since open transactions may "
        "still add rows.",
        default=0.0,
        least=0,
    )
    poll_seconds: float = option("How often to look for new files or rows.", default=2.0, above=0)

    select: tuple[str, ...] = option(
        "The columns, or SQL expressions with a name (`upper(name) AS name`), to import. Default: all columns.",
        default=(),
        metavar="SQL",
    )
    where: str | None = option("Import only rows for which this SQL expression is true.", default=None, metavar="SQL")
    key: tuple[str, ...] = option(
        "The column, or SQL expression, of the key; several become a JSON object. By default records have no key.",
        default=(),
        metavar="COLUMN",
    )
    value_format: str = option(
        "The format of the value: the row as `json`, `avro,schema=@row.avsc`, `avro,registry=http://host:8081`, "
        "`protobuf,schema=@order.proto`; or one column (`value_column`) unchanged: `raw`.",
        default="json",
        metavar="FORMAT",
    )
    value_column: str | None = option(
        "The column or SQL expression of the value, with `value_format` raw; for text files it is `value`.",
        default=None,
        metavar="COLUMN",
    )
    columns: tuple[str, ...] = option("The columns in the value. Default: all.", default=(), metavar="COLUMN")
    partition: str | None = option(
        "The column or SQL expression of the partition. Default: derived from the key.",
        default=None,
        metavar="COLUMN",
    )
    timestamp: str | None = option(
        "The column or SQL expression of the timestamp: a timestamp, or ms since 1970. Default: the current time.",
        default=None,
        metavar="COLUMN",
    )
    headers: Mapping[str, str] = option(
        "A header, from a column or SQL expression: `file=_metadata.file_name`.",
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
