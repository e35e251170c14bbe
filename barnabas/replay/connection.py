"""A connection of the replay: it sends requests, and returns each response by a future.

Knows nothing of the contents of requests and responses.
"""

import asyncio

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
