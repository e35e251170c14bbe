"""The requests at the beginning of a connection, whose responses are awaited.

Knows nothing of what the requests are for.
"""

import asyncio
from typing import Any, Protocol

from barnabas.errors import KafkaError
from barnabas.peers.peers import Done
from barnabas.wire.message import Request

FOREVER = float("inf")
"""No deadline of its own: the caller limits the time of the whole handshake."""


class NewConnection(Protocol):
    """A new connection, which sends these requests before all others
    (:class:`barnabas.peers.connection.PeerConnection`).
    """

    def send_now(self, request: Request, version: int, deadline: float, done: Done, /) -> None: ...


async def response_to(connection: NewConnection, request: Request, version: int) -> Any:
    """Sends the request, and returns its response.

    :raises KafkaError: the connection is lost
    """
    answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def done(response: Any, error: KafkaError | None) -> None:
        if not answered.done():
            if error is None:
                answered.set_result(response)
            else:
                answered.set_exception(error)

    connection.send_now(request, version, FOREVER, done)
    return await answered
