"""Where a group's offsets are to be reset to, and resetting and deleting them.

Knows nothing of what is printed. Rules are those of kafka-consumer-groups and kafka-share-groups: the group must
have no members, and an offset that is not there becomes the nearest that is.
"""

import csv
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from barnabas.cli.group_views import SHARE, Place, state_of
from barnabas.cli.share_offsets import alter_share_offsets, delete_share_offsets, share_offsets
from barnabas.clock import SystemClock

_TARGETS = ("target", "to_offset", "shift_by", "to_datetime", "by_duration", "from_file")
_ONE_TARGET = (
    "One of --to-earliest, --to-latest, --to-current, --to-offset, --shift-by, --to-datetime, --by-duration and "
    "--from-file must be given"
)
_OF_SHARE_GROUPS = "A share group is reset by one of --to-earliest, --to-latest and --to-datetime"


def reset_offsets(admin: Any, group: str, type_: str | None, given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row for each partition with its new offset; set only if ``execute`` is among the options.

    ``type_`` is the group's, None where there is none yet.

    Raises:
        click.ClickException: the group has members, or what was asked for cannot be.
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
        places = sorted(wanted)
    else:
        places = chosen(admin, given["topics"], committed, all_topics=given["all_topics"])
    bounds = Bounds(admin, places)
    offsets = {place: bounds.nearest(place, new_offset(place, given, committed, wanted, bounds)) for place in places}
    errors: Mapping[Place, str | None] = {}
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


def _committed(admin: Any, group: str, type_: str | None) -> dict[Place, int]:
    if type_ == SHARE:
        return {place: each.start_offset or 0 for place, each in share_offsets(admin, group).items()}
    return {(topic, index): it.offset for (topic, index), it in admin.list_group_offsets(group)[group].items()}


def delete_offsets(admin: Any, group: str, type_: str, topics: tuple[str, ...]) -> list[dict[str, Any]]:
    """A row for each partition whose offset was to be deleted; a share group forgets whole topics."""
    from kafka import TopicPartition

    if type_ == SHARE:
        if not topics or any(":" in topic for topic in topics):
            raise click.UsageError("--topic must be given, without partitions: share groups forget whole topics")
        errors = delete_share_offsets(admin, group, topics)
        return [
            {"group": group, "topic": topic, "partition": None, "error": errors.get(topic)} for topic in sorted(errors)
        ]
    places = chosen(admin, topics, {}, all_topics=False)
    answers = admin.delete_group_offsets(group, [TopicPartition(*place) for place in places])
    return [
        {"group": group, "topic": place[0], "partition": place[1], "error": error_name(answers[TopicPartition(*place)])}
        for place in places
    ]


class Bounds:
    """The first and the last offset of partitions, and the ones at a moment."""

    def __init__(self, admin: Any, places: list[Place]) -> None:
        from kafka.admin import OffsetSpec

        self._admin, self._places = admin, places
        self.earliest = self._at(OffsetSpec.EARLIEST)
        self.latest = self._at(OffsetSpec.LATEST)
        self._moments: dict[int, dict[Place, int]] = {}

    def _at(self, spec: int) -> dict[Place, int]:
        from kafka import TopicPartition

        if not self._places:
            return {}
        found = self._admin.list_partition_offsets({TopicPartition(*place): spec for place in self._places})
        return {place: found[TopicPartition(*place)].offset for place in self._places}

    def since(self, place: Place, timestamp: int) -> int:
        """The offset of the first record of then or later; the end where there is none."""
        if timestamp not in self._moments:
            self._moments[timestamp] = self._at(timestamp)
        offset = self._moments[timestamp][place]
        return offset if offset >= 0 else self.latest[place]

    def nearest(self, place: Place, offset: int) -> int:
        """The offset, or the nearest that is there."""
        return min(max(offset, self.earliest[place]), self.latest[place])


def new_offset(
    place: Place, given: Mapping[str, Any], committed: Mapping[Place, int], wanted: Mapping[Place, int], bounds: Bounds
) -> int:
    """What the options make of the partition's offset, which may yet lie beyond its bounds."""
    if given["to_offset"] is not None:
        return int(given["to_offset"])
    if given["shift_by"] is not None:
        if place not in committed:
            raise click.ClickException(f"The group has no offset of {place[0]}-{place[1]} that could be shifted")
        return int(committed[place] + given["shift_by"])
    if given["to_datetime"] is not None:
        return bounds.since(place, moment(given["to_datetime"]))
    if given["by_duration"] is not None:
        return bounds.since(place, SystemClock().time_ms() - duration_ms(given["by_duration"]))
    if given["from_file"] is not None:
        return wanted[place]
    if given["target"] == "earliest":
        return bounds.earliest[place]
    return committed.get(place, bounds.latest[place]) if given["target"] == "current" else bounds.latest[place]


def chosen(admin: Any, topics: tuple[str, ...], committed: Mapping[Place, int], *, all_topics: bool) -> list[Place]:
    """The partitions of ``--topic topic`` and ``--topic topic:0,1``, or those that the group has offsets of.

    Raises:
        click.ClickException: nothing was said, or there is no such topic or partition.
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
    places: set[Place] = set()
    for text in topics:
        topic, _, partitions = text.partition(":")
        if topic not in there:
            raise click.ClickException(f"There is no topic {topic}")
        for partition in partitions.split(",") if partitions else map(str, there[topic]):
            if not partition.isdecimal() or int(partition) not in there[topic]:
                raise click.ClickException(f"Topic {topic} has no partition {partition}")
            places.add((topic, int(partition)))
    return sorted(places)


def read_file(path: str, group: str) -> dict[Place, int]:
    """Lines of ``topic,partition,offset``; lines with a group before them count for that group.

    Raises:
        click.ClickException: it cannot be read, or a line is of another shape.
    """
    wanted: dict[Place, int] = {}
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
    """Milliseconds since 1970 of an ISO 8601 date and time; UTC, where it does not say.

    Raises:
        click.UsageError: it is none.
    """
    try:
        then = datetime.fromisoformat(text)
    except ValueError:
        raise click.UsageError(f"--to-datetime is {text!r}, but must be like 2026-11-21T15:00:00.000") from None
    return round((then if then.tzinfo else then.replace(tzinfo=UTC)).timestamp() * 1000)


def duration_ms(text: str) -> int:
    """Milliseconds of an ISO 8601 duration of days, hours, minutes and seconds.

    Raises:
        click.UsageError: it is none.
    """
    pattern = r"P(?=.)(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?"
    found = re.fullmatch(pattern, text.upper())
    if not found:
        raise click.UsageError(f"--by-duration is {text!r}, but must be like P1DT2H30M")
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)


def error_name(error: Any) -> str | None:
    """Kafka's name of an error that the client gives as a class; None for its class for none."""
    name = error.__name__ if isinstance(error, type) else type(error).__name__
    return None if name == "NoError" else name.removesuffix("Error")


def _commit(admin: Any, group: str, offsets: Mapping[Place, int]) -> dict[Place, str | None]:
    from kafka import TopicPartition
    from kafka.structs import OffsetAndMetadata

    wanted = {TopicPartition(*place): OffsetAndMetadata(offset, "", -1) for place, offset in offsets.items()}
    answers = admin.alter_group_offsets(group, wanted)
    return {tuple(place): error_name(error) for place, error in answers.items()}
