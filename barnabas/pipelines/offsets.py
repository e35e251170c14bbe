"""Which records a read is about: positions as options give them, offsets as a checkpoint keeps them, ranges for tasks.

Pure functions, after Spark's KafkaOffsetReader, KafkaMicroBatchStream and KafkaOffsetRangeCalculator: the same input
gives the same answer. Knows nothing of brokers; what has to be asked of them comes out as questions.
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
    """An option of a read or a write that is unknown, cannot be meant here, or does not fit the topics."""


class DataLoss(Exception):
    """Records that should have been read are not there any more; failOnDataLoss says whether that is an error."""


class Range(NamedTuple):
    """What one task reads: offsets from `start` up to and without `end`, of the topic that has this id."""

    topic: str
    partition: int
    start: int
    end: int
    topic_id: str | None = None

    @property
    def size(self) -> int:
        """How many offsets; the records may be fewer."""
        return self.end - self.start


@dataclass(frozen=True)
class Position:
    """Where to begin or to end, as an option says it.

    `everywhere` holds for every partition, `each` for each by name: exactly one is given. Both are offsets (EARLIEST
    and LATEST among them), or with `by_time` times in ms.
    """

    option: str
    everywhere: int | None = None
    each: Mapping[TopicPartition, int] | None = field(default=None, hash=False)
    by_time: bool = False

    def of(self, partitions: Iterable[TopicPartition]) -> PartitionOffsets:
        """The offset or time of each of these partitions; raises BadOption where some are not named, or too many."""
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
    """The offsets that a position means; `ask` is given EARLIEST, LATEST or times, and answers offsets (-1: none).

    Where a partition has no record as young as the time asked for it is the end, or with `nothing_that_young` "error"
    a BadOption (Spark's startingOffsetsByTimestampStrategy).
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
    """Ends that are about `limit` offsets after `start` in all, in proportion to what each partition has waiting.

    At least one of each that has any: a partition with little must not starve. One without a start is not limited.
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
    """Ranges for tasks: none longer than `max_records`, and about `min_partitions` of them if there would be fewer.

    The long ones are split, in proportion to their length; those that would be one part anyway are left out of that
    sum, as a task for each of them is spent already.
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
    """Rounded as Java rounds: a half goes up."""
    return max(math.floor(size / total * parts + 0.5), 1)


def _parts(range_: Range, count: int) -> list[Range]:
    """`count` ranges that make up this one; the last ones are one longer where it does not divide."""
    parts, start = [], range_.start
    for index in range(count):
        end = start + (range_.end - start) // (count - index)
        parts.append(range_._replace(start=start, end=end))
        start = end
    return parts


IDS, FROM = "#ids", "#from"
"""Beside topics in the JSON of a stream's offset; no topic can be called that."""


@dataclass(frozen=True)
class StreamOffset:
    """How far a stream has come: the next offset of each partition, and the ids of the topics it has read that of.

    `begun_at` is where the query began, told by the end of its first batch alone: Spark writes down the end of a batch
    and asks again for the beginning of the first one after a failure, when "latest" is somewhere else, retention has
    moved "earliest", or the options are others. Before that, in the offset that the query begins with, it is
    `UNDECIDED`.
    """

    at: Mapping[TopicPartition, int]
    ids: Mapping[str, str] = field(default_factory=dict)
    begun_at: Mapping[TopicPartition, int] | None = None

    def to_json(self) -> dict[str, Any]:
        """``{"topic": {"0": 23}, "#ids": {"topic": "..."}}``, all in order: Spark compares offsets as text."""
        result: dict[str, Any] = by_topic(self.at)
        if self.ids:
            result[IDS] = dict(sorted(self.ids.items()))
        if self.begun_at is not None:
            result[FROM] = by_topic(self.begun_at)
        return result

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "StreamOffset":
        """What `to_json` has made, or Spark's own Kafka source in its checkpoint."""
        topics = {topic: partitions for topic, partitions in value.items() if topic not in (IDS, FROM)}
        begun_at = value.get(FROM)
        return cls(
            at=of_topics(topics), ids=value.get(IDS, {}), begun_at=None if begun_at is None else of_topics(begun_at)
        )

    def recreated(self, now: "StreamOffset") -> set[str]:
        """Topics that have another id now: they were deleted, and made again under the same name."""
        return {topic for topic, topic_id in self.ids.items() if now.ids.get(topic, topic_id) != topic_id}

    def still(self, now: "StreamOffset") -> PartitionOffsets:
        """Where to go on in partitions that are still there, and are still the same."""
        recreated = self.recreated(now)
        return {part: at for part, at in self.at.items() if part in now.at and part.topic not in recreated}


UNDECIDED: Mapping[TopicPartition, int] = {}


class Plan(NamedTuple):
    """What a micro-batch reads, and which records it will not find."""

    ranges: list[Range]
    losses: list[str]


def plan(start: StreamOffset, end: StreamOffset, beginnings: Mapping[TopicPartition, int]) -> Plan:
    """The ranges between two offsets; `beginnings` has the first offset of each partition that `start.still` has not.

    What is lost: partitions that are gone, topics that were made again, new partitions whose first records are gone,
    partitions that end before they are to begin.
    """
    going_on, recreated, losses = start.still(end), start.recreated(end), []
    for topic in sorted(recreated):
        losses.append(
            f"topic {topic} was deleted and made again: what was not read of the old one ({start.ids[topic]}) is gone, "
            f"the new one ({end.ids[topic]}) is read from its beginning"
        )
    gone = [part for part in start.at if part not in end.at]
    if gone:
        losses.append(f"{_listed(gone)}: gone, the topic was deleted or is not subscribed any more")
    ranges = []
    for part, to in sorted(end.at.items()):
        begin = going_on.get(part, beginnings.get(part))
        if begin is None:
            losses.append(f"{part}: gone before its first record could be read")
            continue
        if part not in going_on and part.topic not in recreated and begin > 0:
            losses.append(f"{part}: a new partition, whose records before offset {begin} are gone")
        if to < begin:
            losses.append(f"{part}: ends at offset {to} now, before {begin} up to which it was read")
            continue
        ranges.append(Range(part.topic, part.partition, begin, to, end.ids.get(part.topic)))
    return Plan(ranges, losses)


def by_topic(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """``{"topic": {"0": 23}}``, topics and partitions in order."""
    result: dict[str, dict[str, int]] = {}
    for (topic, partition), at in sorted(offsets.items()):
        result.setdefault(topic, {})[str(partition)] = at
    return result


def of_topics(topics: Mapping[str, Mapping[str, int]]) -> PartitionOffsets:
    """What `by_topic` was made of."""
    return {
        TopicPartition(topic, int(partition)): at
        for topic, partitions in topics.items()
        for partition, at in partitions.items()
    }


def parsed_offsets(option: str, text: str, lowest: int = EARLIEST) -> PartitionOffsets:
    """The value of an option like ``{"orders": {"0": 23, "1": -2}}``; raises BadOption with an example."""
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
    """The value of an option like ``{"orders": [0, 1]}``, in order; raises BadOption with an example."""
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
