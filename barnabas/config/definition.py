"""The declaration of a config: its name, type, default, validator and doc; parses and formats its values.

Knows nothing of particular configs, nor of where they are set. Types, parsing and formatting are those of Kafka's
``ConfigDef``.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

from barnabas.config.validators import Items, Validator, invalid


class ConfigType(IntEnum):
    """The type of a config's value, with its number in DescribeConfigs (KIP-569)."""

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

#: When a config can be changed: at the start, dynamically for one broker, or dynamically for all brokers, too
# (KIP-226).
READ_ONLY, PER_BROKER, CLUSTER_WIDE = "read-only", "per-broker", "cluster-wide"

MAX_DOUBLE = 1.7976931348623157e308

HIDDEN = "[hidden]"
"""The value of a password in Kafka's output."""


class Synonym(NamedTuple):
    """A broker's config that is the default of a topic's config; the topic's value is the broker's times ``scale``."""

    name: str
    scale: int = 1


class ConfigDef(NamedTuple):
    """The declaration of one config, for parsing, DescribeConfigs and the reference."""

    name: str
    type: ConfigType
    default: Any
    validator: Validator | None
    importance: str
    doc: str
    scope: str = READ_ONLY
    #: Whether it has an effect in Barnabas.
    in_effect: bool = False
    #: Whether it is shown only if it is set.
    internal: bool = False
    #: The broker's configs that are the default of a topic's config, in descending precedence.
    synonyms: tuple[Synonym, ...] = ()

    @property
    def sensitive(self) -> bool:
        """Whether its value is hidden."""
        return self.type is PASSWORD

    def parse(self, text: str) -> Any:
        """Parses a text.

        :raises ConfigError: the text is not of the type, or the validator refuses the value
        """
        return self._checked(self._read(text))

    def parse_set(self, text: str) -> Any:
        """Parses the text of a dynamic config: repeated items of a list are removed.

        :raises ConfigError: the text is not of the type, or the validator refuses the value
        """
        value = self._read(text)
        return self._checked(list(dict.fromkeys(value)) if isinstance(self.validator, Items) else value)

    def _read(self, text: str) -> Any:
        try:
            return _READERS[self.type](text.strip())
        except ValueError:
            complaint = _NO_BOOLEAN if self.type is BOOLEAN else f"Not a number of type {self.type.name}"
            raise invalid(self.name, HIDDEN if self.sensitive else text, complaint) from None

    def _checked(self, value: Any) -> Any:
        if self.validator is not None:
            shown = HIDDEN if self.sensitive else text_of(self.type, value)
            self.validator.check(self.name, value, str(shown))
        return value


def _read_boolean(text: str) -> bool:
    lowered = text.lower()
    if lowered not in ("true", "false"):
        raise ValueError
    return lowered == "true"


def _reader_of_numbers(bits: int) -> Callable[[str], int]:
    bound = 1 << (bits - 1)

    def read(text: str) -> int:
        digits = text[1:] if text[:1] in ("+", "-") else text
        if not digits.isdecimal() or not -bound <= int(text) < bound:
            raise ValueError
        return int(text)

    return read


def _read_double(text: str) -> float:
    bare = text[:-1] if text[-1:] in "dDfF" and text[-2:-1].isdecimal() else text
    if text.lstrip("+-") not in ("NaN", "Infinity") and not set(bare) <= set("0123456789+-.eE"):
        raise ValueError
    return float(bare)


def _read_list(text: str) -> list[str]:
    return [item.strip() for item in text.split(",")] if text else []


def _read_text(text: str) -> str:
    return text


_NO_BOOLEAN = "Expected value to be either true or false"
_READERS: dict[ConfigType, Callable[[str], Any]] = {
    BOOLEAN: _read_boolean,
    STRING: _read_text,
    INT: _reader_of_numbers(32),
    SHORT: _reader_of_numbers(16),
    LONG: _reader_of_numbers(64),
    DOUBLE: _read_double,
    LIST: _read_list,
    CLASS: _read_text,
    PASSWORD: _read_text,
}


def text_of(kind: ConfigType, value: Any) -> str | None:
    """Returns the value as DescribeConfigs does: booleans and doubles as in Java, lists joined by commas."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(value)
    return _java_double(float(value)) if kind is DOUBLE else str(value)


def _java_double(value: float) -> str:
    """Returns a double as ``Double.toString`` does: 0.5, 1.0E7, 9.99E-4."""
    if value != value or value in (float("inf"), float("-inf")):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    from decimal import Decimal

    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text = "".join(map(str, digits))
    return f"{'-' * sign}{text[0]}.{text[1:] or '0'}E{int(exponent) + len(text) - 1}"
