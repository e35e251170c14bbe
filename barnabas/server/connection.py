"""One client's connection: receives bytes, splits them into frames, and sends the responses in the order of the
requests.

Knows nothing of a frame but its size prefix. Requests that are in the buffer already are decoded in place, and are
answered without going back to the event loop. A connection serves one request at a time: while it awaits a response, it
serves no other request (Apache Kafka's muted channel, ``SocketServer.scala``). It serves none either while the client
does not read the responses that were sent.
"""

import asyncio
import logging
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from barnabas.api_handlers.session import Session
from barnabas.errors import CloseConnection, MalformedMessage
from barnabas.security.principals import ANONYMOUS, Principal
from barnabas.server.buffers import BUFFER_SIZE, BufferPool, allocate

if TYPE_CHECKING:
    from barnabas.wire.types import Buffer

logger = logging.getLogger(__name__)

FLUSH_AT = 512 * 1024
"""Responses are written to the socket once they have this many bytes, or when no request is left in the buffer."""

LARGEST_REQUEST = "socket.request.max.bytes"

read_size = struct.Struct(">i").unpack_from


class Awaited(Protocol):
    """An answer that comes later (:class:`barnabas.api_handlers.answering.Later`)."""

    def then(self, deliver: Callable[[Any], object], /) -> None: ...

    def cancel(self) -> None: ...


class Throttled(NamedTuple):
    """An answer that is sent at once. The connection is not read for the time after it (KIP-219)."""

    answer: "list[Buffer]"
    seconds: float


class LastAnswer(CloseConnection):
    """The connection is closed after this answer. The text goes into the log."""

    def __init__(self, reason: str, answer: "list[Buffer]") -> None:
        super().__init__(reason)
        self.answer = answer


class Responder(Protocol):
    """Answers the requests of one connection (:class:`barnabas.server.dispatch.Dispatcher`)."""

    @property
    def max_request_bytes(self) -> int | None:
        """The largest size of the next request; None: the listener's limit."""

    @property
    def session(self) -> Session: ...

    def respond(self, frame: memoryview, /) -> "list[Buffer] | Throttled | Awaited | None": ...

    def encode(self, response: Any, /) -> "list[Buffer] | Throttled":
        """Returns the awaited response to the last request, as pieces to send."""

    def close(self) -> None: ...


class Owner(Protocol):
    """The part of the listener that a connection uses."""

    buffers: BufferPool
    max_request_bytes: int

    def admit(self, connection: "Connection") -> bool: ...

    def forget(self, connection: "Connection") -> None: ...

    def new_responder(self, peer: tuple[str, int], principal: Principal) -> Responder: ...


class Held:
    """Awaited by a connection that its listener has not admitted yet."""

    __slots__ = ()

    def then(self, deliver: Callable[[Any], object]) -> None:
        """Does nothing: the listener admits the connection, or aborts it."""

    def cancel(self) -> None:
        """Does nothing: there is nothing to stop."""


class Mute:
    """Awaited by a throttled connection instead of a response: the end of the throttle time."""

    __slots__ = ("cancel",)

    def __init__(self, timer: asyncio.TimerHandle) -> None:
        self.cancel = timer.cancel

    def then(self, deliver: Callable[[Any], object]) -> None:
        """Does nothing: the timer calls the connection."""


class Connection(asyncio.BufferedProtocol):
    """The asyncio protocol of one connection."""

    __slots__ = (
        "_buffer", "_call_later", "_end", "_listener", "_pending", "_principal", "_reading", "_responder", "_start",
        "_writable",
        "clock", "is_closing", "last_active", "peer", "transport",
    )  # fmt: skip

    transport: asyncio.Transport
    _responder: Responder

    def __init__(self, listener: Owner, loop: asyncio.AbstractEventLoop, principal: Principal = ANONYMOUS) -> None:
        """
        :param principal: the principal of the client's certificate
        """
        self._listener = listener
        self._principal = principal
        self.clock = loop.time
        self._call_later = loop.call_later
        self.last_active = loop.time()
        self.peer = ("", 0)
        self.is_closing = False
        # _buffer[_start:_end] has the received bytes that were not served yet
        self._buffer: memoryview | None = None
        self._start = self._end = 0
        self._reading = True
        # The awaited response, and whether the transport accepts more data
        self._pending: Awaited | None = None
        self._writable = True

    # ------------------------------------------------------------ the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.peer = transport.get_extra_info("peername")[:2]
        self._responder = self._listener.new_responder(self.peer, self._principal)
        if not self._listener.admit(self):
            self.abort()

    def connection_lost(self, exception: Exception | None) -> None:
        self.is_closing = True
        self._listener.forget(self)
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None
        self._release()
        self._responder.close()

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
        self.is_closing = True  # from Python 3.12 on, asyncio fails at what is written from now on
        return False

    def pause_writing(self) -> None:
        self._writable = False
        self._pause_reading()

    def resume_writing(self) -> None:
        self._writable = True
        if self._pending is None and not self.is_closing:
            self._serve()

    # ------------------------------------------------------------ the listener calls

    def hold(self) -> None:
        """Reads and serves nothing until the connection is admitted."""
        self._pending = Held()
        self._pause_reading()

    def let_in(self) -> None:
        """Serves a connection that was held."""
        self._unmute()

    def abort(self) -> None:
        """Closes the connection at once, and drops unsent data."""
        self.is_closing = True
        self.transport.abort()

    @property
    def session(self) -> Session:
        """The client's session."""
        return self._responder.session

    def wrap(self, wrapped: "Callable[[Responder, Connection], Responder]") -> None:
        """Replaces the connection's responder. The new one encodes an awaited response."""
        self._responder = wrapped(self._responder, self)

    # ------------------------------------------------------------ serving

    def _serve(self) -> None:
        """Answers the complete frames in the buffer, until a response has to be awaited or the client has to read."""
        try:
            self._serve_frames()
        except CloseConnection as reason:
            self._end_with(reason)
        except MalformedMessage as error:
            self.close(str(error))
        except Exception:
            self._fail()

    def _serve_frames(self) -> None:
        buffer, respond = self._buffer, self._responder.respond
        longest = self._responder.max_request_bytes or self._listener.max_request_bytes
        answers: list[Buffer] = []
        size = 0
        try:
            while buffer is not None and self._pending is None and self._writable:
                start, available = self._start, self._end - self._start
                if available < 4:
                    break
                (length,) = read_size(buffer, start)
                if not 0 <= length <= longest:
                    longest = self._checked_limit(length)
                if available < length + 4:
                    break
                self._start = start + 4 + length
                answer = respond(buffer[start + 4 : start + 4 + length])
                if type(answer) is list:
                    answers += answer
                    size += sum(map(len, answer))
                    if size > FLUSH_AT:
                        self.transport.writelines(answers)
                        answers, size = [], 0
                elif type(answer) is Throttled:
                    answers += answer.answer
                    self._mute(answer.seconds)
                elif answer is not None:
                    self._pending = cast(Awaited, answer)
                    self._pending.then(self._deliver)
        finally:
            if answers:
                self.transport.writelines(answers)
        self._make_room()

    def _checked_limit(self, length: int) -> int:
        """Returns the current limit of requests: one of the frames just served may have been the last SASL token.

        :raises MalformedMessage: the length is beyond it
        """
        longest = self._responder.max_request_bytes or self._listener.max_request_bytes
        if not 0 <= length <= longest:
            limit = "sasl.server.max.receive.size" if self._responder.max_request_bytes else LARGEST_REQUEST
            raise MalformedMessage(f"a request of {length} bytes ({limit})")
        return longest

    def _deliver(self, response: Any) -> None:
        """Sends the awaited response, and serves the requests that have arrived since."""
        self._pending = None
        if self.is_closing:
            return
        try:
            answer = self._responder.encode(response)
        except CloseConnection as reason:
            self._end_with(reason)
            return
        except Exception:  # the caller has other clients to answer
            self._fail()
            return
        if type(answer) is Throttled:
            self.transport.writelines(answer.answer)
            self._mute(answer.seconds)
            return
        self.transport.writelines(cast("list[Buffer]", answer))
        if self._writable:
            self._serve()

    def _end_with(self, reason: CloseConnection) -> None:
        """Sends the last answer, if there is one, and closes the connection."""
        if isinstance(reason, LastAnswer):
            self.transport.writelines(reason.answer)
        self.close(str(reason), level=logging.DEBUG)

    def _mute(self, seconds: float) -> None:
        """Reads and serves nothing for a time."""
        self._pending = Mute(self._call_later(seconds, self._unmute))
        self._pause_reading()

    def _unmute(self) -> None:
        self._pending = None
        self.last_active = self.clock()
        if self._writable and not self.is_closing:
            self._serve()

    def _fail(self) -> None:
        """Closes the connection because of the current exception, for which there is no response."""
        logger.exception("Closing the connection of %s:%s: its request cannot be answered", *self.peer)
        self.close("internal error", level=logging.DEBUG)

    # ------------------------------------------------------------ the buffer

    def _make_room(self) -> None:
        """Gives the buffer back when it is empty. Otherwise makes room to receive, or stops reading."""
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
        if not waiting and not self._reading:
            self._resume_reading()

    def _fit(self, buffer: memoryview) -> None:
        """Makes room for the rest of the frame whose beginning is in the buffer."""
        start, end = self._start, self._end
        held = end - start
        needed = read_size(buffer, start)[0] + 4 if held >= 4 else 4
        if start + needed <= len(buffer):
            return
        if needed <= len(buffer):
            buffer[:held] = buffer[start:end]
        else:
            # Larger than a buffer: grow with the received bytes, not with the announced size.
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
        """Whether a request is being served whose response has not been sent."""
        return self._pending is not None

    def close(self, reason: str, *, level: int = logging.WARNING) -> None:
        """Closes the connection when the written responses have been sent. The reason goes into the log."""
        if not self.is_closing:
            logger.log(level, "Closing the connection of %s:%s: %s", *self.peer, reason)
            self.is_closing = True
            self.transport.close()
