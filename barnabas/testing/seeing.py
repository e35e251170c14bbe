"""What a test sees of clients: their requests with the answers, and their connections.

Knows nothing of what is seen: a broker, a cluster or a proxy.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from barnabas.faults.seen import Seen, SeenRequest
    from barnabas.testing.faulting import Expected, OpenConnection

T = TypeVar("T")


class Seer(Protocol):
    """Records requests."""

    @property
    def seen(self) -> "Seen | None": ...

    def record(self) -> "Seen": ...

    def connections(self) -> "list[OpenConnection]": ...


class Seeing:
    """A mixin with the methods by which a test sees clients."""

    @property
    def faults(self) -> Seer:
        raise NotImplementedError

    def _call(self, function: Callable[[], T]) -> T:
        """Calls a function in the thread that serves clients, and returns what it returns."""
        raise NotImplementedError

    def record_requests(self) -> None:
        """Records requests from now on, the last 10000 of them, for :meth:`requests`."""
        self.faults.record()

    def requests(
        self, api: str | int | None = None, client_id: str | None = None, *, node: int | None = None
    ) -> "list[SeenRequest]":
        """Returns the requests of an API and a client, to a broker, that were recorded, with their answers, in their
        order.

        :raises RuntimeError: nothing is recorded; call :meth:`record_requests` before
        """
        from barnabas.testing.faulting import canonical

        seen = self._recorded()
        return self._call(lambda: seen.find(canonical(api), client_id, node))

    def _recorded(self) -> "Seen":
        seen = self.faults.seen
        if seen is None:
            raise RuntimeError("no requests are recorded: call record_requests() before the client sends them")
        return seen

    def expect(
        self,
        api: str | int | None = None,
        *,
        client_id: str | None = None,
        node: int | None = None,
        times: int | None = None,
    ) -> "Expected":
        """Returns a context manager that checks at its end that so many requests have been received, or any if no
        number is given.
        """
        from barnabas.testing.faulting import Expected, canonical

        self.record_requests()
        return Expected(self._recorded, self._call, canonical(api), client_id, node, times)

    def connections(self) -> "list[OpenConnection]":
        """Returns the open connections, the oldest first."""
        return self.faults.connections()
