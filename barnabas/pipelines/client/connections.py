"""kafka-python's connections, changed to receive megabytes at once and to report an untrusted certificate immediately.

Knows nothing of the requests that are sent over them.
"""

import functools
import logging
import ssl
from typing import Any

from kafka import errors
from kafka.net.manager import KafkaConnectionManager
from kafka.net.transport import KafkaTCPTransport
from kafka.protocol.frame import KafkaBytes

logging.getLogger("kafka").addHandler(logging.NullHandler())  # by default its log is not printed

RECEIVE_AT_ONCE = 256 * 1024
RECEIVE_IN_A_ROW = 16
"""The maximum number of receives before other connections are served."""


class TlsRefused(errors.AuthorizationError):  # type: ignore[misc]  # kafka-python has no types
    """The TLS handshake failed permanently."""


REFUSALS = (TlsRefused, errors.SaslAuthenticationFailedError, errors.UnsupportedSaslMechanismError)
"""Errors by which a broker refuses this client permanently."""


class Connections(KafkaConnectionManager):  # type: ignore[misc]
    """Keeps one connection per node and reconnects with growing pauses, but not to a broker that has refused this
    client.
    """

    async def _connect(self, node: Any, conn: Any, **keywords: Any) -> None:
        await super()._connect(node, conn, **keywords)
        if conn.init_future.is_done and isinstance(conn.init_future.exception, REFUSALS):
            self._auth_failures[node.node_id] = conn.init_future.exception

    async def _build_transport(self, node: Any, timeout_at: float | None = None) -> Any:
        try:
            transport = await super()._build_transport(node, timeout_at=timeout_at)
        except errors.KafkaConnectionError as problem:
            if isinstance(problem.__context__, ssl.SSLCertVerificationError):
                raise TlsRefused(f"{node.host}:{node.port}: {problem.__context__}") from None
            raise
        transport._sock_recv = functools.partial(_receive, transport)
        return transport


class _Frame(KafkaBytes):  # type: ignore[misc]
    """The frame of a response, whose rest is decoded without a copy."""

    def read(self, nbytes: int | None = None) -> bytes | memoryview:
        if nbytes is not None:
            read: bytes = super().read(nbytes)
            return read
        rest = memoryview(self)[self.tell() :]
        self.seek(len(self))
        return rest


def _receive(transport: KafkaTCPTransport) -> tuple[bytes, Exception | None]:
    """Returns all bytes that the socket holds, and the error of the connection. kafka-python would receive 4 KiB at a
    time.
    """
    pieces: list[bytes] = []
    try:
        if not _fill_frame(transport):
            return b"", errors.KafkaConnectionError("the broker closed the connection")
        for _ in range(RECEIVE_IN_A_ROW):
            piece = transport._sock.recv(RECEIVE_AT_ONCE)
            if not piece:
                return b"".join(pieces), errors.KafkaConnectionError("the broker closed the connection")
            pieces.append(piece)
            if len(piece) < RECEIVE_AT_ONCE and not _decrypted(transport):
                break
    except (BlockingIOError, InterruptedError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
        pass
    except OSError as problem:
        return b"".join(pieces), errors.KafkaConnectionError(problem)
    return b"".join(pieces), None


def _fill_frame(transport: KafkaTCPTransport) -> bool:
    """Receives into the frame that kafka-python has allocated, except for its last byte, which kafka-python receives
    itself.

    Otherwise kafka-python copies each byte six times, which costs as much as decoding it. Returns False if the
    connection is closed.
    """
    parser = transport._protocol.parser if transport._protocol is not None else None
    frame = parser._rbuffer if parser is not None and parser._receiving else None
    if frame is None or len(frame) < RECEIVE_AT_ONCE:
        return True
    frame.__class__ = _Frame
    with memoryview(frame) as whole:
        while (at := frame.tell()) < len(frame) - 1:
            received = transport._sock.recv_into(whole[at : len(frame) - 1])
            if not received:
                return False
            frame.seek(at + received)
    return True


def _decrypted(transport: KafkaTCPTransport) -> bool:
    """Returns whether TLS has decrypted bytes that were not received yet. The selector does not report those."""
    return isinstance(transport._sock, ssl.SSLSocket) and transport._sock.pending() > 0
