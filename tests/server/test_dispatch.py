"""Dispatch of a frame to its handler: the context of a request, and its response, which may be later."""

import struct
from types import SimpleNamespace

import pytest

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.registry import APIS, Promise
from barnabas.api_handlers.session import Session
from barnabas.clock import ManualClock
from barnabas.errors import CloseConnection, KafkaError, MalformedMessage
from barnabas.server.dispatch import Dispatcher
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.raw import CLIENT_ID, framed

HEARTBEAT = 12


class Handler:
    """Records the requests, and returns the response of the test."""

    def __init__(self):
        self.answer, self.seen = HeartbeatResponse(error_code=0), []

    def __call__(self, request, context):
        self.seen.append((request.group_id, context.api_version, context.correlation_id, context.client_id))
        self.seen.append(context.time_ms)
        return self.answer


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def handler():
    return Handler()


@pytest.fixture
def dispatcher(handler, clock):
    api = APIS[HEARTBEAT].within(APIS[HEARTBEAT].versions)
    api.request, api.handle = HeartbeatRequest, handler
    session = Session(listener="PLAINTEXT", client_host="127.0.0.1", promise=Promise({HEARTBEAT: api}))
    return Dispatcher(SimpleNamespace(clock=clock, quotas=None, authorizer=None), session)


def frame(correlation_id=1, version=3, group_id="g"):
    request = HeartbeatRequest(group_id=group_id, generation_id=1, member_id="m")
    return memoryview(framed(request, version, correlation_id))[4:]


def header_of(pieces, version=3):
    """Returns correlation id and error code of a response."""
    data = b"".join(pieces)
    response = HeartbeatResponse.decode(data, version=version, at=8 + HeartbeatResponse.header_version(version))
    return struct.unpack_from(">4xi", data)[0], response.error_code


def test_a_handler_knows_the_header_and_the_time(dispatcher, handler, clock):
    clock.advance(5)
    assert header_of(dispatcher.respond(frame(7, 3, "one"))) == (7, 0)
    assert handler.seen == [("one", 3, 7, CLIENT_ID), clock.time_ms()]


def test_each_request_has_its_own_header_and_time(dispatcher, handler, clock):
    for number in (1, 2):
        clock.advance(number)
        dispatcher.respond(frame(number, 4, "both"))
        assert handler.seen[-2:] == [("both", 4, number, CLIENT_ID), clock.time_ms()]


def test_a_later_answer_goes_out_under_its_request_s_header(dispatcher, handler):
    handler.answer = Later()
    later = dispatcher.respond(frame(7, 4))
    assert later is handler.answer
    later.resolve(HeartbeatResponse(error_code=27))
    assert header_of(dispatcher.encode(later.response), 4) == (7, 27)


def test_a_later_answer_that_is_there_goes_out_at_once(dispatcher, handler):
    handler.answer = Later()
    handler.answer.resolve(HeartbeatResponse(error_code=27))
    assert header_of(dispatcher.respond(frame(7))) == (7, 27)


def test_there_may_be_no_answer_later(dispatcher, handler):
    handler.answer = Later()
    handler.answer.resolve(CloseConnection("the reason"))
    with pytest.raises(CloseConnection, match="the reason"):
        dispatcher.respond(frame())
    with pytest.raises(CloseConnection, match="the reason"):
        dispatcher.encode(CloseConnection("the reason"))


def test_there_may_be_none_at_all(dispatcher, handler):
    handler.answer = None
    assert dispatcher.respond(frame()) is None


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\x0c", b"\0\x0c\0\x03\0\0"])
def test_bytes_that_are_no_request(dispatcher, data):
    with pytest.raises(MalformedMessage):
        dispatcher.respond(memoryview(data))


@pytest.mark.parametrize(("api_key", "version"), [(999, 0), (-1, 0), (0, 9), (HEARTBEAT, 5), (HEARTBEAT, -1)])
def test_what_is_not_promised_closes_the_connection(dispatcher, api_key, version):
    data = bytearray(frame())
    struct.pack_into(">hh", data, 0, api_key, version)
    with pytest.raises(CloseConnection, match="is not answered here"):
        dispatcher.respond(memoryview(data))


def test_a_bug_is_logged_with_the_request(dispatcher, handler, monkeypatch, caplog):
    monkeypatch.setattr(Handler, "__call__", lambda self, request, context: 1 / 0)
    assert header_of(dispatcher.respond(frame(7)))[1] == KafkaError.by_code[-1].code
    assert "Cannot answer HeartbeatRequest version 3" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_the_session_ends_with_the_connection(dispatcher):
    ended = []
    dispatcher.session.on_close(ended.append)
    dispatcher.close()
    assert ended == [0]
