"""The terms of a decision: what it may look at, and what it consists of.

Knows nothing of any command.
"""

from collections.abc import Mapping
from random import Random
from typing import Any, NamedTuple, Protocol

from barnabas.cluster.controller.commands import ConfigResource
from barnabas.cluster.controller.heartbeats import Heard, Heartbeats
from barnabas.config.settings import Settings

MAX_RECORDS = 10_000
"""The limit of records for one command (``QuorumController.MAX_RECORDS_PER_USER_OP``)."""


class Decision(NamedTuple):
    """The records to append, all or none, and the result once they are committed. Without records nothing changes."""

    records: list[Any]
    result: Any
    raises_kraft_version: bool = False  #: whether the quorum's own version goes up, before the records
    heard: Heard | None = None  #: what the controller notes of a broker beside the records


class BrokerSettings(Settings, Protocol):
    """The broker's settings, and which of them are static."""

    dev: bool

    def static(self, name: str) -> Any:
        """Returns the value from the broker's properties, without dynamic configs."""
        ...


class ConfigRules(Protocol):
    """The valid values of configs."""

    def list_of(self, resource: ConfigResource, name: str) -> list[str] | None:
        """Returns the default of a config that is a list; None for any other config."""
        ...

    def check(self, resource: ConfigResource, configs: Mapping[str, str]) -> None:
        """Checks the complete configs of a resource.

        :raises KafkaError: one of them is unknown or invalid
        """
        ...


class Surroundings(NamedTuple):
    """What a decision depends on beside the command and the image."""

    settings: BrokerSettings
    rules: ConfigRules
    random: Random
    heartbeats: Heartbeats
    cluster_id: str = ""
    next_offset: int = 0  #: the offset that the decision's first record gets
    kraft_version: int = 0  #: of the quorum, which is not part of the image
    time_ms: int = 0  #: in milliseconds since 1970
