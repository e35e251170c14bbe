"""``barnabas leader-election``, with the options and the output of kafka-leader-election.

Knows nothing of the broker's internals; it uses an admin client. KIP-183, KIP-460.
"""

from collections import Counter
from typing import Any

import click

from barnabas.cli.client import Cluster, check_code, cluster_options
from barnabas.cli.java_errors import java_text
from barnabas.cli.reassignments import Partition, name_of, read_json
from barnabas.cli.requests import send_to_any
from barnabas.errors import ElectionNotNeeded
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest

TYPES = {"preferred": 0, "unclean": 1}


@click.command()
@click.option(
    "--election-type", type=click.Choice(sorted(TYPES), case_sensitive=False), required=True,
    help="preferred: the first replica. unclean: any live replica, even if records are lost.",
)  # fmt: skip
@click.option("--topic", help="The topic of one partition.")
@click.option("--partition", type=click.IntRange(0), help="The partition of --topic.")
@click.option("--all-topic-partitions", "everything", is_flag=True, help="All partitions that need an election.")
@click.option("--path-to-json-file", "file", metavar="FILE", help='{"partitions": [{"topic": "t", "partition": 0}]}')
@cluster_options
def leader_election(
    cluster: Cluster, election_type: str, topic: str | None, partition: int | None, everything: bool, file: str | None
) -> None:
    """Elect leaders of partitions.

    \b
    barnabas leader-election --election-type preferred --all-topic-partitions
    barnabas leader-election --election-type unclean --topic orders --partition 3
    """
    if (topic is not None) + everything + (file is not None) != 1:
        raise click.UsageError(
            "One and only one of the following options is required: topic, all-topic-partitions, path-to-json-file"
        )
    if topic is not None and partition is None:
        raise click.UsageError("Missing required option(s): partition")
    if topic is None and partition is not None:
        raise click.UsageError("Option partition is only allowed if topic is used")
    if file is not None:
        chosen: list[Partition] | None = partitions_of(file)
    else:
        chosen = None if topic is None or partition is None else [(topic, partition)]
    with cluster.admin() as admin:
        results = elect(admin, chosen, TYPES[election_type.lower()])
    report(results, election_type.upper())


def partitions_of(file: str) -> list[Partition]:
    """Reads a file of ``--path-to-json-file``.

    :raises click.ClickException: it has a partition twice, or without a topic
    """
    try:
        found = [(str(each["topic"]), int(each["partition"])) for each in read_json(file, "partitions")]
    except (KeyError, TypeError, ValueError):
        raise click.ClickException(f"{file} has a partition without topic or partition") from None
    twice = [partition for partition, count in Counter(found).items() if count > 1]
    if twice:
        raise click.ClickException(
            f"Replica election data contains duplicate partitions: {','.join(map(name_of, sorted(twice)))}"
        )
    return found


def elect(admin: Any, partitions: list[Partition] | None, election_type: int) -> dict[Partition, tuple[int, str]]:
    """Returns error code and message for each partition; of all (None), only those that needed an election."""
    Topic = ElectLeadersRequest.TopicPartitions
    topics: dict[str, Any] = {}
    for name, index in partitions or ():
        topics.setdefault(name, Topic(topic=name, partitions=[])).partitions.append(index)
    request = ElectLeadersRequest(
        election_type=election_type, topic_partitions=None if partitions is None else list(topics.values())
    )
    response = send_to_any(admin, request)
    check_code(response.error_code)
    return {
        (topic.topic, each.partition_id): (each.error_code, java_text(each.error_code, each.error_message))
        for topic in response.replica_election_results
        for each in topic.partition_result
    }


def report(results: dict[Partition, tuple[int, str]], election_type: str) -> None:
    """Prints the results. :raises click.ClickException: a leader could not be elected"""
    done, there, failed = [], [], {}
    for partition, (code, message) in sorted(results.items()):
        if code == 0:
            done.append(name_of(partition))
        elif code == ElectionNotNeeded.code:
            there.append(name_of(partition))
        else:
            failed[name_of(partition)] = message
    if done:
        click.echo(f"Successfully completed leader election ({election_type}) for partitions {', '.join(done)}")
    if there:
        click.echo(f"Valid replica already elected for partitions {', '.join(there)}")
    for name, message in failed.items():
        click.echo(f"Error completing leader election ({election_type}) for partition: {name}: {message}")
    if failed:
        raise click.ClickException(f"{len(failed)} replica(s) could not be elected")
