"""The tables of ``barnabas groups --describe``: offsets, members or states, with the columns of each type of group.

Knows nothing of how groups are described; it takes their views, and an admin client.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from barnabas.cli.group_views import CLASSIC, CONSUMER, SHARE, STREAMS, GroupView, MemberView
from barnabas.cli.requests import coordinators
from barnabas.cli.share_offsets import share_offsets

Row = dict[str, Any]


class Columns(NamedTuple):
    """The columns of a table, and those that ``--verbose`` adds."""

    always: Sequence[str]
    verbose: Sequence[str] = ()

    def chosen(self, *, verbose: bool) -> list[str]:
        return [*self.always, *self.verbose] if verbose else list(self.always)


class Table(NamedTuple):
    """Rows of groups of one type."""

    columns: Columns
    rows: list[Row]


OFFSETS = Columns(
    (
        "group", "topic", "partition", "current_offset", "log_end_offset", "lag", "consumer_id", "host", "client_id",
    ),
    ("leader_epoch",),
)  # fmt: skip
SHARE_OFFSETS = Columns(("group", "topic", "partition", "start_offset", "lag"), ("leader_epoch",))

MEMBER = ("group", "consumer_id", "group_instance_id", "host", "client_id", "partition_count")
MEMBERS = {
    CLASSIC: Columns(MEMBER, ("partitions",)),
    CONSUMER: Columns(MEMBER, ("epoch", "partitions", "target_epoch", "target_partitions", "upgraded")),
    SHARE: Columns(("group", "consumer_id", "host", "client_id", "partition_count", "partitions"), ("epoch",)),
    STREAMS: Columns(
        ("group", "consumer_id", "process_id", "client_id", "active_tasks", "standby_tasks", "warmup_tasks"),
        ("group_instance_id", "host", "epoch", "partitions", "target_partitions"),
    ),
}
STATES = Columns(
    ("group", "coordinator", "type", "assignment_strategy", "state", "members"), ("epoch", "assignment_epoch")
)

Cell = Callable[[GroupView, MemberView], Any]


def _names(topic_partitions: Sequence[tuple[str, int]] | None) -> list[str] | None:
    return None if topic_partitions is None else [f"{topic}-{partition}" for topic, partition in topic_partitions]


CELLS: dict[str, Cell] = {
    "group": lambda group, member: group.name,
    "consumer_id": lambda group, member: member.member_id,
    "group_instance_id": lambda group, member: member.group_instance_id,
    "process_id": lambda group, member: member.process_id,
    "host": lambda group, member: member.host,
    "client_id": lambda group, member: member.client_id,
    "partition_count": lambda group, member: len(member.partitions),
    "partitions": lambda group, member: _names(member.partitions),
    "target_partitions": lambda group, member: _names(member.target_partitions),
    "epoch": lambda group, member: member.epoch,
    "target_epoch": lambda group, member: group.target_epoch,
    "upgraded": lambda group, member: member.is_upgraded,
    "active_tasks": lambda group, member: member.tasks.get("active"),
    "standby_tasks": lambda group, member: member.tasks.get("standby"),
    "warmup_tasks": lambda group, member: member.tasks.get("warmup"),
}


def state_tables(admin: Any, groups: Sequence[GroupView]) -> list[Table]:
    """Returns a table with a row for each group."""
    addresses = coordinators(admin, [group.name for group in groups])
    rows = [
        {
            "group": group.name,
            "coordinator": addresses.get(group.name),
            "type": group.type,
            "assignment_strategy": group.assignor,
            "state": group.state,
            "members": len(group.members),
            "epoch": group.epoch,
            "assignment_epoch": group.target_epoch,
        }
        for group in groups
    ]
    return [Table(STATES, rows)]


def member_tables(admin: Any, groups: Sequence[GroupView]) -> list[Table]:
    """Returns tables with a row for each member."""
    return [
        Table(
            columns,
            [
                {column: CELLS[column](group, member) for column in columns.chosen(verbose=True)}
                for group in groups
                if group.type == type_
                for member in group.members
            ],
        )
        for type_, columns in MEMBERS.items()
        if any(group.type == type_ for group in groups)
    ]


def offset_tables(admin: Any, groups: Sequence[GroupView]) -> list[Table]:
    """Returns tables with a row for each partition that has an offset in a group, or is assigned to a member."""
    sharing = [group for group in groups if group.type == SHARE]
    others = [group for group in groups if group.type != SHARE]
    tables = []
    if others:
        tables.append(Table(OFFSETS, [row for group in others for row in _offsets(admin, group)]))
    if sharing:
        tables.append(Table(SHARE_OFFSETS, [row for group in sharing for row in _share_offsets(admin, group)]))
    return tables


def _offsets(admin: Any, group: GroupView) -> list[Row]:
    from kafka import TopicPartition
    from kafka.admin import OffsetSpec

    committed = {
        tuple(topic_partition): it for topic_partition, it in admin.list_group_offsets(group.name)[group.name].items()
    }
    members = {topic_partition: member for member in group.members for topic_partition in member.partitions}
    topic_partitions = sorted({*committed, *members})
    ends = (
        admin.list_partition_offsets(
            {TopicPartition(*topic_partition): OffsetSpec.LATEST for topic_partition in topic_partitions}
        )
        if topic_partitions
        else {}
    )
    rows = []
    for topic, partition in topic_partitions:
        known, member = committed.get((topic, partition)), members.get((topic, partition))
        current = None if known is None else known.offset
        end = ends[TopicPartition(topic, partition)].offset
        rows.append({
            "group": group.name,
            "topic": topic,
            "partition": partition,
            "current_offset": current,
            "log_end_offset": end,
            "lag": None if current is None else end - current,
            "consumer_id": None if member is None else member.member_id,
            "host": None if member is None else member.host,
            "client_id": None if member is None else member.client_id,
            "leader_epoch": None if known is None or known.leader_epoch < 0 else known.leader_epoch,
        })  # fmt: skip
    return rows


def _share_offsets(admin: Any, group: GroupView) -> list[Row]:
    return [
        {"group": group.name, "topic": topic, "partition": partition, **offset._asdict()}
        for (topic, partition), offset in sorted(share_offsets(admin, group.name).items())
    ]
