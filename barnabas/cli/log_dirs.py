"""``barnabas log-dirs``: describes log directories as kafka-log-dirs does, and moves partitions between them.

Knows nothing of the broker's internals; it uses an admin client.
"""

import time
from collections.abc import Sequence
from typing import Any

import click

from barnabas.cli.client import Cluster, check_code, cluster_options, error_name
from barnabas.cli.output import json_option, show_json, show_table

POLL_S = 0.2


@click.command()
@click.option("--describe", "action", flag_value="describe", help="Describe log directories: partitions and sizes.")
@click.option("--move", "action", flag_value="move", help="Move partitions to another directory; they stay available.")
@click.option("--topic", "topics", multiple=True, metavar="NAME[,...]", help="Only partitions of these topics.")
@click.option(
    "--partition", "partitions", multiple=True, type=click.IntRange(0), help="Only these partitions of one topic."
)
@click.option("--broker", "brokers", multiple=True, type=int, help="Only this broker.")
@click.option("--to", "target", metavar="DIRECTORY", help="The log directory to move them to, as --describe prints it.")
@click.option("--wait", is_flag=True, help="Wait until the move is complete.")
@json_option
@cluster_options
def log_dirs(cluster: Cluster, action: str | None, **given: Any) -> None:
    """Describe log directories, and move partitions between them.

    \b
    barnabas log-dirs --describe --topic orders
    barnabas log-dirs --move --topic orders --partition 0 --to /mnt/disk2 --wait
    """
    if action is None:
        raise click.UsageError("One of --describe and --move must be given")
    given["topics"] = [name for names in given["topics"] for name in names.split(",")]
    if given["partitions"] and len(given["topics"]) != 1:
        raise click.UsageError("--partition needs one --topic")
    with cluster.admin() as admin:
        if action == "describe":
            _describe(admin, **given)
        else:
            _move(admin, **given)


def _describe(admin: Any, as_json: bool, **given: Any) -> None:
    found = _directories(admin, given["topics"], given["partitions"], given["brokers"])
    if as_json:
        show_json(found)
        return
    for each in found:
        state = f"  {each['error']}" if each["error"] else ""
        free = f"  {each['usable_bytes']} of {each['total_bytes']} bytes free" if each["total_bytes"] >= 0 else ""
        click.echo(f"Broker {each['broker']}  {each['log_dir']}{free}{state}")
        show_table(each["partitions"], ["topic", "partition", "size", "offset_lag", "future"], empty="No partitions")
        click.echo()


def _directories(
    admin: Any, topics: Sequence[str], partitions: Sequence[int], brokers: Sequence[int]
) -> list[dict[str, Any]]:
    """Returns the log directories with the selected partitions in each; no topics or brokers select all."""
    return [
        {
            "broker": broker["broker"],
            "log_dir": directory["log_dir"],
            "error": error_name(directory["error_code"]),
            "total_bytes": directory.get("total_bytes", -1),
            "usable_bytes": directory.get("usable_bytes", -1),
            "partitions": sorted(_partitions(directory, topics, partitions), key=_sort_key),
        }
        for broker in admin.describe_log_dirs(brokers=list(brokers) or None)
        for directory in broker["log_dirs"]
    ]


def _partitions(directory: dict[str, Any], topics: Sequence[str], partitions: Sequence[int]) -> list[dict[str, Any]]:
    return [
        {
            "topic": topic.get("topic", topic.get("name")),
            "partition": each["partition_index"],
            "size": each["partition_size"],
            "offset_lag": each["offset_lag"],
            "future": each["is_future_key"],
        }
        for topic in directory["topics"]
        if not topics or topic.get("topic", topic.get("name")) in topics
        for each in topic["partitions"]
        if not partitions or each["partition_index"] in partitions
    ]


def _sort_key(partition: dict[str, Any]) -> tuple[str, int, bool]:
    return partition["topic"], partition["partition"], partition["future"]


def _move(admin: Any, as_json: bool, **given: Any) -> None:
    target = given["target"]
    if target is None or not given["topics"]:
        raise click.UsageError("--move needs --topic and --to")
    selected = {
        (each["topic"], each["partition"], directory["broker"])
        for directory in _directories(admin, given["topics"], given["partitions"], given["brokers"])
        for each in directory["partitions"]
    }
    if not selected:
        raise click.ClickException("There are no such partitions")
    results = admin.alter_replica_log_dirs(dict.fromkeys(sorted(selected), target))
    for result in results.values():
        check_code(result.errno)
    while given["wait"] and _is_moving(admin, selected, target, given):
        time.sleep(POLL_S)
    moved = [
        {"topic": topic, "partition": partition, "broker": broker} for topic, partition, broker in sorted(selected)
    ]
    if as_json:
        show_json(moved)
        return
    for each in moved:
        done = "is in" if given["wait"] else "is being moved to"
        click.echo(f"{each['topic']}-{each['partition']} on broker {each['broker']} {done} {target}")


def _is_moving(admin: Any, selected: set[tuple[str, int, int]], target: str, given: dict[str, Any]) -> bool:
    """Returns whether a replica is still being moved. A partition that was deleted meanwhile does not count.

    :raises click.ClickException: the move of one was cancelled
    """
    directories: dict[tuple[str, int, int], set[str]] = {}
    for directory in _directories(admin, given["topics"], given["partitions"], given["brokers"]):
        for each in directory["partitions"]:
            key = each["topic"], each["partition"], directory["broker"]
            if key in selected:
                directories.setdefault(key, set()).add(directory["log_dir"])
    for (topic, partition, broker), found in sorted(directories.items()):
        if target not in found:
            raise click.ClickException(f"{topic}-{partition} on broker {broker} is no longer being moved to {target}")
    return any(len(found) > 1 for found in directories.values())
