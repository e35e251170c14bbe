"""The options of the backfill job: the export, which of its records, and the target topic.

Knows nothing of how the job works. Imported without Spark.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from barnabas.pipelines.client.settings import ClientSettings
from barnabas.pipelines.jobs.exporting.layout import HOME
from barnabas.pipelines.jobs.options import ClusterOptions, check, option, options

if TYPE_CHECKING:
    from barnabas.pipelines.client.write_settings import WriteSettings

Offsets = dict[str, dict[int, int]]
"""Offsets by topic and partition."""


@options
class BackfillOptions(ClusterOptions):
    """The options of ``barnabas pipeline backfill``: the export, which of its records, and the target topic."""

    source: str = option(
        "The export: a directory of Parquet with the columns of `with_metadata`, or a Delta table on this machine.",
        flags=("--from", "--source"),
        metavar="PLACE",
    )
    topics: tuple[str, ...] = option(
        "A topic of the export; may be given several times. Default: all.",
        default=(),
        flags=("--topic", "--topics"),
        metavar="TOPIC",
    )
    to_topic: str | None = option(
        "The target topic, if the export has one topic. Default: the topics' own names.",
        default=None,
        metavar="TOPIC",
    )

    starting_timestamp: str | None = option(
        "Leave out records before this time: ISO 8601 (UTC without a zone), or ms since 1970.",
        default=None,
        metavar="TIME",
    )
    ending_timestamp: str | None = option("Leave out records at and after this time.", default=None, metavar="TIME")
    starting_offsets: str | None = option(
        'Leave out records before these offsets: `{"orders": {"0": 17}}`; other partitions are not limited.',
        default=None,
        metavar="JSON",
    )
    ending_offsets: str | None = option("Leave out records at and after these offsets.", default=None, metavar="JSON")
    metadata_prefix: str = option("The `metadata_prefix` of the export.", default="", metavar="TEXT")
    partial: bool = option(
        "Begin even if the export still holds back records, which are not written then.",
        default=False,
    )

    topic_config: Mapping[str, str] = option(
        "A config of new topics. `retention.ms` is -1 by default, as records keep their timestamps.",
        default_factory=dict,
        flags=("--topic-config",),
    )
    replication_factor: int = option("The replication factor of new topics; -1 is the brokers' default.", default=-1)
    ignore_retention: bool = option(
        "Write to a topic even if its retention.ms deletes the written records.", default=False
    )
    batch_records: int = option(
        "The approximate maximum number of records of a batch. A stop waits for the end of a batch.",
        default=1_000_000,
        least=1,
    )

    def __post_init__(self) -> None:
        """:raises ValueError: an option is wrong; the message names it."""
        check(self)
        for name in ("starting_timestamp", "ending_timestamp"):
            parse_time(name, getattr(self, name))
        for name in ("starting_offsets", "ending_offsets"):
            parse_offsets(name, getattr(self, name))

    def times(self) -> tuple[int | None, int | None]:
        """Returns the starting and the ending timestamp in ms, or None if not given."""
        return (
            parse_time("starting_timestamp", self.starting_timestamp),
            parse_time("ending_timestamp", self.ending_timestamp),
        )

    def offsets(self) -> tuple[Offsets, Offsets]:
        """Returns the starting and the ending offsets."""
        return (
            parse_offsets("starting_offsets", self.starting_offsets),
            parse_offsets("ending_offsets", self.ending_offsets),
        )

    def client_settings(self) -> ClientSettings:
        """Returns the client's settings.

        :raises ValueError: a setting is wrong; the message names it.
        """
        return ClientSettings.parse({**self._settings(of_producer=False), "bootstrap.servers": self.bootstrap_servers})

    def write_settings(self) -> "WriteSettings":
        """Returns the producer's settings.

        :raises ValueError: a setting is wrong; the message names it.
        """
        from barnabas.pipelines.client.write_settings import WriteSettings

        return WriteSettings.parse(self._settings(of_producer=True))

    def _settings(self, *, of_producer: bool) -> dict[str, str]:
        from barnabas.pipelines.client.write_settings import PRODUCER_SETTINGS

        return {name: value for name, value in self.client.items() if (name in PRODUCER_SETTINGS) == of_producer}

    def what(self) -> dict[str, object]:
        """Returns the options that must be the same in all runs of one backfill: the records, and their target."""
        kept = ("client", "topic_config", "replication_factor", "ignore_retention", "batch_records", "partial")
        named = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name not in kept}
        return dict(json.loads(json.dumps(named)))

    def checkpoint_beside(self) -> str:
        """Returns the default checkpoint: a directory in the export, with a name derived from these options."""
        wanted = json.dumps(self.what(), sort_keys=True).encode()
        return f"{self.source.rstrip('/')}/{HOME}/backfills/{hashlib.sha256(wanted).hexdigest()[:16]}"


def parse_time(name: str, text: str | None) -> int | None:
    """Parses a timestamp; returns ms since the epoch, or None for None.

    :raises ValueError: the text is not a timestamp; the message names the option.
    """
    if text is None or text.lstrip("-").isdecimal():
        return None if text is None else int(text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{name} is {text!r}, but must be as 2026-11-21T15:00:00, or ms since 1970") from None
    whole = found if found.tzinfo else found.replace(tzinfo=UTC)
    return round(whole.timestamp() * 1000)


def parse_offsets(name: str, text: str | None) -> Offsets:
    """Parses offsets in JSON.

    :raises ValueError: the text is not such JSON; the message names the option.
    """
    if text is None:
        return {}
    try:
        return {
            topic: {int(partition): int(offset) for partition, offset in found.items()}
            for topic, found in json.loads(text).items()
        }
    except (ValueError, AttributeError, TypeError):
        raise ValueError(f'{name} is {text!r}, but must be as {{"orders": {{"0": 17}}}}') from None
