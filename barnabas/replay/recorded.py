"""Reads a recording: its events, one after the other (:mod:`barnabas.proxy.recording` writes them).

Knows nothing of what is done with them.
"""

import base64
import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from barnabas.diagnosis import Address
from barnabas.proxy.recording import FORMAT

EVENTS: Final = ("open", "request", "answer", "close")


class RecordingError(ValueError):
    """A file is not a recording, or one of its lines is not an event."""


class Event(NamedTuple):
    """An event on a connection."""

    kind: str  #: one of :data:`EVENTS`
    connection: int
    at: float  #: seconds since the recording began
    node: Address | None = None  #: of ``open``
    request: int = 0  #: the number of a request, and of the one that is answered
    frame: bytes = b""  #: without its size; empty where a request has no response
    has_secrets: bool = False  #: secrets were removed from the frame


def read_recording(lines: Iterable[str], name: str) -> Iterator[Event]:
    """Yields the events of a recording.

    :param name: of the file, for errors
    :raises RecordingError: the first line is not that of a recording, or another is no event
    """
    numbered = enumerate(lines, 1)
    first = _object(next(numbered, (1, ""))[1])
    if first is None or first.get("recording") != FORMAT:
        raise RecordingError(f"{name} is no recording of barnabas proxy --record in format {FORMAT}")
    for number, line in numbered:
        try:
            yield _event(_object(line) or {})
        except (KeyError, TypeError, ValueError) as error:
            raise RecordingError(f"{name}: line {number} is no event: {error!r}") from None


def _object(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _event(fields: dict[str, Any]) -> Event:
    kind = fields["event"]
    if kind not in EVENTS:
        raise ValueError(f"event is {kind!r}")
    event = Event(kind, int(fields["connection"]), float(fields["at"]))
    if kind == "open":
        return event._replace(node=Address.parse(fields["node"]))
    if kind == "close":
        return event
    frame = base64.b64decode(fields["frame"], validate=True)
    return event._replace(request=int(fields["request"]), frame=frame, has_secrets=bool(fields.get("secrets")))
