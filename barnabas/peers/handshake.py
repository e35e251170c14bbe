"""Requests that are part of making a connection: their responses are awaited.

Knows nothing of what the requests are for.
"""

import asyncio
from typing import Any, Protocol

from barnabas.errors import KafkaError
from barnabas.peers.peers import Done
from barnabas.wire.message import Request

FOREVER = float("inf")
"""Whoever makes a connection has a time-out around all of it."""


class NewConnection(Protocol):
    """A connection that sends these requests before all others (:class:`barnabas.peers.connection.PeerConnection`)."""

    def send_now(self, request: Request, version: int, deadline: float, done: Done, /) -> None: ...


async def response_to(connection: NewConnection, request: Request, version: int) -> Any:
    """Sends the request, and returns its response.

    :raises KafkaError: the connection breaks
    """
    answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def done(response: Any, error: KafkaError | None) -> None:
        if not answered.done():
            answered.set_result(response) if error is None else answered.set_exception(error)

    connection.send_now(request, version, FOREVER, done)
    return await answered
