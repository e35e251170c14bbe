"""A connection to another node: requests go out, and their responses come back in the same order.

Knows nothing of nodes, nor of when a connection is made. The client's side of the protocol that
``barnabas.server.connection`` serves.
"""

import asyncio
import logging
import struct
from collections import deque
from collections.abc import Callable
from typing import cast

from barnabas.clock import Scheduler, Timer
from barnabas.errors import KafkaError, MalformedMessage, NetworkException, RequestTimedOut
from barnabas.peers.peers import Done
from barnabas.wire.message import Request
from barnabas.wire.types import skip_tags

logger = logging.getLogger(__name__)

BUFFER_SIZE = 64 * 1024
"""What smaller responses are received into. Larger ones have memory of their own, into which they are received."""

_header = struct.Struct(">ihhih")
_start = struct.Struct(">ii").unpack_from


class Sent:
    """A request that waits for its response."""

    __slots__ = ("correlation_id", "done", "request", "timer", "version")

    def __init__(self, request: Request, version: int, correlation_id: int, done: Done) -> None:
        self.request = request
        self.version = version
        self.correlation_id = correlation_id
        self.done = done
        self.timer: Timer | None = None


class PeerConnection(asyncio.BufferedProtocol):
    """The connection once it is made; :attr:`is_closed` afterwards.

    :param name: of the other side, for the log
    :param client_id: the client id of all its requests
    :param on_lost: called once when the connection is closed, by either side
    :param largest: the number of bytes that a response may have
    """

    def __init__(
        self, name: str, client_id: str, scheduler: Scheduler, on_lost: Callable[[], object], largest: int
    ) -> None:
        self.name = name
        self.is_closed = False
        self._client_id = client_id.encode()
        self._scheduler = scheduler
        self._on_lost = on_lost
        self._largest = largest
        self._transport: asyncio.Transport
        self._in_flight: deque[Sent] = deque()
        self._next_correlation_id = 0
        self._small = memoryview(bytearray(BUFFER_SIZE))
        self._receiving = self._small  # into it, or into the memory of one large response
        self._begin = self._end = 0  # what of it has been received and not been answered

    # ------------------------------------------------------------ sending

    def send(self, request: Request, version: int, done: Done, timeout_s: float) -> None:
        """Sends the request. ``done`` gets its response, or NETWORK_EXCEPTION or REQUEST_TIMED_OUT, later.

        A time-out closes the connection: the responses to later requests could not come before (``NetworkClient``).
        """
        if self.is_closed:
            done(None, NetworkException())
            return
        correlation_id = self._next_correlation_id
        self._next_correlation_id = (correlation_id + 1) & 0x7FFFFFFF
        pieces = request.encode_parts(version)
        tags = b"\0" if version >= request.flexible.first else b""
        size = _header.size - 4 + len(self._client_id) + len(tags) + sum(map(len, pieces))
        header = _header.pack(size, request.api_key, version, correlation_id, len(self._client_id))
        sent = Sent(request, version, correlation_id, done)
        sent.timer = self._scheduler.call_later(timeout_s, self._timed_out, sent)
        self._in_flight.append(sent)
        self._transport.writelines([header, self._client_id, tags, *pieces])

    def _timed_out(self, sent: Sent) -> None:
        if sent in self._in_flight:
            self._in_flight.remove(sent)
            self.close(f"{type(sent.request).__name__} was not answered in time")
            sent.done(None, RequestTimedOut())

    def close(self, reason: str, *, level: int = logging.INFO) -> None:
        """Closes the connection. Requests that wait for a response get NETWORK_EXCEPTION."""
        if not self.is_closed:
            logger.log(level, "Closing the connection to %s: %s", self.name, reason)
            self._transport.abort()
            self._lost()

    def _lost(self) -> None:
        if self.is_closed:
            return
        self.is_closed = True
        self._on_lost()
        while self._in_flight:
            self._settle(self._in_flight.popleft(), None, NetworkException())

    # ------------------------------------------------------------ the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

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
            else:
                self._take_small()
        except MalformedMessage as error:
            self.close(f"its response cannot be read: {error}", level=logging.WARNING)

    def _take_small(self) -> None:
        """Takes all whole responses out of the small buffer, and makes room for the rest of the last one."""
        while not self.is_closed and (there := self._end - self._begin) >= 4:
            size = int.from_bytes(self._small[self._begin : self._begin + 4], signed=True)
            if not 4 <= size <= self._largest:
                raise MalformedMessage(f"a response of {size} bytes")
            if there - 4 < size:
                if size + 4 > BUFFER_SIZE:
                    self._receive_large(size)
                    return
                break
            frame = self._small[self._begin + 4 : self._begin + 4 + size]
            self._begin += 4 + size
            self._answered(memoryview(bytes(frame)))
        left = bytes(self._small[self._begin : self._end])
        self._small[: len(left)] = left
        self._begin, self._end = 0, len(left)

    def _receive_large(self, size: int) -> None:
        frame = memoryview(bytearray(size))
        there = self._small[self._begin + 4 : self._end]
        frame[: len(there)] = there
        self._receiving, self._begin, self._end = frame, 0, len(there)

    # ------------------------------------------------------------ responses

    def _answered(self, frame: memoryview) -> None:
        """Passes the response in ``frame`` to its caller, who may keep it."""
        correlation_id = int.from_bytes(frame[:4], signed=True)
        if not self._in_flight or self._in_flight[0].correlation_id != correlation_id:
            raise MalformedMessage(f"correlation id {correlation_id} is not that of the oldest request")
        sent = self._in_flight[0]
        kind, version = sent.request.response, sent.version
        at = 4
        if kind.header_version(version):
            at = skip_tags(frame, at) if frame[at] else at + 1
        response = kind.decode(frame, version=version, at=at)
        self._in_flight.popleft()
        self._settle(sent, response, None)

    def _settle(self, sent: Sent, response: object, error: KafkaError | None) -> None:
        """Calls back; a bug in one callback must not keep the others waiting."""
        if sent.timer is not None:
            sent.timer.cancel()
        try:
            sent.done(response, error)
        except Exception:
            logger.exception("Unexpected error in the callback of %s", type(sent.request).__name__)
