"""TLS between a socket and a :class:`~barnabas.server.connection.Connection`, which it serves as a transport.

Knows nothing of frames, nor of where keys come from. It drives OpenSSL on buffers in memory, over the event loop's
plain sockets, so that it can bound the cost of unauthenticated clients: until a handshake is finished there is no
connection, and the bytes, the time and the number of handshakes are limited. Handshakes run in a thread of their own,
one after the other, since each costs as much as dozens of requests; OpenSSL runs without the interpreter's lock.
"""

import asyncio
import logging
import ssl
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, cast

from barnabas.config.endpoints import Endpoint
from barnabas.log.background import Background
from barnabas.security.tls.engine import Engine
from barnabas.security.tls.principal_mapping import NoMatchingRule
from barnabas.server.connection import Connection, Owner

if TYPE_CHECKING:
    from barnabas.wire.types import Buffer

logger = logging.getLogger(__name__)

HANDSHAKE_S = 30.0
"""How long a handshake may take, even if the client goes on sending bytes."""

MOST_UNFINISHED = 2_000
"""How many handshakes of a listener may be unfinished. One more ends the oldest."""

MOST_HANDSHAKE_BYTES = 256 * 1024
"""How much a client may send before its handshake is finished: certificates, mostly."""

CIPHERTEXT_SIZE = 256 * 1024
"""How much is received at once."""

SMALL = 4096
"""Pieces below this many bytes are joined with their neighbours: each write is a record of its own, with a MAC."""

CHUNK = 256 * 1024
"""How much is encrypted before it is handed to the socket."""

_HANDSHAKE_RECORD = 0x16


class Host(Owner, Protocol):
    """The part of the listener that TLS uses."""

    endpoint: Endpoint

    def admit(self, connection: Any) -> bool: ...

    def replace(self, handshake: Any, connection: Connection) -> None: ...

    def forget(self, connection: Any) -> None: ...


class Handshakes:
    """The unfinished handshakes of one listener."""

    def __init__(self, loop: asyncio.AbstractEventLoop, background: Background, most: int = MOST_UNFINISHED) -> None:
        self.loop = loop
        self.background = background  #: where they run
        self.ciphertext = memoryview(bytearray(CIPHERTEXT_SIZE))  #: the buffer that all of them receive into
        self._most = most
        self.finished = self.failed = 0  #: how many have succeeded since the start, and how many have failed
        self._unfinished: dict[TlsTransport, None] = {}

    def __len__(self) -> int:
        return len(self._unfinished)

    def begin(self, handshake: "TlsTransport") -> None:
        """Adds a new handshake; ends the oldest if there are too many."""
        if len(self._unfinished) >= self._most:
            next(iter(self._unfinished)).fail(f"{self._most} handshakes are unfinished")
        self._unfinished[handshake] = None

    def end(self, handshake: "TlsTransport") -> None:
        self._unfinished.pop(handshake, None)


class TlsTransport(asyncio.BufferedProtocol):
    """One client's TLS: a protocol to the socket's transport, and a transport to the client's connection."""

    __slots__ = (
        "_connection", "_deadline", "_early", "_engine", "_first_byte", "_handshakes", "_incoming", "_is_delivering",
        "_is_full", "_is_reading", "_is_working", "_listener", "_outgoing", "_raw", "_tells_principal", "_tls",
        "_tried", "is_closing", "last_active", "peer",
    )  # fmt: skip

    _raw: asyncio.Transport
    is_waiting = False

    def __init__(self, listener: Host, handshakes: Handshakes, engine: Engine) -> None:
        self._listener, self._handshakes, self._engine = listener, handshakes, engine
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = engine.context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._connection: Connection | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._tried = 0  # bytes received during the handshake
        self._is_full = False  # pauses receiving while the background thread works
        self._first_byte = _HANDSHAKE_RECORD
        self._is_reading = True
        self._is_delivering = False
        self._is_working = False  # while the background thread works, which alone may use the buffers
        self._early = bytearray()  # bytes received meanwhile
        self.is_closing = False
        self.peer = ("", 0)
        self._tells_principal = listener.endpoint.security_protocol == "SSL"
        self.last_active = handshakes.loop.time()

    # ------------------------------------------------------------ the socket's transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._raw = cast(asyncio.Transport, transport)
        self.peer = transport.get_extra_info("peername")[:2]
        if not self._listener.admit(self):
            self.abort()
        elif self._is_reading:
            self.let_in()

    def hold(self) -> None:
        """Begins no handshake until the listener admits the client."""
        self.pause_reading()

    def let_in(self) -> None:
        """Begins the handshake."""
        self._deadline = self._handshakes.loop.call_later(HANDSHAKE_S, self.fail, "it took too long")
        self._handshakes.begin(self)
        if not self._is_reading:
            self.resume_reading()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._handshakes.ciphertext

    def buffer_updated(self, nbytes: int) -> None:
        if self.is_closing:
            return
        received = self._handshakes.ciphertext[:nbytes]
        if self._connection is not None:
            self._incoming.write(received)
            self._deliver()
            return
        if not self._tried:
            self._first_byte = received[0]
        self._early += received
        if not self._is_working:
            self._advance()
        elif len(self._early) >= MOST_HANDSHAKE_BYTES and not self._is_full:
            # For the client the handshake may be finished, and these may be its first requests.
            self._is_full = True
            self._raw.pause_reading()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exception: Exception | None) -> None:
        self.is_closing = True
        self._end_handshake()
        if self._connection is None:
            self._listener.forget(self)
        else:
            self._connection.connection_lost(exception)

    def pause_writing(self) -> None:
        if self._connection is not None:
            self._connection.pause_writing()

    def resume_writing(self) -> None:
        if self._connection is not None:
            self._connection.resume_writing()

    # ------------------------------------------------------------ the handshake

    def _advance(self) -> None:
        """Continues the handshake with the received bytes, in the background thread."""
        self._incoming.write(self._early)
        self._tried += len(self._early)
        self._early.clear()
        self._is_working = True
        self._handshakes.background.run(self._tls.do_handshake, self._advanced)

    def _advanced(self, error: BaseException | None) -> None:
        self._is_working = False
        if self.is_closing:
            return
        if self._is_full:
            self._is_full = False
            self._raw.resume_reading()
        if error is None:
            self._finish()
        elif isinstance(error, ssl.SSLWantReadError) and self._tried > MOST_HANDSHAKE_BYTES:
            self.fail(f"it sent more than {MOST_HANDSHAKE_BYTES} bytes")
        elif isinstance(error, ssl.SSLWantReadError):
            self._flush()
            if self._early:
                self._advance()
        else:
            reason = getattr(error, "verify_message", None) or getattr(error, "reason", None) or str(error)
            hint = "" if self._first_byte == _HANDSHAKE_RECORD else "; the client speaks no TLS"
            self.fail(f"{reason}{hint}")

    def _finish(self) -> None:
        """Starts the client's connection."""
        self._end_handshake()
        self._flush()
        try:
            # Over SASL_SSL, SASL authenticates the client.
            shown = self._tls.getpeercert(binary_form=True) if self._tells_principal else None
            principal = self._engine.principal_of(shown)
        except (NoMatchingRule, ValueError) as error:
            self.fail(str(error))
            return
        self._handshakes.finished += 1
        connection = Connection(self._listener, self._handshakes.loop, principal)
        self._connection = connection
        self._listener.replace(self, connection)
        connection.connection_made(cast(asyncio.Transport, self))
        self._incoming.write(self._early)
        if not self.is_closing:
            self._deliver()

    def fail(self, reason: str) -> None:
        """Ends a connection whose handshake has failed."""
        self._end_handshake()
        if not self.is_closing:
            self._handshakes.failed += 1
            logger.info("Failed authentication with %s:%s (SSL handshake failed): %s", *self.peer, reason)
            self.is_closing = True
            if not self._is_working:
                self._flush()  # the alert that tells the client why
            self._raw.close()

    def _end_handshake(self) -> None:
        self._handshakes.end(self)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    # ------------------------------------------------------------ receiving

    def _deliver(self) -> None:
        """Decrypts the received bytes into the connection's buffer, as long as the connection is read."""
        if self._is_delivering:
            return
        self._is_delivering = True
        try:
            while self._is_reading and not self.is_closing and self._fill_buffer():
                pass
        finally:
            self._is_delivering = False
        if self._outgoing.pending and not self.is_closing:  # an answer to the client's new keys
            self._flush()

    def _fill_buffer(self) -> bool:
        """Returns whether the buffer was filled, so that there may be more."""
        connection = self._connection
        assert connection is not None
        buffer = connection.get_buffer(-1)
        room, read = len(buffer), self._tls.read
        filled = 0
        ends = False
        try:
            while filled < room:
                # One record at most.
                size = cast(int, read(room - filled, cast(bytearray, buffer[filled:])))
                if not size:
                    ends = True  # the client has said that nothing more comes
                    break
                filled += size
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            logger.info("Closing the connection of %s:%s: %s", *self.peer, error.reason or error)
            self.abort()
            return False
        connection.buffer_updated(filled)  # without any bytes, it gives the buffer back
        if ends and not self.is_closing:
            self.close()
        return filled == room and not ends

    # ------------------------------------------------------------ the connection calls

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._raw.get_extra_info(name, default)

    def get_write_buffer_size(self) -> int:
        return self._raw.get_write_buffer_size()

    def write(self, data: "Buffer") -> None:
        self.writelines([data])

    def writelines(self, list_of_data: Iterable["Buffer"]) -> None:
        """Encrypts the pieces, and hands them to the socket. Large ones are not copied before they are encrypted."""
        if self.is_closing:
            return
        write, outgoing = self._tls.write, self._outgoing
        small: list[Buffer] = []
        size = 0
        for piece in list_of_data:
            if len(piece) < SMALL:
                small.append(piece)
                size += len(piece)
                if size < SMALL:
                    continue
            if small:
                write(b"".join(small))
                small, size = [], 0
            if len(piece) >= SMALL:
                self._write_large(piece)
        if small:
            write(b"".join(small))
        if outgoing.pending:
            self._flush()

    def _write_large(self, piece: "Buffer") -> None:
        view = memoryview(piece)
        for at in range(0, len(view), CHUNK):
            self._tls.write(view[at : at + CHUNK])
            if self._outgoing.pending >= CHUNK:
                self._flush()

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._raw.write(self._outgoing.read())

    def pause_reading(self) -> None:
        self._is_reading = False
        self._raw.pause_reading()

    def resume_reading(self) -> None:
        self._is_reading = True
        self._raw.resume_reading()
        if self._connection is not None and not self._is_delivering:
            self._handshakes.loop.call_soon(self._deliver)

    def close(self, reason: str = "", *, level: int = logging.DEBUG) -> None:
        """Closes the connection once the written data has been sent."""
        if self.is_closing:
            return
        if self._connection is None:
            self._end_handshake()
            logger.log(level, "Closing the connection of %s:%s: %s", *self.peer, reason)
        else:
            with suppress(ssl.SSLError):  # the own close_notify is written; that of the client is not waited for
                self._tls.unwrap()
            self._flush()
        self.is_closing = True
        self._raw.close()

    def send_in_the_clear(self, data: bytes) -> None:
        """Sends these bytes instead of a handshake, and closes: a fault that a test has set."""
        self.is_closing = True
        self._raw.write(data)
        self._raw.close()

    def abort(self) -> None:
        self.is_closing = True
        self._raw.abort()
