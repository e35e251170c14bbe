"""A proxy that records the messages of clients and a broker, as the golden files of these tests.

    python tests/wire/capture.py 19092 127.0.0.1:9092 tests/wire/golden

The broker has to advertise the proxy's port. Of each message and version the longest body within LIMIT is kept, in
hex, without size prefix and header.
"""

import argparse
import asyncio
import pathlib
import struct
from collections.abc import Callable

from barnabas.wire.headers import read_request_header
from barnabas.wire.message import Message, Request
from barnabas.wire.messages import declared

LIMIT = 700


class Recorder:
    """Keeps bodies in a directory, one file for each message and version."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory
        self.directory.mkdir(parents=True, exist_ok=True)

    def keep(self, cls: type[Message], version: int, body: bytes) -> None:
        path = self.directory / f"{cls.__name__}_v{version}.hex"
        before = len(bytes.fromhex(path.read_text())) if path.exists() else -1
        if before < len(body) <= LIMIT:
            text = body.hex(" ", 4)
            path.write_text("\n".join(text[at : at + 108] for at in range(0, len(text), 108)) + "\n")


async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seen: Callable[[bytes], None]) -> None:
    """Passes frames on, one by one, after calling ``seen`` with each."""
    try:
        while True:
            prefix = await reader.readexactly(4)
            frame = await reader.readexactly(struct.unpack(">i", prefix)[0])
            seen(frame)
            writer.write(prefix + frame)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


class Conversation:
    """The requests and responses of one connection: which response belongs to which request."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.requests: dict[int, tuple[type[Request], int]] = {}

    def request(self, frame: bytes) -> None:
        (key,) = struct.unpack_from(">h", frame)
        if key in Request.by_key:
            header, at = read_request_header(frame)
            cls, version = Request.by_key[key], header.request_api_version
            if version in cls.versions:
                self.requests[header.correlation_id] = cls, version
                self.recorder.keep(cls, version, frame[at:])

    def response(self, frame: bytes) -> None:
        (correlation_id,) = struct.unpack_from(">i", frame)
        if correlation_id in self.requests:
            cls, version = self.requests.pop(correlation_id)
            self.recorder.keep(cls.response, version, frame[4 + cls.response.header_version(version) :])


async def serve(port: int, broker: str, directory: pathlib.Path) -> None:
    host, _, broker_port = broker.rpartition(":")
    recorder = Recorder(directory)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(host, int(broker_port))
        conversation = Conversation(recorder)
        await asyncio.gather(relay(reader, back, conversation.request), relay(there, writer, conversation.response))

    async with await asyncio.start_server(connected, "127.0.0.1", port) as server:
        await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", type=int)
    parser.add_argument("broker")
    parser.add_argument("directory", type=pathlib.Path)
    arguments = parser.parse_args()
    declared()
    asyncio.run(serve(arguments.port, arguments.broker, arguments.directory))
