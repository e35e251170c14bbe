"""Searches records by key, value, header, or a path in JSON.

Knows nothing of where records come from. Each step of a search reads a number of records, and returns its progress.
"""

import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from barnabas.console.decoding import KEY, VALUE, decoded, framed
from barnabas.console.fetching import Found, Topic

BATCH_S: Final = 0.5
"""The duration of a step of a search, in seconds."""

FIRST_S: Final = 0.1
"""The duration of the first step, which is short so that results are shown early."""

MOST_FOUND: Final = 500
"""The maximum number of results of a search."""

WHERES: Final = {"any": "key, value or header", "key": "key", "value": "value", "header": "header", "json": "JSON path"}

_NOT_OF_WORDS: Final = re.compile(r"[\s\"\\:,{}\[\]]")
"""The characters between tokens of JSON, which may differ between the shown and the written text."""

_FLOAT: Final = re.compile(r"\d\.|\d[eE]")
"""Numbers that have several forms: 1.0 and 1e0."""

Matches = Callable[[Found], bool]


class Cursor(NamedTuple):
    """The progress of a search: all offsets before ``offset`` of this partition, and all partitions before it, are
    done.
    """

    partition: int
    offset: int

    @classmethod
    def parse(cls, text: str) -> "Cursor":
        """Parses a cursor like ``3:4711``. :raises ValueError: the text is not a cursor"""
        found = re.fullmatch(r"(\d{1,10}):(\d{1,19})", text, re.ASCII)
        if not found:
            raise ValueError(f"The place to go on is {text!r}, but must be a partition and an offset like 3:4711.")
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.partition}:{self.offset}"


class Step(NamedTuple):
    """The result of one step."""

    found: list[Found]
    cursor: Cursor | None  #: the start of the next step; None at the end
    done: int
    total: int


def matching(where: str, text: str, registry: str | None) -> Matches:
    """Returns a function that returns whether a record matches.

    :param where: a key of ``WHERES``
    :raises ValueError: the text is not a path with a value
    """
    if where == "json":
        return _json_matching(text, registry)
    wanted = text.lower()
    words = _words(wanted)

    def has(data: bytes | None) -> bool:
        if data is None:
            return False
        plain = _plain_text(data)
        if plain is not None:
            plain = plain.lower()
            if wanted in plain:
                return True
            if not _may_have(plain, words):
                return False
        return wanted in decoded(data, registry=registry, limit=1 << 20)["text"].lower()

    def matches(each: Found) -> bool:
        record = each.record
        return (
            (where in ("any", "key") and has(framed(record.key, record.headers, KEY, registry)))
            or (where in ("any", "value") and has(framed(record.value, record.headers, VALUE, registry)))
            or (
                where in ("any", "header")
                and any(wanted in name.lower() or has(value) for name, value in record.headers)
            )
        )

    return matches


def _plain_text(data: bytes) -> str | None:
    """Returns a text unchanged; None for values in another form, such as hex or with a schema.

    JSON is shown with other spaces and without escapes; a search skips this conversion where words are missing.
    """
    if data[:1] == b"\0":
        return None
    try:
        text = data.decode()
    except ValueError:
        return None
    return text if text.isprintable() or text[:1] in ("{", "[") else None


def _words(text: str) -> list[str]:
    """Returns the words of a text, which JSON has in the same form however it is written."""
    return [each for each in _NOT_OF_WORDS.split(text) if each]


def _may_have(plain: str, words: list[str]) -> bool:
    """Returns whether a text may have all these words: it has them, or is written with escapes."""
    return "\\" in plain or all(each in plain for each in words)


def _json_matching(text: str, registry: str | None) -> Matches:
    """Returns the function for ``$.customer.name = Ada``; without a value it matches records that have the path."""
    path, equals, wanted = text.partition("=")
    steps = re.findall(r"[^.\[\]\s$]+", path)
    if not steps:
        raise ValueError(f"{text!r} is no path within JSON: try $.customer.name = Ada")
    wanted = wanted.strip().strip('"')
    words = [each for each in steps if each != "*" and not each.isdecimal()]
    if _words(wanted) == [wanted] and not _FLOAT.search(wanted):
        words.append(wanted)

    def matches(each: Found) -> bool:
        value = framed(each.record.value, each.record.headers, VALUE, registry)
        plain = None if value is None else _plain_text(value)
        if plain is not None and not _may_have(plain, words):
            return False
        shown = decoded(value, registry=registry, limit=1 << 20)
        try:
            values = at_path(json.loads(shown["text"]), steps)
        except (ValueError, RecursionError):
            return False
        return any(not equals or _as_text(found) == wanted for found in values)

    return matches


def at_path(value: Any, steps: list[str]) -> list[Any]:
    """Returns the values at a path; ``*`` matches every field or item."""
    if not steps:
        return [value]
    step, rest = steps[0], steps[1:]
    if step == "*":
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return [found for each in inner for found in at_path(each, rest)]
    if isinstance(value, dict) and step in value:
        return at_path(value[step], rest)
    if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
        return at_path(value[int(step)], rest)
    return []


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def step(
    topic: Topic, bounds: Mapping[int, tuple[int, int]], cursor: Cursor, matches: Matches, room: int, seconds: float
) -> Step:
    """Reads records for ``seconds``.

    :param bounds: first offset and end offset of each searched partition
    :param room: the maximum number of results
    """
    found: list[Found] = []
    deadline = time.monotonic() + seconds
    partition, offset = cursor
    for index in sorted(each for each in bounds if each >= cursor.partition):
        first, end = bounds[index]
        partition, offset = index, max(first, cursor.offset if index == cursor.partition else first)
        for each in topic.records(index, offset, end):
            offset = each.record.offset + 1
            if each.control is None and matches(each):
                found.append(each)
            if len(found) >= room or time.monotonic() > deadline:
                return Step(found, Cursor(partition, offset), _done(bounds, partition, offset), _total(bounds))
    return Step(found, None, _total(bounds), _total(bounds))


def _total(bounds: Mapping[int, tuple[int, int]]) -> int:
    return sum(max(0, end - first) for first, end in bounds.values())


def _done(bounds: Mapping[int, tuple[int, int]], partition: int, offset: int) -> int:
    before = {index: each for index, each in bounds.items() if index < partition}
    return _total(before) + max(0, offset - bounds[partition][0])
