"""Rules: which requests they match, when they fire, and which faults they cause.

Knows nothing of connections, threads and event loops. Randomness and time are passed in: the same seed and the same
requests give the same faults.
"""

import itertools
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, fields
from random import Random
from types import TracebackType
from typing import Any, Final, Self

from barnabas.api_handlers.registry import APIS
from barnabas.clock import Clock
from barnabas.errors import KafkaError
from barnabas.faults.naming import ImpossibleRule, api_name, find_api, find_error, nearest
from barnabas.faults.placing import has_place
from barnabas.faults.subjects import Subjects, can_name
from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Versions

logger = logging.getLogger(__name__)

LINES_KEPT: Final = 10_000
"""How many faults the report remembers."""


@dataclass(slots=True)
class Call:
    """A request on a connection, as rules see it."""

    api_key: int
    version: int
    client_id: str | None
    principal: str
    connection: int
    request: Request
    subjects: Subjects


@dataclass(frozen=True, kw_only=True)
class Match:
    """Which requests a rule matches; None matches any."""

    api: str | int | None = None
    versions: str | int | None = None
    client_id: str | None = None
    principal: str | None = None
    connection: int | None = None
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
    during: "Rule | None" = None  #: only while that rule is in force
    after: "Rule | None" = None  #: only once that rule has fired


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


class Rule:
    """One rule, which counts how often it has fired. At the end of a ``with`` block it is removed."""

    def __init__(self, owner: "Rules", match: Match, when: When, action: Action, began: float, number: int = 0) -> None:
        self.number = number  #: of the rules of one broker, from 1 on
        self.match, self.when, self.action = match, when, action
        self._owner = owner
        self._began = began
        self.api = None if match.api is None else find_api(match.api)
        self.versions = None if match.versions is None else Versions.parse(str(match.versions))
        self.error = None if action.error is None else find_error(action.error)
        self.calls = 0  #: requests that matched
        self.hits = 0  #: requests that it fired on
        self.is_lifted = False
        self._changed = threading.Condition()
        check(self)

    def wait_for_hits(self, hits: int = 1, timeout: float = 10.0) -> None:
        """Returns once the rule has fired that often. :raises TimeoutError: it has not in ``timeout`` seconds"""
        with self._changed:
            if not self._changed.wait_for(lambda: self.hits >= hits, timeout):
                raise TimeoutError(f"{self.hits} instead of {hits} hits in {timeout:g} s: {self}")

    def lift(self) -> None:
        """Removes the rule. Faults that have begun, such as delays, are completed."""
        self._owner.lift(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.lift()

    def __str__(self) -> str:
        parts = [
            f"{field}={_shown(value)}"
            for part in (self.match, self.when, self.action)
            for field in part.__dataclass_fields__
            if (value := getattr(part, field)) is not None and value != part.__dataclass_fields__[field].default
        ]
        return " ".join(parts)

    # ------------------------------------------------------------ matching

    def is_in_force(self, now: float) -> bool:
        """Returns whether the rule can still fire at that moment."""
        when = self.when
        if self.is_lifted or (when.seconds is not None and now - self._began >= when.seconds):
            return False
        last = when.nth or when.first
        return last is None or self.calls < last

    def names(self, topic: str, partition: int | None) -> bool:
        """Returns whether the rule matches that partition."""
        return self.match.topic in (None, topic) and (
            self.match.partition is None or partition in (None, self.match.partition)
        )

    @property
    def is_about_entries(self) -> bool:
        """Whether the rule matches some topics or partitions of a request, not the whole request."""
        return self.match.topic is not None or self.match.partition is not None

    @property
    def is_about_connections(self) -> bool:
        """Whether the rule matches new connections, not requests."""
        return self.action.refuse or self.action.tls is not None

    def matches(self, call: Call) -> bool:
        """Returns whether the rule matches the request."""
        match, subjects = self.match, call.subjects
        return (
            (self.api is None or self.api.key == call.api_key)
            and (self.versions is None or call.version in self.versions)
            and match.client_id in (None, call.client_id)
            and match.principal in (None, call.principal)
            and match.connection in (None, call.connection)
            and (match.group is None or match.group in subjects.groups)
            and (match.transactional_id is None or match.transactional_id in subjects.transactional_ids)
            and (not self.is_about_entries or any(self.names(*each) for each in subjects.topics))
        )

    def fires(self, now: float, random: Random) -> bool:
        """Counts a request that matches. Returns whether the rule fires on it."""
        when = self.when
        if not self.is_in_force(now) or (when.during is not None and not when.during.is_in_force(now)):
            return False
        if when.after is not None and not when.after.hits:
            return False
        if when.since is not None and now - self._began < when.since:
            return False
        self.calls += 1
        if when.nth is not None and self.calls != when.nth:
            return False
        if when.every is not None and self.calls % when.every:
            return False
        if when.probability is not None and random.random() >= when.probability:
            return False
        with self._changed:
            self.hits += 1
            self._changed.notify_all()
        return True


def _shown(value: object) -> object:
    if isinstance(value, Rule):
        return f"[{value}]"
    return value.__name__ if isinstance(value, type) else value


def check(rule: Rule) -> None:
    """Refuses a rule that can never match or that does nothing. :raises ImpossibleRule: with what would be right"""
    match, action = rule.match, rule.action
    if action == Action():
        raise ImpossibleRule(f"the rule does nothing: say one of {', '.join(ACTIONS)}")
    for value, possible, name in (
        (action.cut, CUTS, "cut"), (action.silent, SILENCES, "silent"), (action.tls, tuple(BAD_TLS), "tls"),
    ):  # fmt: skip
        if value is not None and value not in possible:
            raise ImpossibleRule(f"{name}={value!r} is none of {', '.join(possible)}")
    if action.refuse and any(getattr(match, name) is not None for name in MATCHES if name != "connection"):
        raise ImpossibleRule("refuse is about new connections, before their first request: match none, or connection")
    if action.tls is not None and match != Match():
        raise ImpossibleRule("tls is about new connections, before anything is known of the client: match none")
    for name in ("nth", "first", "every"):
        if getattr(rule.when, name) is not None and getattr(rule.when, name) < 1:
            raise ImpossibleRule(f"{name} counts from 1 on")
    if rule.when.since is not None and rule.when.seconds is not None and rule.when.since >= rule.when.seconds:
        raise ImpossibleRule("since is the begin and seconds the end, both counted from the moment the rule is set")
    if action.answer_version is not None and rule.api is None:
        raise ImpossibleRule("answer_version is a version of one API: name the api")
    if action.drip is not None and action.drip < 1:
        raise ImpossibleRule("drip is a number of bytes a second, 1 or more")
    if action.handled and rule.error is None:
        raise ImpossibleRule("handled=True says that the handler runs before an error is told: name the error")
    needed = LEADER_APIS if action.leader is not None else ("FindCoordinator",) if action.coordinator else ()
    if needed and (rule.api is None or api_name(rule.api.key) not in needed):
        raise ImpossibleRule(f"only answers to {' and '.join(needed)} say that: api={needed[0]!r}")
    if rule.api is not None:
        _check_api(rule)


def _check_api(rule: Rule) -> None:
    assert rule.api is not None
    api, name = rule.api, api_name(rule.api.key)
    versions = rule.versions or api.versions
    if versions.last < api.versions.first or versions.first > api.versions.last:
        raise ImpossibleRule(f"{name} is answered in versions {api.versions}, not {versions}")
    for subject in ("topic", "partition", "group", "transactional_id"):
        if getattr(rule.match, subject) is not None and not can_name(api.request, subject):
            able = [api_name(key) for key, each in APIS.items() if can_name(each.request, subject)]
            raise ImpossibleRule(f"a request of {name} names no {subject}; these do: {', '.join(able)}")
    if rule.error is not None and not has_place(api.request, versions):
        raise ImpossibleRule(f"the answer to {name} has no place for an error in versions {versions}; cut it instead")
    answered = rule.action.answer_version
    if answered is not None and answered not in api.versions:
        raise ImpossibleRule(f"{name} is answered in versions {api.versions}, not {answered}")
    if rule.action.throttle_ms is not None and not any(
        field.name == "throttle_time_ms" for field in api.request.response.wire_fields()
    ):
        raise ImpossibleRule(f"the answer to {name} has no throttle time")


class Rules:
    """The rules of one broker.

    :param changed: called after a rule was added or removed
    """

    def __init__(self, clock: Clock, random: Random, changed: Callable[[], object] = lambda: None) -> None:
        self._clock = clock
        self.random = random
        self._changed = changed
        self._rules: tuple[Rule, ...] = ()
        self._numbers = itertools.count(1)
        self._lines: list[str] = []

    def add(self, **given: Any) -> Rule:
        """Sets a rule. :raises ImpossibleRule: it can never match, or does nothing"""
        rule = self.possible(**given)
        self._rules += (rule,)
        self._changed()
        return rule

    def possible(self, **given: Any) -> Rule:
        """Returns a rule that is not in force. :raises ImpossibleRule: it can never match, or does nothing"""
        for name in given:
            if name not in (*MATCHES, *WHENS, *ACTIONS):
                known = (*MATCHES, *WHENS, *ACTIONS)
                raise ImpossibleRule(f"a rule has no {name!r}{nearest(name, known)}")
        parts = [{name: value for name, value in given.items() if name in of} for of in (MATCHES, WHENS, ACTIONS)]
        return Rule(
            self, Match(**parts[0]), When(**parts[1]), Action(**parts[2]), self._clock.monotonic(), next(self._numbers)
        )

    @property
    def all(self) -> tuple[Rule, ...]:
        """The rules that have not been removed."""
        return self._rules

    def lift(self, rule: Rule) -> None:
        """Removes a rule."""
        rule.is_lifted = True
        self._rules = tuple(each for each in self._rules if each is not rule)
        self._changed()

    def clear(self) -> None:
        """Removes all rules, and clears the report."""
        for rule in self._rules:
            rule.is_lifted = True
        self._rules, self._lines = (), []
        self._changed()

    def __bool__(self) -> bool:
        return bool(self._rules)

    def fire(self, call: Call) -> list[Rule]:
        """Returns the rules that fire on a request."""
        now = self._clock.monotonic()
        fired = [
            rule
            for rule in self._rules
            if not rule.is_about_connections and rule.matches(call) and rule.fires(now, self.random)
        ]
        for rule in fired:
            self._note(
                f"{api_name(call.api_key)} {call.version} of {call.client_id!r} on connection {call.connection}", rule
            )
        return fired

    def refuses(self, connection: int) -> bool:
        """Returns whether a new connection is refused."""
        now = self._clock.monotonic()
        for rule in self._rules:
            if rule.action.refuse and rule.match.connection in (None, connection) and rule.fires(now, self.random):
                self._note(f"connection {connection}", rule)
                return True
        return False

    def bad_tls(self) -> bytes | None:
        """Returns the bytes that a new client is sent instead of a handshake; None for a normal handshake."""
        now = self._clock.monotonic()
        for rule in self._rules:
            if rule.action.tls is not None and rule.fires(now, self.random):
                self._note("a handshake", rule)
                return BAD_TLS[rule.action.tls]
        return None

    def report(self) -> str:
        """Returns which rule fired when, a line each."""
        return "\n".join(self._lines)

    def _note(self, what: str, rule: Rule) -> None:
        line = f"{what}: hit {rule.hits} of the rule [{rule}]"
        logger.info("Fault at %s", line)
        if len(self._lines) < LINES_KEPT:
            self._lines.append(f"{self._clock.time_ms()} {line}")


def edited(rule: Rule, response: Response) -> None:
    """Changes a response as the rule says, except for its error."""
    action = rule.action
    if action.throttle_ms is not None and hasattr(response, "throttle_time_ms"):
        response.throttle_time_ms = action.throttle_ms
    if action.leader is not None:
        _set_leaders(rule, response, action.leader)
    if action.coordinator is not None:
        for each in (response, *(getattr(response, "coordinators", None) or ())):
            each.node_id, each.host, each.port = action.coordinator
    if action.edit is not None:
        action.edit(response)


def _set_leaders(rule: Rule, response: Any, leader: int) -> None:
    for topic in response.topics:
        for partition in topic.partitions:
            if rule.names(topic.name, partition.partition_index):
                partition.leader_id = leader
