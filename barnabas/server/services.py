"""Services: the parts of a server, which are started in order and stopped in the reverse order.

Knows nothing of what a service does.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol

logger = logging.getLogger(__name__)


class Service(Protocol):
    """One part of a server."""

    @property
    def name(self) -> str: ...

    async def start(self) -> None:
        """Returns once the service works. A service whose start fails leaves nothing behind to be stopped."""

    async def stop(self) -> None:
        """Returns once the service has ended."""


async def nothing() -> None:
    """The start or stop of a :class:`Step` that has none."""


class Step:
    """A service that consists of two functions."""

    def __init__(
        self,
        name: str,
        *,
        start: Callable[[], Awaitable[None]] = nothing,
        stop: Callable[[], Awaitable[None]] = nothing,
    ) -> None:
        self.name = name
        self._start = start
        self._stop = stop

    async def start(self) -> None:
        await self._start()

    async def stop(self) -> None:
        await self._stop()


class Services:
    """The services of one server."""

    def __init__(self) -> None:
        self._started: list[Service] = []

    async def start(self, services: Iterable[Service]) -> None:
        """Starts the services one after the other. When one fails, stops those before it, and raises its exception."""
        for service in services:
            try:
                await service.start()
            except BaseException:
                await self._stop()
                raise
            self._started.append(service)

    async def stop(self) -> None:
        """Stops the services that were started, the last one first. Each is stopped, also where another one fails.

        :raises Exception: the first one that a service raised
        """
        failures = await self._stop()
        if failures:
            raise failures[0]

    async def _stop(self) -> list[Exception]:
        failures = []
        while self._started:
            service = self._started.pop()
            try:
                await service.stop()
            except Exception as error:
                logger.exception("Cannot stop the %s", service.name)
                failures.append(error)
        return failures
