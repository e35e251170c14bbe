"""The tools with subcommands: kafka-transactions, kafka-features, kafka-metadata-quorum, kafka-cluster, kafka-storage.

Knows nothing of the broker. Kafka parses these with argparse4j, and ours have the same subcommands and options; some
print a table of Kafka's instead of ours.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import click

from barnabas.cli.kafka_tools.options import UsageProblem, servers
from barnabas.cli.kafka_tools.tool import KAFKA_VERSION, NO_CONTROLLERS, Failed, json_of, run
from barnabas.cli.output import show_padded
from barnabas.cluster.features import METADATA_VERSION, METADATA_VERSIONS

_MORE = "Enable debug logging for additional detail."
BOOTSTRAP = ("--bootstrap-server", "-b")
_OPTIONS = {"--config": "--command-config", "-c": "--command-config"}
"""The options of kafka-cluster, by those of our command."""

Rows = Sequence[Mapping[str, Any]]


class Table(NamedTuple):
    """A table of Kafka's: the heading of each column, and the field of our rows in it."""

    columns: Mapping[str, str]

    def show(self, rows: Rows) -> None:
        """Prints the rows as ``ToolsUtils.prettyPrintTable`` does."""
        cells = [[_cell(row[field]) for field in self.columns.values()] for row in rows]
        show_padded([list(self.columns), *cells])


TRANSACTIONS = {
    "list": Table({
        "TransactionalId": "transactional_id", "Coordinator": "coordinator_id", "ProducerId": "producer_id",
        "TransactionState": "transaction_state",
    }),
    "describe": Table({
        "CoordinatorId": "coordinator_id", "TransactionalId": "transactional_id", "ProducerId": "producer_id",
        "ProducerEpoch": "producer_epoch", "TransactionState": "transaction_state",
        "TransactionTimeoutMs": "transaction_timeout_ms", "CurrentTransactionStartTimeMs": "transaction_start_time_ms",
        "TransactionDurationMs": "transaction_duration_ms", "TopicPartitions": "topic_partitions",
    }),
    "describe-producers": Table({
        "ProducerId": "producer_id", "ProducerEpoch": "producer_epoch",
        "LatestCoordinatorEpoch": "latest_coordinator_epoch", "LastSequence": "last_sequence",
        "LastTimestamp": "last_timestamp", "CurrentTransactionStartOffset": "current_transaction_start_offset",
    }),
    "find-hanging": Table({
        "Topic": "topic", "Partition": "partition", "ProducerId": "producer_id", "ProducerEpoch": "producer_epoch",
        "CoordinatorEpoch": "coordinator_epoch", "StartOffset": "start_offset", "LastTimestamp": "last_timestamp",
        "Duration(min)": "duration_minutes",
    }),
}  # fmt: skip


def transactions(arguments: Sequence[str]) -> int:
    """``kafka-transactions``: lists, describes and aborts transactions."""

    def tell(words: list[str], verb: str) -> int:
        table = TRANSACTIONS.get(verb)
        try:
            if table is None:
                _silently(["transactions", *words])
            else:
                table.show(json_of(["transactions", *words, "--json"]))
        except Failed as error:
            sys.stderr.write(f"{_transaction_problem(error, words)}\n")
            return 1
        return 0

    return _call("kafka-transactions.sh", arguments, tell)


def _transaction_problem(error: Failed, words: Sequence[str]) -> str:
    if error.name == "TransactionalIdNotFound":
        name = next((word.partition("=")[2] for word in words if word.startswith("--transactional-id=")), words[-1])
        what = f"DescribeTransactions request for transactionalId `{name}` failed because the ID could not be found"
        return f"Failed to describe transaction state of transactional-id `{name}`: {what}. {_MORE}"
    return error.message


def features(arguments: Sequence[str]) -> int:
    """``kafka-features``: shows and changes the levels of features."""

    def tell(words: list[str], verb: str) -> int:
        if verb == "describe":
            for row in json_of(["features", *words, "--json"]):
                click.echo(_feature(row))
            return 0
        try:
            return run(["features", *words])
        except Failed as error:
            if verb not in ("upgrade", "downgrade", "disable"):
                raise
            wanted = [words[at + 1] for at, word in enumerate(words) if word == "--feature"]
            for name, _, level in (each.partition("=") for each in wanted):
                what = "disable " + name if verb == "disable" else f"{verb} {name} to {level}"
                click.echo(f"{'Can' if '--dry-run' in words else 'Could'} not {what}. {error.message}")
            sys.stderr.write(f"{len(wanted)} out of {len(wanted)} operation(s) failed.\n" if wanted else f"{error}\n")
            return 1

    return _call("kafka-features", arguments, tell)


def _feature(row: Mapping[str, Any]) -> str:
    def level(value: int) -> str:
        return METADATA_VERSIONS.get(value, str(value)) if row["feature"] == METADATA_VERSION else str(value)

    fields = {
        "Feature": (row["feature"], 42),
        "SupportedMinVersion": (level(row["supported_min"]), 17),
        "SupportedMaxVersion": (level(row["supported_max"]), 17),
        "FinalizedVersionLevel": (level(row["finalized"]), 17),
    }
    return "".join(f"{name}: {value:<{width}}" for name, (value, width) in fields.items()) + f"Epoch: {row['epoch']}"


def metadata_quorum(arguments: Sequence[str]) -> int:
    """``kafka-metadata-quorum``: shows and changes the quorum of controllers."""
    return _call("kafka-metadata-quorum", arguments, lambda words, verb: run(["quorum", *words]))


def cluster(arguments: Sequence[str]) -> int:
    """``kafka-cluster``: shows the id and the brokers of a cluster, and unregisters a broker."""

    def tell(words: list[str], verb: str) -> int:
        if verb not in ("cluster-id", "unregister", "list-endpoints"):
            raise UsageProblem(f"invalid choice: '{verb}' (choose from 'cluster-id', 'unregister', 'list-endpoints')")
        return run(["cluster", *(_OPTIONS.get(word, word) for word in words)])

    return _call("kafka-cluster", arguments, tell)


def storage(arguments: Sequence[str]) -> int:
    """``kafka-storage``: formats the directories of a node."""
    return _call("kafka-storage", arguments, lambda words, verb: run(["storage", *words]))


def _call(name: str, arguments: Sequence[str], tell: Callable[[list[str], str], int]) -> int:
    """Runs a tool, given a function that takes our command's words and the subcommand."""
    try:
        if "--version" in arguments or "-v" in arguments:
            click.echo(KAFKA_VERSION)
            return 0
        words, verb = _words(arguments)
        if not verb and not {"--help", "-h"} & set(words):
            sys.stderr.write(f"usage: {name} [-h] COMMAND ...\n{name}: error: too few arguments\n")
            return 1
        return tell(words, verb)
    except UsageProblem as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    except Failed as error:
        sys.stderr.write(f"{error.java}\n")
        return 1


def _words(arguments: Sequence[str]) -> tuple[list[str], str]:
    """Returns the words with addresses as ours read them, and the subcommand."""
    words, verb, waiting = [], "", list(reversed(arguments))
    while waiting:
        word = waiting.pop()
        name, equals, value = word.partition("=")
        if name == "--bootstrap-controller" or word == "-C":
            raise UsageProblem(NO_CONTROLLERS)
        if name in BOOTSTRAP:
            words.append(f"{BOOTSTRAP[0]}={servers(value if equals or not waiting else waiting.pop())}")
        elif not verb and name == "--command-config" and not equals and waiting:
            words += [word, waiting.pop()]
        else:
            verb = verb or ("" if word.startswith("-") else word)
            words.append(word)
    return words, verb


def _silently(words: list[str]) -> None:
    import contextlib
    import io

    with contextlib.redirect_stdout(io.StringIO()):
        run(words)


def _cell(value: Any) -> str:
    if value is None:
        return "None"
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
