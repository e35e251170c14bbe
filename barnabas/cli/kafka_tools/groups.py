"""``kafka-consumer-groups`` over ``barnabas groups``.

Knows nothing of the broker. Apache Kafka's ``ConsumerGroupCommand``.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click

from barnabas.cli.java_errors import java_class, java_text
from barnabas.cli.kafka_tools.options import (
    CONNECTION,
    FLAG,
    OWN,
    OWN_FLAG,
    VALUE,
    Given,
    Option,
    Takes,
    UsageProblem,
    require,
    require_one,
)
from barnabas.cli.kafka_tools.tool import Failed, Tool, answer_of, call, connection, json_of
from barnabas.errors import KafkaError, UnknownTopicOrPartition

ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")
TARGETS = (
    "by-duration", "to-datetime", "from-file", "shift-by", "to-offset", "to-earliest", "to-current", "to-latest",
)  # fmt: skip
MAYBE = Option(Takes.MAYBE)
OPTIONS = {
    **CONNECTION,
    **dict.fromkeys(ACTIONS, FLAG),
    **dict.fromkeys(
        ("all-groups", "all-topics", "dry-run", "execute", "members", "offsets", "to-current", "to-earliest",
         "to-latest", "verbose"), FLAG,
    ),
    **dict.fromkeys(
        ("by-duration", "from-file", "group", "shift-by", "to-datetime", "to-offset", "topic"), VALUE,
    ),
    "state": MAYBE,
    "type": MAYBE,
    "export": OWN_FLAG,
    "timeout": OWN,
    "validate-regex": OWN,
}  # fmt: skip
ONE_ACTION = (
    "Command must include exactly one action: --list, --describe, --delete, --reset-offsets, --delete-offsets, "
    "--validate-regex"
)
NO_EXECUTE = (
    "WARN: No action will be performed as the --execute option is missing. In version 5.0, this command will require "
    "either --dry-run or --execute to be specified. You should add the --dry-run option explicitly if you are "
    "scripting this command and want to keep the current default behavior without prompting."
)
NO_TOPIC = "There is no topic "
"""The error of our commands for a topic that does not exist."""

STATES = ("Dead", "PreparingRebalance", "Reconciling", "CompletingRebalance", "Empty", "Assigning", "Stable")

Row = Mapping[str, Any]
Column = tuple[str, str, int]
"""A heading, the field of our rows, and the minimum width; 0 for the last column."""


def consumer_groups(arguments: Sequence[str]) -> int:
    """``kafka-consumer-groups``: lists, describes and deletes consumer groups, and resets their offsets."""
    return call(TOOL, arguments)


def _run(given: Given) -> int:
    connection(given)
    action = require_one(given, (*ACTIONS, "validate-regex"), ONE_ACTION)
    _check(given, action)
    try:
        _ACTIONS[action](given)
    except Failed as error:
        message = _not_found(error) or error.message
        if message.startswith(NO_TOPIC):
            message = UnknownTopicOrPartition.message
        click.echo(f"\nError: Executing consumer group command failed due to {message}")
        sys.stderr.write(f"{error.java}\n")
    return 0


def _not_found(error: Failed) -> str | None:
    """Returns Kafka's error message for a group that does not exist."""
    text = error.message.removeprefix("There is no group ")
    return None if text == error.message else f"{java_class('GroupIdNotFound')}: Group {text} not found."


def _check(given: Given, action: str) -> None:
    """Checks options as ``ConsumerGroupCommandOptions.checkArgs`` does.

    :raises UsageProblem: they cannot be combined
    """
    if action in ("describe", "delete") and not {"group", "all-groups"} & given.values.keys():
        raise UsageProblem(f"Option [{action}] takes one of these options: [all-groups], [group]")
    if action == "delete-offsets":
        require(given, "group", "topic")
    if action == "reset-offsets":
        if not {"dry-run", "execute"} & given.values.keys():
            sys.stderr.write(f"{NO_EXECUTE}\n")
        if sum(name in given for name in TARGETS) != 1:
            scenarios = ", ".join(f"[{name}]" for name in TARGETS)
            raise UsageProblem(f"Option '[reset-offsets]' requires one of the following scenarios: [{scenarios}]")
    if action == "list":
        known = {state.lower() for state in STATES}
        for text in given.all("state"):
            if any(each.strip().lower() not in known for each in text.split(",") if text):
                raise UsageProblem(f"Invalid state list '{text}'. Valid states are: {', '.join(STATES)}")


def _list(given: Given) -> None:
    rows = answer_of(given, "groups", "--consumer")
    columns = [name for name in ("type", "state") if name in given]
    if not columns:
        for row in rows:
            click.echo(row["group"])
        return
    width = max([15, *(len(row["group"]) for row in rows)]) + 10
    show(
        [("GROUP", "group", width), *((name.upper(), name, 20) for name in columns)],
        [row | {"type": str(row["type"]).capitalize()} for row in rows],
        first="",
    )


def _describe(given: Given) -> None:
    states = json_of(["groups", *connection(given), "--describe", "--state", *_groups(given), "--json"])
    kind = "state" if "state" in given else "members" if "members" in given else "offsets"
    rows = states if kind == "state" else answer_of(given, "groups", *(["--consumer"] if "all-groups" in given else []))
    is_verbose = "verbose" in given
    for state in states:
        name = state["group"]
        if state["state"] == "Dead":
            sys.stderr.write(f"\nConsumer group '{name}' does not exist.\n")
        elif state["state"] == "Empty":
            sys.stderr.write(f"\nConsumer group '{name}' has no active members.\n")
        elif state["state"] in ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"):
            sys.stderr.write(f"\nWarning: Consumer group '{name}' is rebalancing.\n")
        mine = [row for row in rows if row["group"] == name]
        if kind != "offsets" or mine:
            show(_COLUMNS[kind](mine, is_verbose), [_filled(row) for row in mine])


def _groups(given: Given) -> list[str]:
    return [
        *(f"--group={name}" for name in given.all("group")),
        *(["--all-groups", "--consumer"] if "all-groups" in given else []),
    ]


def _filled(row: Row) -> Row:
    """Returns a row with Kafka's dashes, and its lists of partitions as ``orders:0,1``."""
    found = dict(row)
    for name in ("partitions", "target_partitions"):
        if isinstance(row.get(name), list):
            found[name] = _assignment(row[name])
    if row.get("coordinator"):
        address, _, node = row["coordinator"].partition(" ")
        found["coordinator"] = f"{address}  {node}"
    return {name: "-" if value is None else value for name, value in found.items()}


def _assignment(partitions: Iterable[str]) -> str:
    topics: dict[str, list[str]] = {}
    for each in partitions:
        topic, _, index = each.rpartition("-")
        topics.setdefault(topic, []).append(index)
    return ";".join(f"{topic}:{','.join(indexes)}" for topic, indexes in sorted(topics.items())) or "-"


def _offset_columns(rows: Sequence[Row], is_verbose: bool) -> list[Column]:
    epoch: list[Column] = [("LEADER-EPOCH", "leader_epoch", 15)] if is_verbose else []
    return [
        ("GROUP", "group", 15), ("TOPIC", "topic", 15), ("PARTITION", "partition", 10), *epoch,
        ("CURRENT-OFFSET", "current_offset", 15), ("LOG-END-OFFSET", "log_end_offset", 15), ("LAG", "lag", 15),
        ("CONSUMER-ID", "consumer_id", 15), ("HOST", "host", 15), ("CLIENT-ID", "client_id", 0),
    ]  # fmt: skip


def _member_columns(rows: Sequence[Row], is_verbose: bool) -> list[Column]:
    columns: list[Column] = [("GROUP", "group", 15), ("CONSUMER-ID", "consumer_id", 15)]
    if any(row["group_instance_id"] for row in rows):
        columns.append(("GROUP-INSTANCE-ID", "group_instance_id", 17))
    columns += [
        ("HOST", "host", 15),
        ("CLIENT-ID", "client_id", 15),
        ("#PARTITIONS", "partition_count", 15 if is_verbose else 16),
    ]
    if is_verbose:
        columns += [
            ("CURRENT-EPOCH", "epoch", 15), ("CURRENT-ASSIGNMENT", "partitions", 20),
            ("TARGET-EPOCH", "target_epoch", 15), ("TARGET-ASSIGNMENT", "target_partitions", 20),
        ]  # fmt: skip
    return columns


def _state_columns(rows: Sequence[Row], is_verbose: bool) -> list[Column]:
    epochs: list[Column] = [("GROUP-EPOCH", "epoch", 15), ("TARGET-ASSIGNMENT-EPOCH", "assignment_epoch", 25)]
    return [
        ("GROUP", "group", 15), ("COORDINATOR (ID)", "coordinator", 25),
        ("ASSIGNMENT-STRATEGY", "assignment_strategy", 20), ("STATE", "state", 20), *(epochs if is_verbose else []),
        ("#MEMBERS", "members", 0),
    ]  # fmt: skip


_COLUMNS: dict[str, Callable[[Sequence[Row], bool], list[Column]]] = {
    "offsets": _offset_columns,
    "members": _member_columns,
    "state": _state_columns,
}


def show(columns: Sequence[Column], rows: Sequence[Row], first: str = "\n") -> None:
    """Prints a table as Kafka's group tools do: cells as wide as their column, with a space between."""
    widths = [
        width and max([width, *(len(str(row[field])) for row in rows if field in _GROWING)])
        for _, field, width in columns
    ]
    for index, row in enumerate([{field: heading for heading, field, _ in columns}, *rows]):
        cells = (str(row.get(field, "-")) for _, field, _ in columns)
        line = " ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        click.echo((first if not index else "") + line)


_GROWING = ("group", "topic", "consumer_id", "host", "client_id", "group_instance_id", "coordinator")
"""The fields whose columns are as wide as their contents."""


def _reset(given: Given) -> None:
    rows = answer_of(given, "groups")
    if "export" in given:
        for row in rows:
            group = [row["group"]] if len(given.all("group")) > 1 or "all-groups" in given else []
            click.echo(",".join(map(str, [*group, row["topic"], row["partition"], row["new_offset"]])))
        click.echo()
        return
    show(
        [
            ("GROUP", "group", 15),
            ("TOPIC", "topic", 15),
            ("PARTITION", "partition", 10),
            ("NEW-OFFSET", "new_offset", 0),
        ],
        rows,
    )


def _delete(given: Given) -> None:
    words = ["groups", *connection(given), "--delete", *_groups(given), "--json"]
    rows = _rows_despite_errors(words)
    deleted = [f"'{row['group']}'" for row in rows if not row["error"]]
    failed = [row for row in rows if row["error"]]
    if not failed:
        click.echo(f"Deletion of requested consumer groups ({', '.join(deleted)}) was successful.")
        return
    click.echo("\nError: Deletion of some consumer groups failed:")
    for row in failed:
        click.echo(f"* Group '{row['group']}' could not be deleted due to: {_java_text(row['error'])}")
    if deleted:
        click.echo(f"\nThese consumer groups were deleted successfully: {', '.join(deleted)}")


def _delete_offsets(given: Given) -> None:
    name = given.one("group")
    try:
        rows = _rows_despite_errors(["groups", *connection(given), *given.words(), "--json"])
    except Failed as error:
        if error.message.removeprefix(NO_TOPIC) == error.message:
            raise
        rows = [{"topic": error.message.removeprefix(NO_TOPIC), "partition": None, "error": "UnknownTopicOrPartition"}]
    click.echo(f"Request succeeded for deleting offsets from group {name}.")
    show(
        [("TOPIC", "topic", 15), ("PARTITION", "partition", 10), ("STATUS", "status", 15)],
        [
            {**_filled(row), "status": f"Error: {_java_text(row['error'])}" if row["error"] else "Successful"}
            for row in rows
        ],
    )


def _java_text(error: str) -> str:
    """Returns the error of one row, its name or name and message, as Java prints it."""
    code = next((code for code, kind in KafkaError.by_code.items() if kind.__name__ == error), None)
    return Failed(error).java if code is None else java_text(code)


def _rows_despite_errors(words: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the JSON of a command that prints it, and fails if one of its rows has an error."""
    import contextlib
    import io
    import json

    from barnabas.cli.kafka_tools.tool import run

    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            run(words)
    except Failed:
        if not out.getvalue():
            raise
    rows: list[dict[str, Any]] = json.loads(out.getvalue())
    return rows


def _validate(given: Given) -> None:
    from re2 import compile as compile_pattern
    from re2 import error as PatternError

    try:
        compile_pattern(given.one("validate-regex"))
    except PatternError as error:
        click.echo(f"The regular expression `{given.one('validate-regex')}` is not valid: {error}")
    else:
        click.echo(f"The regular expression `{given.one('validate-regex')}` is valid.")


_ACTIONS: dict[str, Callable[[Given], None]] = {
    "list": _list,
    "describe": _describe,
    "reset-offsets": _reset,
    "delete": _delete,
    "delete-offsets": _delete_offsets,
    "validate-regex": _validate,
}

TOOL = Tool(
    "This tool helps to list all consumer groups, describe a consumer group, delete consumer group info, or reset "
    "consumer group offsets.",
    OPTIONS,
    _run,
)
