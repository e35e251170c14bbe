"""A connection of the recording, made again: requests go out, and each has its answer in a future.

Knows nothing of what requests and answers say.
"""

import asyncio

from barnabas.proxy.upstream import Sent, Upstream
from barnabas.wire.types import Buffer


class Connection:
    """One connection to a node."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self.reason = ""  #: why it is closed, if it is
        upstream.client = self

    def send(self, frame: Buffer, *, is_answered: bool) -> "asyncio.Future[bytes]":
        """Sends a frame without its size.

        Returns its answer without the size; an empty one once the connection is closed, or if there is to be none.
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
