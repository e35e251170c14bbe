"""The input and the output of decisions.

Knows nothing of any command.
"""

from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from barnabas.cluster.controller.heartbeats import Heard, Heartbeats
from barnabas.config.settings import Settings

if TYPE_CHECKING:
    from barnabas.cluster.controller.commands.configs import ConfigResource

MAX_RECORDS = 10_000
"""The maximum number of records of a command (``QuorumController.MAX_RECORDS_PER_USER_OP``)."""


class Decision(NamedTuple):
    """The records to append atomically, and the result once they are committed. Without records nothing changes."""

    records: list[Any]
    result: Any
    raises_kraft_version: bool = False  #: whether ``kraft.version`` is raised, before the records
    heard: Heard | None = None  #: the change of a broker's heartbeat state, which is not recorded


class BrokerSettings(Settings, Protocol):
    """The broker's settings, dynamic and static."""

    dev: bool

    def static(self, name: str) -> Any:
        """Returns the value from the broker's properties, without dynamic configs."""
        ...


class ConfigRules(Protocol):
    """The valid values of configs."""

    def list_of(self, resource: "ConfigResource", name: str) -> list[str] | None:
        """Returns the default of a config that is a list; None for any other config."""
        ...

    def check(self, resource: "ConfigResource", configs: Mapping[str, str]) -> None:
        """Checks the complete configs of a resource.

        :raises KafkaError: one of them is unknown or invalid
        """
        ...


class Surroundings(NamedTuple):
    """The input of a decision, beside the command and the image."""

    settings: BrokerSettings
    rules: ConfigRules
    random: Random
    heartbeats: Heartbeats
    cluster_id: str = ""
    next_offset: int = 0  #: the offset of the decision's first record
    kraft_version: int = 0  #: of the quorum, which is not part of the image
    time_ms: int = 0  #: in milliseconds since 1970
