"""Offsets of a read: positions from options, offsets for checkpoints, ranges for tasks.

Pure functions that follow Spark's KafkaOffsetReader, KafkaMicroBatchStream and KafkaOffsetRangeCalculator. Knows
nothing of brokers: callers pass in a function that looks up offsets.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from barnabas.pipelines.client import EARLIEST, LATEST, TopicPartition
from barnabas.pipelines.client.settings import BadSetting

PartitionOffsets = dict[TopicPartition, int]


class BadOption(BadSetting):
    """An option of a read or a write is unknown, not allowed here, or does not match the topics."""


class DataLoss(Exception):
    """Records to read do not exist any more; failOnDataLoss determines whether that is an error."""


class Range(NamedTuple):
    """The offsets that one task reads, from `start` to before `end`, of the topic with this id."""

    topic: str
    partition: int
    start: int
    end: int
    topic_id: str | None = None

    @property
    def size(self) -> int:
        """The number of offsets; there may be fewer records."""
        return self.end - self.start


@dataclass(frozen=True)
class Position:
    """The start or the end of a read, as an option gives it.

    Exactly one of `everywhere`, for every partition, and `each`, by partition, is given. Both are offsets (also
    EARLIEST and LATEST), or with `by_time` times in ms.
    """

    option: str
    everywhere: int | None = None
    each: Mapping[TopicPartition, int] | None = field(default=None, hash=False)
    by_time: bool = False

    def of(self, partitions: Iterable[TopicPartition]) -> PartitionOffsets:
        """Returns the offset or time of each of these partitions.

        :raises BadOption: the option does not name exactly these partitions.
        """
        wanted = set(partitions)
        if self.each is None:
            assert self.everywhere is not None
            return dict.fromkeys(sorted(wanted), self.everywhere)
        missing, surplus = wanted - set(self.each), set(self.each) - wanted
        if missing or surplus:
            hint = "" if self.by_time else "; -1 means latest, -2 earliest"
            raise BadOption(
                f"{self.option} must name every partition that is read, and no other{hint}"
                + (f"; missing: {_listed(missing)}" if missing else "")
                + (f"; not read: {_listed(surplus)}" if surplus else "")
            )
        return {partition: self.each[partition] for partition in sorted(wanted)}


def resolve(
    position: Position,
    partitions: Iterable[TopicPartition],
    ask: Callable[[PartitionOffsets], Mapping[TopicPartition, int]],
    *,
    nothing_that_young: str = "latest",
) -> PartitionOffsets:
    """Returns the offsets of a position.

    :param ask: looks up the offsets for EARLIEST, LATEST or times; -1 if there is none.
    :param nothing_that_young: the meaning of a time in a partition without a record since then: "latest", its end, or
        "error" (Spark's startingOffsetsByTimestampStrategy).
    :raises BadOption: there is such a partition, and the strategy is "error".
    """
    wanted = position.of(partitions)
    if not position.by_time:
        questions = {partition: at for partition, at in wanted.items() if at < 0}
        return {**wanted, **(ask(questions) if questions else {})}
    found = dict(ask(wanted))
    late = [partition for partition in wanted if found[partition] < 0]
    if late and nothing_that_young == "error":
        raise BadOption(
            f"{position.option}: {late[0]} has no record with a time of {wanted[late[0]]} ms or later; "
            "startingOffsetsByTimestampStrategy=latest begins at its end instead"
        )
    if late:
        found.update(ask(dict.fromkeys(late, LATEST)))
    return {partition: found[partition] for partition in wanted}


def rate_limited(
    limit: int, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]
) -> PartitionOffsets:
    """Returns ends that are about `limit` offsets after `start` in total, in proportion to the lag of each partition.

    A partition with lag gets at least one offset, so that none starves. A partition without a start is not limited.
    """
    waiting = {
        partition: to - start[partition]
        for partition, to in end.items()
        if partition in start and to > start[partition]
    }
    total = sum(waiting.values())
    limited = dict(end)
    for partition, size in waiting.items():
        share = limit * (size / total)
        limited[partition] = min(end[partition], start[partition] + (math.ceil(share) if share < 1 else int(share)))
    return limited


def split(ranges: Sequence[Range], *, min_partitions: int | None = None, max_records: int | None = None) -> list[Range]:
    """Returns ranges for tasks: none longer than `max_records`, and about `min_partitions` of them, if there would be
    fewer.

    Long ranges are split in proportion to their length. Ranges that remain a single part are not counted, as each of
    them has its task anyway.
    """
    ranges = [range_ for range_ in ranges if range_.size > 0]
    if max_records is not None:
        ranges = [part for range_ in ranges for part in _parts(range_, math.ceil(range_.size / max_records))]
    if min_partitions is None or min_partitions <= len(ranges):
        return list(ranges)
    total = sum(range_.size for range_ in ranges)
    whole = [range_ for range_ in ranges if _share(range_.size, total, min_partitions) == 1]
    left, parts = total - sum(range_.size for range_ in whole), max(min_partitions - len(whole), 1)
    result = []
    for range_ in ranges:
        if _share(range_.size, total, min_partitions) == 1:
            result.append(range_)
        else:
            result += [part for part in _parts(range_, _share(range_.size, left, parts)) if part.size > 0]
    return result


def _share(size: int, total: int, parts: int) -> int:
    """Returns the rounded share, as Java rounds: a half is rounded up."""
    return max(math.floor(size / total * parts + 0.5), 1)


def _parts(range_: Range, count: int) -> list[Range]:
    """Returns `count` ranges that make up this one; the last ones may be one longer."""
    parts, start = [], range_.start
    for index in range(count):
        end = start + (range_.end - start) // (count - index)
        parts.append(range_._replace(start=start, end=end))
        start = end
    return parts


IDS, FROM = "#ids", "#from"
"""Keys beside topics in the JSON of a stream's offset; they are not valid topic names."""


@dataclass(frozen=True)
class StreamOffset:
    """The position of a stream: the next offset of each partition, and the ids of the topics.

    Only the end of a query's first batch has `begun_at`, the offsets at which the query began. After a failure Spark
    Only the end of a query's first batch has `begun_at`, the offsets at which the query began. After a failure Spark
    requests the beginning of the first batch again, and the result may differ: there are new records, retention has
    moved the earliest offset, or the options have changed. In the offset with which the query begins, `begun_at` is
    `UNDECIDED`.
    """

    at: Mapping[TopicPartition, int]
    ids: Mapping[str, str] = field(default_factory=dict)
    begun_at: Mapping[TopicPartition, int] | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns ``{"topic": {"0": 23}, "#ids": {"topic": "..."}}``, sorted, as Spark compares offsets as text."""
        result: dict[str, Any] = by_topic(self.at)
        if self.ids:
            result[IDS] = dict(sorted(self.ids.items()))
        if self.begun_at is not None:
            result[FROM] = by_topic(self.begun_at)
        return result

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "StreamOffset":
        """Reads what `to_json` wrote, or what Spark's own Kafka source wrote to its checkpoint."""
        topics = {topic: partitions for topic, partitions in value.items() if topic not in (IDS, FROM)}
        begun_at = value.get(FROM)
        return cls(
            at=of_topics(topics), ids=value.get(IDS, {}), begun_at=None if begun_at is None else of_topics(begun_at)
        )

    def recreated(self, now: "StreamOffset") -> set[str]:
        """Returns the topics whose id has changed: they were deleted, and created again with the same name."""
        return {topic for topic, topic_id in self.ids.items() if now.ids.get(topic, topic_id) != topic_id}

    def still(self, now: "StreamOffset") -> PartitionOffsets:
        """Returns the offsets to continue at in partitions that still exist."""
        recreated = self.recreated(now)
        return {part: at for part, at in self.at.items() if part in now.at and part.topic not in recreated}


UNDECIDED: Mapping[TopicPartition, int] = {}


class Plan(NamedTuple):
    """The ranges of a micro-batch, and descriptions of lost records."""

    ranges: list[Range]
    losses: list[str]


def plan(start: StreamOffset, end: StreamOffset, beginnings: Mapping[TopicPartition, int]) -> Plan:
    """Returns the ranges between two offsets, and what is lost.

    Lost are partitions that no longer exist, topics that were created again, new partitions without their first
    records, and partitions that end before the start.

    :param beginnings: the first offset of each partition that `start.still` does not contain.
    """
    going_on, recreated, losses = start.still(end), start.recreated(end), []
    for topic in sorted(recreated):
        losses.append(
            f"topic {topic} was deleted and created again: unread records of the old topic ({start.ids[topic]}) are "
            f"lost, the new one ({end.ids[topic]}) is read from its beginning"
        )
    gone = [part for part in start.at if part not in end.at]
    if gone:
        losses.append(f"{_listed(gone)}: lost, as the topic was deleted or is not subscribed any more")
    ranges = []
    for part, to in sorted(end.at.items()):
        begin = going_on.get(part, beginnings.get(part))
        if begin is None:
            losses.append(f"{part}: deleted before its first record was read")
            continue
        if part not in going_on and part.topic not in recreated and begin > 0:
            losses.append(f"{part}: the records before offset {begin} of this new partition are lost")
        if to < begin:
            losses.append(f"{part}: it ends at offset {to}, but was read up to offset {begin}")
            continue
        ranges.append(Range(part.topic, part.partition, begin, to, end.ids.get(part.topic)))
    return Plan(ranges, losses)


def by_topic(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Returns ``{"topic": {"0": 23}}``, sorted by topic and partition."""
    result: dict[str, dict[str, int]] = {}
    for (topic, partition), at in sorted(offsets.items()):
        result.setdefault(topic, {})[str(partition)] = at
    return result


def of_topics(topics: Mapping[str, Mapping[str, int]]) -> PartitionOffsets:
    """Reverses `by_topic`."""
    return {
        TopicPartition(topic, int(partition)): at
        for topic, partitions in topics.items()
        for partition, at in partitions.items()
    }


def parsed_offsets(option: str, text: str, lowest: int = EARLIEST) -> PartitionOffsets:
    """Parses an option like ``{"orders": {"0": 23, "1": -2}}``.

    :raises BadOption: the text is something else; the message has an example.
    """
    problem = f'{option} must be JSON like {{"orders": {{"0": 23, "1": {max(lowest, -2)}}}}}'
    value = _json(problem, text)
    result = {}
    for topic, partitions in value.items():
        if not isinstance(partitions, dict) or not partitions:
            raise BadOption(f"{problem}; topic {topic!r} has no partitions")
        for partition, at in partitions.items():
            if not partition.isdecimal() or type(at) is not int or at < lowest:
                raise BadOption(f"{problem}; {topic!r} has {json.dumps(partition)}: {json.dumps(at)}")
            result[TopicPartition(topic, int(partition))] = at
    return result


def parsed_partitions(option: str, text: str) -> list[TopicPartition]:
    """Parses an option like ``{"orders": [0, 1]}``, and sorts the partitions.

    :raises BadOption: the text is something else; the message has an example.
    """
    problem = f'{option} must be JSON like {{"orders": [0, 1]}}'
    value = _json(problem, text)
    for topic, partitions in value.items():
        numbers = isinstance(partitions, list) and partitions
        if not numbers or any(type(partition) is not int or partition < 0 for partition in partitions):
            raise BadOption(f"{problem}; {topic!r} has {json.dumps(partitions)}")
    return sorted({TopicPartition(topic, partition) for topic, partitions in value.items() for partition in partitions})


def _json(problem: str, text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as wrong:
        raise BadOption(f"{problem}, which {text!r} is not: {wrong}") from None
    if not isinstance(value, dict) or not value:
        raise BadOption(f"{problem}, which {text!r} is not")
    return value


def _listed(partitions: Iterable[TopicPartition], most: int = 10) -> str:
    every = sorted(partitions)
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(map(str, every[:most])) + more
