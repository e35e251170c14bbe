"""Compares two transcripts: normalises what may differ, and lists the remaining differences.

Uses the names of fields only; must not know which broker gave which response.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from . import message_sets
from .batches import T0, parse
from .codec import ZERO_UUID, message
from .steps import ADVERTISED

MEMBER_ID = re.compile(r"^(.*-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
MADE_UP_ID = re.compile(r"[0-9A-Za-z_-]{22}")
"""A UUID as Kafka writes its own."""
UUID_TEXT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

TIMES = re.compile(r"within \[-?\d+, \d+\]")
"""Which timestamps a topic takes at the moment, in the text about one that it does not take."""

FENCED_BY = re.compile(r"(?<= was fenced by member )[0-9A-Za-z_-]{22}(?=\.)")
"""A member id that a broker has made up."""

UNAUTHORIZED = re.compile(r"^Request Request\(.*\) needs [A-Z_]+ permission\.$", re.DOTALL)
"""What Apache Kafka says of a right on the cluster that is missing: the request as Java shows it, addresses and all."""

LISTED = re.compile(r"(?<=Internal topics are missing: )[^;]+")
"""Names that Apache Kafka takes from a hash map: their order means nothing."""

UNORDERED = {
    "AddPartitionsToTxn": {
        "ResultsByTopicV3AndBelow",
        "ResultsByTransaction",
        "TopicResults",
        "ResultsByPartition",
    },
    "AlterClientQuotas": {"Entries", "Entity"},
    "AlterReplicaLogDirs": {"Results", "Partitions"},
    "AlterUserScramCredentials": {"Results"},
    "ApiVersions": {"SupportedFeatures", "FinalizedFeatures"},
    "DeleteGroups": {"Results"},
    "DeleteRecords": {"Topics", "Partitions"},
    "DeleteShareGroupState": {"Results", "Partitions"},
    "DeleteTopics": {"Responses"},
    "CreatePartitions": {"Results"},
    "CreateTopics": {"Topics"},
    "DeleteAcls": {"MatchingAcls"},
    "DescribeAcls": {"Resources", "Acls"},
    "DescribeClientQuotas": {"Entries", "Entity", "Values"},
    "DescribeGroups": {"Groups", "Members"},
    "DescribeLogDirs": {"Topics", "Partitions"},
    "DescribeProducers": {"ActiveProducers"},
    "DescribeTransactions": {"Topics", "Partitions"},
    "DescribeUserScramCredentials": {"Results", "CredentialInfos"},
    "ElectLeaders": {"ReplicaElectionResults", "PartitionResult"},
    "InitializeShareGroupState": {"Results", "Partitions"},
    "JoinGroup": {"Members"},
    "ListConfigResources": {"ConfigResources"},
    "ListGroups": {"Groups"},
    "ListTransactions": {"TransactionStates", "UnknownStateFilters"},
    "ListOffsets": {"Topics", "Partitions"},
    "Metadata": {"Topics"},
    "OffsetFetch": {"Topics", "Partitions"},
    "OffsetForLeaderEpoch": {"Topics", "Partitions"},
    "Produce": {"Responses", "PartitionResponses"},
    "AlterShareGroupOffsets": {"Responses"},
    "DeleteShareGroupOffsets": {"Responses"},
    "DescribeShareGroupOffsets": {"Topics", "Partitions"},
    "ShareGroupDescribe": {"Groups", "Members", "SubscribedTopicNames", "TopicPartitions"},
    "ShareGroupHeartbeat": {"TopicPartitions"},
    "ConsumerGroupDescribe": {"Groups", "Members", "SubscribedTopicNames", "TopicPartitions"},
    "ConsumerGroupHeartbeat": {"TopicPartitions"},
    "StreamsGroupDescribe": {
        "ClientTags",
        "Groups",
        "Members",
        "RepartitionSourceTopics",
        "StateChangelogTopics",
        "TopicConfigs",
    },
    "StreamsGroupHeartbeat": {
        "ActivePartitions",
        "ActiveTasks",
        "PartitionsByUserEndpoint",
        "StandbyPartitions",
        "StandbyTasks",
        "WarmupTasks",
    },
    "ReadShareGroupState": {"Results", "Partitions"},
    "ReadShareGroupStateSummary": {"Results", "Partitions"},
    "ShareAcknowledge": {"Responses", "Partitions"},
    "ShareFetch": {"Responses", "Partitions"},
    "TxnOffsetCommit": {"Topics", "Partitions"},
    "WriteShareGroupState": {"Results", "Partitions"},
    "WriteTxnMarkers": {"Markers", "Topics", "Partitions"},
}
"""The arrays whose order means nothing, by API: Apache Kafka fills them from hash maps, or shuffles them.

They are sorted before they are compared.
"""

KEYED = {"ApiKeys": "ApiKey", "Configs": "Name"}
"""Arrays whose entries are told apart by a field."""

NOBODYS = 100_000_000
"""From here on producer ids are made up by a scenario: no broker comes to give them away."""

MAGIC_AT = 16
"""The byte of a batch, or of a message of the older formats, that tells which it is."""

COMPARED = frozenset(message(f"{api}Request").api_key for api in ADVERTISED)
"""The APIs that both serve; which others there are is told by ApiVersions, and no matter of this table."""


ITS_OWN = {
    "advertised.listeners",
    "controller.listener.names",
    "controller.quorum.voters",
    "inter.broker.listener.name",
    "listeners",
    "log.dirs",
    "process.roles",
}
"""Configs of a broker that hold its ports and folders, or say that Apache Kafka's controller listens by itself."""


class Difference(NamedTuple):
    step: str
    field: str
    apache: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.step} | {self.field}: Apache Kafka {self.apache!r}, Barnabas {self.ours!r}"


class Normal:
    """Gives each run's own values (ids, ports, times) names: those that a step saved them under, or by first sight."""

    def __init__(self, port: int, now_ms: int, prefix: str, saved: Mapping[str, Any]) -> None:
        self.port, self.now_ms, self.prefix = port, now_ms, prefix
        self.names: dict[Any, str] = {}
        for name, value in saved.items():
            if isinstance(value, str) and (found := UUID_TEXT.search(value)):
                self.names.setdefault(("uuid", found[0]), f"of {name}")
            elif isinstance(value, bytes):
                self.names.setdefault(("topic id", value), f"{name}")
            elif isinstance(value, int) and "." not in name:
                self.names.setdefault(("producer", value), f"of {name}")

    def name(self, kind: str, value: Any) -> str:
        return self.names.setdefault((kind, value), f"{kind} {sum(k[0] == kind for k in self.names) + 1}")

    def in_any_order(self, values: list[Any], name: str, api: str) -> list[Any]:
        """Sorts an array whose order means nothing by what is known before its values get names."""
        unnamed = Unnamed(self)
        return sorted(values, key=lambda each: repr(unnamed.answer(each, name, api)))

    def answer(self, value: Any, name: str = "", api: str = "") -> Any:
        if isinstance(value, Mapping):
            if {"Name", "ConfigSource"} <= value.keys() and value["Name"] in ITS_OWN:
                return {"Name": value["Name"], "Value": "its own"}
            return {each: self.answer(inner, each, api) for each, inner in value.items()}
        rule = RULES.get(f"{api}.{name}") or RULES.get(name)
        if rule is not None and (rule is not Normal.assignment or isinstance(value, bytes)):
            return rule(self, value)
        if isinstance(value, list):
            is_unordered = name in UNORDERED.get(api, ())
            if is_unordered:
                value = self.in_any_order(value, name, api)
            items = [self.answer(each, name, api) for each in value]
            if name in KEYED and all(isinstance(each, dict) and KEYED[name] in each for each in items):
                key = KEYED[name]
                if api == "ApiVersions":
                    items = [each for each in items if each[key] in COMPARED]
                return {str(each[key]): each for each in sorted(items, key=lambda each: str(each[key]))}
            return sorted(items, key=repr) if is_unordered else items
        if isinstance(value, str):
            value = self.text(value.replace(self.prefix, "~"))
            return UUID_TEXT.sub(lambda found: self.name("uuid", found[0]), value) if MEMBER_ID.match(value) else value
        return value.hex() if isinstance(value, bytes) else value

    def text(self, value: str) -> str:
        value = TIMES.sub("within [then, later]", value)
        value = UNAUTHORIZED.sub("Cluster authorization failed.", value)
        value = FENCED_BY.sub(lambda found: self.name("member id", found[0]), value)
        return LISTED.sub(lambda found: ", ".join(sorted(found[0].split(", "))), value)

    def timestamp(self, value: Any) -> Any:
        return "now" if isinstance(value, int) and abs(value - self.now_ms) < 300_000 else value

    def records(self, data: bytes | None) -> Any:
        """Whole batches: Apache Kafka cuts what it sends at the limit's byte, and clients throw the torn one away."""
        if data is None:
            return None
        if len(data) > MAGIC_AT and data[MAGIC_AT] < 2:
            return [self.answer(each) for each in message_sets.parse(data)]
        return [self.answer(each) for each in parse(data) if "rest" not in each]

    def assignment(self, data: bytes) -> str:
        """Of the classic protocol; of the newer ones it is a structure."""
        text = data.decode("latin-1")
        return UUID_TEXT.sub(lambda found: self.name("uuid", found[0]), text)


class Unnamed(Normal):
    """Gives the names that there are already, and no new ones: what has none yet is known by its kind alone."""

    def __init__(self, normal: Normal) -> None:
        super().__init__(normal.port, normal.now_ms, normal.prefix, {})
        self.names = normal.names

    def name(self, kind: str, value: Any) -> str:
        return self.names.get((kind, value), kind)

    def in_any_order(self, values: list[Any], name: str, api: str) -> list[Any]:
        return values


def positive(kind: str) -> Any:
    return lambda normal, value: normal.name(kind, value) if isinstance(value, int) and value > 0 else value


def member_id(normal: Normal, value: Any) -> Any:
    if isinstance(value, str) and MADE_UP_ID.fullmatch(value):
        return normal.name("member id", value)
    return normal.answer(value)


def moment(normal: Normal, value: Any) -> Any:
    """A time of a delegation token, which may lie days ahead."""
    return f"in {round((value - normal.now_ms) / 60_000)} minutes" if value > NOBODYS else value


def presence(_: Normal, value: Any) -> Any:
    return "some text" if value else value


TOKEN_TIMES = [f"{name}Timestamp{unit}" for name in ("Issue", "Expiry", "Max") for unit in ("", "Ms")]

RULES: Mapping[str, Any] = {
    "ThrottleTimeMs": lambda normal, value: "any" if value >= 0 else value,
    "TopicId": lambda normal, value: "zero" if value == ZERO_UUID else normal.name("topic id", value),
    "ReplicaDirectoryId": lambda normal, value: "zero" if value == ZERO_UUID else "a directory",
    **dict.fromkeys(
        ("ProducerId", "PreviousProducerId", "NextProducerId"),
        lambda normal, value: normal.name("producer", value) if 0 <= value < NOBODYS else value,
    ),
    "SessionId": positive("session"),
    "Port": lambda normal, value: "its port" if value == normal.port else value if value < 1 else "a port",
    "Host": lambda normal, value: value and "its host",
    "ClusterId": lambda normal, value: value and normal.name("cluster", value),
    "LogDir": lambda normal, value: value and "a directory",
    "TotalBytes": lambda normal, value: value if value <= 0 else "some",
    "UsableBytes": lambda normal, value: value if value <= 0 else "some",
    "FinalizedFeaturesEpoch": lambda normal, value: value if value < 0 else "an epoch",
    "ConsumerGroupHeartbeat.MemberId": member_id,
    "ConsumerGroupDescribe.MemberId": member_id,
    "DescribeGroups.MemberId": member_id,
    "JoinGroup.MemberId": member_id,
    "LeaveGroup.MemberId": member_id,
    "Documentation": presence,
    "LogAppendTimeMs": Normal.timestamp,
    "Timestamp": Normal.timestamp,
    "max_timestamp": Normal.timestamp,
    "base_timestamp": Normal.timestamp,
    "SupportedFeatures": lambda normal, value: "its features",
    "FinalizedFeatures": lambda normal, value: "its features",
    "MinVersion": lambda normal, value: "its oldest",
    "DescribeQuorum.Port": lambda normal, value: "a controller's port",
    "DescribeQuorum.LogEndOffset": lambda normal, value: value if value < 0 else "an offset",
    "DescribeQuorum.HighWatermark": lambda normal, value: value if value < 0 else "an offset",
    "DescribeQuorum.LeaderEpoch": lambda normal, value: value if value < 0 else "an epoch",
    "LastTimestamp": Normal.timestamp,
    "TransactionStartTimeMs": Normal.timestamp,
    "TransactionStartTimestampMs": Normal.timestamp,
    "TransactionLastUpdateTimestampMs": Normal.timestamp,
    "CommitTimestamp": Normal.timestamp,
    "LastFetchTimestamp": Normal.timestamp,
    "LastCaughtUpTimestamp": Normal.timestamp,
    **dict.fromkeys(TOKEN_TIMES, moment),
    "TokenId": lambda normal, value: value and normal.name("token", value),
    "Hmac": lambda normal, value: f"{len(value)} bytes",
    "Records": Normal.records,
    "Assignment": Normal.assignment,
    "MemberAssignment": Normal.assignment,
}


def differences(apache: Any, ours: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """(path, Apache's, ours) wherever two normalised answers part."""
    if isinstance(apache, dict) and isinstance(ours, dict):
        for name in apache.keys() | ours.keys():
            inner = f"{path}.{name}" if path else name
            yield from differences(apache.get(name, "(absent)"), ours.get(name, "(absent)"), inner)
    elif isinstance(apache, list) and isinstance(ours, list) and len(apache) == len(ours):
        for index, (one, other) in enumerate(zip(apache, ours, strict=True)):
            yield from differences(one, other, f"{path}.{index}")
    elif apache != ours or type(apache) is not type(ours):
        yield path, apache, ours


def compare(apache: list[tuple[str, str, Any]], ours: list[tuple[str, str, Any]]) -> list[Difference]:
    """What differs between two normalised transcripts of the same scenario."""
    found = [
        Difference(label, path, one, other)
        for (label, _, theirs), (_, _, mine) in zip(apache, ours, strict=False)
        for path, one, other in differences(theirs, mine)
    ]
    if len(apache) != len(ours):
        found.append(Difference("all", "steps", len(apache), len(ours)))
    return found


class Allowed(NamedTuple):
    """One entry of ``differences.toml``: a difference that is meant."""

    scenario: str
    versions: tuple[int, ...] | None
    step: str
    field: str
    reason: str

    def covers(self, difference: Difference) -> bool:
        return fnmatchcase(difference.step, self.step) and fnmatchcase(difference.field, self.field)

    def is_about(self, scenario: str, version: int) -> bool:
        return self.scenario == scenario and (self.versions is None or version in self.versions)


def verdict(differences: list[Difference], table: list[Allowed], scenario: str, version: int) -> list[str]:
    """What is wrong with one version: differences that are not in the table, and entries that are no longer true."""
    entries = [entry for entry in table if entry.is_about(scenario, version)]
    unexplained = [each for each in differences if not any(entry.covers(each) for entry in entries)]
    unused = [entry for entry in entries if not any(entry.covers(each) for each in differences)]
    return [f"version {version}: {each}" for each in unexplained] + [
        f"version {version}: no longer different, take it off the list: {entry}" for entry in unused
    ]


def allowed(path: Path) -> list[Allowed]:
    entries = tomllib.loads(path.read_text()).get("difference", [])
    return [
        Allowed(
            each["scenario"],
            tuple(each["versions"]) if "versions" in each else None,
            each.get("step", "*"),
            each.get("field", "*"),
            each["reason"],
        )
        for each in entries
    ]


__all__ = ["T0", "Allowed", "Difference", "Normal", "allowed", "compare"]
