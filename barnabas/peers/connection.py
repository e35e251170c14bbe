"""A connection to another node: requests go out, and their responses come back in the same order.

Knows nothing of nodes, nor of when a connection is made. It is the client of ``barnabas.server.connection``.
"""

import asyncio
import logging
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from barnabas.clock import Clock
from barnabas.errors import KafkaError, MalformedMessage, NetworkException, RequestTimedOut
from barnabas.peers.memory import BUFFER_SIZE, ResponseMemory
from barnabas.peers.peers import Done
from barnabas.wire.message import Request
from barnabas.wire.types import skip_tags

logger = logging.getLogger(__name__)

SMALL = 16 * 1024
"""Pieces of a request smaller than this are joined, since a copy costs less than sending one more piece."""

_header = struct.Struct(">ihhih")


class Limits(NamedTuple):
    """The limits of a connection."""

    longest_idle_s: float  #: ``connections.max.idle.ms``
    largest: int  #: the maximum size of a response in bytes


class Sent:
    """A request that waits to be sent, or for its response."""

    __slots__ = ("correlation_id", "deadline", "done", "request", "version")

    def __init__(self, request: Request, version: int, deadline: float, done: Done) -> None:
        self.request = request
        self.version = version
        self.deadline = deadline  #: when it times out, by the monotonic clock
        self.done = done
        self.correlation_id = -1


class PeerConnection(asyncio.BufferedProtocol):
    """An established connection, until it is closed (:attr:`is_closed`).

    :param name: the name of the other node, for the log
    :param client_id: the client id of all its requests
    :param check_at: called with the time, by the monotonic clock, at which :meth:`check` has to be called
    :param on_lost: called once when the connection is closed, by either side
    """

    def __init__(
        self,
        name: str,
        client_id: str,
        clock: Clock,
        limits: Limits,
        check_at: Callable[[float], object],
        on_lost: Callable[["PeerConnection"], object],
    ) -> None:
        self.name = name
        self.is_closed = False
        self.renewal: asyncio.Task[None] | None = None  #: the re-authentication for which requests are held back
        self._client_id = client_id.encode()
        self._now = clock.monotonic
        self._limits = limits
        self._check_at = check_at
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._in_flight: deque[Sent] = deque()
        self._held: deque[Sent] | None = None  # requests that wait for the end of a re-authentication
        self._next_correlation_id = 0
        self._last_active = 0.0
        self._memory = ResponseMemory()
        self._small = memoryview(bytearray(BUFFER_SIZE))
        self._receiving = self._small  # data is received into it, or into the memory of one large response
        self._begin = self._end = 0  # the part with responses that were not handled yet

    # ------------------------------------------------------------ sending

    def send(self, request: Request, version: int, deadline: float, done: Done) -> None:
        """Sends the request. ``done`` gets its response, or NETWORK_EXCEPTION or REQUEST_TIMED_OUT, later.

        A time-out closes the connection, since responses arrive in order and later ones would be late, too
        (``NetworkClient``).

        :param deadline: when the request times out, by the monotonic clock
        """
        if self._held is None or self.is_closed:
            self.send_now(request, version, deadline, done)
        else:
            self._held.append(Sent(request, version, deadline, done))
            self._check_at(deadline)

    def send_now(self, request: Request, version: int, deadline: float, done: Done) -> None:
        """Sends the request, even if others are held back."""
        if self.is_closed:
            done(None, NetworkException())
        else:
            self._write(Sent(request, version, deadline, done))

    def _write(self, sent: Sent) -> None:
        request, version = sent.request, sent.version
        sent.correlation_id = self._next_correlation_id
        self._next_correlation_id = (self._next_correlation_id + 1) & 0x7FFFFFFF
        transport = cast("asyncio.Transport", self._transport)
        pieces = request.encode_parts(version)
        client_id = self._client_id + b"\0" if version >= request.flexible.first else self._client_id
        size = _header.size - 4 + len(client_id) + sum(map(len, pieces))
        header = _header.pack(size, request.api_key, version, sent.correlation_id, len(self._client_id)) + client_id
        self._in_flight.append(sent)
        self._last_active = self._now()
        self._check_at(sent.deadline)
        if size < SMALL:
            transport.write(b"".join([header, *pieces]))
        elif not transport.is_closing():  # from Python 3.12 on, asyncio fails at writing then
            pieces[0] = header + cast(bytes, pieces[0])
            transport.writelines(pieces)

    def hold(self) -> None:
        """Holds back all requests but those of :meth:`send_now`, until :meth:`release`."""
        self._held = deque()

    def release(self) -> None:
        """Sends the requests that were held back."""
        held, self._held = self._held, None
        for sent in held or ():
            if self.is_closed:
                self._settle(sent, None, NetworkException())
            else:
                self._write(sent)

    def close(self, reason: str, *, level: int = logging.INFO) -> None:
        """Closes the connection. Requests that wait for a response get NETWORK_EXCEPTION."""
        if not self.is_closed:
            logger.log(level, "Closing the connection to %s: %s", self.name, reason)
            if self._transport is not None:
                self._transport.abort()
            self._lost()

    def _lost(self) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        self._small = self._receiving = memoryview(b"")
        self._on_lost(self)
        for waiting in (self._in_flight, self._held or deque()):
            while waiting:
                self._settle(waiting.popleft(), None, NetworkException())

    # ------------------------------------------------------------ time

    def check(self) -> None:
        """Closes the connection if a request has timed out, or if the connection has been idle for too long."""
        now = self._now()
        waiting = [*self._in_flight, *(self._held or ())]
        overdue = [sent for sent in waiting if sent.deadline <= now]
        if overdue:
            self._in_flight = deque(sent for sent in self._in_flight if sent.deadline > now)
            self._held = None if self._held is None else deque(sent for sent in self._held if sent.deadline > now)
            self.close(f"{type(overdue[0].request).__name__} was not answered in time")
            for sent in overdue:
                self._settle(sent, None, RequestTimedOut())
        elif not waiting and now - self._last_active >= self._limits.longest_idle_s:
            self.close("idle (connections.max.idle.ms)")
        else:
            self._check_at(min((sent.deadline for sent in waiting), default=now + self._limits.longest_idle_s))

    # ------------------------------------------------------------ the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._last_active = self._now()
        self._check_at(self._last_active + self._limits.longest_idle_s)

    def connection_lost(self, error: Exception | None) -> None:
        if self._in_flight:
            logger.info("%s has closed the connection, with %d requests in flight", self.name, len(self._in_flight))
        self._lost()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._receiving[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        self._end += nbytes
        try:
            if self._receiving is not self._small:
                if self._end == len(self._receiving):
                    frame, self._receiving, self._begin, self._end = self._receiving, self._small, 0, 0
                    self._answered(frame)
            elif not self.is_closed:
                self._take_small()
        except MalformedMessage as error:
            self.close(f"its response cannot be read: {error}", level=logging.WARNING)

    def _take_small(self) -> None:
        """Handles all complete responses in the small buffer, and makes room for the rest of the last one."""
        small = self._small
        while not self.is_closed and (there := self._end - self._begin) >= 4:
            size = int.from_bytes(small[self._begin : self._begin + 4], signed=True)
            if not 4 <= size <= self._limits.largest:
                raise MalformedMessage(f"a response of {size} bytes")
            if there - 4 < size:
                if size + 4 > BUFFER_SIZE:
                    self._receive_large(size)
                    return
                break
            frame = small[self._begin + 4 : self._begin + 4 + size]
            self._begin += 4 + size
            self._answered(memoryview(bytes(frame)))
        self._memory.rest()
        left = self._end - self._begin
        if left and self._begin:
            small[:left] = bytes(small[self._begin : self._end])
        self._begin, self._end = 0, left

    def _receive_large(self, size: int) -> None:
        """Continues with memory for this response alone, into which the rest is received without a copy."""
        frame = self._memory.take(size)
        there = self._end - self._begin - 4
        frame[:there] = self._small[self._begin + 4 : self._end]
        self._receiving, self._begin, self._end = frame, 0, there

    # ------------------------------------------------------------ responses

    def _answered(self, frame: memoryview) -> None:
        """Passes the response in ``frame`` to its callback, which may keep views of it."""
        correlation_id = int.from_bytes(frame[:4], signed=True)
        if not self._in_flight or self._in_flight[0].correlation_id != correlation_id:
            raise MalformedMessage(f"correlation id {correlation_id} is not that of the oldest request")
        sent = self._in_flight[0]
        kind, version = sent.request.response, sent.version
        at = 4
        if kind.header_version(version):
            at = _end_of_tags(frame, at)
        response = kind.decode(frame, version=version, at=at)
        self._in_flight.popleft()
        self._settle(sent, response, None)

    def _settle(self, sent: Sent, response: Any, error: KafkaError | None) -> None:
        """Calls back. An exception of one callback must not affect the others."""
        try:
            sent.done(response, error)
        except Exception:
            logger.exception("Unexpected error in the callback of %s", type(sent.request).__name__)


def _end_of_tags(frame: memoryview, at: int) -> int:
    try:
        return skip_tags(frame, at) if frame[at] else at + 1
    except IndexError:
        raise MalformedMessage("the header of a response is truncated") from None
