"""The tools whose output is that of our commands: kafka-reassign-partitions, kafka-leader-election, kafka-get-offsets,
kafka-delete-records, kafka-broker-api-versions; and kafka-log-dirs, which prints JSON.

Knows nothing of the broker; it passes options on.
"""

import json
import sys
from collections.abc import Sequence

import click

from barnabas.cli.kafka_tools.options import (
    CONNECTION,
    FLAG,
    OWN,
    VALUE,
    Given,
    Option,
    require,
    require_one,
)
from barnabas.cli.kafka_tools.tool import Failed, Tool, call, command, connection, json_of

REASSIGN_ACTIONS = ("generate", "execute", "verify", "cancel", "list")
REASSIGN_OPTIONS = {
    **CONNECTION,
    **dict.fromkeys(REASSIGN_ACTIONS, FLAG),
    **dict.fromkeys(
        ("additional", "disable-rack-aware", "disallow-replication-factor-change", "preserve-throttles"), FLAG
    ),
    **dict.fromkeys(
        ("broker-list", "reassignment-json-file", "replica-alter-log-dirs-throttle", "throttle", "timeout",
         "topics-to-move-json-file"), VALUE,
    ),
}  # fmt: skip


def reassign_partitions(arguments: Sequence[str]) -> int:
    """``kafka-reassign-partitions``: moves partitions to other brokers."""
    return call(REASSIGN, arguments)


def _reassign(given: Given) -> int:
    require_one(
        given,
        REASSIGN_ACTIONS,
        "Command must include exactly one action: --generate, --execute, --verify, --cancel, --list",
    )
    return command(given, "reassign")


def leader_election(arguments: Sequence[str]) -> int:
    """``kafka-leader-election``: elects leaders of partitions."""
    return call(ELECTION, arguments)


def _elect(given: Given) -> int:
    missing = [name for name in ("election-type", "bootstrap-server") if name not in given]
    if "topic" in given and "partition" not in given:
        missing.append("partition")
    if missing:
        sys.stderr.write(f"Missing required option(s): {', '.join(missing)}\n")
        return 1
    return command(given, "leader-election")


def get_offsets(arguments: Sequence[str]) -> int:
    """``kafka-get-offsets``: shows the offsets of partitions."""
    return call(OFFSETS, arguments)


def _offsets(given: Given) -> int:
    try:
        return command(given, "get-offsets")
    except Failed as error:
        sys.stderr.write(f"Error occurred: {error}\n")
        return 1


def delete_records(arguments: Sequence[str]) -> int:
    """``kafka-delete-records``: deletes the records of partitions before an offset."""
    return call(DELETE_RECORDS, arguments)


def _delete_records(given: Given) -> int:
    require(given, "offset-json-file")
    return command(given, "delete-records")


def broker_api_versions(arguments: Sequence[str]) -> int:
    """``kafka-broker-api-versions``: shows the versions of each API that brokers have."""
    return call(API_VERSIONS, arguments)


def log_dirs(arguments: Sequence[str]) -> int:
    """``kafka-log-dirs``: describes log directories, as JSON."""
    return call(LOG_DIRS, arguments)


def _log_dirs(given: Given) -> int:
    require(given, "describe")
    brokers = [each["id"] for each in json_of(["brokers", *connection(given), "--json"])]
    chosen = [int(each) for each in given.one("broker-list").split(",") if each.strip()] or brokers
    if unknown := [each for each in chosen if each not in brokers]:
        sys.stderr.write(f"ERROR: The given brokers do not exist from --broker-list: {_ids(unknown)}. ")
        sys.stderr.write(f"Current existent brokers: {_ids(brokers)}\n")
        return 1
    topics = [f"--topic={given.one('topic-list')}"] if given.one("topic-list") else []
    words = ["log-dirs", *connection(given), *given.words(), *topics, "--json"]
    rows = json_of([*words, *(f"--broker={each}" for each in chosen)])
    click.echo("Querying brokers for log directories information")
    click.echo(f"Received log directory information from brokers {_ids(chosen)}")
    found = [
        {
            "broker": broker,
            "logDirs": [
                {
                    "partitions": [
                        {
                            "partition": f"{each['topic']}-{each['partition']}",
                            "size": each["size"],
                            "offsetLag": each["offset_lag"],
                            "isFuture": each["future"],
                        }
                        for each in row["partitions"]
                    ],
                    "error": row["error"],
                    "logDir": row["log_dir"],
                }
                for row in rows
                if row["broker"] == broker
            ],
        }
        for broker in chosen
    ]
    click.echo(json.dumps({"brokers": found, "version": 1}, separators=(",", ":")))
    return 0


def _ids(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers))


REASSIGN = Tool("This tool helps to move topic partitions between replicas.", REASSIGN_OPTIONS, _reassign)
ELECTION = Tool(
    "This tool attempts to elect a new leader for a set of topic partitions. The type of elections supported are "
    "preferred replicas and unclean replicas.",
    {
        **CONNECTION,
        "all-topic-partitions": FLAG,
        "admin.config": Option(ours="--command-config"),
        **dict.fromkeys(("election-type", "partition", "path-to-json-file", "topic"), VALUE),
    },
    _elect,
)
OFFSETS = Tool(
    "An interactive shell for getting topic-partition offsets.",
    {
        **CONNECTION,
        "exclude-internal-topics": FLAG,
        **dict.fromkeys(("partitions", "time", "topic", "topic-partitions"), VALUE),
    },
    _offsets,
    "Error occurred: ",
)
DELETE_RECORDS = Tool(
    "This tool helps to delete records of the given partitions down to the specified offset.",
    {**CONNECTION, "offset-json-file": VALUE},
    _delete_records,
)
API_VERSIONS = Tool(
    "This tool helps to retrieve broker version information.",
    CONNECTION,
    lambda given: command(given, "broker-api-versions"),
)
LOG_DIRS = Tool(
    "This tool helps to query log directory usage on the specified brokers.",
    {**CONNECTION, "describe": FLAG, "broker-list": OWN, "topic-list": OWN},
    _log_dirs,
)
