"""The replicas that are new on this node and wait for their logs: one change of the metadata may bring thousands.

Knows nothing of logs and of the metadata: it calls a function for each replica, in turns of the loop.
"""

from collections.abc import Callable, Iterator, Sequence

from barnabas.clock import Clock, Scheduler
from barnabas.log.turns import visit_in_turns

Key = tuple[bytes, int]
"""Topic id and partition."""


class NewReplicas:
    """Waiting replicas, hosted in the order in which they came.

    :param host: hosts one of them, as the metadata is by then
    :param done: called when none waits any more
    """

    def __init__(
        self, host: Callable[[Key], object], done: Callable[[], object], clock: Clock, scheduler: Scheduler
    ) -> None:
        self._host = host
        self._done = done
        self._clock = clock
        self._scheduler = scheduler
        self._waiting: dict[Key, None] = {}
        self._is_running = self._is_closed = False

    def __contains__(self, key: Key) -> bool:
        return key in self._waiting

    def add(self, keys: Sequence[Key]) -> None:
        """Hosts these replicas from the next turn of the loop on."""
        if self._is_closed:
            return
        self._waiting.update(dict.fromkeys(keys))
        if self._waiting and not self._is_running:
            self._is_running = True
            self._scheduler.call_later(0, self._run)

    def _run(self) -> None:
        visit_in_turns(self._next(), self._host, self._clock, self._scheduler, self._end)

    def _next(self) -> Iterator[Key]:
        while self._waiting:
            key = next(iter(self._waiting))
            del self._waiting[key]
            yield key

    def _end(self) -> None:
        self._is_running = False
        if not self._is_closed:
            self._done()

    def close(self) -> None:
        """Hosts no more of them: the node stops, and hosts them at its next start."""
        self._is_closed = True
        self._waiting.clear()
