"""``barnabas delete-records``, with the options and the output of kafka-delete-records.

Knows nothing of the broker's internals; it uses an admin client. KIP-107.
"""

from collections import Counter
from typing import Any

import click

from barnabas.cli.client import Cluster, cluster_options
from barnabas.cli.java_errors import java_text
from barnabas.cli.output import json_option, show_json
from barnabas.cli.reassignments import Partition, name_of, read_json
from barnabas.cli.requests import send_to_broker
from barnabas.errors import UnknownTopicOrPartition
from barnabas.wire.messages.delete_records import DeleteRecordsRequest

TIMEOUT_MS = 30_000


@click.command("delete-records")
@click.option(
    "--offset-json-file", "file", metavar="FILE", required=True,
    help='{"partitions": [{"topic": "t", "partition": 0, "offset": 9}], "version": 1}; -1 is the high watermark.',
)  # fmt: skip
@json_option
@cluster_options
def delete_records(cluster: Cluster, file: str, as_json: bool) -> None:
    """Delete the records of partitions before an offset.

    \b
    barnabas delete-records --offset-json-file offsets.json
    """
    wanted = offsets_of(file)
    if not as_json:
        click.echo("Executing records delete operation")
    with cluster.admin() as admin:
        results = sorted(delete(admin, wanted).items())
    if as_json:
        show_json(
            [
                {"topic": topic, "partition": index, "low_watermark": low, "error": error}
                for (topic, index), (low, error) in results
            ]
        )
        return
    click.echo("Records delete operation completed:")
    for partition, (low, error) in results:
        click.echo(f"partition: {name_of(partition)}\t{f'error: {error}' if error else f'low_watermark: {low}'}")


def offsets_of(file: str) -> dict[Partition, int]:
    """Reads a file of ``--offset-json-file``.

    :raises click.ClickException: it has a partition twice, or without an offset
    """
    try:
        found = [
            ((str(each["topic"]), int(each["partition"])), int(each["offset"]))
            for each in read_json(file, "partitions")
        ]
    except (KeyError, TypeError, ValueError):
        raise click.ClickException(f"{file} has a partition without topic, partition or offset") from None
    twice = [partition for partition, count in Counter(partition for partition, _ in found).items() if count > 1]
    if twice:
        raise click.ClickException(
            f"Offset json file contains duplicate topic partitions: {','.join(map(name_of, sorted(twice)))}"
        )
    return dict(found)


def delete(admin: Any, wanted: dict[Partition, int]) -> dict[Partition, tuple[int, str | None]]:
    """Returns the low watermark of each partition, or the error as Java's tool prints it."""
    leaders = {
        (topic["name"], each["partition_index"]): each["leader_id"]
        for topic in admin.describe_topics(sorted({topic for topic, _ in wanted}))
        for each in topic["partitions"]
    }
    found: dict[Partition, tuple[int, str | None]] = {}
    for leader in sorted({leaders.get(partition, -1) for partition in wanted}):
        here = {partition: offset for partition, offset in wanted.items() if leaders.get(partition, -1) == leader}
        if leader < 0:
            found |= dict.fromkeys(here, (-1, java_text(UnknownTopicOrPartition.code)))
        else:
            found |= _delete_on(admin, leader, here)
    return found


def _delete_on(admin: Any, leader: int, wanted: dict[Partition, int]) -> dict[Partition, tuple[int, str | None]]:
    Topic = DeleteRecordsRequest.DeleteRecordsTopic
    topics: dict[str, Any] = {}
    for (name, index), offset in wanted.items():
        topic = topics.setdefault(name, Topic(name=name, partitions=[]))
        topic.partitions.append(Topic.DeleteRecordsPartition(partition_index=index, offset=offset))
    request = DeleteRecordsRequest(topics=list(topics.values()), timeout_ms=TIMEOUT_MS)
    return {
        (topic.name, each.partition_index): (
            each.low_watermark,
            java_text(each.error_code) if each.error_code else None,
        )
        for topic in send_to_broker(admin, leader, request).topics
        for each in topic.partitions
    }
