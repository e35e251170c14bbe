"""Rules: which requests they match, when they fire, and which faults they cause.

Knows nothing of connections, threads and event loops. Randomness and time are passed in: the same seed and the same
requests give the same faults.
"""

import itertools
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from types import TracebackType
from typing import Any, Final, Self

from barnabas.clock import Clock
from barnabas.faults.checking import checked
from barnabas.faults.naming import ImpossibleRule, api_name, nearest
from barnabas.faults.parts import ACTIONS, BAD_TLS, MATCHES, NEW, WHENS, Action, Match, When
from barnabas.faults.subjects import Subjects
from barnabas.wire.message import Request, Response

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
    node: int | None
    request: Request
    subjects: Subjects


class Rule:
    """One rule, which counts how often it has fired. At the end of a ``with`` block it is removed."""

    def __init__(self, owner: "Rules", match: Match, when: When, action: Action) -> None:
        self.number = 0  #: of the rules of one broker, from 1 on
        self.match, self.when, self.action = match, when, action
        self._owner = owner
        self._began = 0.0
        self.api, self.versions, self.error = checked(match, when, action)
        self.calls = 0  #: requests that matched
        self.hits = 0  #: requests that it fired on
        self.is_lifted = False
        self._first_connection: int | None = None  # that was opened since the rule was set
        self._opened = 0  # how many were opened since
        self._changed = threading.Condition()

    def begin(self, number: int, now: float) -> None:
        """Puts the rule in force, under a number."""
        self.number, self._began = number, now

    def set(self) -> None:
        """Sets a rule that :meth:`Rules.possible` has made."""
        self._owner.set(self)

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
            and match.node in (None, call.node)
            and self._is_connection(call.connection)
            and (match.group is None or match.group in subjects.groups)
            and (match.transactional_id is None or match.transactional_id in subjects.transactional_ids)
            and (not self.is_about_entries or any(self.names(*each) for each in subjects.topics))
        )

    def opened(self, connection: int) -> None:
        """Receives each new connection."""
        self._opened += 1
        wanted = self.match.connection
        if isinstance(wanted, str) and self._first_connection is None and self._opened == _place(wanted):
            self._first_connection = connection

    def _is_connection(self, connection: int) -> bool:
        wanted = self.match.connection
        if not isinstance(wanted, str):
            return wanted in (None, connection)
        if self._first_connection is None:
            return False
        return connection >= self._first_connection if wanted == NEW else connection == self._first_connection

    def refuses(self, connection: int, node: int | None) -> bool:
        """Returns whether the rule is about the refusal of that connection."""
        return self.action.refuse and self.match.node in (None, node) and self._is_connection(connection)

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


def _place(wanted: str) -> int:
    """Returns which connection since the rule was set is wanted, or the first of them."""
    return 1 if wanted == NEW else int(wanted)


class Rules:
    """The rules of one broker, or of a proxy.

    :param changed: called after a rule was added or removed
    :param node: the id of the broker; None at a proxy, which has clients of several
    """

    def __init__(
        self,
        clock: Clock,
        random: Random,
        changed: Callable[[], object] = lambda: None,
        *,
        node: int | None = None,
    ) -> None:
        self._clock = clock
        self.random = random
        self._node = node
        self._changed = changed
        self._rules: tuple[Rule, ...] = ()
        self._numbers = itertools.count(1)
        self._lines: list[str] = []

    def add(self, **given: Any) -> Rule:
        """Sets a rule. :raises ImpossibleRule: it can never match, or does nothing"""
        rule = self.possible(**given)
        self.set(rule)
        return rule

    def possible(self, **given: Any) -> Rule:
        """Returns a rule that is not in force. :raises ImpossibleRule: it can never match, or does nothing"""
        for name in given:
            if name not in (*MATCHES, *WHENS, *ACTIONS):
                known = (*MATCHES, *WHENS, *ACTIONS)
                raise ImpossibleRule(f"a rule has no {name!r}{nearest(name, known)}")
        parts = [{name: value for name, value in given.items() if name in of} for of in (MATCHES, WHENS, ACTIONS)]
        rule = Rule(self, Match(**parts[0]), When(**parts[1]), Action(**parts[2]))
        if self._node is not None and rule.match.node not in (None, self._node):
            raise ImpossibleRule(f"node={rule.match.node} is not this broker, whose id is {self._node}")
        return rule

    def set(self, *rules: Rule) -> None:
        """Sets rules that :meth:`possible` has made, all at once."""
        now = self._clock.monotonic()
        for rule in rules:
            rule.begin(next(self._numbers), now)
        self._rules += rules
        self._changed()

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

    def refuses(self, connection: int, node: int | None = None) -> bool:
        """Returns whether a new connection is refused."""
        now = self._clock.monotonic()
        for rule in self._rules:
            rule.opened(connection)
        for rule in self._rules:
            if rule.refuses(connection, node) and rule.fires(now, self.random):
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
