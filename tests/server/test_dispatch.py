"""Answers that speak of metadata wait until that is on the disk, whether they are there at once or come later."""

from types import SimpleNamespace

import pytest

from barnabas.api_handlers.answering import Later
from barnabas.server.dispatch import when_kept

ANSWER = "the answer"


class Metadata:
    """A metadata log whose changes reach the disk when the test says so."""

    def __init__(self, *, is_kept):
        self.is_kept = is_kept
        self.log = SimpleNamespace(is_offline=False)
        self.waiting = []

    def when_kept(self, callback):
        self.waiting.append(callback)

    def keep(self):
        self.is_kept = True
        self.tell()

    def fail(self):
        self.log.is_offline = True
        self.tell()

    def tell(self):
        for callback in self.waiting:
            callback()


@pytest.fixture
def metadata():
    return Metadata(is_kept=False)


def told(answer):
    """What has been answered by now."""
    return answer.response if isinstance(answer, Later) else answer


def test_nothing_waits_for_what_is_there():
    metadata, later = Metadata(is_kept=True), Later()
    assert when_kept(ANSWER, metadata) == ANSWER
    answer = when_kept(later, metadata)
    later.resolve(ANSWER)
    assert told(answer) == ANSWER
    assert when_kept(later, metadata) == ANSWER  # it is not a promise any more
    assert metadata.waiting == []


@pytest.mark.parametrize("comes_later", [False, True])
def test_an_answer_waits_for_the_disk(metadata, comes_later):
    later = Later()
    answer = when_kept(later if comes_later else ANSWER, metadata)
    if comes_later:
        later.resolve(ANSWER)
    assert told(answer) is None
    metadata.keep()
    assert told(answer) == ANSWER


def test_the_disk_may_be_first(metadata):
    later = Later()
    answer = when_kept(later, metadata)
    metadata.keep()
    assert told(answer) is None
    later.resolve(ANSWER)
    assert told(answer) == ANSWER


def test_nothing_is_said_when_the_disk_fails(metadata):
    answer = when_kept(ANSWER, metadata)
    metadata.fail()
    assert told(answer) is None


def test_a_client_that_goes_away_is_no_secret_to_the_handler(metadata):
    gone, later = [], Later()
    later.on_cancel = lambda: gone.append(True)
    when_kept(later, metadata).cancel()
    assert gone == [True]
