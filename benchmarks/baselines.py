"""Baselines: servers that only move the bytes. The cost of Barnabas is compared with them.

Run as ``python -m benchmarks.baselines sink|reader FILE …``; each prints its port, and serves until it is killed.
"""

import asyncio
import os
import socket
import struct
import sys

import crc32c
import uvloop


class Sink(asyncio.BufferedProtocol):
    """Receives frames, checks the CRC of the batch in each, appends it to one file, and responds with its id."""

    def __init__(self, file: int, batch_at: int) -> None:
        self.file, self.batch_at = file, batch_at
        self.view = memoryview(bytearray(4 << 20))
        self.start = self.end = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.view[self.end :]

    def buffer_updated(self, nbytes: int) -> None:
        self.end += nbytes
        view, start, end = self.view, self.start, self.end
        answers = []
        while end - start >= 4:
            (size,) = struct.unpack_from(">i", view, start)
            if end - start < size + 4:
                break
            at = start + 4 + self.batch_at
            length, crc = struct.unpack_from(">8xi5xI", view, at)
            batch = view[at : at + 12 + length]
            assert crc32c.crc32c(batch[21:]) == crc
            os.write(self.file, batch)
            answers.append(b"\0\0\0\4" + view[start + 8 : start + 12])
            start += 4 + size
        if answers:
            self.transport.writelines(answers)
        if start:
            view[: end - start] = view[start:end]
            self.start, self.end = 0, end - start


class Reader(asyncio.Protocol):
    """Receives (offset, size), and sends that piece of one file, by ``pread`` and ``write``."""

    def __init__(self, file: int) -> None:
        self.file, self.rest = file, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        data = self.rest + data
        for at in range(0, len(data) - 15, 16):
            offset, size = struct.unpack_from(">qq", data, at)
            self.transport.write(os.pread(self.file, size, offset))
        self.rest = data[len(data) // 16 * 16 :]


async def serve(kind: str, path: str, *arguments: str) -> None:
    loop = asyncio.get_running_loop()
    listening = socket.create_server(("127.0.0.1", 0))
    if kind == "sink":
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        server = await loop.create_server(lambda: Sink(file, int(arguments[0])), sock=listening)
    else:
        file = os.open(path, os.O_RDONLY)
        server = await loop.create_server(lambda: Reader(file), sock=listening)
    print(listening.getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.install()
    asyncio.run(serve(*sys.argv[1:]))
