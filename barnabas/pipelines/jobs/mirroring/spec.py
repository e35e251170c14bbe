"""The configuration of a mirror, which goes to Spark's workers as JSON.

Knows nothing of Spark.
"""

import dataclasses
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from barnabas.pipelines.client.settings import ClientSettings
from barnabas.pipelines.client.write_settings import PRODUCER_SETTINGS, WriteSettings
from barnabas.pipelines.jobs.mirroring.policy import Patterns, Policy

PRODUCER = {"transaction.timeout.ms": "120000"}
"""Differs from the producer's defaults: transactions are short, and an open one blocks read_committed consumers."""

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Spec:
    """The configuration of a mirror. Made from ``MirrorOptions``, which documents each field."""

    source: Pairs  #: client settings, by their Java names
    target: Pairs
    source_alias: str
    target_alias: str
    policy_kind: str
    separator: str
    topics: tuple[str, ...]
    exclude_topics: tuple[str, ...]
    sync_configs: bool
    exclude_configs: tuple[str, ...]
    replication_factor: int
    sync_groups: bool
    groups: tuple[str, ...]
    exclude_groups: tuple[str, ...]
    checkpoints: bool
    starting_offsets: str
    isolation: str
    fail_on_data_loss: bool
    max_offsets_per_batch: int | None
    commit_group: str | None
    refresh_seconds: float

    def to_json(self) -> str:
        """Returns the JSON that `from_json` reads."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Spec":
        fields: dict[str, Any] = json.loads(text)
        for name, value in fields.items():
            if isinstance(value, list):
                fields[name] = tuple(tuple(each) if isinstance(each, list) else each for each in value)
        return cls(**fields)

    @cached_property
    def source_settings(self) -> ClientSettings:
        return ClientSettings.parse(dict(self.source))

    @cached_property
    def target_settings(self) -> ClientSettings:
        return ClientSettings.parse({name: value for name, value in self.target if name not in PRODUCER_SETTINGS})

    @cached_property
    def write_settings(self) -> WriteSettings:
        """The producer's settings among the target's settings."""
        given = {name: value for name, value in self.target if name in PRODUCER_SETTINGS}
        return WriteSettings.parse({**PRODUCER, **given})

    @property
    def policy(self) -> Policy:
        return Policy(self.source_alias, self.target_alias, self.policy_kind, self.separator)

    @cached_property
    def topic_patterns(self) -> Patterns:
        return Patterns(self.topics, self.exclude_topics)

    @cached_property
    def group_patterns(self) -> Patterns:
        return Patterns(self.groups, self.exclude_groups)
