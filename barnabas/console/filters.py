"""Formats values for pages: sizes, times, parts of addresses.

Knows nothing of pages.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote


def part(text: object) -> str:
    """Returns a text as one part of an address."""
    return quote(str(text), safe="")


def size(number: int | None) -> str:
    """Returns a number of bytes with a unit: 1.5 MiB."""
    if number is None:
        return "unknown"
    value, units = float(number), ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{number} bytes" if units[0] == "bytes" else f"{value:.1f} {units[0]}"


def moment(timestamp: int | None) -> str:
    """Returns milliseconds since 1970 as a date, in UTC."""
    if timestamp is None or timestamp < 0:
        return "none"
    try:
        return datetime.fromtimestamp(timestamp / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    except (ValueError, OverflowError, OSError):
        return str(timestamp)


def number(value: int | None) -> str:
    """Returns a number with thousands separators."""
    return "unknown" if value is None else f"{value:,}"


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {"part": part, "size": size, "moment": moment, "number": number}
