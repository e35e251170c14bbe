"""The service that closes idle connections (``connections.max.idle.ms``).

Knows nothing of what connections carry.
"""

import asyncio
from collections.abc import Sequence

from barnabas.server.listener import Listener

SWEEPS_PER_IDLE_TIME = 10
"""How many times within ``connections.max.idle.ms`` the connections are checked."""

SHORTEST_INTERVAL_S = 0.1


class IdleSweeper:
    """Checks the connections of all listeners periodically.

    :param longest_s: how long a connection may be idle; 0 or less disables the service
    """

    name = "idle sweeper"

    def __init__(self, listeners: Sequence[Listener], longest_s: float) -> None:
        self._listeners = listeners
        self._longest_s = longest_s
        self._timer: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        if self._longest_s > 0:
            self._schedule()

    async def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _schedule(self) -> None:
        interval_s = max(self._longest_s / SWEEPS_PER_IDLE_TIME, SHORTEST_INTERVAL_S)
        self._timer = asyncio.get_running_loop().call_later(interval_s, self._sweep)

    def _sweep(self) -> None:
        now = asyncio.get_running_loop().time()
        for listener in self._listeners:
            listener.close_idle(now, self._longest_s)
        self._schedule()
