"""A proxy in this process, in front of any cluster, for the time of a ``with`` block.

Knows nothing of the cluster behind it, which may be Apache Kafka.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from barnabas.clock import SystemClock
from barnabas.diagnosis import Address
from barnabas.proxy.connecting import connect_by
from barnabas.proxy.proxy import Proxy as Passages
from barnabas.server.run import loop_factory
from barnabas.testing.seeing import Seeing, T

if TYPE_CHECKING:
    from barnabas.testing.faulting import Faults

LONGEST_WAIT_S = 30.0


class Proxy(Seeing):
    """A proxy on free ports of 127.0.0.1, one for each broker, which is stopped at the end of the block.

    :param to: the bootstrap servers of the cluster
    :param properties: of TLS and SASL towards the cluster, by their names in Java's clients
    """

    def __init__(self, to: str, properties: Mapping[str, str] | None = None) -> None:
        self._to = [Address.parse(server) for server in to.split(",")]
        self._properties = properties or {}
        self._loop: asyncio.AbstractEventLoop
        self._thread: threading.Thread | None = None
        self._proxy: Passages
        self._faults: Faults | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Starts the proxy, and returns when it listens. It connects to the cluster once a client connects.

        :raises ConfigError: a property is not valid
        """
        self._loop = loop_factory()()
        connect = connect_by(self._properties, self._loop, Random())
        self._proxy = Passages(self._to, connect)
        self._thread = threading.Thread(target=self._loop.run_forever, name="barnabas-proxy", daemon=True)
        self._thread.start()
        self._await(self._proxy.start())

    def stop(self) -> None:
        """Closes all connections, and the ports; has no effect if it is stopped."""
        if self._thread is not None:
            thread, self._thread = self._thread, None
            self._await(self._proxy.stop())
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()
            self._loop.close()

    @property
    def port(self) -> int:
        """The bootstrap port for clients."""
        return self._proxy.port

    @property
    def bootstrap_servers(self) -> str:
        """The ``bootstrap.servers`` for clients: ``127.0.0.1:40321``."""
        return f"127.0.0.1:{self.port}"

    @property
    def ports(self) -> dict[str, int]:
        """The proxy's ports of the nodes that responses have named so far, by the nodes' addresses."""
        return self._call(lambda: {str(node): gateway.port for node, gateway in self._proxy.by_node.items()})

    @property
    def faults(self) -> "Faults":
        """The rules of faults on requests that pass (docs/how-to/faults.md)."""
        if self._faults is None:
            from barnabas.proxy.rules import ProxyRules
            from barnabas.testing.faulting import Faults

            clock, proxy = SystemClock(), self._proxy
            rules = partial(ProxyRules, clock, Random(0))
            self._faults = Faults(rules, proxy.gateways, proxy.topics.get, self._call, clock, self._loop, proxy.node_of)
        return self._faults

    def _await(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(LONGEST_WAIT_S)

    def _call(self, function: Callable[[], T]) -> T:
        async def run() -> T:
            return function()

        return self._await(run())
