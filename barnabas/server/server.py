"""A broker and its listeners: started, registered under the ports they got, and stopped in good order.

Knows nothing of processes and signals; whoever runs it owns the event loop.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from random import Random

from barnabas.api_handlers.registry import Promise
from barnabas.broker import Broker
from barnabas.clock import Clock, SystemClock
from barnabas.config import BrokerConfig
from barnabas.errors import KafkaError
from barnabas.log.background import BackgroundThread
from barnabas.log.cleaner_hands import ThreadHand
from barnabas.log.files import DiskFiles, Files
from barnabas.server.buffers import BufferPool
from barnabas.server.listener import SWEEPS_PER_IDLE_TIME, Census, Listener

logger = logging.getLogger(__name__)

LAST_ANSWERS_S = 5.0
"""How long a stopping server waits for connections to take what was written to them."""


class Server:
    """One node: opens its data, listens, answers, closes.

    ``clock``, ``files`` and ``random`` are the machine's unless others are passed in. ``on_fatal`` is called with the
    reason when the broker cannot go on; somebody has to stop it then. ``features`` are levels that a new cluster is to
    have where it would not by itself; an old one has to be at them.

    :raises ConfigError: ``barnabas.compatible.with`` names no release
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        files: Files | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
        on_fatal: Callable[[str], object] = lambda reason: None,
        features: Mapping[str, int] | None = None,
    ) -> None:
        self.config = config
        self._features = features
        self._on_fatal = on_fatal
        self._promise = promise(config["barnabas.compatible.with"])
        self._files = files or DiskFiles()
        self._clock = clock or SystemClock()
        self._random = random or Random()
        self.listeners: list[Listener] = []
        self._sweeper: asyncio.TimerHandle | None = None
        self.broker: Broker

    async def start(self) -> None:
        """Recover the logs, bind, register, accept.

        :raises OSError: a directory or a port is not to be had
        """
        loop = asyncio.get_running_loop()
        self.broker = Broker(
            self.config,
            files=self._files,
            clock=self._clock,
            scheduler=loop,
            random=self._random,
            background=BackgroundThread(loop.call_soon_threadsafe),
            # A process cannot clean what is in this one's memory.
            new_hand=(lambda: ThreadHand(loop.call_soon_threadsafe)) if isinstance(self._files, DiskFiles) else None,
            features=self._features,
        )
        self.broker.on_fatal = self._on_fatal
        self.broker.open()
        try:
            buffers, census = BufferPool(), Census()
            for endpoint in self.config.listeners:
                self.listeners.append(
                    Listener(endpoint.name, endpoint.host, endpoint.port, self.broker, buffers, census, self._promise)
                )
            await self._register({listener.name: listener.port for listener in self.listeners})
            for listener in self.listeners:
                await listener.start()
        except BaseException:
            await self.stop()
            raise
        self._sweep()

    async def _register(self, ports: Mapping[str, int]) -> None:
        """Waits until the registration is committed. :raises KafkaError: it cannot be"""
        registered: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(result: None, error: KafkaError | None) -> None:
            if not registered.done():
                registered.set_result(None) if error is None else registered.set_exception(error)

        self.broker.register(ports, done)
        await registered

    async def stop(self) -> None:
        """Stop accepting, let what was answered go out, flush, write checkpoints and the clean marker."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        for listener in self.listeners:
            listener.stop_accepting()
        connections = [connection for listener in self.listeners for connection in listener.connections]
        for connection in connections:
            connection.close("the broker is stopping", level=logging.DEBUG)
        deadline = asyncio.get_running_loop().time() + LAST_ANSWERS_S
        while any(listener.connections for listener in self.listeners):
            if asyncio.get_running_loop().time() > deadline:
                for connection in connections:
                    connection.transport.abort()
                deadline = float("inf")
            await asyncio.sleep(0.001)
        self.broker.close()

    def _sweep(self) -> None:
        """Close idle connections, from time to time."""
        loop = asyncio.get_running_loop()
        longest = self.config["connections.max.idle.ms"] / 1000
        if longest > 0:
            for listener in self.listeners:
                listener.close_idle(loop.time(), longest)
        self._sweeper = loop.call_later(max(longest / SWEEPS_PER_IDLE_TIME, 0.1), self._sweep)


def promise(release: str | None) -> Promise:
    """What clients are told of: all that there is, or what they were told of by a release of Apache Kafka.

    :raises ConfigError: there is no such release
    """
    if release is None:
        return Promise()
    from barnabas.api_handlers import releases

    found = releases.find(release)
    if missing := releases.missing(found):
        logger.info(
            "Clients see the APIs of Apache Kafka %s, but for these keys and versions, which are not answered: %s",
            found,
            ", ".join(f"{key} ({versions})" for key, versions in missing.items()),
        )
    return Promise(releases.narrowed(found), found)
