"""An answer that comes later: what a handler returns when it has to wait for data, members, a disk or replicas.

Knows nothing of sockets or of asyncio. Whoever resolves an answer thereby calls whoever waits for it.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from barnabas.errors import CloseConnection
from barnabas.wire.message import Response

R = TypeVar("R", bound=Response)


class Later(Generic[R]):
    """A response that comes later, once.

    >>> later = Later()
    >>> later.then(print)
    >>> later.resolve("the answer")
    the answer

    The handler keeps it and calls :meth:`resolve`. The connection takes the answer by :meth:`then`. When the client has
    gone before that, the connection calls :meth:`cancel`, which calls ``on_cancel``: the handler then gives up its
    timers and what else waits there. An answer after that is dropped.
    """

    __slots__ = ("_cancelled", "_deliver", "_outcome", "on_cancel")

    def __init__(self) -> None:
        self._outcome: R | CloseConnection | None = None
        self._deliver: Callable[[R | CloseConnection], object] | None = None
        self._cancelled = False
        self.on_cancel: Callable[[], object] | None = None

    @property
    def response(self) -> R | None:
        """The answer, if it is there.

        :raises CloseConnection: there is none, and the connection is to be closed
        """
        if isinstance(self._outcome, CloseConnection):
            raise self._outcome
        return self._outcome

    def resolve(self, outcome: R | CloseConnection) -> None:
        """Answers, or closes the connection where there is no answer. Only once: a second answer is a bug."""
        assert self._outcome is None, f"answered twice: {self._outcome!r}, then {outcome!r}"
        self._outcome = outcome
        self.on_cancel = None  # a handler that is its own answer's would otherwise live on until cycles are collected
        if self._deliver is not None and not self._cancelled:
            self._deliver(outcome)

    def then(self, deliver: Callable[[R | CloseConnection], object]) -> None:
        """Calls ``deliver`` with what this is resolved with, once it is, which may be now."""
        if self._outcome is not None:
            deliver(self._outcome)
        else:
            self._deliver = deliver

    def cancel(self) -> None:
        """Gives the answer up: nobody waits for it any more."""
        if self._outcome is None and not self._cancelled:
            self._cancelled = True
            if self.on_cancel is not None:
                self.on_cancel()
