"""The options of one read or write, checked one by one and for consistency.

Knows nothing of brokers: readers find out whether a topic or partition exists.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.pipelines.client import EARLIEST, LATEST, TopicPartition
from barnabas.pipelines.client.settings import REFUSED, SETTINGS, BadSetting, ClientSettings, near
from barnabas.pipelines.client.write_settings import PRODUCER_SETTINGS, WriteSettings
from barnabas.pipelines.offsets import BadOption, Position, parsed_offsets, parsed_partitions
from barnabas.pipelines.option_tables import (
    ANY_READ,
    BATCH_READ,
    BATCH_WRITE,
    NO_EFFECT,
    NOT_OURS,
    READ,
    STREAM_READ,
    STREAM_WRITE,
    WRITE,
    OptionDef,
)

__all__ = [
    "ANY_READ",
    "BATCH_READ",
    "BATCH_WRITE",
    "READ",
    "STREAM_READ",
    "STREAM_WRITE",
    "WRITE",
    "BadOption",
    "OptionDef",
    "ReadOptions",
    "WriteOptions",
    "read_options",
    "write_options",
]


@dataclass(frozen=True)
class ReadOptions:
    """The options of one read; exactly one of `topics`, `pattern` and `assigned` is given."""

    client: ClientSettings
    scope: str
    topics: tuple[str, ...] | None
    pattern: str | None
    assigned: tuple[TopicPartition, ...] | None
    starting: Position
    nothing_that_young: str
    ending: Position
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay: float
    min_partitions: int | None
    max_records_per_partition: int | None
    fail_on_data_loss: bool
    include_headers: bool
    commit_group: str | None
    offset_retries: int
    offset_retry_interval: float
    poll_timeout: float
    isolation: str
    fetch_max_wait_ms: int
    fetch_bytes: int
    rack: str
    check_crcs: bool

    @property
    def committed(self) -> bool:
        """Whether to read only committed records."""
        return self.isolation == "read_committed"

    @property
    def subscription(self) -> str:
        """The option that names the topics, for messages."""
        if self.topics is not None:
            return f"subscribe {','.join(self.topics)}"
        if self.pattern is not None:
            return f"subscribePattern {self.pattern}"
        return f"assign {', '.join(map(str, self.assigned or ()))}"


@dataclass(frozen=True)
class WriteOptions:
    """The options of one write."""

    client: ClientSettings
    scope: str
    topic: str | None
    delivery: str
    sink_id: str | None
    batch_id: int | None
    settings: WriteSettings


def read_options(options: Mapping[str, str], scope: str) -> ReadOptions:
    """Parses the options of a read. Names are case-insensitive.

    :raises BadOption: an option is unknown or wrong; the message names it.
    """
    client, value = _parsed(options, scope, READ)
    one_of = [name for name in ("subscribe", "subscribePattern", "assign") if value[name] is not None]
    if len(one_of) != 1:
        given = f"{' and '.join(one_of)} exclude each other" if one_of else "no option names the topics to read"
        raise BadOption(f"{given}: give one of subscribe, subscribePattern and assign")
    lowest, highest = value["minOffsetsPerTrigger"], value["maxOffsetsPerTrigger"]
    if lowest and highest and lowest > highest:
        raise BadOption(f"minOffsetsPerTrigger {lowest} is greater than maxOffsetsPerTrigger {highest}")
    assigned = parsed_partitions("assign", value["assign"]) if value["assign"] is not None else None
    return ReadOptions(
        client=client,
        scope=scope,
        topics=value["subscribe"],
        pattern=value["subscribePattern"],
        assigned=tuple(assigned) if assigned is not None else None,
        starting=_starting(value, scope),
        nothing_that_young=value["startingOffsetsByTimestampStrategy"],
        ending=_ending(value),
        max_offsets_per_trigger=highest,
        min_offsets_per_trigger=lowest,
        max_trigger_delay=value["maxTriggerDelay"],
        min_partitions=value["minPartitions"],
        max_records_per_partition=value["maxRecordsPerPartition"],
        fail_on_data_loss=value["failOnDataLoss"],
        include_headers=value["includeHeaders"],
        commit_group=value["commitGroup"],
        offset_retries=value["fetchOffset.numRetries"],
        offset_retry_interval=value["fetchOffset.retryIntervalMs"] / 1000,
        poll_timeout=value["kafkaConsumer.pollTimeoutMs"] / 1000,
        isolation=value["kafka.isolation.level"],
        fetch_max_wait_ms=value["kafka.fetch.max.wait.ms"],
        fetch_bytes=value["kafka.max.partition.fetch.bytes"],
        rack=value["kafka.client.rack"],
        check_crcs=value["kafka.check.crcs"],
    )


def write_options(options: Mapping[str, str], scope: str) -> WriteOptions:
    """Parses the options of a write. Names are case-insensitive.

    :raises BadOption: an option is unknown or wrong; the message names it.
    """
    client, value = _parsed(options, scope, WRITE)
    said = {
        name: options[given]
        for given in options
        if (name := given.lower().removeprefix("kafka.")) in PRODUCER_SETTINGS and given.lower() != name
    }
    try:
        settings = WriteSettings.parse(said, request_timeout=client.seconds("request.timeout.ms"))
    except BadSetting as problem:
        raise BadOption(str(problem)) from None
    if value["delivery"] == "exactly-once" and (settings.acks != -1 or not settings.idempotent):
        raise BadOption(
            "delivery=exactly-once needs kafka.acks=all and kafka.enable.idempotence=true, as they are by default"
        )
    if scope == BATCH_WRITE and (value["sinkId"] is None) != (value["batchId"] is None):
        raise BadOption("a batch write needs both of sinkId and batchId, or none")
    return WriteOptions(client, scope, value["topic"], value["delivery"], value["sinkId"], value["batchId"], settings)


def _parsed(
    options: Mapping[str, str], scope: str, table: Mapping[str, OptionDef]
) -> tuple[ClientSettings, dict[str, Any]]:
    """Returns the client's settings, and the value of every option in the table."""
    given = {name.lower(): text for name, text in options.items() if name.lower() not in NOT_OURS}
    value = {option.name: _value(option, option.default) for option in table.values()}
    client = {}
    for name, text in given.items():
        option = table.get(name)
        if option is not None:
            if scope != ANY_READ and scope not in option.scopes:
                raise BadOption(f"{option.name} cannot be used in a {scope}: it is for a {_or(option.scopes)}")
            value[option.name] = _value(option, text)
        elif (
            name.removeprefix("kafka.") in {**SETTINGS, **REFUSED}
            and name.startswith("kafka.")
            and name not in _NO_EFFECT
        ):
            client[name.removeprefix("kafka.")] = text
        else:
            raise BadOption(_unknown(name, scope, table))
    try:
        return ClientSettings.parse(client), value
    except BadSetting as problem:
        raise BadOption(str(problem)) from None


_NO_EFFECT = {name.lower(): (name, reason) for name, reason in NO_EFFECT.items()}


def _value(option: OptionDef, text: str | None) -> Any:
    try:
        return None if text is None else option.parse(text)
    except BadOption:
        raise
    except ValueError as problem:
        raise BadOption(f"{option.name} {text!r}: {problem}") from None


def _unknown(name: str, scope: str, table: Mapping[str, OptionDef]) -> str:
    if name in _NO_EFFECT:
        shown, reason = _NO_EFFECT[name]
        return f"{shown} has no effect here: {reason}"
    other = {**READ, **WRITE}.get(name)
    if other is not None:
        return f"{other.name} cannot be used in a {scope}: it is for a {_or(other.scopes)}"
    known = [option.name for option in table.values()] + [f"kafka.{setting}" for setting in {**SETTINGS, **REFUSED}]
    by_lower = {option.lower(): option for option in known}
    hint = near(name, by_lower)
    for lower, option in by_lower.items():
        hint = hint.replace(f" {lower}?", f" {option}?")
    return f"{name} is not an option of a {scope}{hint}"


def _or(scopes: frozenset[str]) -> str:
    return " or a ".join(sorted(scopes))


def _starting(value: Mapping[str, Any], scope: str) -> Position:
    """Returns where to begin, with the precedence of KafkaSourceProvider.getKafkaOffsetRangeLimit."""
    default = EARLIEST if scope == BATCH_READ else LATEST
    position = _position(value, "starting", default)
    if scope == BATCH_READ and not position.by_time:
        _refuse(position, LATEST, "a batch cannot begin at latest, as it would read nothing")
    return position


def _ending(value: Mapping[str, Any]) -> Position:
    position = _position(value, "ending", LATEST)
    if not position.by_time:
        _refuse(position, EARLIEST, "a batch cannot end at earliest, as it would read nothing")
    return position


def _refuse(position: Position, at: int, reason: str) -> None:
    if position.everywhere == at:
        raise BadOption(f"{position.option}: {reason}")
    for partition, offset in (position.each or {}).items():
        if offset == at:
            raise BadOption(f"{position.option}: {partition} has {at}, but {reason}")


def _position(value: Mapping[str, Any], side: str, default: int) -> Position:
    timestamp, by_timestamp, offsets = f"{side}Timestamp", f"{side}OffsetsByTimestamp", f"{side}Offsets"
    if value[timestamp] is not None:
        return Position(timestamp, everywhere=value[timestamp], by_time=True)
    if value[by_timestamp] is not None:
        times = parsed_offsets(by_timestamp, value[by_timestamp], lowest=0)
        return Position(by_timestamp, each=times, by_time=True)
    text = value[offsets]
    if text is None:
        return Position(offsets, everywhere=default)
    named = {"earliest": EARLIEST, "latest": LATEST}.get(text.strip().lower())
    if named is not None:
        return Position(offsets, everywhere=named)
    if not text.strip().startswith("{"):
        raise BadOption(f'{offsets} {text!r}: must be earliest, latest, or JSON like {{"orders": {{"0": 23}}}}')
    return Position(offsets, each=parsed_offsets(offsets, text))
