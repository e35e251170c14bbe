"""The options of the export job: which topics, in which format, and where to.

Knows nothing of how an export is done. Imported without Spark.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

from barnabas.pipelines.client.settings import ClientSettings
from barnabas.pipelines.jobs.exporting.columns import PERIODS, Shape
from barnabas.pipelines.jobs.exporting.layout import HOME
from barnabas.pipelines.jobs.exporting.merging import Limits
from barnabas.pipelines.jobs.options import (
    ClusterOptions,
    check,
    commit_group_option,
    configs_of_jars,
    isolation_option,
    max_offsets_option,
    option,
    options,
    properties_option,
    trigger_option,
)
from barnabas.pipelines.values import Format, parse_format

FORMATS = ("parquet", "delta", "csv", "json", "jdbc")
COMPRESSIONS = {
    "parquet": ("zstd", "snappy", "gzip", "none"),
    "delta": ("zstd", "snappy", "gzip", "none"),
    "csv": ("none", "gzip"),
    "json": ("none", "gzip"),
    "jdbc": ("none",),
}
"""The codecs of each format; the first is the default."""

LOSSLESS = ("parquet", "delta")
"""Formats that can hold bytes and nested columns; by default they get all of a record, unchanged."""


@options
class ExportOptions(ClusterOptions):
    """The options of ``barnabas pipeline export``: which topics, in which format, and where to."""

    topics: tuple[str, ...] = option(
        "A topic to export; may be given several times.", default=(), flags=("--topic", "--topics"), metavar="TOPIC"
    )
    topic_pattern: str | None = option(
        "Instead of `topics`: export all topics whose whole name matches this regular expression, including new ones.",
        default=None,
        metavar="REGEX",
    )
    to: str = option(
        "The target: a directory, or its URI in any file system that Spark can write to (`hdfs://`, `s3a://` ...); for "
        "`jdbc` the URL of the database, such as `jdbc:postgresql://host/shop`.",
        metavar="PLACE",
    )
    format: str = option("The format to write.", default="parquet", choices=FORMATS)

    key_format: str | None = option(
        "The format of keys: `raw`, `utf8`, or any format of `value_format`. The default is `raw` for Parquet and "
        "Delta, `utf8` otherwise.",
        default=None,
        metavar="FORMAT",
    )
    value_format: str | None = option(
        "The format of values: `raw`, `utf8`, `json,schema=id BIGINT, name STRING`, `avro,schema=@order.avsc`, "
        "`avro,registry=http://host:8081`, `protobuf,schema=@order.proto` ... The default is that of keys.",
        default=None,
        metavar="FORMAT",
    )
    undecodable: str = option(
        "What happens to a key or a value that cannot be decoded: the job fails, or the column is null.",
        default="fail",
        choices=("fail", "null"),
    )
    with_metadata: bool | None = option(
        "Write the key, topic, partition, offset, timestamp, timestampType and headers of each record as columns too. "
        "The default is yes for Parquet and Delta, as `backfill` needs them, and no otherwise.",
        default=None,
    )
    metadata_prefix: str = option("The prefix of the names of those columns.", default="", metavar="TEXT")
    flatten: bool | None = option(
        "Write each field of a value as a column, instead of one column `value`. The default is yes for CSV and "
        "tables.",
        default=None,
    )
    partition_by: str = option(
        "The directories to write to: one for each day, or each hour, of the records' timestamps (UTC), or none. With "
        "several topics, or a pattern, each topic has its own directory above them. Not for database tables.",
        default="date",
        choices=tuple(PERIODS),
    )

    compression: str | None = option(
        "How files are compressed. The default is zstd for Parquet and Delta, none for CSV and JSON.",
        default=None,
        choices=("zstd", "snappy", "gzip", "none"),
    )
    target_mib: int = option("The size of files in MiB; smaller files are merged.", default=128, least=1)
    publish_seconds: float = option(
        "How long records may be held back, hidden, until their file reaches that size. Delta files are visible at "
        "once, and merged after that time.",
        default=600.0,
        least=0,
    )
    keep_held: bool = option(
        "Keep holding back records that are not due yet when the run ends: for `--once` every few minutes. By default "
        "everything becomes visible at the end of a run.",
        default=False,
    )

    table: str | None = option("The table, with `format` jdbc; created if it does not exist.", default=None)
    jdbc_properties: Mapping[str, str] = properties_option(
        "User, password, and other settings of the driver and of Spark's JDBC writer (`driver`, `batchsize`).",
    )
    driver_jars: tuple[str, ...] = option("The jar of the database's JDBC driver.", default=(), metavar="FILE")

    starting_offsets: str = option(
        "Where the first run starts: `earliest`, `latest`, or offsets as in the source's `startingOffsets`.",
        default="earliest",
        metavar="OFFSETS",
    )
    max_offsets_per_batch: int = max_offsets_option(1_000_000)
    trigger_seconds: float = trigger_option(10.0)
    isolation: str = isolation_option()
    commit_group: str | None = commit_group_option()
    fail_on_data_loss: bool = option(
        "Fail if records were deleted before they were exported; otherwise continue with a warning.",
        default=True,
    )

    def __post_init__(self) -> None:
        """:raises ValueError: an option is wrong; the message names it."""
        check(self)
        if bool(self.topics) == bool(self.topic_pattern):
            raise ValueError("give either topics or topic_pattern: what to export")
        if (self.format == "jdbc") != self.to.startswith("jdbc:"):
            raise ValueError(f"to is {self.to!r}, which does not fit format {self.format}: jdbc:... is for format jdbc")
        if (self.format == "jdbc") != (self.table is not None):
            raise ValueError("table is required with format jdbc, and not allowed with others")
        if self.format == "delta" and urlsplit(self.to).scheme not in ("", "file"):
            raise ValueError(f"to is {self.to!r}, but a Delta table must be in a directory of this machine")
        if self.compression is not None and self.compression not in COMPRESSIONS[self.format]:
            allowed = ", ".join(COMPRESSIONS[self.format])
            raise ValueError(f"compression is {self.compression!r}, but {self.format} allows: {allowed}")
        for text in filter(None, (self.key_format, self.value_format)):
            parse_format(text)

    def shape(self) -> Shape:
        """Returns the columns and directories of the rows."""
        is_lossless, is_table = self.format in LOSSLESS, self.format == "jdbc"
        plain = self.format in ("csv", "jdbc")
        return Shape(
            metadata=is_lossless if self.with_metadata is None else self.with_metadata,
            prefix=self.metadata_prefix,
            flatten=plain if self.flatten is None else self.flatten,
            plain=plain,
            plain_bytes=is_table,
            period="none" if is_table else self.partition_by,
            by_topic=not is_table and len(self.topics) != 1,
        )

    def decoding(self) -> dict[str, Format]:
        """Returns the formats of keys and values."""
        default = "raw" if self.format in LOSSLESS else "utf8"
        topic = self.topics[0] if len(self.topics) == 1 else None
        return {
            column: parse_format(text or default, subject=topic and f"{topic}-{column}")
            for column, text in (("key", self.key_format), ("value", self.value_format))
        }

    def limits(self) -> Limits:
        """Returns when files are made visible."""
        return Limits(self.target_mib << 20, self.publish_seconds)

    def codec(self) -> str:
        """Returns how files are compressed."""
        return self.compression or COMPRESSIONS[self.format][0]

    @property
    def whole_pattern(self) -> str | None:
        """The pattern for the source, which searches for it anywhere in a topic's name."""
        return None if self.topic_pattern is None else f"^(?:{self.topic_pattern})$"

    def source(self) -> dict[str, str]:
        """Returns the options of the source."""
        topics = ("subscribe", ",".join(self.topics)) if self.topics else ("subscribePattern", self.whole_pattern or "")
        return {
            **self.kafka_options(),
            topics[0]: topics[1],
            "startingOffsets": self.starting_offsets,
            "maxOffsetsPerTrigger": str(self.max_offsets_per_batch),
            "kafka.isolation.level": self.isolation,
            "failOnDataLoss": str(self.fail_on_data_loss).lower(),
            "includeHeaders": "true",
            **({"commitGroup": self.commit_group} if self.commit_group else {}),
        }

    def client_settings(self) -> ClientSettings:
        """Returns the client's settings.

        :raises ValueError: a setting of the client is wrong; the message names it.
        """
        return ClientSettings.parse({**self.client, "bootstrap.servers": self.bootstrap_servers})

    def checkpoint_beside(self) -> str | None:
        """Returns the default checkpoint, which is in the export's directory; None for a database."""
        return None if self.format == "jdbc" else f"{self.to.rstrip('/')}/{HOME}/checkpoint"

    def spark_configs(self) -> dict[str, str]:
        """Returns the Spark configs that the session needs: the driver's jars.

        :raises ValueError: one of the jars does not exist.
        """
        return configs_of_jars(self.driver_jars)
