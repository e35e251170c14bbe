"""Two transcripts side by side: what may differ is normalised, what is left is listed.

Judges answers by their fields' names alone; must not know which broker gave which.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from .batches import T0, parse
from .codec import ZERO_UUID

MEMBER_ID = re.compile(r"^(.*-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
UUID_TEXT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

UNORDERED = {
    "Brokers": "",
    "Configs": "Name",
    "ConfigResources": "ResourceName",
    "SupportedFeatures": "Name",
    "FinalizedFeatures": "Name",
}
"""Arrays that Apache Kafka fills from a hash map: their order means nothing, and they are sorted by this field."""


class Difference(NamedTuple):
    step: str
    field: str
    apache: Any
    ours: Any

    def __str__(self) -> str:
        return f"{self.step} | {self.field}: Apache Kafka {self.apache!r}, Barnabas {self.ours!r}"


class Normal:
    """Gives each run's own values (ids, ports, times) names by the order in which they are first seen."""

    def __init__(self, port: int, now_ms: int, prefix: str) -> None:
        self.port, self.now_ms, self.prefix = port, now_ms, prefix
        self.names: dict[Any, str] = {}

    def name(self, kind: str, value: Any) -> str:
        return self.names.setdefault((kind, value), f"{kind} {sum(k[0] == kind for k in self.names) + 1}")

    def answer(self, value: Any, name: str = "", api: str = "") -> Any:
        if isinstance(value, Mapping):
            return {each: self.answer(inner, each, api) for each, inner in value.items()}
        if isinstance(value, list):
            items = [self.answer(each, name, api) for each in value]
            return sorted(items, key=repr) if name in UNORDERED else items
        rule = RULES.get(name)
        if rule is not None:
            return rule(self, value)
        if isinstance(value, str):
            value = value.replace(self.prefix, "~")
        if isinstance(value, str) and MEMBER_ID.match(value):
            return UUID_TEXT.sub(lambda found: self.name("uuid", found[0]), value)
        return value.hex() if isinstance(value, bytes) else value

    def timestamp(self, value: Any) -> Any:
        return "now" if isinstance(value, int) and abs(value - self.now_ms) < 300_000 else value

    def records(self, data: bytes | None) -> Any:
        return None if data is None else [self.answer(each) for each in parse(data)]

    def assignment(self, data: bytes) -> str:
        text = data.decode("latin-1")
        return UUID_TEXT.sub(lambda found: self.name("uuid", found[0]), text)


def positive(kind: str) -> Any:
    return lambda normal, value: normal.name(kind, value) if isinstance(value, int) and value > 0 else value


def presence(_: Normal, value: Any) -> Any:
    return "some text" if value else value


RULES: Mapping[str, Any] = {
    "ThrottleTimeMs": lambda normal, value: "any" if value >= 0 else value,
    "TopicId": lambda normal, value: "zero" if value == ZERO_UUID else normal.name("topic id", value),
    "ReplicaDirectoryId": lambda normal, value: "zero" if value == ZERO_UUID else "a directory",
    "ProducerId": lambda normal, value: normal.name("producer", value) if value >= 0 else value,
    "SessionId": positive("session"),
    "Port": lambda normal, value: "its port" if value == normal.port else value if value < 1 else "a port",
    "Host": lambda normal, value: value and "its host",
    "ClusterId": lambda normal, value: value and normal.name("cluster", value),
    "LogDir": lambda normal, value: value and "a directory",
    "TotalBytes": lambda normal, value: value if value <= 0 else "some",
    "UsableBytes": lambda normal, value: value if value <= 0 else "some",
    "FinalizedFeaturesEpoch": lambda normal, value: value if value < 0 else "an epoch",
    "ErrorMessage": presence,
    "BatchIndexErrorMessage": presence,
    "Documentation": presence,
    "LogAppendTimeMs": Normal.timestamp,
    "Timestamp": Normal.timestamp,
    "max_timestamp": Normal.timestamp,
    "base_timestamp": Normal.timestamp,
    "LastTimestamp": Normal.timestamp,
    "LastFetchTimestamp": Normal.timestamp,
    "LastCaughtUpTimestamp": Normal.timestamp,
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
    elif isinstance(apache, list) and isinstance(ours, list) and (keyed := by_name(apache, ours)) is not None:
        yield from differences(*keyed, path)
    elif isinstance(apache, list) and isinstance(ours, list) and len(apache) == len(ours):
        for index, (one, other) in enumerate(zip(apache, ours, strict=True)):
            yield from differences(one, other, f"{path}.{index}")
    elif apache != ours or type(apache) is not type(ours):
        yield path, apache, ours


def by_name(apache: list[Any], ours: list[Any]) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Configs by their names, so that one that is missing is said to be missing."""
    if not (apache and ours) or not all(isinstance(e, dict) and {"Name", "Value"} <= e.keys() for e in apache + ours):
        return None
    return {e["Name"]: e for e in apache}, {e["Name"]: e for e in ours}


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
