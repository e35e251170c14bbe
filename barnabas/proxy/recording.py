"""A recording: one event in each line, complete enough to be replayed.

Knows nothing of files: lines are written by a function that is passed in.

The first line is a header. Each other line is a JSON object with the connection and the time in seconds since the first
line: ``open`` with the node, ``request`` and ``answer`` with the frame in base64, ``close``.
"""

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from barnabas.diagnosis import Address
from barnabas.errors import MalformedMessage
from barnabas.proxy.observing import TOKEN, Exchange
from barnabas.proxy.withheld import Withholding
from barnabas.wire.headers import read_request_header

FORMAT: Final = 1


class Recorder:
    """Writes the lines of a recording.

    :param write: writes one line
    :param about: fields of the first line
    :param began: the start time, of the monotonic clock
    """

    def __init__(
        self, write: Callable[[str], object], about: Mapping[str, Any], began: float, withholding: Withholding
    ) -> None:
        self._write_line = write
        self._began = began
        self._withholding = withholding
        self._open: set[int] = set()
        write(json.dumps({"recording": FORMAT, **about}))

    def opened(self, connection: int, node: Address, client: tuple[str, int], at: float) -> None:
        self._open.add(connection)
        self._write("open", connection, at, node=str(node), client=f"{client[0]}:{client[1]}")

    def closed(self, connection: int, at: float) -> None:
        if connection in self._open:
            self._open.remove(connection)
            self._write("close", connection, at)

    def requested(self, exchange: Exchange) -> None:
        if exchange.key == TOKEN:
            return
        frame, has_secrets = self._request(exchange)
        self._write(
            "request", exchange.connection, exchange.at,
            request=exchange.number, api=exchange.api, version=exchange.version, client_id=exchange.client_id,
            **({"secrets": True} if has_secrets else {}), frame=_text(frame),
        )  # fmt: skip

    def answered(self, exchange: Exchange) -> None:
        if exchange.key == TOKEN:
            return
        self._write(
            "answer", exchange.connection, exchange.answered_at,
            request=exchange.number, frame=_text(self._answer(exchange)),
        )  # fmt: skip

    def _request(self, exchange: Exchange) -> tuple[bytes, bool]:
        """Returns the frame as it is recorded, and whether secrets were removed from it."""
        cls = exchange.request_class
        if cls is None or not self._withholding.touches(cls):
            return exchange.frame, False
        try:
            request = exchange.request().request
        except MalformedMessage:
            return exchange.frame[:8], True
        body = read_request_header(exchange.frame)[1]
        has_secrets = self._withholding.withhold(request)
        return exchange.frame[:body] + request.encode(version=exchange.version), has_secrets

    def _answer(self, exchange: Exchange) -> bytes:
        cls = exchange.request_class
        if cls is None or not exchange.answer or not self._withholding.touches(cls.response):
            return exchange.answer
        try:
            found = exchange.response()
        except MalformedMessage:
            return exchange.answer[:4]
        self._withholding.withhold(found.response)
        return b"".join(found.response.encode_frame(found.correlation_id, found.version))[4:]

    def _write(self, event: str, connection: int, at: float, **more: Any) -> None:
        fields = {"event": event, "connection": connection, "at": round(at - self._began, 6), **more}
        self._write_line(json.dumps(fields))


def _text(frame: bytes) -> str:
    return base64.b64encode(frame).decode()
