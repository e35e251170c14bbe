"""What the export job is told: which topics, as what, where to.

Knows nothing of how that is done; imported without Spark.
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
"""The first is the default."""

LOSSLESS = ("parquet", "delta")
"""Formats that hold bytes and nested columns: by default they get all that a record has, as it is."""


@options
class ExportOptions(ClusterOptions):
    """What ``barnabas pipeline export`` is told: which topics, as what, where to."""

    topics: tuple[str, ...] = option(
        "A topic; may be given several times.", default=(), flags=("--topic", "--topics"), metavar="TOPIC"
    )
    topic_pattern: str | None = option(
        "Instead: all topics whose whole name matches this regular expression, new ones too.",
        default=None,
        metavar="REGEX",
    )
    to: str = option(
        "Where to: a directory, or its URI (`hdfs://`, `s3a://` ..., whatever this Spark can write); for `jdbc` the "
        "database, as in `jdbc:postgresql://host/shop`.",
        metavar="PLACE",
    )
    format: str = option("What to write.", default="parquet", choices=FORMATS)

    key_format: str | None = option(
        "What keys are: `raw`, `utf8`, or as in `value_format`. By default `raw` for Parquet and Delta, else `utf8`.",
        default=None,
        metavar="FORMAT",
    )
    value_format: str | None = option(
        "What values are: `raw`, `utf8`, `json,schema=id BIGINT, name STRING`, `avro,schema=@order.avsc`, "
        "`avro,registry=http://host:8081`, `protobuf,schema=@order.proto` ... By default as for keys.",
        default=None,
        metavar="FORMAT",
    )
    undecodable: str = option(
        "What becomes of a value, or a key, that is not of its format: the job fails, or it is null.",
        default="fail",
        choices=("fail", "null"),
    )
    with_metadata: bool | None = option(
        "Have the key, topic, partition, offset, timestamp, timestampType and headers of each record as columns, too. "
        "By default yes for Parquet and Delta, as `backfill` needs it; else no.",
        default=None,
    )
    metadata_prefix: str = option("What the names of those columns begin with.", default="", metavar="TEXT")
    flatten: bool | None = option(
        "Make each field of a value a column, instead of one column `value`. By default yes for CSV and tables.",
        default=None,
    )
    partition_by: str = option(
        "Which directories there are: by the day, or the hour, of the record's timestamp (UTC), or none; with several "
        "topics, or a pattern, each has its own above them. A table of a database has none.",
        default="date",
        choices=tuple(PERIODS),
    )

    compression: str | None = option(
        "How files are compressed. By default zstd for Parquet and Delta, none for CSV and JSON.",
        default=None,
        choices=("zstd", "snappy", "gzip", "none"),
    )
    target_mib: int = option("How large files shall be, in MiB: smaller ones are merged.", default=128, least=1)
    publish_seconds: float = option(
        "For how long records may be held back, hidden, so that their file gets that large. Files of Delta are visible "
        "at once, and merged after that time.",
        default=600.0,
        least=0,
    )
    keep_held: bool = option(
        "At the end of a run, go on holding back what is not due yet: for `--once` every few minutes. Otherwise "
        "all is made visible then.",
        default=False,
    )

    table: str | None = option("The table, with `format` jdbc; made if it is not there.", default=None)
    jdbc_properties: Mapping[str, str] = properties_option(
        "User, password, and what else the driver and Spark's JDBC writer take (`driver`, `batchsize`).",
    )
    driver_jars: tuple[str, ...] = option("The jar of the database's driver.", default=(), metavar="FILE")

    starting_offsets: str = option(
        "Where the first run begins: `earliest`, `latest`, or offsets as in the source's `startingOffsets`.",
        default="earliest",
        metavar="OFFSETS",
    )
    max_offsets_per_batch: int = max_offsets_option(1_000_000)
    trigger_seconds: float = trigger_option(10.0)
    isolation: str = isolation_option()
    commit_group: str | None = commit_group_option()
    fail_on_data_loss: bool = option(
        "End with an error where records have gone before they were exported; otherwise go on with a warning.",
        default=True,
    )

    def __post_init__(self) -> None:
        """Raises ValueError, naming the option."""
        check(self)
        if bool(self.topics) == bool(self.topic_pattern):
            raise ValueError("either topics or topic_pattern must be given: what to export")
        if (self.format == "jdbc") != self.to.startswith("jdbc:"):
            raise ValueError(f"to is {self.to!r}, which does not go with format {self.format}: jdbc needs jdbc:...")
        if (self.format == "jdbc") != (self.table is not None):
            raise ValueError("table must be given with format jdbc, and with no other")
        if self.format == "delta" and urlsplit(self.to).scheme not in ("", "file"):
            raise ValueError(f"to is {self.to!r}, but a Delta table must be in a directory that this machine has")
        if self.compression is not None and self.compression not in COMPRESSIONS[self.format]:
            may_be = ", ".join(COMPRESSIONS[self.format])
            raise ValueError(f"compression is {self.compression!r}, but {self.format} may have: {may_be}")
        for text in filter(None, (self.key_format, self.value_format)):
            parse_format(text)

    def shape(self) -> Shape:
        """What the rows look like."""
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
        """The formats of key and value."""
        meant = "raw" if self.format in LOSSLESS else "utf8"
        topic = self.topics[0] if len(self.topics) == 1 else None
        return {
            column: parse_format(text or meant, subject=topic and f"{topic}-{column}")
            for column, text in (("key", self.key_format), ("value", self.value_format))
        }

    def limits(self) -> Limits:
        """When files are merged."""
        return Limits(self.target_mib << 20, self.publish_seconds)

    def codec(self) -> str:
        """How files are compressed."""
        return self.compression or COMPRESSIONS[self.format][0]

    @property
    def whole_pattern(self) -> str | None:
        """The pattern as the source takes it, which looks for it anywhere in a name."""
        return None if self.topic_pattern is None else f"^(?:{self.topic_pattern})$"

    def source(self) -> dict[str, str]:
        """The options of the source."""
        which = ("subscribe", ",".join(self.topics)) if self.topics else ("subscribePattern", self.whole_pattern or "")
        return {
            **self.kafka_options(),
            which[0]: which[1],
            "startingOffsets": self.starting_offsets,
            "maxOffsetsPerTrigger": str(self.max_offsets_per_batch),
            "kafka.isolation.level": self.isolation,
            "failOnDataLoss": str(self.fail_on_data_loss).lower(),
            "includeHeaders": "true",
            **({"commitGroup": self.commit_group} if self.commit_group else {}),
        }

    def client_settings(self) -> ClientSettings:
        """The same for a client. Raises ValueError, naming the client setting that is wrong."""
        return ClientSettings.parse({**self.client, "bootstrap.servers": self.bootstrap_servers})

    def checkpoint_beside(self) -> str | None:
        """Where the checkpoint is if nobody says: with the files that it is of."""
        return None if self.format == "jdbc" else f"{self.to.rstrip('/')}/{HOME}/checkpoint"

    def spark_configs(self) -> dict[str, str]:
        """What the session has to be started with: the driver's jars.

        Raises:
            ValueError: one of them is not there.
        """
        return configs_of_jars(self.driver_jars)
