"""Responses of a node that arrive in pieces: what the client gets, and when."""

import struct
from unittest.mock import Mock

import pytest

from barnabas.proxy.upstream import Sent, Upstream
from barnabas.server.buffers import BufferPool


class Client:
    def __init__(self):
        self.got, self.reason, self.takes = b"", None, True

    def pass_on(self, answers):
        self.got += bytes(answers)
        return self.takes

    def lose(self, reason):
        self.reason = reason


@pytest.fixture
def upstream():
    made = Upstream("node", Mock(), BufferPool())
    made.connection_made(Mock())
    made.client = Client()
    return made


def receive(upstream, data):
    upstream.get_buffer(-1)[: len(data)] = data
    upstream.buffer_updated(len(data))


def whole(correlation_id, size):
    content = bytes(range(1, 200)) * 30
    return struct.pack(">ii", size, correlation_id) + content[: size - 4]


def test_what_nobody_looks_at_is_passed_on_before_it_is_whole(upstream):
    data = whole(1, 1000) + whole(2, 4) + whole(3, 500)
    for correlation_id in (1, 2, 3):
        upstream.send(memoryview(b"request"), Sent(correlation_id, None))
    for at in range(0, len(data), 7):
        assert upstream.is_awaited
        receive(upstream, data[at : at + 7])
        assert len(upstream.client.got) > min(at + 7, len(data)) - 8
    assert upstream.client.got == data
    assert not upstream.is_awaited


@pytest.mark.parametrize("step", [1, 3, 8, 100, 5000])
def test_what_somebody_looks_at_is_whole_and_in_its_place(upstream, step):
    first, second, third = whole(1, 300), whole(2, 400), whole(3, 200)
    taken = []

    def take(found):
        assert upstream.client.got == first
        taken.append(bytes(found))
        upstream.client.pass_on(b"looked at")

    for correlation_id, each in ((1, None), (2, take), (3, None)):
        upstream.send(memoryview(b"request"), Sent(correlation_id, each))
    data = first + second + third
    for at in range(0, len(data), step):
        receive(upstream, data[at : at + step])
    assert taken == [second]
    assert upstream.client.got == first + b"looked at" + third


def test_answered_is_told_at_the_end_of_the_last_answer(upstream):
    results = []
    upstream.send(memoryview(b"request"), Sent(1, None))
    upstream.on_answered = lambda: results.append(len(upstream.client.got))
    data = whole(1, 1000)
    receive(upstream, data[:600])
    assert (results, upstream.is_awaited) == ([], True)
    receive(upstream, data[600:])
    assert results == [1004]


def test_a_client_that_does_not_take_it_stops_reading(upstream):
    upstream.send(memoryview(b"request"), Sent(1, None))
    upstream.client.takes = False
    data = whole(1, 1000)
    receive(upstream, data[:600])
    upstream.transport.pause_reading.assert_called_once()
    receive(upstream, data[600:800])  # was in flight
    assert len(upstream.client.got) == 600
    upstream.client.takes = True
    upstream.resume()
    upstream.transport.resume_reading.assert_called_once()
    receive(upstream, data[800:])
    assert upstream.client.got == data


@pytest.mark.parametrize("data", [whole(2, 100), struct.pack(">ii", -5, 1), whole(1, 50) + whole(1, 50)])
def test_an_answer_to_no_request_closes_both_sides(upstream, data):
    upstream.send(memoryview(b"request"), Sent(1, None))
    receive(upstream, data)
    assert upstream.is_closed
    assert upstream.client.reason.startswith("node: its answer cannot be read")
