"""Every option of the data source: what it is called, where it may be used, what it may be, and what it means.

Names and meanings are those of Spark's own Kafka source and sink (KafkaSourceProvider) wherever those have one. The
reference page is made of these tables. Knows nothing of how an option is carried out.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas.pipelines.client.write_settings import PRODUCER_REFUSED, PRODUCER_SETTINGS

BATCH_READ, STREAM_READ, BATCH_WRITE, STREAM_WRITE = "batch read", "stream read", "batch write", "stream write"
ANY_READ = "read"
"""Where it is not known yet whether it will be a batch or a stream."""
READS, WRITES = frozenset({BATCH_READ, STREAM_READ}), frozenset({BATCH_WRITE, STREAM_WRITE})


class OptionDef(NamedTuple):
    """One option: `parse` makes its value of text, or raises ValueError with what would be right."""

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
    """Seconds of ``15m``, ``500ms``, ``20`` (Spark's JavaUtils.timeStringAs: milliseconds where there is no unit)."""
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
        raise ValueError(f"{text!r} can be no topic: up to 249 letters, digits, dots, hyphens and underscores are")
    return text


def _pattern(text: str) -> str:
    if not text.strip():
        raise ValueError("must be a regular expression that topics match from end to end")
    try:
        re.compile(text.strip())
    except re.error as problem:
        raise ValueError(f"is no regular expression: {problem}") from None
    return text.strip()


_STREAM, _BATCH = frozenset({STREAM_READ}), frozenset({BATCH_READ})

READ = {
    option.name.lower(): option
    for option in (
        OptionDef("subscribe", _topics, None, READS, "the topics to read, with commas between them"),
        OptionDef(
            "subscribePattern",
            _pattern,
            None,
            READS,
            "a regular expression that is found in the names of topics, as by Spark's connector: `^orders$` is one",
        ),
        OptionDef("assign", str, None, READS, 'the partitions to read: `{"orders": [0, 1]}`'),
        OptionDef(
            "startingOffsets",
            str,
            None,
            READS,
            "where to begin: `earliest` (what a batch does), `latest` (what a stream does; not a batch), or "
            'for each partition `{"orders": {"0": 23, "1": -2}}`, -2 being earliest and -1 latest. A stream that has a '
            "checkpoint goes on where it was; partitions that are new then are read from their beginning",
        ),
        OptionDef(
            "startingTimestamp",
            _number(0),
            None,
            READS,
            "where to begin: at the first record with this time (ms since 1970, UTC) or later, in every partition; "
            "goes before startingOffsetsByTimestamp and startingOffsets",
        ),
        OptionDef(
            "startingOffsetsByTimestamp",
            str,
            None,
            READS,
            'the same with a time for each partition: `{"orders": {"0": 1700000000000}}`; goes before startingOffsets',
        ),
        OptionDef(
            "startingOffsetsByTimestampStrategy",
            _choice("error", "latest"),
            "error",
            READS,
            "what to do in a partition that has no record as young: `error`, or begin at its end: `latest`",
        ),
        OptionDef(
            "endingOffsets",
            str,
            "latest",
            _BATCH,
            'where to end, the offset itself left out: `latest`, or `{"orders": {"0": 50, "1": -1}}`',
        ),
        OptionDef(
            "endingTimestamp",
            _number(0),
            None,
            _BATCH,
            "where to end: before the first record with this time or later; at the end where there is none; goes "
            "before endingOffsetsByTimestamp and endingOffsets",
        ),
        OptionDef("endingOffsetsByTimestamp", str, None, _BATCH, "the same with a time for each partition"),
        OptionDef(
            "maxOffsetsPerTrigger",
            _number(1),
            None,
            _STREAM,
            "about how many offsets a micro-batch takes at most, shared among partitions by what they have waiting",
        ),
        OptionDef(
            "minOffsetsPerTrigger", _number(1), None, _STREAM, "how many must be waiting for a micro-batch to run"
        ),
        OptionDef("maxTriggerDelay", _duration, "15m", _STREAM, "when one runs even so, with fewer"),
        OptionDef(
            "minPartitions",
            _number(1),
            None,
            READS,
            "about how many tasks to read with; more than there are partitions splits the long ones",
        ),
        OptionDef("maxRecordsPerPartition", _number(1), None, READS, "about how many offsets a task reads at most"),
        OptionDef(
            "failOnDataLoss",
            _flag,
            "true",
            READS,
            "whether it is an error that records to be read are gone (retention, a deleted topic); else a warning",
        ),
        OptionDef("includeHeaders", _flag, "false", READS, "whether there is a column `headers`"),
        OptionDef(
            "commitGroup",
            str,
            None,
            _STREAM,
            "a consumer group to which each finished micro-batch commits its offsets, so that any Kafka tool shows the "
            "query's lag; the query itself goes by its checkpoint alone",
        ),
        OptionDef(
            "fetchOffset.numRetries", _number(1), "3", READS, "how often to ask again where an end offset has gone back"
        ),
        OptionDef("fetchOffset.retryIntervalMs", _number(0), "1000", READS, "the pause before that, in ms"),
        OptionDef(
            "kafkaConsumer.pollTimeoutMs",
            _number(1),
            "120000",
            READS,
            "how long a task waits for records that should be there, in ms",
        ),
        OptionDef(
            "kafka.isolation.level",
            _choice("read_uncommitted", "read_committed"),
            "read_uncommitted",
            READS,
            "whether records of transactions that are not, or never will be, committed are read",
        ),
        OptionDef("kafka.fetch.max.wait.ms", _number(0), "500", READS, "how long a broker waits for records, in ms"),
        OptionDef("kafka.max.partition.fetch.bytes", _number(1), "4194304", READS, "how much is fetched at a time"),
        OptionDef("kafka.client.rack", str, "", READS, "where the tasks run: replicas there may answer (KIP-392)"),
        OptionDef("kafka.check.crcs", _flag, "true", READS, "whether checksums are checked"),
    )
}

WRITE = {
    option.name.lower(): option
    for option in (
        OptionDef("topic", _topic, None, WRITES, "the topic of every record; else each row's column `topic` says it"),
        OptionDef(
            "delivery",
            _choice("at-least-once", "exactly-once"),
            "at-least-once",
            WRITES,
            "`exactly-once` writes each task's records in one transaction, and none of them twice when a batch is "
            "repeated; `at-least-once` may repeat records then",
        ),
        OptionDef(
            "sinkId",
            str,
            None,
            WRITES,
            "what exactly-once remembers its batches by, and the beginning of its transactional ids; made of the "
            "query's id where nothing is said, and new for each batch query",
        ),
        OptionDef(
            "batchId",
            _number(0),
            None,
            frozenset({BATCH_WRITE}),
            "with sinkId and exactly-once: the number of this write; one that has been written, or a later one that "
            "has, makes it do nothing",
        ),
        *(
            OptionDef(f"kafka.{setting.name}", setting.check, setting.default, WRITES, setting.doc)
            for setting in PRODUCER_SETTINGS.values()
        ),
    )
}

NOT_OURS = frozenset({"checkpointlocation", "queryname", "outputmode"})
"""What Spark hands a source or sink though it is for Spark."""

NO_EFFECT = {
    "path": "say subscribe to read a topic and topic to write one",
    "groupIdPrefix": "no consumer group is joined, so there is no name to prefix; commitGroup shows a query's lag",
    "kafka.group.id": "no consumer group is joined; commitGroup shows a query's lag",
    "kafka.fetch.min.bytes": "it is known how much there is to read: nothing is waited for",
    "kafka.fetch.max.bytes": "each task reads one partition; kafka.max.partition.fetch.bytes is how much at a time",
    **{f"kafka.{name}": reason for name, reason in PRODUCER_REFUSED.items()},
}
"""What others know as an option, and why it is none here."""
