"""``barnabas copy``: copies the last records of topics from a cluster into a file or into another broker, for tests.

Knows nothing of brokers' internals; it uses a consumer and a producer like any other client.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import click

from barnabas.cli.client import Cluster, bootstrap_option_named, cluster_options
from barnabas.cli.consume import as_line_of_json

POLL_MS = 200

from_option = bootstrap_option_named("--from", "--bootstrap-server", "bootstrap_server")


def _from_cluster(command: Callable[..., Any]) -> Callable[..., Any]:
    return cluster_options(command, bootstrap=from_option)


@click.command()
@click.option("--topics", required=True, metavar="TOPIC[,...]", help="The topics to copy.")
@click.option(
    "--last", type=click.IntRange(1), help="The number of records of each partition, the newest ones. Default: all."
)
@click.option("--to", metavar="HOST:PORT", help="The broker to copy to. Topics that are missing are created.")
@click.option("--output", metavar="FILE", help="The file to write, a JSON object a line; else standard output.")
@_from_cluster
def copy(cluster: Cluster, topics: str, last: int | None, to: str | None, output: str | None) -> None:
    """Copy the last records of topics into a broker for tests, or into a file.

    Keys, values, headers, timestamps and partitions are kept, offsets are not. Broker.seed() of barnabas.testing and
    the admin API read the file.

    \b
    barnabas copy --from real:9092 --topics orders --last 1000 --output orders.jsonl
    barnabas copy --from real:9092 --topics orders,invoices --last 1000 --to localhost:9092
    """
    if to is not None and output is not None:
        raise click.UsageError("One of --to and --output may be given")
    from kafka import KafkaConsumer

    names = [each.strip() for each in topics.split(",") if each.strip()]
    settings = cluster.settings(
        KafkaConsumer.DEFAULT_CONFIG, group_id=None, enable_auto_commit=False, isolation_level="read_committed"
    )
    cluster.check_advertised()
    with closing(KafkaConsumer(**settings)) as consumer:
        partitions = {name: consumer.partitions_for_topic(name) for name in names}
        if missing := [name for name, found in partitions.items() if not found]:
            raise click.ClickException(f"There is no topic {', '.join(missing)} at {cluster.bootstrap_server}")
        found = _last_records(consumer, partitions, last)
        count = _write(found, output) if to is None else _send(found, Cluster(to, {}), partitions)
    click.echo(f"Copied {count} records", err=True)


def _last_records(consumer: Any, partitions: Mapping[str, set[int]], last: int | None) -> Iterator[Any]:
    """Yields the last records of each partition, up to its current end offset."""
    from kafka import TopicPartition

    places = [TopicPartition(name, index) for name, found in partitions.items() for index in sorted(found)]
    begins, ends = consumer.beginning_offsets(places), consumer.end_offsets(places)
    for place in places:
        first = begins[place] if last is None else max(begins[place], ends[place] - last)
        consumer.assign([place])
        consumer.seek(place, first)
        while consumer.position(place) < ends[place]:
            for record in consumer.poll(POLL_MS).get(place, ()):
                if record.offset < ends[place]:
                    yield record


def _write(records: Iterator[Any], output: str | None) -> int:
    count = 0
    with nullcontext(sys.stdout.buffer) if output is None else Path(output).open("wb") as file:
        for record in records:
            file.write(as_line_of_json(record))
            count += 1
    return count


def _send(records: Iterator[Any], target: Cluster, partitions: Mapping[str, set[int]]) -> int:
    from kafka import KafkaProducer

    with target.admin() as admin:
        there = set(admin.list_topics())
        new = {name: {"num_partitions": len(found), "replication_factor": -1} for name, found in partitions.items()}
        if wanted := {name: each for name, each in new.items() if name not in there}:
            admin.create_topics(wanted)
            admin.wait_for_topics(list(wanted))
    producer, sent = KafkaProducer(**target.settings(KafkaProducer.DEFAULT_CONFIG, acks="all", linger_ms=5)), []
    try:
        for record in records:
            sent.append(
                producer.send(
                    record.topic,
                    key=record.key,
                    value=record.value,
                    headers=list(record.headers),
                    partition=record.partition,
                    timestamp_ms=record.timestamp,
                )
            )
        producer.flush()
        for future in sent:
            future.get()
    finally:
        producer.close()
    return len(sent)
