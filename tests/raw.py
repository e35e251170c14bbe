"""A client on a plain socket, which sends the requests of the test, and reads one frame at a time."""

import socket
import struct

from barnabas.wire.message import Request

CLIENT_ID = "raw"


def framed(request: Request, version: int, correlation_id: int = 1, *, api_version: int | None = None) -> bytes:
    """Returns the request with its header and size; ``api_version`` replaces the version in the header."""
    header = struct.pack(">hhi", request.api_key, version if api_version is None else api_version, correlation_id)
    header += struct.pack(">h", len(CLIENT_ID)) + CLIENT_ID.encode()
    header += b"\0" * (version in request.flexible)
    body = header + request.encode(version=version)
    return struct.pack(">i", len(body)) + body


class Client:
    """One connection; a context manager."""

    def __init__(self, port: int, host: str = "127.0.0.1", timeout: float = 10) -> None:
        self.socket = socket.create_connection((host, port), timeout=timeout)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def read(self, size: int) -> bytes:
        """Returns this number of bytes, or those before the server has closed."""
        data = b""
        while len(data) < size and (piece := self.socket.recv(size - len(data))):
            data += piece
        return data

    def receive(self) -> bytes | None:
        """Returns one frame without its size; None if the server has closed."""
        try:
            prefix = self.read(4)
            return self.read(struct.unpack(">i", prefix)[0]) if len(prefix) == 4 else None
        except ConnectionResetError:
            return None

    def ask(self, request: Request, version: int) -> object:
        """Sends a request, and decodes the response; None if the server closes instead."""
        self.send(framed(request, version))
        frame = self.receive()
        if frame is None:
            return None
        response = type(request).response
        return response.decode(frame, version=version, at=4 + response.header_version(version))
