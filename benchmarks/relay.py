"""A relay, which passes bytes on and looks at none: what a process between client and node costs at least.

Knows nothing of Kafka. It runs on the event loop of the proxy, with its kind of buffers.
"""

import asyncio
import contextlib
import sys
from typing import cast

from barnabas.server.run import loop_factory

BUFFER_BYTES = 1 << 21


class Side(asyncio.BufferedProtocol):
    """One of the two connections."""

    transport: asyncio.Transport

    def __init__(self, other: "Side | None" = None) -> None:
        self.other = other
        self.early = bytearray()  #: what came before the other connection was made
        self._buffer = memoryview(bytearray(BUFFER_BYTES))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(0)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self.other is None:
            self.early += self._buffer[:nbytes]
        else:
            self.other.transport.write(self._buffer[:nbytes])

    def connection_lost(self, exception: Exception | None) -> None:
        if self.other is not None:
            self.other.transport.close()


class Accepted(Side):
    """The client's connection."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self._port = port
        self._reaching: asyncio.Task[None]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._reaching = asyncio.ensure_future(self._reach())

    async def _reach(self) -> None:
        _, node = await asyncio.get_running_loop().create_connection(lambda: Side(self), "127.0.0.1", self._port)
        self.other = node
        node.transport.write(self.early)


async def serve(port: int) -> None:
    """Relays connections to a port, and prints its own."""
    server = await asyncio.get_running_loop().create_server(lambda: Accepted(port), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt), asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(serve(int(sys.argv[1])))
