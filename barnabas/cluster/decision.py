"""The terms of a decision: what it may look at, and what it consists of.

Knows nothing of any command.
"""

from collections.abc import Mapping
from random import Random
from typing import Any, NamedTuple, Protocol

from barnabas.cluster.commands import ConfigResource

MAX_RECORDS = 10_000
"""How many records one command may write (``QuorumController.MAX_RECORDS_PER_USER_OP``)."""


class Decision(NamedTuple):
    """The records to append, all or none, and the result once they are committed. Without records nothing changes."""

    records: list[Any]
    result: Any
    raises_kraft_version: bool = False  #: whether the quorum's own version goes up, before the records


class Settings(Protocol):
    """The broker's settings by name."""

    dev: bool

    def __getitem__(self, name: str) -> Any: ...

    def static(self, name: str) -> Any:
        """The value that the broker was started with."""
        ...


class ConfigRules(Protocol):
    """What configs may be set to."""

    def list_of(self, resource: ConfigResource, name: str) -> list[str] | None:
        """What the config is where it is not set, if it is a list; None if it is none."""
        ...

    def check(self, resource: ConfigResource, configs: Mapping[str, str]) -> None:
        """Raise :class:`KafkaError` unless the resource may have these, and no others, set."""
        ...


class Surroundings(NamedTuple):
    """What a decision depends on beside the command and the image."""

    settings: Settings
    rules: ConfigRules
    random: Random
    next_offset: int = 0  #: the offset that the decision's first record gets
    kraft_version: int = 0  #: of the quorum, which is not part of the image


def random_uuid(random: Random) -> bytes:
    """A version 4 UUID of 16 bytes. None whose text starts with ``-``: tools would take it for an option."""
    while True:
        number = random.getrandbits(128) & ~(0xF << 76) & ~(0x3 << 62) | (0x4 << 76) | (0x2 << 62)
        if number >> 122 != 62:
            return number.to_bytes(16, "big")
