"""A response that comes later: a handler returns it while it waits for data, group members, a flush or replicas.

Knows nothing of sockets or of asyncio: resolving it calls a callback.
"""

import logging
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from barnabas.errors import CloseConnection
from barnabas.wire.message import Response

logger = logging.getLogger(__name__)

R = TypeVar("R", bound=Response)


class Later(Generic[R]):
    """A response that comes later, once.

    >>> later = Later()
    >>> later.then(print)
    >>> later.resolve("the answer")
    the answer

    The handler keeps it and calls :meth:`resolve`. The connection sets a callback by :meth:`then`. If the client has
    disconnected before, the connection calls :meth:`cancel`, which calls ``on_cancel``: the handler then cancels its
    timers and its waits. A response after that is dropped.
    """

    __slots__ = ("_cancelled", "_deliver", "_outcome", "on_cancel")

    def __init__(self) -> None:
        self._outcome: R | CloseConnection | None = None
        self._deliver: Callable[[R | CloseConnection], object] | None = None
        self._cancelled = False
        self.on_cancel: Callable[[], object] | None = None

    @property
    def response(self) -> R | None:
        """The response; None if it is not resolved yet.

        :raises CloseConnection: there is no response, and the connection has to be closed
        """
        if isinstance(self._outcome, CloseConnection):
            raise self._outcome
        return self._outcome

    def resolve(self, outcome: R | CloseConnection) -> None:
        """Delivers the response, or closes the connection if there is none. A second call is a bug."""
        assert self._outcome is None, f"answered twice: {self._outcome!r}, then {outcome!r}"
        self._outcome = outcome
        self.on_cancel = None  # otherwise a handler that refers to its response would live until the cycle is collected
        if self._deliver is not None and not self._cancelled:
            self._deliver(outcome)

    def then(self, deliver: Callable[[R | CloseConnection], object]) -> None:
        """Calls ``deliver`` with the outcome, at once if it is resolved already."""
        if self._outcome is not None:
            deliver(self._outcome)
        else:
            self._deliver = deliver

    def cancel(self) -> None:
        """Drops the response, since the client has disconnected."""
        if self._outcome is None and not self._cancelled:
            self._cancelled = True
            if self.on_cancel is not None:
                self.on_cancel()


Answer = Response | Later[Any] | None


def then(answer: Answer, change: Callable[[Any], Answer]) -> Answer:
    """Returns the result of ``change`` for the response, at once or later."""
    if not isinstance(answer, Later):
        return None if answer is None else change(answer)
    if answer.response is not None:
        return change(answer.response)
    later: Later[Any] = Later()
    later.on_cancel = answer.cancel

    def deliver(outcome: Response | CloseConnection) -> None:
        try:
            changed = outcome if isinstance(outcome, CloseConnection) else change(outcome)
        except Exception:  # the caller of resolve() has other clients to answer
            logger.exception("Cannot complete the response after %s", type(outcome).__name__)
            changed = CloseConnection("a response cannot be completed")
        if isinstance(changed, Later):
            changed.then(later.resolve)
        elif changed is not None:
            later.resolve(changed)

    answer.then(deliver)
    return later
