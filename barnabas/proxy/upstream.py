"""A connection to a node of the cluster: sends the frames of a client, and passes each response to its receiver.

Knows nothing of the contents of frames but their sizes and the correlation ids of responses. Responses arrive in the
order of the requests; the beginning of one that is not decoded is passed on before its end has arrived. Neither side is
read while the other does not read what it was sent.
"""

import asyncio
import logging
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol, cast

from barnabas.errors import MalformedMessage, NetworkException
from barnabas.peers.connection import SMALL
from barnabas.peers.peers import Done
from barnabas.server.buffers import BufferPool, allocate
from barnabas.wire.frames import decode_response
from barnabas.wire.message import Request

logger = logging.getLogger(__name__)

CLIENT_ID: Final = b"barnabas-proxy"
_header = struct.Struct(">ihhih")
_pack_size = struct.Struct(">i").pack
_read_prefix = struct.Struct(">i").unpack_from
_read_answer = struct.Struct(">ii").unpack_from

Take = Callable[[memoryview], object]
"""Receives a response with its size. The memory is only valid during the call."""


class Sent(NamedTuple):
    """A request in flight."""

    correlation_id: int | None  #: None for a SASL token, whose response is one, too
    take: Take | None  #: None: the response is passed on unchanged
    lost: Callable[[], object] | None = None  #: called if there will be no response


class Client(Protocol):
    """The client's side."""

    def pass_on(self, answers: memoryview, /) -> bool:
        """Sends responses to the client. Returns whether their memory may be reused."""

    def lose(self, reason: str, /) -> None:
        """Closes the client's connection, since the connection to the node is closed."""


class Upstream(asyncio.BufferedProtocol):
    """The protocol of the connection. It starts reading once it has a client."""

    transport: asyncio.Transport
    client: Client

    def __init__(self, name: str, loop: asyncio.AbstractEventLoop, buffers: BufferPool) -> None:
        self.name = name
        self.is_closed = False
        self.is_gathering = False  #: whether small frames wait for :meth:`send_on`, not for the event loop
        self.renewal: asyncio.Task[None] | None = None  #: the re-authentication for which requests are held
        self._loop = loop
        self._buffers = buffers
        self._in_flight: deque[Sent] = deque()
        self._out: list[bytes] = []
        self._held: list[tuple[bytes, Sent | None]] | None = None
        self._drained: Callable[[Any], object] | None = None
        self._is_writable = True
        self._is_paused = False
        self._buffer: memoryview | None = None
        self._start = self._end = 0
        self._rest = 0  # remaining bytes of a response whose beginning was passed on already
        self._next_correlation_id = 0
        self.on_answered: Callable[[], object] | None = None  #: called once when all requests are answered

    @property
    def is_awaited(self) -> bool:
        """Whether requests are not answered yet, or not completely."""
        return bool(self._in_flight or self._rest)

    # ------------------------------------------------------------ sending

    def send(self, frame: memoryview, sent: Sent | None) -> bool:
        """Sends a frame. Returns whether its memory may be reused; if not, :meth:`when_drained` tells when it may.

        :param frame: without its size
        :param sent: what is done with its response; None if there will be none
        """
        size = len(frame)
        if self._held is not None:
            self._held.append((_pack_size(size) + bytes(frame), sent))
            return True
        if sent is not None:
            self._in_flight.append(sent)
        if size < SMALL:
            self._out.append(_pack_size(size) + bytes(frame))
            if len(self._out) == 1 and not self.is_gathering:
                self._loop.call_soon(self._flush)
        elif not self.transport.is_closing():  # from Python 3.12 on, asyncio fails at writing then
            out, self._out = self._out, []
            self.transport.writelines([*out, _pack_size(size), frame])
        return self._is_writable

    def send_on(self) -> None:
        """Sends the frames that have been gathered."""
        self.is_gathering = False
        if self._out:
            self._flush()

    def _flush(self) -> None:
        out = self._out
        if out and not self.is_closed:
            self.transport.write(b"".join(out) if len(out) > 1 else out[0])
        out.clear()

    def when_drained(self, done: Callable[[Any], object] | None) -> None:
        """Calls ``done`` without responses once everything was sent. With None, cancels the call."""
        self._drained = done

    # ------------------------------------------------------------ logging in

    def send_now(self, request: Request, version: int, deadline: float, done: Done) -> None:
        """Sends a request of the proxy itself, even if requests of the client are held. ``done`` gets its response or
        the error.
        """
        if self.is_closed:
            done(None, NetworkException())
            return

        def take(answer: memoryview) -> None:
            done(decode_response(bytes(answer[4:]), type(request), version).response, None)

        self._next_correlation_id = (self._next_correlation_id + 1) & 0x7FFFFFFF
        body = request.encode(version=version)
        client_id = CLIENT_ID + b"\0" if version >= request.flexible.first else CLIENT_ID
        size = _header.size - 4 + len(client_id) + len(body)
        header = _header.pack(size, request.api_key, version, self._next_correlation_id, len(CLIENT_ID))
        self._in_flight.append(Sent(self._next_correlation_id, take, lambda: done(None, NetworkException())))
        self.transport.write(header + client_id + body)

    def hold(self) -> None:
        """Holds the frames of the client until :meth:`release`, during re-authentication (KIP-368)."""
        self._flush()
        self._held = []

    def release(self) -> None:
        """Sends the frames that were held."""
        held, self._held = self._held, None
        if held and not self.is_closed:
            self._in_flight.extend(sent for _, sent in held if sent is not None)
            self.transport.write(b"".join(frame for frame, _ in held))

    # ------------------------------------------------------------ the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(0)

    def connection_lost(self, exception: Exception | None) -> None:
        self._lost("the broker has closed the connection")

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._is_writable = False

    def resume_writing(self) -> None:
        self._is_writable = True
        done, self._drained = self._drained, None
        if done is not None:
            done([])

    def get_buffer(self, sizehint: int) -> memoryview:
        if self._buffer is None:
            self._buffer = self._buffers.take()
        return self._buffer[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        self._end += nbytes
        if not self._is_paused:
            self._take_answers()

    # ------------------------------------------------------------ answers

    def pause(self) -> None:
        """Stops reading responses, until the client has read the previous ones."""
        if not self._is_paused and not self.is_closed:
            self._is_paused = True
            self.transport.pause_reading()

    def resume(self) -> None:
        """Resumes reading responses."""
        if self._is_paused and not self.is_closed:
            self._is_paused = False
            self._take_answers()
            if not self._is_paused:
                self.transport.resume_reading()

    def _take_answers(self) -> None:
        try:
            self._take_received()
        except MalformedMessage as error:
            self.close(f"its answer cannot be read: {error}", level=logging.WARNING)
        except Exception:
            logger.exception("Closing the connection to %s: its response cannot be forwarded", self.name)
            self.close("internal error", level=logging.DEBUG)

    def _take_received(self) -> None:
        """Passes responses on: those that are not decoded as they arrive, the others one by one, once they are
        complete.
        """
        buffer = self._buffer
        if buffer is None:
            return
        unseen = self._start  # where the bytes that are passed on unchanged begin
        while not self._is_paused and not self.is_closed:
            if self._rest:
                count = min(self._rest, self._end - self._start)
                self._start += count
                self._rest -= count
            begin = self._start
            if begin == self._end:
                break
            size = self._next_size(buffer)
            if size is None:
                break
            take = self._of(buffer, begin, size)
            is_whole = self._end - begin >= size + 4
            if take is not None:
                if not is_whole:
                    break
                if unseen < begin and not self._pass_on(buffer[unseen:begin]):
                    unseen = begin
                    break
            self._in_flight.popleft()
            self._start = begin + 4 + size if is_whole else self._end
            self._rest = 0 if is_whole else begin + 4 + size - self._end
            if take is not None:
                unseen = self._start
                take(buffer[begin : self._start])
        if unseen < self._start and not self.is_closed:
            self._pass_on(buffer[unseen : self._start])
        if not self._is_paused:
            self._make_room()
        if self.on_answered is not None and not self.is_awaited:
            done, self.on_answered = self.on_answered, None
            done()

    def _next_size(self, buffer: memoryview) -> int | None:
        """Returns the size of the next response; None until its size and correlation id have arrived."""
        held = self._end - self._start
        if held < 4:
            return None
        (size,) = _read_prefix(buffer, self._start)
        if size < 0:
            raise MalformedMessage(f"a response of {size} bytes")
        return size if held >= min(8, size + 4) else None

    def _pass_on(self, answers: memoryview) -> bool:
        if self.client.pass_on(answers):
            return True
        self.pause()
        return False

    def _of(self, buffer: memoryview, begin: int, size: int) -> Take | None:
        """Returns the entry of the first request in flight, to which the response there belongs.

        :raises MalformedMessage: there is none, or it has another correlation id
        """
        if not self._in_flight:
            raise MalformedMessage("an answer to no request")
        sent = self._in_flight[0]
        if sent.correlation_id is not None:
            correlation_id = _read_answer(buffer, begin)[1] if size >= 4 else None
            if correlation_id != sent.correlation_id:
                raise MalformedMessage(f"correlation id {correlation_id} in place of {sent.correlation_id}")
        return sent.take

    def _make_room(self) -> None:
        """Gives the buffer back when it is empty, or makes room for the rest of a response."""
        buffer = self._buffer
        if buffer is None:
            return
        start, end = self._start, self._end
        held = end - start
        if not held:
            self._buffers.give_back(buffer)
            self._buffer, self._start, self._end = None, 0, 0
            return
        needed = _read_prefix(buffer, start)[0] + 4 if held >= 4 else 4
        if start + needed <= len(buffer):
            return
        if needed <= len(buffer):
            buffer[:held] = buffer[start:end]
        else:
            larger = allocate(needed)
            larger[:held] = buffer[start:end]
            self._buffers.give_back(buffer)
            self._buffer = larger
        self._start, self._end = 0, held

    # ------------------------------------------------------------ the end

    def close(self, reason: str, *, level: int = logging.DEBUG) -> None:
        """Closes the connection once the written data has been sent."""
        if not self.is_closed:
            logger.log(level, "Closing the connection to %s: %s", self.name, reason)
            self._flush()
            self.transport.close()
            self._lost(reason)

    def _lost(self, reason: str) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        self._drained = None
        if self._buffer is not None and not self._is_paused:
            self._buffers.give_back(self._buffer)
        self._buffer = None
        for sent in self._in_flight:
            if sent.lost is not None:
                sent.lost()
        self._in_flight.clear()
        client = getattr(self, "client", None)
        if client is not None:
            client.lose(f"{self.name}: {reason}")
