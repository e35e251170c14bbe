"""``barnabas groups``: what kafka-consumer-groups does, by its options.

Knows nothing of the broker but what an admin client tells.
"""

from collections.abc import Callable, Sequence
from typing import Any

import click

from barnabas.cli.client import Cluster, cluster_options, words_of
from barnabas.cli.group_offsets import delete_offsets, reset_offsets
from barnabas.cli.output import json_option, show_json, show_table

OFFSET_COLUMNS = (
    "group", "topic", "partition", "current_offset", "log_end_offset", "lag", "consumer_id", "host", "client_id",
)  # fmt: skip
MEMBER_COLUMNS = ("group", "consumer_id", "group_instance_id", "host", "client_id", "partitions")
STATE_COLUMNS = ("group", "assignment_strategy", "state", "members")

_EITHER = "One of --list, --describe, --delete, --delete-offsets and --reset-offsets must be given"


@click.command()
@click.option("--list", "action", flag_value="list", help="List the groups.")
@click.option("--describe", "action", flag_value="describe", help="Tell offsets and lag, members, or state of groups.")
@click.option("--delete", "action", flag_value="delete", help="Delete groups, with their offsets.")
@click.option("--delete-offsets", "action", flag_value="delete_offsets", help="Delete a group's offsets of topics.")
@click.option("--reset-offsets", "action", flag_value="reset_offsets", help="Set a group's offsets.")
@click.option("--group", "groups_", multiple=True, help="The group; may be given several times.")
@click.option("--all-groups", is_flag=True, help="All groups.")
@click.option("--topic", "topics", multiple=True, help="A topic, or some of its partitions: topic:0,1.")
@click.option("--all-topics", is_flag=True, help="All topics that the group has offsets of.")
@click.option("--offsets", is_flag=True, help="With --describe: offsets and lag; as if nothing was said.")
@click.option("--members", is_flag=True, help="With --describe: the members.")
@click.option("--state", is_flag=False, flag_value="", help="With --describe: the state. With --list: groups in it.")
@click.option("--verbose", is_flag=True, help="With --members: their partitions, too.")
@click.option("--to-earliest", "target", flag_value="earliest", help="Reset to the oldest record.")
@click.option("--to-latest", "target", flag_value="latest", help="Reset to the end.")
@click.option("--to-current", "target", flag_value="current", help="Reset to where the group is.")
@click.option("--to-offset", type=click.IntRange(0), help="Reset to this offset.")
@click.option("--shift-by", type=int, help="Reset by so many on, or back where it is negative.")
@click.option("--to-datetime", help="Reset to the first record since then: 2026-11-21T15:00:00.000; UTC, or +hh:mm.")
@click.option("--by-duration", help="Reset to the first record of the last PnDTnHnMnS.")
@click.option("--from-file", type=click.Path(), help="Reset to a file's lines of topic,partition,offset.")
@click.option("--dry-run", is_flag=True, help="With --reset-offsets: only tell what would be; as if nothing was said.")
@click.option("--execute", is_flag=True, help="With --reset-offsets: do it.")
@click.option("--export", is_flag=True, help="With --reset-offsets: print lines for --from-file.")
@json_option
@cluster_options
def groups(cluster: Cluster, action: str | None, groups_: tuple[str, ...], all_groups: bool, **given: Any) -> None:
    """List, describe, delete groups, and reset their offsets.

    \b
    barnabas groups --describe --group billing
    barnabas groups --reset-offsets --group billing --topic orders --to-earliest --execute
    """
    if action is None:
        raise click.UsageError(_EITHER)
    if action != "list" and not groups_ and not all_groups:
        raise click.UsageError("--group or --all-groups must be given")
    with cluster.admin() as admin:
        names = [group["group_id"] for group in admin.list_groups()] if all_groups else list(groups_)
        _ACTIONS[action](admin, sorted(names), **given)


def _list(admin: Any, names: list[str], **given: Any) -> None:
    found = sorted(admin.list_groups(), key=lambda group: str(group["group_id"]))
    rows = [
        {
            "group": group["group_id"],
            "type": group.get("group_type"),
            "protocol": group["protocol_type"],
            "state": group.get("group_state"),
        }
        for group in found
    ]
    wanted = {state.strip().lower() for state in (given["state"] or "").split(",") if state.strip()}
    rows = [row for row in rows if not wanted or str(row["state"]).lower() in wanted]
    if given["as_json"]:
        show_json(rows)
    elif given["state"] is not None:
        show_table(rows, ["group", "state"], empty="No groups")
    else:
        for row in rows:
            click.echo(row["group"])


def _describe(admin: Any, names: list[str], **given: Any) -> None:
    described = admin.describe_groups(names) if names else {}
    rows: list[dict[str, Any]] = []
    for name in names:
        group = described[name]
        if group["group_state"] == "Dead":
            raise click.ClickException(f"There is no group {name}")
        if given["state"] is not None:
            rows.append(_state(group))
        elif given["members"]:
            rows.extend(_members(group))
        else:
            rows.extend(_offsets(admin, group))
    columns: Sequence[str] = OFFSET_COLUMNS
    if given["state"] is not None:
        columns = STATE_COLUMNS
    elif given["members"]:
        columns = MEMBER_COLUMNS if given["verbose"] else MEMBER_COLUMNS[:-1]
    if given["as_json"]:
        show_json(rows)
    else:
        show_table(rows, columns, empty="No members" if given["members"] else "No offsets and no members")


def _state(group: dict[str, Any]) -> dict[str, Any]:
    return {
        "group": group["group_id"],
        "assignment_strategy": group["protocol_data"] or None,
        "state": group["group_state"],
        "members": len(group["members"]),
    }


def _members(group: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "group": group["group_id"],
            "consumer_id": member["member_id"],
            "group_instance_id": member.get("group_instance_id"),
            "host": member["client_host"],
            "client_id": member["client_id"],
            "partitions": [f"{topic}-{partition}" for topic, partition in _assigned(member)],
        }
        for member in group["members"]
    ]


def _assigned(member: dict[str, Any]) -> list[tuple[str, int]]:
    assignment = member.get("member_assignment")
    if not isinstance(assignment, dict):
        # A protocol that is not the consumers': only its members can read it.
        return []
    return [
        (each["topic"], partition) for each in assignment["assigned_partitions"] for partition in each["partitions"]
    ]


def _offsets(admin: Any, group: dict[str, Any]) -> list[dict[str, Any]]:
    """A row for each partition that the group has an offset of, or a member for."""
    from kafka import TopicPartition
    from kafka.admin import OffsetSpec

    name = group["group_id"]
    committed = {tuple(place): it.offset for place, it in admin.list_group_offsets(name)[name].items()}
    members = {place: member for member in group["members"] for place in _assigned(member)}
    places = sorted({*committed, *members})
    ends = (
        admin.list_partition_offsets({TopicPartition(*place): OffsetSpec.LATEST for place in places}) if places else {}
    )
    rows = []
    for topic, partition in places:
        current = committed.get((topic, partition))
        end = ends[TopicPartition(topic, partition)].offset
        member = members.get((topic, partition), {})
        rows.append({
            "group": name,
            "topic": topic,
            "partition": partition,
            "current_offset": current,
            "log_end_offset": end,
            "lag": None if current is None else end - current,
            "consumer_id": member.get("member_id"),
            "host": member.get("client_host"),
            "client_id": member.get("client_id"),
        })  # fmt: skip
    return rows


def _delete(admin: Any, names: list[str], **given: Any) -> None:
    answers = admin.delete_groups(names) if names else {}
    failed = {name: words_of(said) for name, said in answers.items() if said != "OK"}
    if given["as_json"]:
        show_json([{"group": name, "error": failed.get(name)} for name in names])
    else:
        for name in names:
            if name not in failed:
                click.echo(f"Deleted group {name}")
    if failed:
        told = "; ".join(f"{name} ({said})" for name, said in failed.items())
        raise click.ClickException(f"Not deleted: {told}")


def _delete_offsets(admin: Any, names: list[str], **given: Any) -> None:
    rows = [row for name in names for row in delete_offsets(admin, name, given["topics"])]
    _show_changes(rows, ["group", "topic", "partition", "error"], as_json=given["as_json"])


def _reset_offsets(admin: Any, names: list[str], **given: Any) -> None:
    if given["execute"] and given["dry_run"]:
        raise click.UsageError("One of --dry-run and --execute must be given, not both")
    rows = [row for name in names for row in reset_offsets(admin, name, given)]
    if given["export"]:
        for row in rows:
            click.echo(f"{row['topic']},{row['partition']},{row['new_offset']}")
        return
    _show_changes(rows, ["group", "topic", "partition", "new_offset", "error"], as_json=given["as_json"])
    if not given["execute"]:
        click.echo("Nothing was changed: --execute does it", err=True)


def _show_changes(rows: list[dict[str, Any]], columns: list[str], *, as_json: bool) -> None:
    failed = [row for row in rows if row["error"]]
    if as_json:
        show_json(rows)
    else:
        show_table(rows, columns if failed else columns[:-1], empty="Nothing to change")
    if failed:
        raise click.ClickException(f"{len(failed)} of {len(rows)} partitions failed: {failed[0]['error']}")


_ACTIONS: dict[str, Callable[..., None]] = {
    "list": _list,
    "describe": _describe,
    "delete": _delete,
    "delete_offsets": _delete_offsets,
    "reset_offsets": _reset_offsets,
}
