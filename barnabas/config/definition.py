"""What one config is: its name, type, default, rule and meaning; and how its text becomes a value and back.

Knows nothing of any particular config, nor of who sets it. Types, and the way their text is read and written, are those
of Kafka's ``ConfigDef``.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

from barnabas.config.validators import Validator


class ConfigType(IntEnum):
    """The type of a config's value, by its number in DescribeConfigs (KIP-569)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


BOOLEAN, STRING, INT, SHORT = ConfigType.BOOLEAN, ConfigType.STRING, ConfigType.INT, ConfigType.SHORT
LONG, DOUBLE, LIST, CLASS = ConfigType.LONG, ConfigType.DOUBLE, ConfigType.LIST, ConfigType.CLASS
PASSWORD = ConfigType.PASSWORD

HIGH, MEDIUM, LOW = "high", "medium", "low"

#: When a config can be changed: at the next start, for one broker while it runs, or for all brokers as well (KIP-226).
READ_ONLY, PER_BROKER, CLUSTER_WIDE = "read-only", "per-broker", "cluster-wide"

MAX_INT, MAX_LONG, MAX_DOUBLE = 2**31 - 1, 2**63 - 1, 1.7976931348623157e308

_BITS = {SHORT: 16, INT: 32, LONG: 64}


class Synonym(NamedTuple):
    """A broker's config that a topic's config falls back to; its number times ``scale`` is the topic's."""

    name: str
    scale: int = 1


class ConfigDef(NamedTuple):
    """The declaration of one config: everything that parsing, DescribeConfigs and the reference need to know."""

    name: str
    type: ConfigType
    default: Any
    validator: Validator | None
    importance: str
    doc: str
    scope: str = READ_ONLY
    #: Whether it makes a difference to what Barnabas does.
    in_effect: bool = False
    #: Shown only where it is set.
    internal: bool = False
    #: Of a topic's config: the broker's configs that it falls back to, the strongest first.
    synonyms: tuple[Synonym, ...] = ()

    @property
    def sensitive(self) -> bool:
        """Whether its value must not be shown."""
        return self.type is PASSWORD

    def parse(self, text: str) -> Any:
        """The value that the text stands for.

        Raises:
            ConfigError: it is not of the type, or the validator refuses it.
        """
        return self._judged(_READERS[self.type](self, text.strip()), text)

    def parse_set(self, text: str) -> Any:
        """As :meth:`parse`, for what is set while the broker runs: there, an item that is repeated counts once.

        Raises:
            ConfigError: it is not of the type, or the validator refuses it.
        """
        value = _READERS[self.type](self, text.strip())
        return self._judged(list(dict.fromkeys(value)) if self.type is LIST else value, text)

    def _judged(self, value: Any, text: str) -> Any:
        if self.validator is not None and not self.validator.accepts(value):
            raise ConfigError(self.name, None if self.sensitive else text, self.validator.rule)
        return value


class ConfigError(ValueError):
    """A config's value that cannot be; says which, what it is, and what would be right."""

    def __init__(self, name: str, value: str | None, rule: str) -> None:
        shown = "not shown here" if value is None else repr(value)
        super().__init__(f"{name} is {shown}, but must be {rule}")
        self.name, self.value, self.rule = name, value, rule


def _read_boolean(definition: ConfigDef, text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ConfigError(definition.name, text, "true or false")
    return lowered == "true"


def _read_number(definition: ConfigDef, text: str) -> int:
    bound = 1 << (_BITS[definition.type] - 1)
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits.isdecimal() or not -bound <= int(text) < bound:
        raise ConfigError(definition.name, text, f"a whole number from {-bound} to {bound - 1}")
    return int(text)


def _read_double(definition: ConfigDef, text: str) -> float:
    bare = text[:-1] if text[-1:] in "dDfF" and text[-2:-1].isdecimal() else text
    if text.lstrip("+-") not in ("NaN", "Infinity") and not set(bare) <= set("0123456789+-.eE"):
        raise ConfigError(definition.name, text, "a number")
    try:
        return float(bare)
    except ValueError:
        raise ConfigError(definition.name, text, "a number") from None


def _read_list(definition: ConfigDef, text: str) -> list[str]:
    return [item.strip() for item in text.split(",")] if text else []


def _read_text(definition: ConfigDef, text: str) -> str:
    return text


_READERS: dict[ConfigType, Callable[[ConfigDef, str], Any]] = {
    BOOLEAN: _read_boolean,
    STRING: _read_text,
    INT: _read_number,
    SHORT: _read_number,
    LONG: _read_number,
    DOUBLE: _read_double,
    LIST: _read_list,
    CLASS: _read_text,
    PASSWORD: _read_text,
}


def text_of(kind: ConfigType, value: Any) -> str | None:
    """The value as DescribeConfigs writes it: Java's words for booleans and doubles, lists joined by commas."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(value)
    return _java_double(float(value)) if kind is DOUBLE else str(value)


def _java_double(value: float) -> str:
    """A double as ``Double.toString`` writes it: 0.5, 1.0E7, 9.99E-4."""
    if value != value or value in (float("inf"), float("-inf")):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    from decimal import Decimal

    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text = "".join(map(str, digits))
    return f"{'-' * sign}{text[0]}.{text[1:] or '0'}E{int(exponent) + len(text) - 1}"
