"""Records as JSON, as ``barnabas consume --json`` prints them: one object each, bytes that are not UTF-8 in base64.

Knows nothing of brokers.
"""

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

NAMES: Final = frozenset(
    ("topic", "partition", "offset", "timestamp", "headers", "key", "key_base64", "value", "value_base64")
)
"""The fields of a record. Another is refused: it would be a record without the key or the value that was meant."""

HEADER_NAMES: Final = frozenset(("name", "value", "value_base64"))


class NewRecord(NamedTuple):
    """A record to be appended."""

    topic: str
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None  #: None is the partition that Kafka's clients choose by the key
    timestamp: int | None = None  #: milliseconds since 1970; None is now


def shown(name: str, data: bytes | None) -> dict[str, str | None]:
    """Returns the field ``key`` or ``key_base64`` for bytes."""
    if data is None:
        return {name: None}
    try:
        return {name: bytes(data).decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}


def given(name: str, fields: Mapping[str, Any]) -> bytes | None:
    """Returns the bytes of ``key`` or ``key_base64``. A value that is not a string is encoded as JSON.

    :raises ValueError: it is no base64
    """
    if f"{name}_base64" in fields:
        return base64.b64decode(fields[f"{name}_base64"], validate=True)
    value = fields.get(name)
    if value is None:
        return None
    return (value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))).encode()


def record_as_json(record: Any) -> dict[str, Any]:
    """Returns a record that a broker or a consumer has as a JSON object."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        **shown("key", record.key),
        **shown("value", record.value),
        "headers": [{"name": name, **shown("value", value)} for name, value in record.headers],
    }


def _known(fields: Any, names: frozenset[str], what: str) -> None:
    """:raises ValueError: it is no object, or has fields of other names"""
    if not isinstance(fields, Mapping):
        raise ValueError(f"{what} is a JSON object, not {str(fields)[:200]}")
    if unknown := sorted(set(fields) - names):
        raise ValueError(f"{what} has no field {', '.join(map(repr, unknown))}; it has {', '.join(sorted(names))}")


def _whole(name: str, fields: Mapping[str, Any]) -> int | None:
    """:raises ValueError: it is something else"""
    value = fields.get(name)
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    raise ValueError(f"{name} is {value!r}, but must be a whole number")


def _header(fields: Any) -> tuple[str, bytes | None]:
    _known(fields, HEADER_NAMES, "a header")
    name = fields.get("name")
    if not isinstance(name, str):
        raise ValueError(f'a header needs a "name": {str(fields)[:200]}')
    return name, given("value", fields)


def record_of_json(fields: Any, topic: str | None = None) -> NewRecord:
    """Returns the record of a JSON object. Offsets are ignored.

    :param topic: of objects that name none
    :raises ValueError: it is no record
    """
    _known(fields, NAMES, "a record")
    name, headers = fields.get("topic", topic), fields.get("headers") or []
    if not isinstance(name, str):
        raise ValueError(f'a record needs a "topic": {str(fields)[:200]}')
    if not isinstance(headers, list | tuple):
        raise ValueError(f"headers are an array, not {str(headers)[:200]}")
    return NewRecord(
        name,
        given("key", fields),
        given("value", fields),
        tuple(map(_header, headers)),
        _whole("partition", fields),
        _whole("timestamp", fields),
    )


def records_from(
    source: str | Path | Iterable[NewRecord | Mapping[str, Any]], topic: str | None = None
) -> Iterator[NewRecord]:
    """Yields the records of a file, or of a list of objects or records. :raises ValueError: one is none"""
    if isinstance(source, str | Path):
        yield from read_records(source, topic)
        return
    for each in source:
        yield each if isinstance(each, NewRecord) else record_of_json(each, topic)


def read_records(path: str | Path, topic: str | None = None) -> Iterator[NewRecord]:
    """Yields the records of a file: one JSON object a line, or one JSON array.

    :param topic: of records that name none
    :raises ValueError: a line is no record; the text says which
    :raises OSError: it cannot be read
    """
    text = Path(path).read_text("utf-8")
    if text.lstrip().startswith("["):
        yield from (record_of_json(each, topic) for each in json.loads(text))
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield record_of_json(json.loads(line), topic)
            except (ValueError, TypeError) as error:
                raise ValueError(f"{path}, line {number}: {error}") from None
