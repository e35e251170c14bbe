"""A later response is delivered once, and only to a client that still waits."""

import gc
import weakref

import pytest

from barnabas.api_handlers.answering import Later
from barnabas.errors import CloseConnection


def test_who_asks_first_is_told_later():
    results, later = [], Later()
    later.then(results.append)
    assert results == []
    later.resolve("answer")
    assert results == ["answer"] and later.response == "answer"


def test_who_asks_late_is_told_at_once():
    results, later = [], Later()
    later.resolve("answer")
    later.then(results.append)
    assert results == ["answer"]


def test_a_second_answer_is_a_bug():
    later = Later()
    later.resolve("answer")
    with pytest.raises(AssertionError, match="twice"):
        later.resolve("another")


def test_no_answer_closes_the_connection():
    results, later, reason = [], Later(), CloseConnection("there is no answer")
    later.then(results.append)
    later.resolve(reason)
    assert results == [reason]
    with pytest.raises(CloseConnection, match="no answer"):
        _ = later.response


def test_cancelled_once_and_silent_afterwards():
    results, cancelled, later = [], [], Later()
    later.then(results.append)
    later.on_cancel = lambda: cancelled.append(True)
    later.cancel()
    later.cancel()
    later.resolve("too late")
    assert results == [] and cancelled == [True]


def test_cancelling_what_was_answered_does_nothing():
    cancelled, later = [], Later()
    later.on_cancel = lambda: cancelled.append(True)
    later.resolve("answer")
    later.cancel()
    assert cancelled == []


class Answering:
    """A handler that is notified when the client stops waiting."""

    def __init__(self):
        self.later = Later()
        self.later.on_cancel = self.stop

    def stop(self): ...


def test_what_was_answered_is_kept_by_nobody():
    """Responses may hold megabytes of records, and garbage collections of cycles are rare."""
    gc.disable()
    try:
        answering = Answering()
        answering.later.resolve("answer")
        gone = weakref.ref(answering)
        del answering
        assert gone() is None
    finally:
        gc.enable()
