"""Resets and deletes the offsets of groups.

Knows nothing of what is printed. The rules are those of kafka-consumer-groups and kafka-share-groups: the group must
have no members, and an offset outside the log becomes the nearest one in it.
"""

import csv
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from barnabas.cli.group_views import SHARE, TopicAndPartition, state_of
from barnabas.cli.share_offsets import alter_share_offsets, delete_share_offsets, share_offsets
from barnabas.clock import SystemClock

_TARGETS = ("target", "to_offset", "shift_by", "to_datetime", "by_duration", "from_file")
_ONE_TARGET = (
    "One of --to-earliest, --to-latest, --to-current, --to-offset, --shift-by, --to-datetime, --by-duration and "
    "--from-file must be given"
)
_OF_SHARE_GROUPS = "A share group can be reset by --to-earliest, --to-latest or --to-datetime only"


def reset_offsets(admin: Any, group: str, type_: str | None, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns a row for each partition with its new offset; commits the offsets only if ``execute`` is given.

    :param type_: the type of the group; None if it does not exist
    :raises click.ClickException: the group has members, or the options cannot be applied to it
    """
    if sum(given[name] is not None for name in _TARGETS) != 1:
        raise click.UsageError(_ONE_TARGET)
    if type_ == SHARE and given["to_datetime"] is None and given["target"] not in ("earliest", "latest"):
        raise click.UsageError(_OF_SHARE_GROUPS)
    state = state_of(admin, group, type_)
    if state not in ("Empty", "Dead"):
        raise click.ClickException(f"Group {group} has members (it is {state}): its offsets cannot be reset")
    committed, wanted = _committed(admin, group, type_), {}
    if given["from_file"] is not None:
        wanted = read_file(given["from_file"], group)
        topic_partitions = sorted(wanted)
    else:
        topic_partitions = chosen(admin, given["topics"], committed, all_topics=given["all_topics"])
    bounds = Bounds(admin, topic_partitions)
    offsets = {
        topic_partition: bounds.nearest(topic_partition, new_offset(topic_partition, given, committed, wanted, bounds))
        for topic_partition in topic_partitions
    }
    errors: Mapping[TopicAndPartition, str | None] = {}
    if given["execute"]:
        errors = (alter_share_offsets if type_ == SHARE else _commit)(admin, group, offsets)
    return [
        {
            "group": group,
            "topic": topic,
            "partition": partition,
            "new_offset": offset,
            "error": errors.get((topic, partition)),
        }
        for (topic, partition), offset in offsets.items()
    ]


def _committed(admin: Any, group: str, type_: str | None) -> dict[TopicAndPartition, int]:
    if type_ == SHARE:
        return {
            topic_partition: each.start_offset or 0 for topic_partition, each in share_offsets(admin, group).items()
        }
    return {(topic, index): it.offset for (topic, index), it in admin.list_group_offsets(group)[group].items()}


def delete_offsets(admin: Any, group: str, type_: str, topics: tuple[str, ...]) -> list[dict[str, Any]]:
    """Deletes offsets; returns a row for each partition, or for each topic if it is a share group."""
    from kafka import TopicPartition

    if type_ == SHARE:
        if not topics or any(":" in topic for topic in topics):
            raise click.UsageError(
                "--topic must be given, without partitions: a share group's offsets are deleted by topic"
            )
        errors = delete_share_offsets(admin, group, topics)
        return [
            {"group": group, "topic": topic, "partition": None, "error": errors.get(topic)} for topic in sorted(errors)
        ]
    topic_partitions = chosen(admin, topics, {}, all_topics=False)
    answers = admin.delete_group_offsets(
        group, [TopicPartition(*topic_partition) for topic_partition in topic_partitions]
    )
    return [
        {
            "group": group,
            "topic": topic_partition[0],
            "partition": topic_partition[1],
            "error": error_name(answers[TopicPartition(*topic_partition)]),
        }
        for topic_partition in topic_partitions
    ]


class Bounds:
    """The earliest and latest offsets of partitions, and their offsets for a timestamp."""

    def __init__(self, admin: Any, topic_partitions: list[TopicAndPartition]) -> None:
        from kafka.admin import OffsetSpec

        self._admin, self._topic_partitions = admin, topic_partitions
        self.earliest = self._at(OffsetSpec.EARLIEST)
        self.latest = self._at(OffsetSpec.LATEST)
        self._by_timestamp: dict[int, dict[TopicAndPartition, int]] = {}

    def _at(self, spec: int) -> dict[TopicAndPartition, int]:
        from kafka import TopicPartition

        if not self._topic_partitions:
            return {}
        found = self._admin.list_partition_offsets(
            {TopicPartition(*topic_partition): spec for topic_partition in self._topic_partitions}
        )
        return {
            topic_partition: found[TopicPartition(*topic_partition)].offset
            for topic_partition in self._topic_partitions
        }

    def since(self, topic_partition: TopicAndPartition, timestamp: int) -> int:
        """Returns the offset of the first record with that timestamp or a later one; the latest offset without one."""
        if timestamp not in self._by_timestamp:
            self._by_timestamp[timestamp] = self._at(timestamp)
        offset = self._by_timestamp[timestamp][topic_partition]
        return offset if offset >= 0 else self.latest[topic_partition]

    def nearest(self, topic_partition: TopicAndPartition, offset: int) -> int:
        """Returns the offset, or the nearest one within the log."""
        return min(max(offset, self.earliest[topic_partition]), self.latest[topic_partition])


def new_offset(
    topic_partition: TopicAndPartition,
    given: Mapping[str, Any],
    committed: Mapping[TopicAndPartition, int],
    wanted: Mapping[TopicAndPartition, int],
    bounds: Bounds,
) -> int:
    """Returns the offset that the options select for a partition; it may be outside the log."""
    if given["to_offset"] is not None:
        return int(given["to_offset"])
    if given["shift_by"] is not None:
        if topic_partition not in committed:
            raise click.ClickException(f"The group has no offset of {topic_partition[0]}-{topic_partition[1]} to shift")
        return int(committed[topic_partition] + given["shift_by"])
    if given["to_datetime"] is not None:
        return bounds.since(topic_partition, moment(given["to_datetime"]))
    if given["by_duration"] is not None:
        return bounds.since(topic_partition, SystemClock().time_ms() - duration_ms(given["by_duration"]))
    if given["from_file"] is not None:
        return wanted[topic_partition]
    if given["target"] == "earliest":
        return bounds.earliest[topic_partition]
    return (
        committed.get(topic_partition, bounds.latest[topic_partition])
        if given["target"] == "current"
        else bounds.latest[topic_partition]
    )


def chosen(
    admin: Any, topics: tuple[str, ...], committed: Mapping[TopicAndPartition, int], *, all_topics: bool
) -> list[TopicAndPartition]:
    """Returns the partitions of ``--topic topic`` and ``--topic topic:0,1``, or those of which the group has offsets.

    :raises click.ClickException: the options select none, or a topic or partition does not exist
    """
    if all_topics:
        return sorted(committed)
    if not topics:
        raise click.UsageError("--topic or --all-topics must be given")
    there = {
        topic["name"]: [partition["partition_index"] for partition in topic["partitions"]]
        for topic in admin.describe_topics(sorted({topic.partition(":")[0] for topic in topics}))
        if not topic["error_code"]
    }
    topic_partitions: set[TopicAndPartition] = set()
    for text in topics:
        topic, _, partitions = text.partition(":")
        if topic not in there:
            raise click.ClickException(f"There is no topic {topic}")
        for partition in partitions.split(",") if partitions else map(str, there[topic]):
            if not partition.isdecimal() or int(partition) not in there[topic]:
                raise click.ClickException(f"Topic {topic} has no partition {partition}")
            topic_partitions.add((topic, int(partition)))
    return sorted(topic_partitions)


def read_file(path: str, group: str) -> dict[TopicAndPartition, int]:
    """Reads offsets from lines of ``topic,partition,offset`` or ``group,topic,partition,offset``.

    :raises click.ClickException: the file cannot be read or parsed
    """
    wanted: dict[TopicAndPartition, int] = {}
    try:
        rows = list(csv.reader(Path(path).read_text("utf-8").splitlines()))
        for row in rows:
            if len(row) == 4 and row[0] != group:
                continue
            topic, partition, offset = row[-3:]
            wanted[topic, int(partition)] = int(offset)
    except (OSError, ValueError) as error:
        raise click.ClickException(f"{path} has no lines of topic,partition,offset: {error}") from None
    return wanted


def moment(text: str) -> int:
    """Parses an ISO 8601 date and time, in UTC unless it has an offset, and returns milliseconds since 1970.

    :raises click.UsageError: the text is something else
    """
    try:
        then = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(f"--to-datetime is {text!r}, but must be like 2026-11-21T15:00:00.000") from None
    return round((then if then.tzinfo else then.replace(tzinfo=UTC)).timestamp() * 1000)


def duration_ms(text: str) -> int:
    """Parses an ISO 8601 duration of days, hours, minutes and seconds, and returns milliseconds.

    :raises click.UsageError: the text is something else
    """
    pattern = r"P(?=.)(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"
    found = re.fullmatch(pattern, text.upper())
    if not found:
        raise click.UsageError(f"--by-duration is {text!r}, but must be like P1DT2H30M")
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)


def error_name(error: Any) -> str | None:
    """Returns Kafka's name of a client's error, which may be a class or an instance; None for no error."""
    name = error.__name__ if isinstance(error, type) else type(error).__name__
    return None if name == "NoError" else name.removesuffix("Error")


def _commit(admin: Any, group: str, offsets: Mapping[TopicAndPartition, int]) -> dict[TopicAndPartition, str | None]:
    from kafka import TopicPartition
    from kafka.structs import OffsetAndMetadata

    wanted = {
        TopicPartition(*topic_partition): OffsetAndMetadata(offset, "", -1)
        for topic_partition, offset in offsets.items()
    }
    answers = admin.alter_group_offsets(group, wanted)
    return {tuple(topic_partition): error_name(error) for topic_partition, error in answers.items()}
