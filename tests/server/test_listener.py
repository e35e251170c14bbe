"""A listener that stops: simultaneous connections, clients that do not read, failed starts."""

import asyncio
import contextlib
import socket

import pytest

from barnabas.config import BrokerConfig
from barnabas.server import listener as listener_module
from barnabas.server.connection import Connection
from barnabas.server.server import Server
from barnabas.wire.messages.metadata import MetadataRequest
from tests.raw import framed


class Transport:
    """Records whether it was aborted."""

    was_aborted = False

    def get_extra_info(self, name):
        return ("127.0.0.1", 50000)

    def abort(self):
        self.was_aborted = True


def test_who_was_accepted_before_it_stopped_is_not_let_in_after(tmp_path):
    """The event loop creates a connection some time after it accepted the socket; a stop in between must close it."""

    async def run():
        server = Server(
            BrokerConfig.from_properties({"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0"})
        )
        await server.start()
        (listener,) = server.listeners
        late, transport = Connection(listener, asyncio.get_running_loop()), Transport()
        listener.stop_accepting()
        late.connection_made(transport)
        assert transport.was_aborted
        assert not listener.connections
        await server.stop()

    asyncio.run(run())


def configured(directory, *ports):
    names = [f"L{number}" for number, _ in enumerate(ports)]
    return BrokerConfig.from_properties(
        {
            "log.dirs": str(directory),
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in zip(names, ports, strict=True)),
            "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in names),
            "inter.broker.listener.name": names[0],
        }
    )


def test_a_client_that_does_not_read_is_not_waited_for_long(tmp_path, monkeypatch):
    monkeypatch.setattr(listener_module, "LAST_ANSWERS_S", 0.01)

    async def run():
        server = Server(configured(tmp_path, 0))
        await server.start()
        (listener,) = server.listeners
        with contextlib.closing(socket.socket()) as client:
            client.setblocking(False)
            await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", listener.port))
            request = framed(MetadataRequest(topics=[]), 4)
            while not any(each.transport.get_write_buffer_size() for each in listener.connections):
                with contextlib.suppress(BlockingIOError):
                    client.send(request * 1000)
                await asyncio.sleep(0)
            await server.stop()
            assert not listener.connections

    asyncio.run(run())


def test_a_start_that_fails_closes_what_was_opened(tmp_path):
    """The data directory is unlocked, and the address of the listener before the failed one is free."""

    async def run():
        with socket.create_server(("127.0.0.1", 0)) as taken:
            server = Server(configured(tmp_path, 0, taken.getsockname()[1]))
            with pytest.raises(OSError, match="cannot listen on"):
                await server.start()
            bound = server.listeners[0].port
        again = Server(configured(tmp_path, bound))
        await again.start()
        assert again.listeners[0].port == bound
        await again.stop()

    asyncio.run(run())
