"""One client's connection: bytes in, frames to the dispatcher, answers out, in order and one at a time.

Knows nothing of what is in a frame but its size prefix. Requests that lie in the buffer already are answered without
going back to the event loop, and from where they lie; nothing is read while an answer is awaited (Apache's muted
channel, ``SocketServer.scala``), and nothing is served while the client does not read what it was sent.
"""

import asyncio
import logging
import struct
from typing import TYPE_CHECKING, Protocol, cast

from barnabas.api_handlers.answering import CloseConnection, Later
from barnabas.api_handlers.context import Context
from barnabas.errors import MalformedMessage
from barnabas.server.buffers import BUFFER_SIZE, BufferPool, allocate
from barnabas.server.dispatch import encode, respond

if TYPE_CHECKING:
    from barnabas.wire.message import Response
    from barnabas.wire.types import Buffer

logger = logging.getLogger(__name__)

FLUSH_AT = 512 * 1024
"""Answers are handed to the socket at this many bytes, or when no request is left in the buffer."""

read_size = struct.Struct(">i").unpack_from


class Owner(Protocol):
    """What a connection needs of its listener."""

    buffers: BufferPool
    max_request_bytes: int

    def admit(self, connection: "Connection") -> bool: ...

    def forget(self, connection: "Connection") -> None: ...

    def new_context(self, client_host: str) -> Context: ...


class Connection(asyncio.BufferedProtocol):
    """The asyncio side of one connection."""

    __slots__ = (
        "_buffer", "_end", "_listener", "_pending", "_reading", "_start", "_writable",
        "clock", "context", "is_closing", "last_active", "peer", "transport",
    )  # fmt: skip

    transport: asyncio.Transport
    context: Context

    def __init__(self, listener: Owner, loop: asyncio.AbstractEventLoop) -> None:
        self._listener = listener
        self.clock = loop.time
        self.last_active = loop.time()
        self.peer = ("", 0)
        self.is_closing = False
        # What was received and not yet served: _buffer[_start:_end]
        self._buffer: memoryview | None = None
        self._start = self._end = 0
        self._reading = True
        # What is to be sent
        self._pending: Later[Response] | None = None
        self._writable = True

    # ------------------------------------------------------------ the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.peer = transport.get_extra_info("peername")[:2]
        self.context = self._listener.new_context(self.peer[0])
        if not self._listener.admit(self):
            self.is_closing = True
            self.transport.abort()

    def connection_lost(self, exception: Exception | None) -> None:
        self.is_closing = True
        self._listener.forget(self)
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None
        self._release()
        if self.context.on_close is not None:
            self.context.on_close()

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._buffer is None:
            self._buffer = self._listener.buffers.take()
        return self._buffer[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        self._end += nbytes
        self.last_active = self.clock()
        if self._pending is None and self._writable:
            self._serve()
        else:
            self._make_room()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._writable = False
        self._pause_reading()

    def resume_writing(self) -> None:
        self._writable = True
        if self._pending is None:
            self._serve()

    # ------------------------------------------------------------ serving

    def _serve(self) -> None:
        """Answer the whole frames of the buffer, until one has to wait or the client has to read."""
        try:
            self._serve_frames()
        except CloseConnection as reason:
            self.close(str(reason), level=logging.DEBUG)
        except MalformedMessage as error:
            self.close(str(error))
        except Exception:
            logger.exception("Closing the connection of %s:%s: its request met a bug of ours", *self.peer)
            self.close("internal error", level=logging.DEBUG)

    def _serve_frames(self) -> None:
        buffer, longest = self._buffer, self._listener.max_request_bytes
        answers: list[Buffer] = []
        size = 0
        try:
            while buffer is not None and self._pending is None and self._writable:
                start, available = self._start, self._end - self._start
                if available < 4:
                    break
                (length,) = read_size(buffer, start)
                if not 0 <= length <= longest:
                    raise MalformedMessage(f"a request of {length} bytes (socket.request.max.bytes)")
                if available < length + 4:
                    break
                self._start = start + 4 + length
                answer = respond(buffer[start + 4 : start + 4 + length], self.context)
                if type(answer) is list:
                    answers += answer
                    size += sum(map(len, answer))
                    if size > FLUSH_AT:
                        self.transport.writelines(answers)
                        answers, size = [], 0
                elif answer is not None:
                    self._await(cast("Later[Response]", answer))
        finally:
            if answers:
                self.transport.writelines(answers)
        self._make_room()

    def _await(self, later: "Later[Response]") -> None:
        """Nothing more is served until this answer is there."""
        self._pending = later
        correlation_id, api_version = self.context.correlation_id, self.context.api_version

        def deliver(response: "Response") -> None:
            self._pending = None
            if self.is_closing:
                return
            self.transport.writelines(encode(response, correlation_id, api_version))
            if self._writable:
                self._serve()

        later.then(deliver)

    # ------------------------------------------------------------ the buffer

    def _make_room(self) -> None:
        """Give the buffer back when it is empty; else see to it that there is room to receive, or stop reading."""
        buffer = self._buffer
        if self.is_closing:
            return
        waiting = self._pending is not None or not self._writable
        if buffer is not None and self._start == self._end:
            self._release()
        elif buffer is not None and waiting:
            if self._end == len(buffer):
                self._pause_reading()
            return
        elif buffer is not None:
            self._fit(buffer)
        if not waiting:
            self._resume_reading()

    def _fit(self, buffer: memoryview) -> None:
        """Half a frame is left: the rest of it must fit behind."""
        start, end = self._start, self._end
        held = end - start
        needed = read_size(buffer, start)[0] + 4 if held >= 4 else 4
        if start + needed <= len(buffer):
            return
        if needed <= len(buffer):
            buffer[:held] = buffer[start:end]
        else:
            # Larger than a buffer: grow with what has come, not with what was announced.
            room = min(needed, max(4 * held, 2 * BUFFER_SIZE))
            if room <= len(buffer) and end < len(buffer):
                return
            larger = allocate(max(room, min(needed, 2 * len(buffer))))
            larger[:held] = buffer[start:end]
            self._listener.buffers.give_back(buffer)
            self._buffer = larger
        self._start, self._end = 0, held

    def _release(self) -> None:
        if self._buffer is not None:
            self._listener.buffers.give_back(self._buffer)
            self._buffer = None
        self._start = self._end = 0

    def _pause_reading(self) -> None:
        if self._reading and not self.is_closing:
            self._reading = False
            self.transport.pause_reading()

    def _resume_reading(self) -> None:
        if not self._reading and not self.is_closing:
            self._reading = True
            self.transport.resume_reading()

    # ------------------------------------------------------------ the end

    @property
    def is_waiting(self) -> bool:
        """Whether an answer is owed."""
        return self._pending is not None

    def close(self, reason: str, *, level: int = logging.WARNING) -> None:
        """Send what was answered, then close; the reason goes into our log."""
        if not self.is_closing:
            logger.log(level, "Closing the connection of %s:%s: %s", *self.peer, reason)
            self.is_closing = True
            self.transport.close()
