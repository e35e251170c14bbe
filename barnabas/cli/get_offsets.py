"""``barnabas get-offsets``, with the options and the output of kafka-get-offsets.

Knows nothing of the broker's internals; it uses an admin client. KIP-635, KIP-815.
"""

import re
from collections.abc import Callable
from typing import Any

import click

from barnabas.cli.client import Cluster, cluster_options
from barnabas.cli.output import json_option, show_json
from barnabas.cluster.topic_names import INTERNAL

#: What ``--time`` may be instead of a timestamp.
SPECS = {
    "latest": -1, "earliest": -2, "max-timestamp": -3, "earliest-local": -4, "latest-tiered": -5,
    "earliest-pending-upload": -6,
}  # fmt: skip
MALFORMED = (
    "Malformed time argument {}. Please use -1 or latest / -2 or earliest / -3 or max-timestamp / -4 or earliest-local "
    "/ -5 or latest-tiered / -6 or earliest-pending-upload, or a specified long format timestamp"
)
NO_MATCH = "Could not match any topic-partitions with the specified filters"

Filter = Callable[[str, int], bool]


@click.command("get-offsets")
@click.option("--topic", help="A regular expression for the names of topics; all topics without it.")
@click.option("--partitions", help="Only these partitions: 0,2,5.")
@click.option("--topic-partitions", help="Topics with partitions, by regular expression: orders:0,bills:1-3,.*:5-.")
@click.option("--time", "at", default="latest", show_default=True, help="latest, earliest, ..., or a timestamp in ms.")
@click.option("--exclude-internal-topics", "no_internal", is_flag=True, help="Leave out internal topics.")
@json_option
@cluster_options
def get_offsets(
    cluster: Cluster, topic: str | None, partitions: str | None, topic_partitions: str | None, at: str,
    no_internal: bool, as_json: bool,
) -> None:  # fmt: skip
    """Show the offsets of partitions: topic:partition:offset.

    \b
    barnabas get-offsets --topic orders
    barnabas get-offsets --topic 'orders|bills' --time earliest
    """
    from kafka import TopicPartition

    spec = spec_of(at)
    if topic_partitions is not None and (topic is not None or partitions is not None):
        raise click.UsageError("--topic-partitions cannot be used with --topic or --partitions")
    matches = filter_of_list(topic_partitions) if topic_partitions is not None else filter_of(topic, partitions)
    with cluster.admin() as admin:
        names = [name for name in admin.list_topics() if not (no_internal and name in INTERNAL)]
        wanted = [
            TopicPartition(each["name"], partition["partition_index"])
            for each in (admin.describe_topics(sorted(names)) if names else ())
            for partition in each["partitions"]
            if matches(each["name"], partition["partition_index"])
        ]
        if not wanted:
            raise click.ClickException(NO_MATCH)
        found: Any = admin.list_partition_offsets(dict.fromkeys(sorted(wanted), spec))
    rows = [(each.topic, each.partition, found[each].offset) for each in sorted(wanted) if found[each].offset >= 0]
    if as_json:
        show_json([{"topic": name, "partition": index, "offset": offset} for name, index, offset in rows])
        return
    for row in rows:
        click.echo(":".join(map(str, row)))


def spec_of(text: str) -> int:
    """Returns the timestamp that asks for these offsets.

    :raises click.UsageError: the text is neither a name nor a number
    """
    if text in SPECS:
        return SPECS[text]
    if not re.fullmatch(r"-?\d+", text):
        raise click.UsageError(MALFORMED.format(text))
    return int(text)


def filter_of(topic: str | None, partitions: str | None) -> Filter:
    """Returns the filter of ``--topic`` and ``--partitions``."""
    matches = _matcher(topic if topic is not None else ".*")
    try:
        indexes = None if partitions is None else {int(each) for each in partitions.split(",")}
    except ValueError:
        what = "--partitions expects a comma separated list of numeric partition ids, but received"
        raise click.UsageError(f"{what}: {partitions}") from None
    return lambda name, index: matches(name) is not None and (indexes is None or index in indexes)


def filter_of_list(text: str) -> Filter:
    """Returns the filter of ``--topic-partitions``: each item is a topic, a range after a colon, or both."""
    filters = []
    for item in text.split(","):
        topic, _, partitions = item.rpartition(":") if ":" in item else (item, "", "")
        filters.append((filter_of(topic or None, None), _range(partitions or "-")))
    return lambda name, index: any(of_topic(name, index) and index in indexes for of_topic, indexes in filters)


def _matcher(pattern: str) -> Callable[[str], object]:
    try:
        return re.compile(pattern.replace(",", "|")).fullmatch
    except re.error as error:
        raise click.UsageError(f"--topic is {pattern!r}, which is no regular expression: {error}") from None


def _range(text: str) -> range:
    """Returns the partitions of ``3``, ``3-5`` (without 5, as in Kafka), ``3-``, ``-5`` or ``-``."""
    found = re.fullmatch(r"(\d*)(-?)(\d*)", text.strip())
    if not found:
        raise click.UsageError(f"Invalid partition range: {text}")
    first, dash, last = found.groups()
    if not dash:
        return range(int(first), int(first) + 1)
    return range(int(first or 0), int(last) if last else 1 << 31)
