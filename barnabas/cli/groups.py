"""``barnabas groups``, with the options of kafka-consumer-groups, kafka-share-groups and kafka-streams-groups.

Knows nothing of the broker's internals; it uses an admin client.
"""

import csv
import sys
from collections.abc import Callable, Mapping
from typing import Any

import click

from barnabas.cli.client import Cluster, cluster_options, error_text
from barnabas.cli.group_offsets import delete_offsets, reset_offsets
from barnabas.cli.group_tables import member_tables, offset_tables, state_tables
from barnabas.cli.group_views import CLASSIC, CONSUMER, SHARE, STREAMS, describe, types_of
from barnabas.cli.output import json_option, show_json, show_table

_EITHER = "One of --list, --describe, --delete, --delete-offsets and --reset-offsets must be given"


@click.command()
@click.option("--list", "action", flag_value="list", help="List the groups.")
@click.option(
    "--describe", "action", flag_value="describe", help="Show the offsets and lag, the members or the state of groups."
)
@click.option("--delete", "action", flag_value="delete", help="Delete groups, with their offsets.")
@click.option("--delete-offsets", "action", flag_value="delete_offsets", help="Delete a group's offsets of topics.")
@click.option("--reset-offsets", "action", flag_value="reset_offsets", help="Reset a group's offsets.")
@click.option("--group", "groups_", multiple=True, help="The group; may be repeated.")
@click.option("--all-groups", is_flag=True, help="All groups.")
@click.option(
    "--consumer", "kinds", flag_value="consumer", help="Only consumer groups, of the classic or the consumer protocol."
)
@click.option("--share", "kinds", flag_value="share", help="Only share groups.")
@click.option("--streams", "kinds", flag_value="streams", help="Only streams groups.")
@click.option(
    "--type", "types", is_flag=False, flag_value="", help="With --list: show types, or list only groups of these types."
)
@click.option("--topic", "--input-topic", "topics", multiple=True, help="A topic, or partitions of it: topic:0,1.")
@click.option("--all-topics", "--all-input-topics", is_flag=True, help="All topics that the group has offsets of.")
@click.option("--offsets", is_flag=True, help="With --describe: offsets and lag (the default).")
@click.option("--members", is_flag=True, help="With --describe: members.")
@click.option(
    "--state",
    is_flag=False,
    flag_value="",
    help="With --describe: state. With --list: show states, or list only groups in these states.",
)
@click.option("--verbose", is_flag=True, help="With --describe: more columns, such as epochs and partitions.")
@click.option("--to-earliest", "target", flag_value="earliest", help="Reset to the earliest offset.")
@click.option("--to-latest", "target", flag_value="latest", help="Reset to the latest offset.")
@click.option(
    "--to-current", "target", flag_value="current", help="Reset to the current offset, or the nearest one in the log."
)
@click.option("--to-offset", type=click.IntRange(0), help="Reset to this offset.")
@click.option("--shift-by", type=int, help="Shift the current offset by this number, which may be negative.")
@click.option(
    "--to-datetime", help="Reset to the first record at or after this: 2026-11-21T15:00:00.000 (UTC, or with +hh:mm)."
)
@click.option("--by-duration", help="Reset to the first record within the last PnDTnHnMnS.")
@click.option(
    "--from-file", type=click.Path(), help="Reset to the offsets in a file of lines [group,]topic,partition,offset."
)
@click.option("--dry-run", is_flag=True, help="With --reset-offsets: show the new offsets only (the default).")
@click.option("--execute", is_flag=True, help="With --reset-offsets: commit the new offsets.")
@click.option(
    "--export",
    is_flag=True,
    help="With --reset-offsets: print lines for --from-file, with the group first if there are several.",
)
@json_option
@cluster_options
def groups(
    cluster: Cluster, action: str | None, groups_: tuple[str, ...], all_groups: bool, kinds: str | None, **given: Any
) -> None:
    """List, describe and delete groups of all types, and reset their offsets.

    \b
    barnabas groups --list --state --type
    barnabas groups --describe --group billing
    barnabas groups --reset-offsets --group billing --topic orders --to-earliest --execute
    """
    if action is None:
        raise click.UsageError(_EITHER)
    if action != "list" and not groups_ and not all_groups:
        raise click.UsageError("--group or --all-groups must be given")
    with cluster.admin() as admin:
        names = list(groups_)
        if all_groups or action == "list":
            rows = [row for row in _listed(admin) if _is_of(row, kinds)]
            if action == "list":
                _list(rows, given)
                return
            names = [row["group"] for row in rows]
        _ACTIONS[action](admin, sorted(names), **given)


# -------------------------------------------------------------------- list


def _listed(admin: Any) -> list[dict[str, Any]]:
    found = sorted(admin.list_groups(), key=lambda group: str(group["group_id"]))
    return [
        {
            "group": group["group_id"],
            "type": None if group.get("group_type") is None else str(group["group_type"]).lower(),
            "protocol": group["protocol_type"],
            "state": group.get("group_state"),
        }
        for group in found
    ]


def _is_of(row: Mapping[str, Any], kinds: str | None) -> bool:
    """Returns whether ``--consumer``, ``--share`` or ``--streams`` selects the group."""
    if kinds != CONSUMER:
        return kinds is None or row["type"] == kinds
    # As in kafka-groups: a group without a protocol has committed offsets only, and counts as a consumer group.
    return row["type"] == CONSUMER or (row["type"] not in (SHARE, STREAMS) and row["protocol"] in ("consumer", ""))


def _words(text: str | None) -> set[str]:
    return {word.strip().lower() for word in (text or "").split(",") if word.strip()}


def _list(rows: list[dict[str, Any]], given: Mapping[str, Any]) -> None:
    states, types = _words(given["state"]), _words(given["types"])
    rows = [
        row
        for row in rows
        if (not states or str(row["state"]).lower() in states) and (not types or str(row["type"]).lower() in types)
    ]
    columns = [name for name, option in (("type", "types"), ("state", "state")) if given[option] is not None]
    if given["as_json"]:
        show_json(rows)
    elif columns:
        show_table(rows, ["group", *columns], empty="No groups")
    else:
        for row in rows:
            click.echo(row["group"])


# -------------------------------------------------------------------- describe


def _describe(admin: Any, names: list[str], **given: Any) -> None:
    found = describe(admin, names) if names else []
    if given["state"] is not None:
        tables = state_tables(admin, found)
    elif given["members"]:
        tables = member_tables(admin, found)
    else:
        tables = offset_tables(admin, found)
    if given["as_json"]:
        show_json([row for table in tables for row in table.rows])
        return
    tables = [table for table in tables if table.rows]
    for index, table in enumerate(tables):
        if index:
            click.echo()
        show_table(table.rows, table.columns.chosen(verbose=given["verbose"]))
    if not tables:
        click.echo("No members" if given["members"] else "No offsets and no members")


# -------------------------------------------------------------------- change


def _delete(admin: Any, names: list[str], **given: Any) -> None:
    results = admin.delete_groups(names) if names else {}
    failed = {name: error_text(result) for name, result in results.items() if result != "OK"}
    if given["as_json"]:
        show_json([{"group": name, "error": failed.get(name)} for name in names])
    else:
        for name in names:
            if name not in failed:
                click.echo(f"Deleted group {name}")
    if failed:
        raise click.ClickException(f"Not deleted: {'; '.join(f'{name} ({error})' for name, error in failed.items())}")


def _delete_offsets(admin: Any, names: list[str], **given: Any) -> None:
    types = types_of(admin)
    rows = [row for name in names for row in delete_offsets(admin, name, types.get(name, CLASSIC), given["topics"])]
    _show_changes(rows, ["group", "topic", "partition", "error"], as_json=given["as_json"])


def _reset_offsets(admin: Any, names: list[str], **given: Any) -> None:
    if given["execute"] and given["dry_run"]:
        raise click.UsageError("--dry-run and --execute cannot be combined")
    types = types_of(admin)
    rows = [row for name in names for row in reset_offsets(admin, name, types.get(name), given)]
    if given["export"]:
        columns = ("group", "topic", "partition", "new_offset")[len(names) == 1 :]
        csv.writer(sys.stdout, lineterminator="\n").writerows([row[column] for column in columns] for row in rows)
        return
    _show_changes(rows, ["group", "topic", "partition", "new_offset", "error"], as_json=given["as_json"])
    if not given["execute"]:
        click.echo("Nothing was changed. To commit these offsets, add --execute", err=True)


def _show_changes(rows: list[dict[str, Any]], columns: list[str], *, as_json: bool) -> None:
    failed = [row for row in rows if row["error"]]
    if as_json:
        show_json(rows)
    else:
        show_table(rows, columns if failed else columns[:-1], empty="Nothing to change")
    if failed:
        raise click.ClickException(f"{len(failed)} of {len(rows)} partitions failed: {failed[0]['error']}")


_ACTIONS: dict[str, Callable[..., None]] = {
    "describe": _describe,
    "delete": _delete,
    "delete_offsets": _delete_offsets,
    "reset_offsets": _reset_offsets,
}
