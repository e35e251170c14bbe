"""The options of the data source: their names, values, scopes and descriptions.

Names and meanings are those of Spark's own Kafka source and sink (KafkaSourceProvider) where these have the option. The
reference page is generated from these tables. Knows nothing of how an option is implemented.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas.pipelines.client.write_settings import PRODUCER_REFUSED, PRODUCER_SETTINGS

BATCH_READ, STREAM_READ, BATCH_WRITE, STREAM_WRITE = "batch read", "stream read", "batch write", "stream write"
ANY_READ = "read"
"""The scope of a read that may become a batch or a stream."""
READS, WRITES = frozenset({BATCH_READ, STREAM_READ}), frozenset({BATCH_WRITE, STREAM_WRITE})


class OptionDef(NamedTuple):
    """One option. `parse` converts its text, or raises ValueError with the allowed values."""

    name: str
    parse: Callable[[str], Any]
    default: str | None
    scopes: frozenset[str]
    doc: str


def _number(lowest: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not re.fullmatch(r"\s*[+-]?\d+\s*", text) or int(text) < lowest:
            raise ValueError(f"must be a whole number, {lowest} or more")
        return int(text)

    return parse


def _flag(text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise ValueError("must be true or false")
    return text.strip().lower() == "true"


def _choice(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.strip().lower() not in choices:
            raise ValueError(f"must be one of {', '.join(choices)}")
        return text.strip().lower()

    return parse


_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400}


def _duration(text: str) -> float:
    """Returns the seconds of ``15m``, ``500ms`` or ``20``: milliseconds without a unit (Spark's
    JavaUtils.timeStringAs).
    """
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    if not found or (found[2] and found[2] not in _UNITS):
        raise ValueError(f"must be a number and one of {', '.join(_UNITS)}, such as 15m")
    return int(found[1]) * _UNITS[found[2] or "ms"]


def _topics(text: str) -> tuple[str, ...]:
    topics = tuple(dict.fromkeys(filter(None, (topic.strip() for topic in text.split(",")))))
    if not topics:
        raise ValueError("must name at least one topic")
    for topic in topics:
        _topic(topic)
    return topics


def _topic(text: str) -> str:
    if not re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", text) or text in (".", ".."):
        raise ValueError(f"{text!r} is not a valid topic: use up to 249 letters, digits, dots, hyphens and underscores")
    return text


def _pattern(text: str) -> str:
    if not text.strip():
        raise ValueError("must be a regular expression that topics match from end to end")
    try:
        re.compile(text.strip())
    except re.error as problem:
        raise ValueError(f"is not a regular expression: {problem}") from None
    return text.strip()


_STREAM, _BATCH = frozenset({STREAM_READ}), frozenset({BATCH_READ})

READ = {
    option.name.lower(): option
    for option in (
        OptionDef("subscribe", _topics, None, READS, "the topics to read, separated by commas"),
        OptionDef(
            "subscribePattern",
            _pattern,
            None,
            READS,
            "a regular expression to find in the names of topics, as with Spark's connector: `^orders$` is one topic",
        ),
        OptionDef("assign", str, None, READS, 'the partitions to read: `{"orders": [0, 1]}`'),
        OptionDef(
            "startingOffsets",
            str,
            None,
            READS,
            "where to begin: `earliest` (the default of a batch), `latest` (the default of a stream), or "
            'for each partition `{"orders": {"0": 23, "1": -2}}` with -2 for earliest, -1 for latest. A stream with a '
            "checkpoint continues from it; new partitions are read from their beginning",
        ),
        OptionDef(
            "startingTimestamp",
            _number(0),
            None,
            READS,
            "where to begin: at the first record with this time (ms since 1970, UTC) or later, in every partition; "
            "overrides startingOffsetsByTimestamp and startingOffsets",
        ),
        OptionDef(
            "startingOffsetsByTimestamp",
            str,
            None,
            READS,
            'the same with a time for each partition: `{"orders": {"0": 1700000000000}}`; overrides startingOffsets',
        ),
        OptionDef(
            "startingOffsetsByTimestampStrategy",
            _choice("error", "latest"),
            "error",
            READS,
            "if a partition has no record with such a time or later: `error`, or `latest` to begin at its end",
        ),
        OptionDef(
            "endingOffsets",
            str,
            "latest",
            _BATCH,
            'where to end, before this offset: `latest`, or `{"orders": {"0": 50, "1": -1}}`',
        ),
        OptionDef(
            "endingTimestamp",
            _number(0),
            None,
            _BATCH,
            "where to end: before the first record with this time or later, or at the end if there is none; overrides "
            "endingOffsetsByTimestamp and endingOffsets",
        ),
        OptionDef("endingOffsetsByTimestamp", str, None, _BATCH, "the same with a time for each partition"),
        OptionDef(
            "maxOffsetsPerTrigger",
            _number(1),
            None,
            _STREAM,
            "about how many offsets a micro-batch reads at most, divided among partitions in proportion to their lag",
        ),
        OptionDef("minOffsetsPerTrigger", _number(1), None, _STREAM, "how many unread offsets start a micro-batch"),
        OptionDef("maxTriggerDelay", _duration, "15m", _STREAM, "when a micro-batch starts with fewer"),
        OptionDef(
            "minPartitions",
            _number(1),
            None,
            READS,
            "about how many tasks to read with; long partitions are split if there are fewer partitions",
        ),
        OptionDef("maxRecordsPerPartition", _number(1), None, READS, "about how many offsets a task reads at most"),
        OptionDef(
            "failOnDataLoss",
            _flag,
            "true",
            READS,
            "whether it is an error if records do not exist any more (retention, a deleted topic), or a warning",
        ),
        OptionDef("includeHeaders", _flag, "false", READS, "whether there is a column `headers`"),
        OptionDef(
            "commitGroup",
            str,
            None,
            _STREAM,
            "a consumer group to which each finished micro-batch commits its offsets, so that any Kafka tool shows the "
            "query's lag; the query itself continues from its checkpoint",
        ),
        OptionDef(
            "fetchOffset.numRetries", _number(1), "3", READS, "how often to ask again if an end offset has decreased"
        ),
        OptionDef("fetchOffset.retryIntervalMs", _number(0), "1000", READS, "the pause before that, in ms"),
        OptionDef(
            "kafkaConsumer.pollTimeoutMs",
            _number(1),
            "120000",
            READS,
            "how long a task waits for records that should exist, in ms",
        ),
        OptionDef(
            "kafka.isolation.level",
            _choice("read_uncommitted", "read_committed"),
            "read_uncommitted",
            READS,
            "whether to read records of open and aborted transactions",
        ),
        OptionDef("kafka.fetch.max.wait.ms", _number(0), "500", READS, "how long a broker waits for records, in ms"),
        OptionDef("kafka.max.partition.fetch.bytes", _number(1), "4194304", READS, "the most bytes of a fetch"),
        OptionDef(
            "kafka.client.rack", str, "", READS, "the rack of the tasks, which may read from replicas there (KIP-392)"
        ),
        OptionDef("kafka.check.crcs", _flag, "true", READS, "whether to check checksums"),
    )
}

WRITE = {
    option.name.lower(): option
    for option in (
        OptionDef("topic", _topic, None, WRITES, "the topic of all records; by default each row's column `topic`"),
        OptionDef(
            "delivery",
            _choice("at-least-once", "exactly-once"),
            "at-least-once",
            WRITES,
            "`exactly-once` writes each task's records in one transaction, and only once if a batch is "
            "repeated; `at-least-once` may then write them again",
        ),
        OptionDef(
            "sinkId",
            str,
            None,
            WRITES,
            "the name under which exactly-once records batches, and the prefix of its transactional ids; by default "
            "made of the query's id, and new for each batch query",
        ),
        OptionDef(
            "batchId",
            _number(0),
            None,
            frozenset({BATCH_WRITE}),
            "with sinkId and exactly-once: the number of this write, which does nothing if this or a later number "
            "has been written",
        ),
        *(
            OptionDef(f"kafka.{setting.name}", setting.check, setting.default, WRITES, setting.doc)
            for setting in PRODUCER_SETTINGS.values()
        ),
    )
}

NOT_OURS = frozenset({"checkpointlocation", "queryname", "outputmode"})
"""Options that Spark passes to a source or sink but uses itself."""

NO_EFFECT = {
    "path": "set subscribe to read a topic, and topic to write one",
    "groupIdPrefix": "the source joins no consumer group; commitGroup shows a query's lag",
    "kafka.group.id": "the source joins no consumer group; commitGroup shows a query's lag",
    "kafka.fetch.min.bytes": "the amount to read is known: a fetch does not wait for more",
    "kafka.fetch.max.bytes": "each task reads one partition; set kafka.max.partition.fetch.bytes",
    **{f"kafka.{name}": reason for name, reason in PRODUCER_REFUSED.items()},
}
"""Options of other sources that have no effect here, and why."""
