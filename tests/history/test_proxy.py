"""The proxy forwards frames, and injects the faults."""

import queue
import socket
import struct
import threading
import time

import pytest

from tests.history.proxy import Proxy

PATIENCE_S = 60


class Server:
    """Records the frames, and echoes each; a context manager."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.frames = queue.Queue()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def _accept(self):
        try:
            while True:
                connection, _ = self.socket.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()
        except OSError:
            pass

    def _serve(self, connection):
        with connection:
            while frame := received(connection):
                self.frames.put(frame)
                try:
                    connection.sendall(frame)
                except OSError:
                    return


def received(connection):
    """Returns a frame with its size; None if there are no more."""
    try:
        data = b""
        while (missing := 4 - len(data) if len(data) < 4 else 4 + struct.unpack_from(">i", data)[0] - len(data)) > 0:
            piece = connection.recv(missing)
            if not piece:
                return None
            data += piece
        return data
    except OSError:
        return None


def frame(key, version, text=b""):
    body = struct.pack(">hh", key, version) + text
    return struct.pack(">i", len(body)) + body


@pytest.fixture
def server():
    with Server() as server:
        yield server


@pytest.fixture
def proxy(server):
    with Proxy() as proxy:
        proxy.target = server.port
        yield proxy


@pytest.fixture
def connect(proxy):
    opened = []

    def connect():
        opened.append(socket.create_connection(("127.0.0.1", proxy.port), PATIENCE_S))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()


def test_it_passes_frames_both_ways(connect):
    client = connect()
    for text in (b"one", b"two" * 100_000):
        client.sendall(frame(0, 1, text))
        assert received(client) == frame(0, 1, text)


def test_it_cuts_connections(connect, proxy):
    client = connect()
    client.sendall(frame(0, 1))
    assert received(client)
    proxy.cut()
    assert received(client) is None


def test_without_a_broker_it_turns_clients_away(connect, proxy):
    proxy.target = None
    assert received(connect()) is None


def test_an_answer_is_swallowed_and_its_connection_closed(connect, proxy, server):
    client = connect()
    proxy.is_silent = True
    client.sendall(frame(0, 1))
    assert server.frames.get(timeout=PATIENCE_S) == frame(0, 1)
    deadline = time.monotonic() + PATIENCE_S
    while not proxy.swallowed and time.monotonic() < deadline:
        time.sleep(0.01)
    proxy.calm()
    assert received(client) is None


def test_a_late_request_arrives_though_its_sender_is_gone(connect, proxy, server):
    proxy.late({26: 5}, 3.0)
    client = connect()
    client.sendall(frame(26, 4, b"too old to be late"))
    assert server.frames.get(timeout=PATIENCE_S) == frame(26, 4, b"too old to be late")
    client.sendall(frame(26, 5, b"late") + frame(3, 0, b"behind it"))
    client.close()
    other = connect()
    other.sendall(frame(0, 0, b"overtakes it"))
    order = [server.frames.get(timeout=PATIENCE_S) for _ in range(3)]
    assert order == [frame(0, 0, b"overtakes it"), frame(26, 5, b"late"), frame(3, 0, b"behind it")]


def test_it_tells_when_a_request_has_passed(connect, proxy, server):
    client = connect()
    waiting = threading.Thread(target=proxy.wait_for, args=(26, PATIENCE_S))
    waiting.start()
    while waiting.is_alive():
        client.sendall(frame(3, 1) + frame(26, 1))
        assert received(client)
        waiting.join(0.01)
    assert server.frames.get(timeout=PATIENCE_S) == frame(3, 1)
