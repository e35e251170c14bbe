"""The options of the stream job: its tables, the function or SQL over them, and the topic of the result.

Knows nothing of how the job works. Imported without Spark.
"""

import re
from functools import cached_property

from barnabas.pipelines.client.write_settings import PRODUCER_SETTINGS
from barnabas.pipelines.jobs.options import (
    ClusterOptions,
    Rules,
    check,
    commit_group_option,
    delivery_option,
    max_offsets_option,
    option,
    options,
    trigger_option,
)
from barnabas.pipelines.jobs.streaming.spec import Table, parse_table
from barnabas.pipelines.option_tables import READ
from barnabas.pipelines.values.formats import Format, parse_format

UNDECODABLE = ("fail", "null", "dead-letter")
STATE_STORES = {
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    "memory": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
}
READ_ONLY = frozenset(name.removeprefix("kafka.") for name in READ if name.startswith("kafka."))
"""Settings of Kafka's clients that a producer does not have."""


@options
class StreamOptions(ClusterOptions):
    """The options of ``barnabas pipeline stream``: tables, a function or SQL over them, and the topic of the result."""

    tables: tuple[str, ...] = option(
        "A table: its name, its topic or files, and their format, as in "
        "`orders=topic:orders,format=json,schema=id BIGINT, amount DOUBLE`. The options are listed below.",
        flags=("--table",),
        metavar="NAME[=topic:TOPIC|files:PATH][,OPTION=VALUE...]",
    )
    to: str = option("The topic of the result.", metavar="TOPIC")
    transform: str | None = option(
        "A Python file with a function `transform`, or another one after a colon. Its parameters are the tables as "
        "DataFrames, by their names (`spark`: the session); it returns a DataFrame.",
        default=None,
        metavar="FILE[:FUNCTION]",
    )
    sql: str | None = option(
        "A SELECT statement over the tables, instead of a function; or `@` and the name of its file.",
        default=None,
        metavar="SQL",
    )

    format: str | None = option(
        "The format of values, with options as those of a table: `avro,registry=http://localhost:8081`. By default, "
        "a column `value` of text or bytes is unchanged, and everything else is JSON.",
        default=None,
        metavar="FORMAT[,OPTION=VALUE...]",
    )
    key_format: str | None = option(
        "The format of keys. By default, text and bytes are unchanged, structs are JSON, and everything else is text.",
        default=None,
        metavar="FORMAT[,OPTION=VALUE...]",
    )
    output_mode: str = option(
        "When aggregates are written: `append` once they are final (which needs a watermark), `update` whenever they "
        "change, `complete` all of them in every batch.",
        default="append",
        choices=("append", "update", "complete"),
    )
    delivery: str = delivery_option()

    undecodable: str | None = option(
        "What happens to a record that cannot be decoded: the job fails (`fail`), its columns are null (`null`), or it "
        "goes to the topic of `dead_letters`, the default if there is one.",
        default=None,
        choices=UNDECODABLE,
    )
    dead_letters: str | None = option(
        "The topic for records that cannot be decoded: key, value, headers and timestamp are unchanged, and headers "
        "`__connect.errors.*` have the error and the source.",
        default=None,
        metavar="TOPIC",
    )

    starting_offsets: str = option(
        "The start of topics at the first start of the job.", default="earliest", choices=("earliest", "latest")
    )
    max_offsets_per_batch: int | None = max_offsets_option()
    trigger_seconds: float | None = trigger_option(None)
    commit_group: str | None = commit_group_option()
    state_store: str = option(
        "The state store (of windows, joins, deduplication): RocksDB on disk, which transformWithState requires, or "
        "Java's memory. It cannot be changed after the first start.",
        default="rocksdb",
        choices=tuple(STATE_STORES),
    )
    state_partitions: int | None = option(
        "The number of partitions of the state, and of the tasks for it. It cannot be changed after the first start. "
        "The default is `spark.sql.shuffle.partitions` if that is set, otherwise the largest number of partitions of a "
        "topic.",
        default=None,
        least=1,
    )

    def __post_init__(self) -> None:
        check(self, self._rules)
        names = [table.name for table in self.parsed_tables]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"there are two tables {name}")
        _ = self.value_format, self.encoded_key_format

    def _rules(self) -> Rules:
        return (
            ((self.transform is None) == (self.sql is None), "either transform or sql must be given: what to do"),
            (not self.tables, "table is missing: what there is to read, such as --table orders"),
            (not self.to.strip(), "to is empty: the topic that the result goes to"),
            (
                self.undecodable == "dead-letter" and self.dead_letters is None,
                "undecodable dead-letter needs dead_letters: the topic for such records",
            ),
            (
                self.undecodable in ("fail", "null") and self.dead_letters is not None,
                f"dead_letters is given, and undecodable {self.undecodable}, by which nothing would go there",
            ),
            (self.dead_letters == self.to, "dead_letters and to are the same topic"),
        )  # fmt: skip

    @cached_property
    def parsed_tables(self) -> tuple[Table, ...]:
        """The parsed tables.

        :raises ValueError: a table is wrong; the message names the table and the option.
        """
        return tuple(parse_table(text) for text in self.tables)

    @cached_property
    def value_format(self) -> Format | None:
        return None if self.format is None else parse_format(self.format, subject=f"{self.to}-value")

    @cached_property
    def encoded_key_format(self) -> Format | None:
        return None if self.key_format is None else parse_format(self.key_format, subject=f"{self.to}-key")

    @property
    def bad_records(self) -> str:
        """How records that cannot be decoded are handled: one of UNDECODABLE."""
        return self.undecodable or ("fail" if self.dead_letters is None else "dead-letter")

    def source_options(self) -> dict[str, str]:
        """Returns the options of the data source that are the same for all topics."""
        committed = {"isolation.level": "read_committed"} if self.delivery == "exactly-once" else {}
        return self.kafka_options(without=PRODUCER_SETTINGS, defaults=committed)

    def stream_options(self) -> dict[str, str]:
        """Returns the options of the data source for topics that are read as streams."""
        said = {
            "startingOffsets": self.starting_offsets,
            "maxOffsetsPerTrigger": self.max_offsets_per_batch,
            "commitGroup": self.commit_group,
        }
        return {**self.source_options(), **{name: str(value) for name, value in said.items() if value is not None}}

    def sink_options(self, topic: str) -> dict[str, str]:
        """Returns the options of the data source that writes to this topic."""
        return {**self.kafka_options(without=READ_ONLY), "topic": topic, "delivery": self.delivery}

    def statement(self) -> str | None:
        """Returns the SQL statement, read from its file if ``sql`` names one, or None if there is none.

        :raises ValueError: the file does not exist.
        """
        if self.sql is None or not self.sql.startswith("@"):
            return self.sql
        from pathlib import Path

        path = Path(self.sql[1:])
        if not path.is_file():
            raise ValueError(f"sql names the file {path}, which is not there")
        return re.sub(r";\s*$", "", path.read_text(encoding="utf-8").strip())
