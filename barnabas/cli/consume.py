"""``barnabas consume``, with the options of kafka-console-consumer.

Knows nothing of the broker's internals; it uses a consumer like any other client.
"""

import base64
import json
import logging
import struct
import sys
from collections.abc import Callable, Mapping
from typing import Any

import click

from barnabas.cli.client import Cluster, cluster_options, pairs
from barnabas.cli.output import json_option

FOREVER = float("inf")
logger = logging.getLogger(__name__)


class Undecodable(Exception):
    """The deserializer cannot read the bytes."""


@click.command()
@click.option("--topic", help="The topic to read.")
@click.option("--include", "--whitelist", "include", metavar="REGEX", help="Read all topics whose name matches.")
@click.option("--partition", type=click.IntRange(0), help="Read one partition of the topic, without a group.")
@click.option(
    "--offset", help="The offset to start at in that partition: a number, -n from the end, earliest or latest."
)
@click.option(
    "--from-beginning", is_flag=True, help="Start at the earliest offset if the group has no committed offset."
)
@click.option("--group", help="The consumer group; without it, no offsets are committed.")
@click.option("--max-messages", type=click.IntRange(0), help="Stop after this many records.")
@click.option("--timeout-ms", type=click.IntRange(0), help="Stop if no record arrives for this long.")
@click.option("--property", "--formatter-property", "properties", multiple=True, metavar="KEY=VALUE",
              help="What is printed: print.key, print.value, print.timestamp, print.offset, print.partition, "
              "print.headers, print.epoch; key.separator, line.separator, headers.separator, null.literal; "
              "key.deserializer and value.deserializer, by the names of Kafka's classes.")  # fmt: skip
@click.option("--consumer-property", "--command-property", "consumer_properties", multiple=True, metavar="KEY=VALUE",
              help="A property of the consumer.")  # fmt: skip
@click.option(
    "--isolation-level",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    default="read_uncommitted",
    show_default=True,
    help="read_committed leaves out records of open and aborted transactions.",
)
@click.option("--skip-message-on-error", is_flag=True, help="Skip records that cannot be deserialized.")
@json_option
@cluster_options
def consume(cluster: Cluster, topic: str | None, include: str | None, partition: int | None, offset: str | None,
            from_beginning: bool, group: str | None, max_messages: int | None, timeout_ms: int | None,
            properties: tuple[str, ...], consumer_properties: tuple[str, ...], isolation_level: str,
            skip_message_on_error: bool, as_json: bool) -> None:  # fmt: skip
    """Print the value of each record, one per line.

    With --json, print each record as a line of JSON. Keys and values that are not UTF-8 are printed in base64, as
    key_base64 and value_base64.

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
    }
    settings = cluster.settings(KafkaConsumer.DEFAULT_CONFIG, pairs(consumer_properties, "--consumer-property"), **own)
    cluster.check_advertised()
    consumer = KafkaConsumer(**settings)
    count = 0
    try:
        if partition is not None and topic is not None:
            _seek(consumer, topic, partition, offset, from_beginning=from_beginning)
        elif include is not None:
            consumer.subscribe(pattern=include)
        else:
            consumer.subscribe([topic])
        for record in () if max_messages == 0 else consumer:
            try:
                line = write(record)
            except Undecodable as error:
                if not skip_message_on_error:
                    raise click.ClickException(str(error)) from None
                logger.error("Error processing message, skipping this message: %s", error)
                continue
            sys.stdout.buffer.write(line)
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
    """Returns the record as JSON. Keys and values that are not UTF-8 become ``key_base64`` and ``value_base64``."""
    fields: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "headers": [_as_json("value", value) | {"name": name} for name, value in record.headers],
    }
    return json.dumps(fields | _as_json("key", record.key) | _as_json("value", record.value)).encode() + b"\n"


def _as_json(name: str, data: bytes | None) -> dict[str, str | None]:
    if data is None:
        return {name: None}
    try:
        return {name: data.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}


def formatter(properties: Mapping[str, str]) -> Callable[[Any], bytes]:
    """Returns a function that formats a record by the properties of Kafka's ``DefaultMessageFormatter``."""

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
    if wanted("epoch"):
        parts.append(lambda record: b"Epoch:" + str(record.leader_epoch).encode())
    if wanted("headers"):
        parts.append(headers)
    key, value = (_reader(properties.get(f"{part}.deserializer", "")) for part in ("key", "value"))
    if wanted("key"):
        parts.append(lambda record: null if record.key is None else key(record.key))
    if wanted("value"):
        parts.append(lambda record: null if record.value is None else value(record.value))
    return lambda record: between.join(part(record) for part in parts) + end


def _reader(name: str) -> Callable[[bytes], bytes]:
    """Returns the function that converts bytes to text, by the class of a deserializer of Kafka's; without a class,
    bytes are unchanged.

    :raises click.UsageError: there is no such class
    """
    short = name.removeprefix("org.apache.kafka.common.serialization.").removesuffix("Deserializer")
    if short in ("", "String", "ByteArray", "Bytes", "ByteBuffer"):
        return bytes
    if short not in _LAYOUTS:
        known = ", ".join(sorted(_LAYOUTS))
        raise click.UsageError(f"{name} is not one of Kafka's own deserializers: String, ByteArray, {known}")
    layout = _LAYOUTS[short]

    def read(data: bytes) -> bytes:
        if short == "UUID":
            return data
        if len(data) != layout.size:
            raise Undecodable(f"Size of data received by {short}Deserializer is not {layout.size}")
        (value,) = layout.unpack(data)
        return str(value).lower().encode() if short == "Boolean" else repr(value).encode()

    return read


_LAYOUTS = {
    "Boolean": struct.Struct(">?"),
    "Short": struct.Struct(">h"),
    "Integer": struct.Struct(">i"),
    "Long": struct.Struct(">q"),
    "Float": struct.Struct(">f"),
    "Double": struct.Struct(">d"),
    "UUID": struct.Struct(">36s"),
}
"""The layouts of Kafka's deserializers of numbers; a UUID is its text."""


def _literal(text: str) -> bytes:
    return text.replace("\\t", "\t").replace("\\n", "\n").encode()
