"""A limit on repeated log lines: the same line at most once a minute.

Knows nothing of what is logged, nor of the logger.
"""

from barnabas.clock import Clock

INTERVAL_S = 60.0


class LogLimit:
    """Limits one log line of one caller. A line with another text is due immediately.

    >>> from barnabas.clock import ManualClock
    >>> clock = ManualClock()
    >>> limit = LogLimit(clock)
    >>> limit.is_due("no brokers"), limit.is_due("no brokers"), limit.is_due("one broker of three")
    (True, False, True)
    >>> clock.advance(60)
    >>> limit.is_due("one broker of three")
    True
    """

    __slots__ = ("_clock", "_last_logged", "_last_text")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_text: str | None = None
        self._last_logged = 0.0

    def is_due(self, text: object) -> bool:
        """Returns whether the line is to be logged now; if so, the next minute begins.

        :param text: the part of the line that may change, such as the error in it
        """
        now, text = self._clock.monotonic(), str(text)
        if text == self._last_text and now - self._last_logged < INTERVAL_S:
            return False
        self._last_text, self._last_logged = text, now
        return True
