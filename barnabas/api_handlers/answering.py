"""An answer that is not there yet: what a handler returns when it has to wait for data, members or replicas.

Knows nothing of sockets or of asyncio: whoever waits is called, in the same moment, by whoever resolves.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from barnabas.wire.message import Response

R = TypeVar("R", bound=Response)


class CloseConnection(Exception):
    """The protocol has no answer to this request but to hang up; the text goes into our log."""


class Later(Generic[R]):
    """A response that comes later, once.

    >>> later = Later()
    >>> later.then(print)
    >>> later.resolve("the answer")
    the answer

    The handler keeps it and calls :meth:`resolve`; the connection takes the answer by :meth:`then`. When the client
    goes away first, the connection calls :meth:`cancel`, which calls ``on_cancel`` (give up the timers and the
    places in queues there), and an answer that comes all the same is dropped.
    """

    __slots__ = ("_cancelled", "_deliver", "_response", "on_cancel")

    def __init__(self) -> None:
        self._response: R | None = None
        self._deliver: Callable[[R], object] | None = None
        self._cancelled = False
        self.on_cancel: Callable[[], object] | None = None

    @property
    def response(self) -> R | None:
        """The answer, if it is there."""
        return self._response

    def resolve(self, response: R) -> None:
        """Here is the answer. A second one is a bug of ours."""
        assert self._response is None, f"answered twice: {self._response!r}, then {response!r}"
        self._response = response
        self.on_cancel = None  # or whoever answers, and the answer, would keep each other until a collection of cycles
        if self._deliver is not None and not self._cancelled:
            self._deliver(response)

    def then(self, deliver: Callable[[R], object]) -> None:
        """Call ``deliver(response)`` as soon as there is one, which may be now."""
        if self._response is not None:
            deliver(self._response)
        else:
            self._deliver = deliver

    def cancel(self) -> None:
        """Nobody waits any more."""
        if self._response is None and not self._cancelled:
            self._cancelled = True
            if self.on_cancel is not None:
                self.on_cancel()
