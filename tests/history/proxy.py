"""A TCP proxy between clients and a broker that injects faults: it cuts connections, and delays or drops requests and
responses.

Knows of Kafka only that a request is a frame with a size, beginning with its API key and version.
"""

import asyncio
import contextlib
import struct
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

SIZE = struct.Struct(">i")
START = struct.Struct(">hh")
PIECE = 1 << 16
AFTER_S = 1.0
"""The time for late requests of a client that has disconnected, in seconds."""


class Proxy:
    """Listens on its own port, on its own thread; a context manager.

    All attributes may be changed from any thread while it runs, and apply to all connections.
    """

    def __init__(self) -> None:
        self.port = 0
        self.host = "127.0.0.1"
        """The broker's host."""
        self.target: int | None = None
        """The broker's port; None refuses clients."""
        self.delay_s = 0.0
        """The delay of responses."""
        self.is_silent = False
        """Whether responses are dropped. Their connections are closed afterwards."""
        self._awaited: tuple[int, threading.Event] | None = None
        self.swallowed = 0
        """The number of dropped pieces of responses."""
        self._late: tuple[Mapping[int, int], float] = {}, 0.0
        self._relays: set[Relay] = set()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._accept, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    # ------------------------------------------------------------ faults

    def calm(self) -> None:
        """Ends the faults; connections with dropped responses are closed."""
        self.delay_s = 0.0
        self.late({}, 0)
        if self.is_silent:
            self.is_silent = False
            self.cut(lambda relay: relay.has_lost)

    def late(self, versions: Mapping[int, int], seconds: float) -> None:
        """Delays requests of these APIs, from a version on, and everything behind them on their connection.

        They arrive even if the client has disconnected, like packets on a slow route.
        """
        self._late = versions, seconds

    def wait_for(self, key: int, seconds: float) -> None:
        """Returns when the next request of this API has been passed on to the broker, or after this time."""
        passed = threading.Event()
        self._awaited = key, passed
        passed.wait(seconds)
        self._awaited = None

    def passed(self, frame: bytes) -> None:
        """Notes that this request, with its size, is passed on to the broker."""
        awaited = self._awaited
        if awaited is not None and START.unpack_from(frame, SIZE.size)[0] == awaited[0]:
            awaited[1].set()

    def lateness(self, frame: bytes) -> float:
        """Returns the delay of this request."""
        versions, seconds = self._late
        key, version = START.unpack_from(frame)
        return seconds if version >= versions.get(key, 1 << 15) else 0.0

    def cut(self, which: "Callable[[Relay], bool]" = lambda _: True) -> None:
        """Closes connections on both sides, also in the middle of a message."""
        self._loop.call_soon_threadsafe(self._cut, which)

    def _cut(self, which: "Callable[[Relay], bool]") -> None:
        for relay in list(self._relays):
            if which(relay):
                relay.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.target is None:
            writer.transport.abort()
            return
        try:
            upstream = await asyncio.open_connection(self.host, self.target)
        except OSError:
            writer.transport.abort()
            return
        relay = Relay(self, (reader, writer), upstream)
        self._relays.add(relay)
        try:
            with contextlib.suppress(
                asyncio.CancelledError
            ):  # this is the end, and asyncio would report it as a failure
                await relay.run()
        finally:
            self._relays.discard(relay)
            relay.abort()


class Relay:
    """A client's connection, and the corresponding one to the broker."""

    def __init__(
        self,
        proxy: Proxy,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        broker: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self.proxy = proxy
        self.client, self.broker = client, broker
        self.has_lost = False

    def abort(self) -> None:
        for _, writer in (self.client, self.broker):
            writer.transport.abort()

    async def run(self) -> None:
        """Runs until the broker disconnects, or the client has and everything from it has arrived."""
        requests: asyncio.Queue[tuple[bytes, float] | None] = asyncio.Queue()
        reading = asyncio.ensure_future(self._read(requests))
        passing = asyncio.ensure_future(self._pass_on(requests))
        answers = asyncio.ensure_future(self._answers())
        tasks = (reading, passing, answers)
        try:
            await asyncio.wait([passing, answers], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, requests: "asyncio.Queue[tuple[bytes, float] | None]") -> None:
        reader = self.client[0]
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                size = await reader.readexactly(SIZE.size)
                frame = await reader.readexactly(SIZE.unpack(size)[0])
                requests.put_nowait((size + frame, self.proxy.lateness(frame)))
        requests.put_nowait(None)

    async def _pass_on(self, requests: "asyncio.Queue[tuple[bytes, float] | None]") -> None:
        writer = self.broker[1]
        was_late = False
        with contextlib.suppress(OSError):
            while (request := await requests.get()) is not None:
                frame, lateness = request
                if lateness:
                    was_late = True
                    await asyncio.sleep(lateness)
                writer.write(frame)
                self.proxy.passed(frame)
                await writer.drain()
            if was_late:  # a broker may not read the rest when the connection is closed
                await asyncio.sleep(AFTER_S)

    async def _answers(self) -> None:
        reader, writer = self.broker[0], self.client[1]
        with contextlib.suppress(OSError):
            while piece := await reader.read(PIECE):
                if self.client[0].at_eof():
                    continue
                if self.proxy.delay_s:
                    await asyncio.sleep(self.proxy.delay_s)
                if self.proxy.is_silent or self.has_lost:
                    self.has_lost = True
                    self.proxy.swallowed += 1
                    continue
                with contextlib.suppress(OSError):  # the client has disconnected; its bytes may still be in flight
                    writer.write(piece)
                    await writer.drain()
