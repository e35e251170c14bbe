"""A connection between a transport that records and a dispatcher that echoes: framing, order, back-pressure, memory."""

import struct

import pytest

from barnabas.api_handlers.answering import Later
from barnabas.clock import ManualClock
from barnabas.errors import CloseConnection
from barnabas.server import connection as module
from barnabas.server.buffers import BUFFER_SIZE, BufferPool
from barnabas.server.connection import Connection, Throttled


class Transport:
    """Records writes and other calls."""

    def __init__(self):
        self.written = b""
        self.is_reading, self.is_closed, self.was_aborted = True, False, False

    def get_extra_info(self, name):
        return ("127.0.0.1", 50000)

    def writelines(self, parts):
        self.written += b"".join(parts)

    def pause_reading(self):
        assert self.is_reading
        self.is_reading = False

    def resume_reading(self):
        assert not self.is_reading
        self.is_reading = True

    def close(self):
        self.is_closed = True

    def abort(self):
        self.was_aborted = True


class Echo:
    """Responds to a frame with its bytes in brackets; to one that begins with "later" when the test says so."""

    max_request_bytes = None

    def __init__(self):
        self.frames, self.laters, self.is_closed = [], [], False

    def respond(self, frame):
        data = bytes(frame)
        self.frames.append(data)
        if data.startswith(b"later"):
            self.laters.append(Later())
            return self.laters[-1]
        if data.startswith(b"too much"):
            return Throttled([b"<", data, b">"], 2.0)
        if data.startswith(b"let in"):
            self.max_request_bytes = None
        if data.startswith(b"hang up"):
            raise CloseConnection("requested")
        if data.startswith(b"bug"):
            raise ZeroDivisionError
        return None if data.startswith(b"quiet") else [b"<", data, b">"]

    def encode(self, response):
        answer = [b"<", bytes(response), b">"]
        return Throttled(answer, 2.0) if bytes(response).startswith(b"too much") else answer

    def close(self):
        self.is_closed = True


class Owner:
    max_request_bytes = 50 << 20

    def __init__(self, echo, admits=True):
        self.buffers, self.admits, self.forgotten, self.echo = BufferPool(), admits, 0, echo

    def admit(self, connection):
        return self.admits

    def forget(self, connection):
        self.forgotten += 1

    def new_responder(self, peer, principal):
        return self.echo


class Loop:
    """An event loop whose time the test advances."""

    def __init__(self):
        self.clock = ManualClock()
        self.time, self.call_later = self.clock.monotonic, self.clock.call_later


@pytest.fixture
def served():
    """The dispatcher, with the received frames and the pending responses."""
    return Echo()


@pytest.fixture
def client(served):
    return Client(Owner(served))


class Client:
    def __init__(self, owner):
        self.owner = owner
        self.loop = Loop()
        self.connection = Connection(self.owner, self.loop)
        self.transport = Transport()
        self.connection.connection_made(self.transport)

    def send(self, data):
        """Receives data as the event loop does: into the buffer of the connection, as much as fits at a time."""
        data = memoryview(data)
        while len(data):
            assert self.transport.is_reading
            buffer = self.connection.get_buffer(-1)
            assert len(buffer) > 0
            size = min(len(buffer), len(data))
            buffer[:size] = data[:size]
            self.connection.buffer_updated(size)
            data = data[size:]


def frame(data):
    return struct.pack(">i", len(data)) + data


def test_whole_frames_are_answered_in_order(client):
    client.send(frame(b"one") + frame(b"two"))
    assert client.transport.written == b"<one><two>"


@pytest.mark.parametrize("step", [1, 2, 3, 5, 7])
def test_frames_arrive_in_whatever_pieces(client, served, step):
    data = frame(b"first") + frame(b"") + frame(b"a longer second one")
    for at in range(0, len(data), step):
        client.send(data[at : at + step])
    assert served.frames == [b"first", b"", b"a longer second one"]


def test_a_request_without_an_answer_does_not_stop_the_next(client):
    client.send(frame(b"quiet") + frame(b"two"))
    assert client.transport.written == b"<two>"


def test_nothing_is_served_while_an_answer_is_awaited(client, served):
    client.send(frame(b"one") + frame(b"later") + frame(b"two"))
    assert client.transport.written == b"<one>"
    client.send(frame(b"three"))
    assert served.frames == [b"one", b"later"]
    served.laters[0].resolve(b"at last")
    assert client.transport.written == b"<one><at last><two><three>"


def test_reading_stops_when_the_buffer_is_full_and_an_answer_is_awaited(client, served):
    client.send(frame(b"later"))
    room = BUFFER_SIZE
    client.send(frame(b"x" * (room - 4)))
    assert not client.transport.is_reading
    served.laters[0].resolve(b"ok")
    assert client.transport.is_reading
    assert served.frames[1] == b"x" * (room - 4)


def test_a_client_that_does_not_read_is_not_served(client, served):
    client.connection.pause_writing()
    assert not client.transport.is_reading
    client.connection.resume_writing()
    assert client.transport.is_reading
    client.send(frame(b"one"))
    assert client.transport.written == b"<one>"


def test_writing_paused_between_two_requests(client, served):
    def pause(parts):
        client.transport.written += b"".join(parts)
        client.connection.pause_writing()

    client.transport.writelines = pause
    big = b"b" * (module.FLUSH_AT + 1)
    client.send(frame(big) + frame(b"after"))
    assert served.frames == [big]
    client.connection.resume_writing()
    assert served.frames == [big, b"after"]


def test_a_frame_larger_than_the_shared_buffer(client, served):
    large = bytes(range(256)) * (4 * BUFFER_SIZE // 256 + 3)
    client.send(frame(b"before") + frame(large) + frame(b"after"))
    assert served.frames == [b"before", large, b"after"]


def test_memory_grows_with_what_came_not_with_what_was_announced(client):
    client.send(struct.pack(">i", 50 << 20) + b"only this")
    assert len(client.connection._buffer) <= 2 * BUFFER_SIZE


def test_an_idle_connection_has_no_buffer(client):
    client.send(frame(b"one"))
    assert client.connection._buffer is None


@pytest.mark.parametrize("size", [-1, -(2**31), (50 << 20) + 1, 2**31 - 1])
def test_an_absurd_length_closes_the_connection(client, served, size, caplog):
    client.send(frame(b"one") + struct.pack(">i", size))
    assert client.transport.is_closed
    assert served.frames == [b"one"]
    assert caplog.text.count("socket.request.max.bytes") == 1


def test_answers_before_a_hang_up_are_sent(client, served):
    client.send(frame(b"one") + frame(b"hang up") + frame(b"two"))
    assert client.transport.written == b"<one>"
    assert client.transport.is_closed
    assert served.frames == [b"one", b"hang up"]


def test_a_bug_closes_the_connection_and_is_logged(client, served, caplog):
    client.send(frame(b"bug"))
    assert client.transport.is_closed
    assert "ZeroDivisionError" in caplog.text


def test_who_is_not_admitted_is_dropped(served):
    client = Client(Owner(served, admits=False))
    assert client.transport.was_aborted


def test_a_late_answer_that_cannot_be_encoded_closes_the_connection(client, served, caplog):
    client.send(frame(b"later") + frame(b"two"))
    served.laters[0].resolve("no bytes")
    assert client.transport.is_closed
    assert served.frames == [b"later"]
    assert "TypeError" in caplog.text


def test_a_lost_connection_cancels_what_it_waits_for(client, served):
    client.send(frame(b"later"))
    cancelled = []
    served.laters[0].on_cancel = lambda: cancelled.append(True)
    client.connection.connection_lost(None)
    assert cancelled == [True]
    assert client.owner.forgotten == 1
    assert served.is_closed
    served.laters[0].resolve(b"too late")
    assert client.transport.written == b""


def test_who_has_hung_up_is_not_answered(client, served):
    client.send(frame(b"later"))
    client.connection.eof_received()
    served.laters[0].resolve(b"too late")
    client.connection.pause_writing()
    client.connection.resume_writing()
    assert client.transport.written == b""


# ---------------------------------------------------------------- throttling


def test_a_throttled_client_is_answered_at_once_and_read_later(client, served):
    client.send(frame(b"one") + frame(b"too much") + frame(b"two"))
    assert client.transport.written == b"<one><too much>"
    assert not client.transport.is_reading
    assert client.connection.is_waiting, "which keeps it from being closed as idle"
    client.loop.clock.advance(1.9)
    assert served.frames == [b"one", b"too much"]
    client.loop.clock.advance(0.1)
    assert client.transport.written == b"<one><too much><two>"
    assert client.transport.is_reading
    client.send(frame(b"three"))
    assert client.transport.written.endswith(b"<three>")


def test_a_later_answer_throttles_too(client, served):
    client.send(frame(b"later") + frame(b"two"))
    served.laters[0].resolve(b"too much, late")
    assert client.transport.written == b"<too much, late>"
    client.loop.clock.advance(2)
    assert client.transport.written == b"<too much, late><two>"


def test_a_throttled_client_that_does_not_read_is_served_when_it_does(client, served):
    client.send(frame(b"too much") + frame(b"two"))
    client.connection.pause_writing()
    client.loop.clock.advance(2)
    assert served.frames == [b"too much"]
    assert not client.transport.is_reading
    client.connection.resume_writing()
    assert served.frames == [b"too much", b"two"]
    assert client.transport.is_reading


def test_a_client_that_may_write_again_waits_all_the_same(client, served):
    client.send(frame(b"too much") + frame(b"two"))
    client.connection.pause_writing()
    client.connection.resume_writing()
    assert served.frames == [b"too much"]
    assert not client.transport.is_reading


def test_a_throttled_client_that_goes_leaves_nothing_behind(client, served):
    client.send(frame(b"too much") + frame(b"two"))
    client.connection.connection_lost(None)
    client.loop.clock.advance(5)
    assert served.frames == [b"too much"]
    assert served.is_closed


def test_who_is_held_is_served_once_he_is_let_in(client, served):
    client.connection.hold()
    assert not client.transport.is_reading
    client.connection.let_in()
    client.send(frame(b"one"))
    assert served.frames == [b"one"]


def test_a_large_request_may_follow_what_lets_the_client_in(client, served):
    served.max_request_bytes = 10
    large = b"x" * 100
    client.send(frame(b"let in") + frame(large))
    assert served.frames == [b"let in", large]


def test_a_large_request_before_that_closes_the_connection(client, served):
    served.max_request_bytes = 10
    client.send(frame(b"one") + frame(b"x" * 11))
    assert served.frames == [b"one"]
    assert client.transport.is_closed
