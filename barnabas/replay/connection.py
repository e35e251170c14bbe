"""A connection of the replay: it sends requests, and returns each response by a future.

Knows nothing of the contents of requests and responses.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from barnabas.diagnosis import Address
from barnabas.proxy.upstream import Sent, Upstream
from barnabas.wire.types import Buffer


class Connection:
    """One connection to a node."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self.reason = ""  #: the reason, if it is closed
        upstream.client = self

    def send(self, frame: Buffer, *, is_answered: bool) -> "asyncio.Future[bytes]":
        """Sends a frame without its size.

        Returns its response without the size; an empty one once the connection is closed, or if the request has no
        response.
        """
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        def come(found: bytes) -> None:
            if not answer.done():
                answer.set_result(found)

        if self._upstream.is_closed or not is_answered:
            come(b"")
        if not self._upstream.is_closed:
            correlation_id = int.from_bytes(frame[4:8], signed=True)
            sent = Sent(correlation_id, lambda found: come(bytes(found[4:])), lambda: come(b""))
            self._upstream.send(memoryview(frame), sent if is_answered else None)
        return answer

    def close(self) -> None:
        self._upstream.close("the recording has no more of it")

    # ------------------------------------------------------------ the upstream calls

    def pass_on(self, answers: memoryview) -> bool:
        return True

    def lose(self, reason: str) -> None:
        self.reason = reason


class Lane:
    """The connections to nodes of this run that stand for one connection of the recording.

    A broker handles the requests of a connection one after the other. Over several connections, a request to other
    nodes is sent once those before it have been answered, and one to the same nodes once they have been sent.

    :param connect: connects to a node
    """

    def __init__(self, connect: Callable[[Address], Awaitable[Connection]], default: Address) -> None:
        self._connect = connect
        self.default = default  #: the node for requests that any node answers
        self._connections: dict[Address, Connection] = {}
        self._used: list[Connection] = []  # by the last request
        self._sent: asyncio.Future[None] | None = None  # done when the last request was sent
        self._last: asyncio.Future[list[bytes]] | None = None

    @property
    def reason(self) -> str:
        """The reason, if a connection is closed."""
        return next((each.reason for each in self._connections.values() if each.reason), "")

    async def open(self) -> None:
        """Connects to the default node. :raises OSError, KafkaError: it cannot be reached"""
        self._connections[self.default] = await self._connect(self.default)

    async def send(
        self, parts: Sequence[tuple[Address, Buffer]], *, is_answered: bool
    ) -> "asyncio.Future[list[bytes]]":
        """Sends a frame to each of some nodes. Returns their responses, each as :meth:`Connection.send` does.

        :raises OSError, KafkaError: a node cannot be reached
        """
        for address, _ in parts:
            if address not in self._connections:
                self._connections[address] = await self._connect(address)
        used = [self._connections[address] for address, _ in parts]
        first: asyncio.Future[Any] | None = self._sent if used == self._used else self._last
        sent: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def send() -> "asyncio.Future[list[bytes]]":
            sent.set_result(None)
            pairs = zip(used, parts, strict=True)
            return asyncio.gather(*(each.send(frame, is_answered=is_answered) for each, (_, frame) in pairs))

        async def send_later(first: "asyncio.Future[Any]") -> list[bytes]:
            await asyncio.wait([first])
            return await send()

        self._used, self._sent = used, sent
        self._last = send() if first is None or first.done() else asyncio.ensure_future(send_later(first))
        return self._last

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
