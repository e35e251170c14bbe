"""The rules for parsed values: ranges, choices, formats.

Knows nothing of types or text. The rules and messages are those of Apache Kafka 4.3 (``ConfigDef.Validator``); programs
depend on the messages.
"""

from collections.abc import Callable
from typing import Any


class ConfigError(ValueError):
    """An invalid value of a config: the name, the value, and the rule."""

    def __init__(self, name: str, value: str | None, rule: str) -> None:
        shown = "not shown here" if value is None else repr(value)
        super().__init__(f"{name} is {shown}, but must be {rule}")
        self.name = name


class InvalidValue(ConfigError):
    """A value that Kafka refuses, too; the message is Kafka's."""

    def __init__(self, name: str, text: str) -> None:
        ValueError.__init__(self, text)
        self.name = name


def invalid(name: str, value: str, complaint: str) -> InvalidValue:
    """Returns the error of a value with the message of Kafka's ``ConfigException``."""
    return InvalidValue(name, f"Invalid value {value} for configuration {name}: {complaint}")


class Validator:
    """A rule for values of one type."""

    __slots__ = ()

    @property
    def rule(self) -> str:
        """The rule for the reference: the end of a sentence that begins with "must be"."""
        raise NotImplementedError

    def check(self, name: str, value: Any, shown: str) -> None:
        """Checks a value of the config of that name.

        :param shown: the value as a text for the message
        :raises InvalidValue: the value does not meet the rule
        """
        raise NotImplementedError


class Between(Validator):
    """A number from ``low`` to ``high``, inclusive; without ``high`` there is no upper bound."""

    __slots__ = ("high", "low")

    def __init__(self, low: float, high: float | None = None) -> None:
        self.low, self.high = low, high

    @property
    def rule(self) -> str:
        return f"at least {self.low}" if self.high is None else f"between {self.low} and {self.high}"

    def check(self, name: str, value: Any, shown: str) -> None:
        # A NaN is valid, as in Kafka's ranges.
        if value is None:
            raise invalid(name, "null", "Value must be non-null")
        if value < self.low:
            raise invalid(name, shown, f"Value must be at least {self.low}")
        if self.high is not None and value > self.high:
            raise invalid(name, shown, f"Value must be no more than {self.high}")


class OneOf(Validator):
    """One of the choices."""

    __slots__ = ("choices", "ignore_case")

    def __init__(self, choices: tuple[str, ...], ignore_case: bool = False) -> None:
        self.choices, self.ignore_case = choices, ignore_case

    @property
    def rule(self) -> str:
        return "one of " + ", ".join(self.choices) + (" (in either case)" if self.ignore_case else "")

    def check(self, name: str, value: Any, shown: str) -> None:
        if self.ignore_case:
            if value is None or value.lower() not in [choice.lower() for choice in self.choices]:
                raise invalid(name, shown, f"String must be one of (case insensitive): {', '.join(self.choices)}")
        elif value not in self.choices:
            raise invalid(name, shown, f"String must be one of: {', '.join(self.choices)}")


class Items(Validator):
    """A list without repeated or empty items, with ``choices`` only of these."""

    __slots__ = ("_choice", "choices", "may_be_empty", "may_be_null")

    def __init__(self, choices: tuple[str, ...] = (), *, may_be_empty: bool = True, may_be_null: bool = False) -> None:
        self.choices, self.may_be_empty, self.may_be_null = choices, may_be_empty, may_be_null
        self._choice = OneOf(choices)

    @property
    def rule(self) -> str:
        what = "a list" if self.may_be_empty else "a list of at least one item"
        each = f", each one of {', '.join(self.choices)}" if self.choices else ""
        return f"{what} without empty or repeated items{each}"

    def check(self, name: str, value: Any, shown: str) -> None:
        if value is None:
            if self.may_be_null:
                return
            raise InvalidValue(name, f"Configuration '{name}' values must not be null.")
        if not value and not self.may_be_empty:
            valid = f"[{', '.join(self.choices)}]" if self.choices else "any non-empty value"
            raise InvalidValue(name, f"Configuration '{name}' must not be empty. Valid values include: {valid}")
        if len(set(value)) < len(value):
            raise InvalidValue(name, f"Configuration '{name}' values must not be duplicated.")
        for item in value:
            if not item:
                raise InvalidValue(name, f"Configuration '{name}' values must not be empty.")
            if self.choices:
                self._choice.check(name, item, item)


class Matching(Validator):
    """A value for which a function returns True.

    :param rule: the end of a sentence that begins with "must be"
    :param complaint: the message of the error, in Kafka's words
    """

    __slots__ = ("_complaint", "_function", "_rule")

    def __init__(self, rule: str, function: Callable[[Any], bool], complaint: str = "") -> None:
        self._rule, self._function = rule, function
        self._complaint = complaint or f"Value must be {rule}"

    @property
    def rule(self) -> str:
        return self._rule

    def check(self, name: str, value: Any, shown: str) -> None:
        if not self._function(value):
            if isinstance(value, list):
                shown = f"[{', '.join(value)}]"
            raise invalid(name, shown, self._complaint.format(name=name, shown=shown))


def _is_replica_list(items: list[str]) -> bool:
    """Returns whether the list is ``*``, or ``partition:broker`` pairs; empty items at the end are ignored."""
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
    """Returns whether the text is ``earliest``, ``latest``, or a non-negative ``java.time.Duration``."""
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
    """Returns whether the text is ``address:count``, separated by commas; an address may contain colons."""
    items = [item.strip().rpartition(":") for item in text.split(",") if item.strip()]
    return all(host and count.strip().isdecimal() for host, _, count in items)


def at_least(low: float) -> Between:
    """Returns the rule for a number of ``low`` or more."""
    return Between(low)


not_empty = Matching("a text that is not empty", lambda value: value is None or value != "", "String must be non-empty")
not_null = Matching("given", lambda value: value is not None, "entry must be non null")
counts = Matching("a list of address:count", _are_counts)
RACK_AWARE_SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
LEADER_SELECTOR = "org.apache.kafka.common.replica.LeaderSelector"
replica_selector = Matching(
    f"{LEADER_SELECTOR} or {RACK_AWARE_SELECTOR}",
    lambda name: name in (None, "", LEADER_SELECTOR, RACK_AWARE_SELECTOR),
)
gzip_level = Matching(
    "between 1 and 9, or -1",
    lambda level: level == -1 or 1 <= level <= 9,
    "Value must be between 1 and 9 or equal to -1",
)
replica_list = Matching(
    "* or a list of partition:broker",
    _is_replica_list,
    "{name} must be the literal '*' or a list of replicas in the following format: "
    "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
)
voters = Matching("a list of id@host:port", lambda items: all(map(_is_voter, items)))
hosts_and_ports = Matching("a list of host:port", lambda items: all(map(_is_host_and_port, items)))
share_reset = Matching(
    "earliest, latest, or by_duration: and a span as PnDTnHnMn.nS",
    _is_share_reset,
    "Invalid value `{shown}` for configuration {name}. The value must be either 'earliest', 'latest' or of the format "
    "'by_duration:<PnDTnHnMn.nS>'.",
)


def assignors(*names: str) -> Items:
    """Returns the rule for assignors, by their names, or by Kafka's classes as in Kafka 3."""
    classes = tuple(f"org.apache.kafka.coordinator.group.assignor.{name.title()}Assignor" for name in names)
    return Items((*names, *classes), may_be_empty=False)
