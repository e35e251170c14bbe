"""Recorded requests with their responses: a ring buffer of the last ones, filled while recording is on.

Knows nothing of sockets.
"""

from collections import deque
from typing import Any, Final

from barnabas.api_handlers.error_responses import ERROR_CODES
from barnabas.errors import KafkaError
from barnabas.faults.naming import api_name, error_name
from barnabas.wire.message import Request, Response
from barnabas.wire.schema import Struct

KEPT: Final = 10_000


class SeenRequest:
    """One request, and its response once there is one."""

    __slots__ = (
        "answer", "api", "client_id", "client_software_name", "client_software_version", "connection", "node", "number",
        "request", "size", "time_ms", "version",
    )  # fmt: skip

    def __init__(
        self,
        request: Request,
        *,
        version: int,
        time_ms: int,
        size: int,
        connection: int,
        node: int | None,
        client_id: str | None,
        client_software_name: str,
        client_software_version: str,
    ) -> None:
        self.api = api_name(request.api_key)
        self.request = request
        self.version = version
        self.time_ms = time_ms  #: when it came, in milliseconds since 1970
        self.size = size  #: in bytes, without the four of the size itself
        self.connection = connection
        self.node = node  #: the id of the broker; None where a proxy does not know it
        self.client_id = client_id
        self.client_software_name = client_software_name
        self.client_software_version = client_software_version
        self.answer: Response | None = None  #: None if there is none, or none yet
        self.number = 0  #: of the recorded requests, from 1 on

    @property
    def error(self) -> str | None:
        """The first error in the answer, by Apache Kafka's name; None if there is none."""
        code = 0 if self.answer is None else first_error(self.answer)
        return error_name(KafkaError.by_code[code]) if code else None

    def __repr__(self) -> str:
        return f"<{self.api} {self.version} of {self.client_id!r} on connection {self.connection}: {self.error}>"


def first_error(response: Struct) -> int:
    """Returns the first error code in a response that is not 0; or 0."""
    for field in response.wire_fields():
        value: Any = getattr(response, field.name, None)
        if field.name in ERROR_CODES and value:
            return int(value)
        if field.is_array and isinstance(field.kind, type):
            for each in value or ():
                if code := first_error(each):
                    return code
    return 0


class Seen:
    """The last requests that were recorded."""

    def __init__(self, kept: int = KEPT) -> None:
        self._ring: deque[SeenRequest] = deque(maxlen=kept)
        self.count = 0  #: how many were recorded: the number of the last one

    def add(self, request: SeenRequest) -> None:
        """Numbers a request and keeps it; drops the oldest one if there are too many."""
        self.count += 1
        request.number = self.count
        self._ring.append(request)

    def clear(self) -> None:
        """Drops the requests; the numbers go on."""
        self._ring.clear()

    @property
    def first(self) -> int:
        """The number of the oldest request that is kept."""
        return self.count - len(self._ring) + 1

    def find(
        self, api: str | None = None, client_id: str | None = None, node: int | None = None, *, after: int = 0
    ) -> list[SeenRequest]:
        """Returns the requests of an API and a client, to a broker, with a number above ``after``, in their order."""
        return [
            each
            for each in list(self._ring)
            if each.number > after
            and api in (None, each.api)
            and client_id in (None, each.client_id)
            and node in (None, each.node)
        ]
