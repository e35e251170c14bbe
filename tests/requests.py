"""Complete requests of any API in any version: two topics, two partitions of each, and so on."""

import itertools
from collections.abc import Iterator
from typing import Any

from barnabas.api_handlers.registry import APIS, Api
from barnabas.wire.schema import Field, Struct

EVERY_VERSION = [
    (api, version) for api in APIS.values() for version in range(api.versions.first, api.versions.last + 1)
]


def name_of(case: Any) -> str:
    """Returns the name of a test's case: ``fetch``, ``12``."""
    return case.module if isinstance(case, Api) else str(case)


def named(cls: type[Struct], version: int, *, entries: int = 2, numbers: Iterator[int] | None = None) -> Any:
    """Returns a structure with different texts, ids and numbers, and this number of entries in each array."""
    numbers = numbers or itertools.count(1)
    made: dict[str, Any] = {}
    for field in cls.wire_fields():
        if version in field.versions:
            count = entries if field.is_array else 1
            values = [_value(field, version, entries, numbers) for _ in range(count)]
            made[field.name] = values if field.is_array else values[0]
    return cls(**made)


def _value(field: Field, version: int, entries: int, numbers: Iterator[int]) -> Any:
    kind = field.kind
    if isinstance(kind, type):
        return named(kind, version, entries=entries, numbers=numbers)
    number = next(numbers)
    match getattr(kind, "format", None) or kind.shape:  # type: ignore[union-attr]
        case "?":
            return False
        case "b":
            return 1  # a valid value of enumerations
        case "16s":
            return number.to_bytes(16)
        case "text" | "string":
            return f"{field.name}-{number}"
        case "d":
            return 1.0
        case "h" | "i" | "q" | "H" | "I":
            return 1 if field.name == "acks" else number
        case _:
            return b"bytes"
