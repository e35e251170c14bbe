"""The timer that removes expired delegation tokens."""

from barnabas.broker.token_expiry import TokenExpiry
from barnabas.cluster.controller.commands.tokens import RemoveExpiredTokens
from barnabas.errors import NotController


class Controller:
    """Returns the response of the test."""

    def __init__(self):
        self.commands, self.answers = [], []

    def submit(self, command, done):
        self.commands.append(command)
        done(*(self.answers.pop(0) if self.answers else (False, None)))


class Scheduler:
    """Keeps the calls and their times."""

    def __init__(self):
        self.timers = []

    def call_later(self, seconds, callback):
        timer = Timer(seconds, callback)
        self.timers.append(timer)
        return timer


class Timer:
    def __init__(self, seconds, callback):
        self.seconds, self.callback, self.is_cancelled = seconds, callback, False

    def cancel(self):
        self.is_cancelled = True


def test_the_node_asks_at_intervals_and_at_once_while_there_are_more():
    controller, scheduler = Controller(), Scheduler()
    controller.answers = [(True, None), (None, NotController())]
    expiry = TokenExpiry(controller, scheduler, 60_000)
    expiry.start()
    for _ in range(3):
        scheduler.timers[-1].callback()
    assert controller.commands == [RemoveExpiredTokens()] * 3
    assert [timer.seconds for timer in scheduler.timers] == [60, 0, 60, 60]
    expiry.stop()
    assert scheduler.timers[-1].is_cancelled


def test_an_answer_after_the_end_sets_no_timer():
    controller, scheduler = Controller(), Scheduler()
    expiry = TokenExpiry(controller, scheduler, 60_000)
    expiry.start()
    expiry.stop()
    scheduler.timers[0].callback()
    assert len(scheduler.timers) == 1
