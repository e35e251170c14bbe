"""``barnabas transactions``, with the commands and options of kafka-transactions.

Knows nothing of the broker's internals; it uses an admin client.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import click

from barnabas.cli.client import Cluster, bootstrap_option, cluster_options, config_option
from barnabas.cli.hanging import describe_transaction, find_hanging, transaction_at
from barnabas.cli.output import json_option, show_json, show_table
from barnabas.cli.verbs import Verbs, pass_options_on
from barnabas.clock import SystemClock

STATES = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
    "PrepareEpochFence",
)  # fmt: skip
LIST_COLUMNS = ("transactional_id", "coordinator_id", "producer_id", "transaction_state")
DESCRIBE_COLUMNS = (
    "coordinator_id", "transactional_id", "producer_id", "producer_epoch", "transaction_state",
    "transaction_timeout_ms", "transaction_start_time_ms", "transaction_duration_ms", "topic_partitions",
)  # fmt: skip
PRODUCER_COLUMNS = (
    "producer_id", "producer_epoch", "latest_coordinator_epoch", "last_sequence", "last_timestamp",
    "current_transaction_start_offset",
)  # fmt: skip
HANGING_COLUMNS = (
    "topic", "partition", "producer_id", "producer_epoch", "coordinator_epoch", "start_offset", "last_timestamp",
    "duration_minutes",
)  # fmt: skip

FENCING_TIMEOUT_MS = 30_000
"""The transaction timeout of the producer that fences another one, as in kafka-transactions."""

_WHICH = (
    "--start-offset (for Kafka 3.0 and later), or --producer-id, --producer-epoch and --coordinator-epoch (for any), "
    "must be given"
)


class TransactionVerbs(Verbs):
    aliases: ClassVar = {"forceTerminateTransaction": "force-terminate"}  #: the name in kafka-transactions


@click.group(cls=TransactionVerbs)
@bootstrap_option
@config_option
@click.pass_context
def transactions(context: click.Context, /, **given: str | None) -> None:
    """List and describe transactions, and abort hanging ones.

    \b
    barnabas transactions find-hanging --topic orders
    barnabas transactions abort --topic orders --partition 0 --start-offset 4711
    """
    pass_options_on(context, given)


def verb(name: str) -> Callable[[Callable[..., None]], click.Command]:
    """Declares a subcommand, which has the options of the group, too."""

    def register(function: Callable[..., None]) -> click.Command:
        return transactions.command(name)(cluster_options(function))

    return register


@verb("list")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES, case_sensitive=False),
    help="Only ids in this state; may be repeated.",
)
@click.option(
    "--producer-id", "producer_ids", multiple=True, type=int, help="Only ids of this producer; may be repeated."
)
@click.option(
    "--duration-filter", type=int, help="Only ids whose transaction has been open for longer than this, in ms."
)
@click.option("--transactional-id-pattern", help="Only ids that this regular expression matches as a whole.")
@json_option
def list_transactions(
    cluster: Cluster,
    states: tuple[str, ...],
    producer_ids: tuple[int, ...],
    duration_filter: int | None,
    transactional_id_pattern: str | None,
    as_json: bool,
) -> None:
    """List transactional ids."""
    with cluster.admin() as admin:
        found = admin.list_transactions(
            state_filters=states,
            producer_id_filters=producer_ids,
            duration_filter_ms=duration_filter,
            transactional_id_pattern=transactional_id_pattern,
        )
    rows = [
        {
            "transactional_id": each.transactional_id,
            "coordinator_id": coordinator_id,
            "producer_id": each.producer_id,
            "transaction_state": each.state.value,
        }
        for coordinator_id, listed in found.items()
        for each in listed
    ]
    _show(sorted(rows, key=lambda row: str(row["transactional_id"])), LIST_COLUMNS, as_json, empty="No transactions")


@verb("describe")
@click.option("--transactional-id", "transactional_id", required=True, help="The transactional id.")
@json_option
def describe(cluster: Cluster, transactional_id: str, as_json: bool) -> None:
    """Describe a transactional id and its transaction."""
    with cluster.admin() as admin:
        found = describe_transaction(admin, transactional_id, clock=SystemClock())
    start = found.transaction_start_time_ms
    row = {
        "coordinator_id": found.coordinator_id,
        "transactional_id": transactional_id,
        "producer_id": found.producer_id,
        "producer_epoch": found.producer_epoch,
        "transaction_state": found.state.value,
        "transaction_timeout_ms": found.transaction_timeout_ms,
        "transaction_start_time_ms": start if start >= 0 else None,
        "transaction_duration_ms": SystemClock().time_ms() - start if start >= 0 else None,
        "topic_partitions": [f"{topic}-{partition}" for topic, partition in sorted(found.topic_partitions)],
    }
    _show([row], DESCRIBE_COLUMNS, as_json)


@verb("describe-producers")
@click.option("--topic", required=True, help="The topic.")
@click.option("--partition", required=True, type=click.IntRange(0), help="The partition.")
@click.option("--broker-id", type=int, help="Describe the producers of this replica instead of the leader's.")
@json_option
def describe_producers(cluster: Cluster, topic: str, partition: int, broker_id: int | None, as_json: bool) -> None:
    """Describe the producers of a partition.

    Shows the last sequence and timestamp of each, and the start offset of its open transaction.
    """
    from kafka import TopicPartition

    topic_partition = TopicPartition(topic, partition)
    with cluster.admin() as admin:
        found = admin.describe_producers([topic_partition], broker_id=broker_id)[topic_partition].active_producers
    rows = [
        {
            "producer_id": each.producer_id,
            "producer_epoch": each.producer_epoch,
            "latest_coordinator_epoch": each.coordinator_epoch,
            "last_sequence": each.last_sequence,
            "last_timestamp": each.last_timestamp,
            "current_transaction_start_offset": _offset(each.current_transaction_start_offset),
        }
        for each in found
    ]
    _show(rows, PRODUCER_COLUMNS, as_json, empty="No producers")


@verb("find-hanging")
@click.option("--broker-id", type=int, help="Search the replicas of this broker.")
@click.option("--topic", help="Search this topic only.")
@click.option("--partition", type=click.IntRange(0), help="Search this partition of the topic only.")
@click.option(
    "--max-transaction-timeout", "minutes", type=click.IntRange(0), default=15, show_default=True,
    help="Only transactions that have been open for longer than this, in minutes.",
)  # fmt: skip
@json_option
def find(
    cluster: Cluster, broker_id: int | None, topic: str | None, partition: int | None, minutes: int, as_json: bool
) -> None:
    """Find hanging transactions.

    They are open on a partition, but no coordinator will end them.
    """
    if topic is None and broker_id is None:
        raise click.UsageError("--topic or --broker-id must be given")
    if topic is None and partition is not None:
        raise click.UsageError("--partition needs --topic")
    with cluster.admin() as admin:
        found = find_hanging(admin, topic, partition, broker_id, longer_than_ms=minutes * 60_000, clock=SystemClock())
    rows = [each._asdict() for each in found]
    _show(rows, HANGING_COLUMNS, as_json, empty="No hanging transactions")


@verb("abort")
@click.option("--topic", required=True, help="The topic.")
@click.option("--partition", required=True, type=click.IntRange(0), help="The partition.")
@click.option("--start-offset", type=click.IntRange(0), help="The first offset of the transaction.")
@click.option("--producer-id", type=click.IntRange(0), help="The producer's id.")
@click.option("--producer-epoch", type=click.IntRange(0), help="The producer's epoch.")
@click.option("--coordinator-epoch", type=int, help="The coordinator epoch, as describe-producers shows it.")
def abort(
    cluster: Cluster,
    topic: str,
    partition: int,
    start_offset: int | None,
    producer_id: int | None,
    producer_epoch: int | None,
    coordinator_epoch: int | None,
) -> None:
    """Abort a hanging transaction on a partition."""
    from kafka import TopicPartition
    from kafka.admin import AbortTransactionSpec

    by_producer = producer_id, producer_epoch, coordinator_epoch
    if start_offset is None and None in by_producer:
        raise click.UsageError(_WHICH)
    topic_partition = TopicPartition(topic, partition)
    with cluster.admin() as admin:
        if start_offset is not None:
            producer_id, producer_epoch, coordinator_epoch = transaction_at(admin, topic_partition, start_offset)
        # Without a marker on the partition, use the lowest epoch: it cannot be newer than the coordinator's.
        epoch = max(0, coordinator_epoch or 0)
        admin.abort_transaction(AbortTransactionSpec(topic_partition, producer_id, producer_epoch, epoch))
    click.echo(f"Aborted the transaction of producer {producer_id} on {topic}-{partition}")


@verb("force-terminate")
@click.option(
    "--transactional-id", "--transactionalId", "transactional_id", required=True, help="The transactional id."
)
def force_terminate(cluster: Cluster, transactional_id: str) -> None:
    """Fence the producer of a transactional id, and abort its transaction."""
    from kafka import KafkaProducer

    with cluster.admin() as admin:
        describe_transaction(admin, transactional_id, clock=SystemClock())  # InitProducerId would create a missing id
    own: dict[str, Any] = {"transactional_id": transactional_id, "transaction_timeout_ms": FENCING_TIMEOUT_MS}
    producer = KafkaProducer(**cluster.settings(KafkaProducer.DEFAULT_CONFIG, **own))
    try:
        producer.init_transactions()  # fences the current producer, and aborts its transaction
    finally:
        producer.close()
    click.echo(f"Terminated the transaction of {transactional_id}")


def _show(rows: list[dict[str, Any]], columns: tuple[str, ...], as_json: bool, *, empty: str = "Nothing") -> None:
    if as_json:
        show_json(rows)
    else:
        show_table(rows, columns, empty=empty)


def _offset(offset: int) -> int | None:
    return offset if offset >= 0 else None
