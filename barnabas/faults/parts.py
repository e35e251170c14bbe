"""The parts of a rule: which requests it matches, when it fires, and what happens then.

Knows nothing of requests. :mod:`barnabas.faults.checking` refuses parts that can never match.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Final, Protocol

from barnabas.errors import KafkaError


class Other(Protocol):
    """Another rule, which ``during`` and ``after`` are about."""

    @property
    def hits(self) -> int: ...

    def is_in_force(self, now: float, /) -> bool: ...


@dataclass(frozen=True, kw_only=True)
class Match:
    """Which requests a rule matches; None matches any."""

    api: str | int | None = None
    versions: str | int | None = None
    client_id: str | None = None
    principal: str | None = None
    node: int | None = None
    connection: int | str | None = None  #: a number, ``"new"``, or ``"+2"``
    topic: str | None = None
    partition: int | None = None
    group: str | None = None
    transactional_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class When:
    """On which of the matching requests a rule fires."""

    nth: int | None = None
    first: int | None = None
    every: int | None = None
    probability: float | None = None
    since: float | None = None  #: not before so many seconds after the rule was set
    seconds: float | None = None  #: no longer than so many seconds after the rule was set
    during: "Other | None" = None  #: only while that rule is in force
    after: "Other | None" = None  #: only once that rule has fired


@dataclass(frozen=True, kw_only=True)
class Action:
    """What a rule does when it fires."""

    error: str | int | type[KafkaError] | None = None
    handled: bool = False  #: the response has the error although the handler runs
    delay: float = 0.0
    delay_after: float = 0.0
    cut: str | None = None
    silent: str | None = None
    drip: int | None = None
    correlation_id: int | None = None
    throttle_ms: int | None = None
    leader: int | None = None
    coordinator: tuple[int, str, int] | None = None
    answer_version: int | None = None  #: the response is encoded in that version, whatever the version of the request
    stale: bool = False
    edit: Callable[[Any], object] | None = None
    refuse: bool = False
    tls: str | None = None


MATCHES, WHENS, ACTIONS = ([each.name for each in fields(part)] for part in (Match, When, Action))
CUTS: Final = ("before", "after", "half")
SILENCES: Final = ("before", "after")
BAD_TLS: Final = {"garbage": b"220 mail.example.com ESMTP\r\n", "alert": b"\x15\x03\x03\x00\x02\x02\x28", "cut": b""}
"""The bytes that are sent instead of a handshake: no TLS, the alert handshake_failure, or nothing."""
LEADER_APIS: Final = ("Metadata", "DescribeTopicPartitions")
NEW: Final = "new"
"""``connection="new"``: each connection that was opened after the rule was set."""

WHOLE: Final = frozenset(
    {
        "node", "partition", "nth", "first", "every", "drip", "correlation_id", "throttle_ms", "leader",
        "answer_version",
    }
)  # fmt: skip
FRACTIONS: Final = frozenset({"probability", "since", "seconds", "delay", "delay_after"})
TEXTS: Final = frozenset({"client_id", "principal", "topic", "group", "transactional_id", "cut", "silent", "tls"})
SWITCHES: Final = frozenset({"handled", "stale", "refuse"})
OTHERS: Final = ("during", "after")
"""The parts that are another rule."""
