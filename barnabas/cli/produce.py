"""``barnabas produce``, with the options of kafka-console-producer.

Knows nothing of the broker's internals; it uses a producer like any other client.
"""

import itertools
import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import click

from barnabas.cli.client import Cluster, cluster_options, pairs
from barnabas.cli.output import json_option


class Line(NamedTuple):
    """The record in a line of input."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]


@click.command()
@click.option("--topic", required=True, help="The topic to write to.")
@click.option("--property", "--reader-property", "properties", multiple=True, metavar="KEY=VALUE",
              help="How lines are read: parse.key, key.separator, parse.headers, headers.delimiter, headers.separator, "
              "headers.key.separator, null.marker, ignore.error.")  # fmt: skip
@click.option("--producer-property", "--command-property", "producer_properties", multiple=True, metavar="KEY=VALUE",
              help="A property of the producer, such as acks=1.")  # fmt: skip
@click.option("--compression-codec", help="none, gzip, snappy, lz4 or zstd.")
@click.option("--request-required-acks", "--acks", "acks", type=click.Choice(["0", "1", "-1", "all"]), default="all",
              show_default=True, help="The acknowledgements to wait for.")  # fmt: skip
@click.option("--sync", is_flag=True, help="Wait for the acknowledgement of each record before sending the next.")
@json_option
@cluster_options
def produce(cluster: Cluster, topic: str, properties: tuple[str, ...], producer_properties: tuple[str, ...],
            compression_codec: str | None, acks: str, sync: bool, as_json: bool) -> None:  # fmt: skip
    """Write each line of standard input as a record.

    With --json, print a line of JSON for each acknowledged record.

    \b
    echo '42:{"total": 3}' | barnabas produce --topic orders --property parse.key=true --property key.separator=:
    """
    read = reader(pairs(properties, "--property"))
    from kafka import KafkaProducer

    own: dict[str, Any] = {
        "acks": acks if acks == "all" else int(acks),
        "compression_type": compression_codec if compression_codec not in (None, "none") else None,
    }
    settings = cluster.settings(KafkaProducer.DEFAULT_CONFIG, pairs(producer_properties, "--producer-property"), **own)
    cluster.check_advertised()
    producer = KafkaProducer(**settings)
    sent = []
    try:
        for line in sys.stdin.buffer:
            record = read(line.rstrip(b"\r\n"))
            future = producer.send(topic, key=record.key, value=record.value, headers=record.headers)
            sent.append(future)
            if sync:
                future.get()
        producer.flush()
        for future in sent:
            metadata = future.get()
            if as_json:
                click.echo(json.dumps({"topic": topic, "partition": metadata.partition, "offset": metadata.offset}))
    finally:
        producer.close()


def reader(properties: Mapping[str, str]) -> Callable[[bytes], Line]:
    """Returns a function that parses a line by the properties of Kafka's ``LineMessageReader``.

    The function raises :class:`click.ClickException` for a line without an expected separator.
    """
    with_key = properties.get("parse.key", "").lower() == "true"
    with_headers = properties.get("parse.headers", "").lower() == "true"
    lenient = properties.get("ignore.error", "").lower() == "true"
    null = properties.get("null.marker", "").encode()
    between_key_and_value = _separator(properties, "key.separator", "\t")
    after_headers = _separator(properties, "headers.delimiter", "\t")
    between_headers = _separator(properties, "headers.separator", ",")
    within_header = _separator(properties, "headers.key.separator", ":")

    numbers = itertools.count(1)

    def part(line: bytes, separator: bytes, name: str, number: int) -> tuple[bytes | None, bytes]:
        first, found, rest = line.partition(separator)
        if found:
            return first, rest
        if lenient:
            return None, line
        text = line.decode(errors="replace")
        raise click.ClickException(f"No {name} separator found on line number {number}: '{text}'")

    def read(line: bytes) -> Line:
        number = next(numbers)
        headers: list[tuple[str, bytes]] = []
        key: bytes | None = None
        if with_headers:
            text, line = part(line, after_headers, "headers", number)
            for header in filter(None, (text or b"").split(between_headers)):
                name, _, value = header.partition(within_header)
                headers.append((name.decode(), value))
        if with_key:
            key, line = part(line, between_key_and_value, "key", number)
        if null:
            key = None if key == null else key
            return Line(key, None if line == null else line, headers)
        return Line(key, line, headers)

    return read


def _separator(properties: Mapping[str, str], name: str, default: str) -> bytes:
    return properties.get(name, default).encode().replace(rb"\t", b"\t") or default.encode()
