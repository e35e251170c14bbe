"""What a parsed value must be like to be taken: ranges, choices, shapes.

Knows nothing of names, types or text. A validator says its rule in words, so that an error and the reference can say
what would be right. The rules are those that Apache Kafka 4.3 attaches to its configs.
"""

from collections.abc import Callable
from typing import Any


class Validator:
    """A rule for values of one type."""

    __slots__ = ()

    @property
    def rule(self) -> str:
        """The end of a sentence that begins with "must be"."""
        raise NotImplementedError

    def accepts(self, value: Any) -> bool:
        """Whether the value may be had."""
        raise NotImplementedError


class Between(Validator):
    """A number from ``low`` to ``high``, both included; no ``high`` sets no bound."""

    __slots__ = ("high", "low")

    def __init__(self, low: float, high: float | None = None) -> None:
        self.low, self.high = low, high

    @property
    def rule(self) -> str:
        return f"at least {self.low}" if self.high is None else f"between {self.low} and {self.high}"

    def accepts(self, value: Any) -> bool:
        # A NaN is neither below nor above, and is taken, as Kafka's ranges take it.
        return value is not None and not value < self.low and not (self.high is not None and value > self.high)


class OneOf(Validator):
    """One of some words."""

    __slots__ = ("choices", "ignore_case")

    def __init__(self, choices: tuple[str, ...], ignore_case: bool = False) -> None:
        self.choices, self.ignore_case = choices, ignore_case

    @property
    def rule(self) -> str:
        return "one of " + ", ".join(self.choices) + (" (in either case)" if self.ignore_case else "")

    def accepts(self, value: Any) -> bool:
        if value is None:
            return False
        if self.ignore_case:
            return str(value).lower() in [choice.lower() for choice in self.choices]
        return value in self.choices


class Items(Validator):
    """A list without doubles and without empty items; of some words only, where ``choices`` are given."""

    __slots__ = ("choices", "may_be_empty", "may_be_null")

    def __init__(self, choices: tuple[str, ...] = (), *, may_be_empty: bool = True, may_be_null: bool = False) -> None:
        self.choices, self.may_be_empty, self.may_be_null = choices, may_be_empty, may_be_null

    @property
    def rule(self) -> str:
        what = "a list" if self.may_be_empty else "a list of at least one item"
        each = f", each one of {', '.join(self.choices)}" if self.choices else ""
        return f"{what} without empty or repeated items{each}"

    def accepts(self, value: Any) -> bool:
        if value is None:
            return self.may_be_null
        if not value:
            return self.may_be_empty
        if len(set(value)) < len(value) or "" in value:
            return False
        return not self.choices or all(item in self.choices for item in value)


class Matching(Validator):
    """Whatever a function says is right."""

    __slots__ = ("_function", "_rule")

    def __init__(self, rule: str, function: Callable[[Any], bool]) -> None:
        self._rule, self._function = rule, function

    @property
    def rule(self) -> str:
        return self._rule

    def accepts(self, value: Any) -> bool:
        return self._function(value)


def _is_replica_list(items: list[str]) -> bool:
    """``*`` alone, or ``partition:broker`` pairs; empty items at the end count for nothing."""
    if items == ["*"]:
        return True
    while items and not items[-1]:
        items = items[:-1]
    pairs = [item.split(":") for item in items]
    return all(len(pair) == 2 and all(part.isdecimal() for part in pair) for pair in pairs)


def _is_host_and_port(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return bool(host) and port.isdecimal() and int(port) <= 65535


def _is_voter(text: str) -> bool:
    node_id, at, address = text.partition("@")
    return bool(at) and node_id.isdecimal() and _is_host_and_port(address)


def _is_share_reset(text: str) -> bool:
    """``earliest``, ``latest``, or a span of time from now that is not negative, as ``java.time.Duration`` reads it."""
    if text in ("earliest", "latest"):
        return True
    prefix, colon, span = text.partition(":")
    if prefix != "by_duration" or not colon:
        return False
    import re

    number, fraction = r"[+]?\d+", r"[+]?\d+(\.\d{0,9})?"
    pattern = rf"[+]?P(?=[\dT+])({number}D)?(T(?=[\d+])({number}H)?({number}M)?({fraction}S)?)?"
    return re.fullmatch(pattern, span, re.IGNORECASE) is not None


def _are_counts(text: str) -> bool:
    """``address:count``, separated by commas; an address may have colons of its own."""
    items = [item.strip().rpartition(":") for item in text.split(",") if item.strip()]
    return all(host and count.strip().isdecimal() for host, _, count in items)


def at_least(low: float) -> Between:
    """A number of ``low`` or more."""
    return Between(low)


not_empty = Matching("a text that is not empty", lambda value: value is None or value != "")
not_null = Matching("given", lambda value: value is not None)
counts = Matching("a list of address:count", _are_counts)
gzip_level = Matching("between 1 and 9, or -1", lambda level: level == -1 or 1 <= level <= 9)
replica_list = Matching("* or a list of partition:broker", _is_replica_list)
voters = Matching("a list of id@host:port", lambda items: all(map(_is_voter, items)))
hosts_and_ports = Matching("a list of host:port", lambda items: all(map(_is_host_and_port, items)))
share_reset = Matching("earliest, latest, or by_duration: and a span as PnDTnHnMn.nS", _is_share_reset)


def assignors(*names: str) -> Items:
    """Assignors by the names that members give them, or by Kafka's classes, as Kafka 3 had them."""
    classes = tuple(f"org.apache.kafka.coordinator.group.assignor.{name.title()}Assignor" for name in names)
    return Items((*names, *classes), may_be_empty=False)
