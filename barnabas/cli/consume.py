"""``barnabas consume``: what kafka-console-consumer does, by its options.

Knows nothing of the broker but what a consumer tells.
"""

import base64
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

import click

from barnabas.cli.client import Cluster, client_settings, cluster_options, pairs
from barnabas.cli.output import json_option

FOREVER = float("inf")


@click.command()
@click.option("--topic", help="The topic to read.")
@click.option("--include", "--whitelist", "include", metavar="REGEX", help="All topics whose name matches.")
@click.option("--partition", type=click.IntRange(0), help="One partition of the topic, without a group.")
@click.option("--offset", help="Where to start in that partition: a number, -n from the end, earliest or latest.")
@click.option("--from-beginning", is_flag=True, help="Start with the oldest records, where the group has no offset.")
@click.option("--group", help="The group to read with; without it, nothing is committed.")
@click.option("--max-messages", type=click.IntRange(1), help="End after so many records.")
@click.option("--timeout-ms", type=click.IntRange(0), help="End when no record came for so long.")
@click.option("--property", "--formatter-property", "properties", multiple=True, metavar="KEY=VALUE",
              help="What is printed: print.key, print.value, print.timestamp, print.offset, print.partition, "
              "print.headers; key.separator, line.separator, headers.separator, null.literal.")  # fmt: skip
@click.option("--consumer-property", "--command-property", "consumer_properties", multiple=True, metavar="KEY=VALUE",
              help="A property of the consumer.")  # fmt: skip
@click.option(
    "--isolation-level",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    default="read_uncommitted",
    show_default=True,
    help="Whether records of open and aborted transactions are left out.",
)
@json_option
@cluster_options
def consume(cluster: Cluster, topic: str | None, include: str | None, partition: int | None, offset: str | None,
            from_beginning: bool, group: str | None, max_messages: int | None, timeout_ms: int | None,
            properties: tuple[str, ...], consumer_properties: tuple[str, ...], isolation_level: str,
            as_json: bool) -> None:  # fmt: skip
    """Print each record's value, on a line of its own.

    With --json, print each record as a line of JSON; bytes that are no text are in base64, under another name.

    \b
    barnabas consume --topic orders --from-beginning --property print.key=true
    """
    if (topic is None) == (include is None):
        raise click.UsageError("One of --topic and --include must be given")
    if partition is not None and (include is not None or group is not None):
        raise click.UsageError("--partition goes with --topic and without --group")
    if offset is not None and partition is None:
        raise click.UsageError("--offset needs --partition")
    write = as_line_of_json if as_json else formatter(pairs(properties, "--property"))
    from kafka import KafkaConsumer

    own: dict[str, Any] = {
        "auto_offset_reset": "earliest" if from_beginning else "latest",
        "group_id": group,
        "enable_auto_commit": group is not None,
        "isolation_level": isolation_level,
        "consumer_timeout_ms": FOREVER if timeout_ms is None else timeout_ms,
        **client_settings(pairs(consumer_properties, "--consumer-property"), KafkaConsumer.DEFAULT_CONFIG),
    }
    consumer = KafkaConsumer(**cluster.settings(KafkaConsumer.DEFAULT_CONFIG, **own))
    count = 0
    try:
        cluster.check_advertised()
        if partition is not None and topic is not None:
            _seek(consumer, topic, partition, offset, from_beginning=from_beginning)
        elif include is not None:
            consumer.subscribe(pattern=include)
        else:
            consumer.subscribe([topic])
        for record in consumer:
            sys.stdout.buffer.write(write(record))
            sys.stdout.buffer.flush()
            count += 1
            if count == max_messages:
                break
    finally:
        consumer.close()
    click.echo(f"Processed a total of {count} messages", err=True)


def _seek(consumer: Any, topic: str, partition: int, offset: str | None, *, from_beginning: bool) -> None:
    from kafka import TopicPartition

    there = TopicPartition(topic, partition)
    consumer.assign([there])
    if offset == "earliest" or (offset is None and from_beginning):
        consumer.seek_to_beginning(there)
    elif offset in ("latest", None):
        consumer.seek_to_end(there)
    else:
        try:
            number = int(str(offset))
        except ValueError:
            rule = "a number, earliest or latest"
            raise click.UsageError(f"--offset is {offset!r}, but must be {rule}") from None
        if number < 0:
            number = max(consumer.end_offsets([there])[there] + number, 0)
        consumer.seek(there, number)


def as_line_of_json(record: Any) -> bytes:
    """The record as JSON. Bytes that are no UTF-8 are told as ``key_base64``, ``value_base64``."""
    told: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "headers": [_told("value", value) | {"name": name} for name, value in record.headers],
    }
    return json.dumps(told | _told("key", record.key) | _told("value", record.value)).encode() + b"\n"


def _told(name: str, data: bytes | None) -> dict[str, str | None]:
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}


def formatter(properties: Mapping[str, str]) -> Callable[[Any], bytes]:
    """How a record is printed, by the properties of Kafka's ``DefaultMessageFormatter`` and in its order."""

    def wanted(name: str) -> bool:
        return properties.get(f"print.{name}", "true" if name == "value" else "false").lower() == "true"

    between = _literal(properties.get("key.separator", "\t"))
    end = _literal(properties.get("line.separator", "\n"))
    between_headers = _literal(properties.get("headers.separator", ","))
    null = properties.get("null.literal", "null").encode()

    def headers(record: Any) -> bytes:
        parts = [name.encode() + b":" + (null if value is None else value) for name, value in record.headers]
        return between_headers.join(parts) or b"NO_HEADERS"

    def timestamp(record: Any) -> bytes:
        kind = {0: b"CreateTime", 1: b"LogAppendTime"}.get(record.timestamp_type, b"NO_TIMESTAMP")
        return kind + b":" + str(record.timestamp).encode()

    parts: list[Callable[[Any], bytes]] = []
    if wanted("timestamp"):
        parts.append(timestamp)
    if wanted("partition"):
        parts.append(lambda record: b"Partition:" + str(record.partition).encode())
    if wanted("offset"):
        parts.append(lambda record: b"Offset:" + str(record.offset).encode())
    if wanted("headers"):
        parts.append(headers)
    if wanted("key"):
        parts.append(lambda record: null if record.key is None else record.key)
    if wanted("value"):
        parts.append(lambda record: null if record.value is None else record.value)
    return lambda record: between.join(part(record) for part in parts) + end


def _literal(text: str) -> bytes:
    return text.replace("\\t", "\t").replace("\\n", "\n").encode()
