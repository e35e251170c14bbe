"""The metrics as a service of a server: ``barnabas.metrics.listener``.

Knows nothing of the exposition, which is imported at the first connection. Requests are counted from the start.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from io import FileIO
from typing import TYPE_CHECKING, Final

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.session import Session
from barnabas.broker import Broker
from barnabas.broker.telemetry import Pushed, Telemetry
from barnabas.clock import Timer
from barnabas.config.validators import ConfigError
from barnabas.deadlines import Deadlines
from barnabas.metrics.changes import Changes
from barnabas.metrics.counting import Counting
from barnabas.metrics.samples import Sample
from barnabas.server.connection import Connection
from barnabas.server.http import Address, Application, HttpService, require
from barnabas.server.listener import Listener
from barnabas.server.server import Server

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from barnabas.metrics.pushed import PushedMetrics

LISTENER: Final = "barnabas.metrics.listener"
FILE: Final = "barnabas.metrics.clients.file"
TLS: Final = "SSL"
"""The mechanism under which TLS handshakes are counted."""

LOOKS_EACH_S: Final = 1.0
"""How often the delay of the event loop is measured."""


class MetricsService(HttpService):
    """The service. It counts the requests of all listeners that the server has.

    :param file: the file for what clients push, which is closed with the service
    """

    def __init__(self, address: Address, server: Server, file: FileIO | None) -> None:
        super().__init__("metrics", address, self._application)
        self._owner = server
        self._counting = Counting(time.monotonic, self._soon, self._arrived)
        self._connections: dict[int, Connection] = {}  # those that were timed, by the number of their session
        self._changes: Changes | None = None
        self._lag_s = 0.0
        self._deadlines: Deadlines | None = None
        self._pushed: PushedMetrics | None = None
        self._receivers: Sequence[Callable[[Pushed], object]] = ()
        self._file = file
        self._timer: Timer | None = None
        for listener in (*server.listeners, *server.controller_listeners):
            listener.routes.new_handle = self._counting.new_handle
        if isinstance(server.node, Broker):
            server.node.telemetry = self._new_telemetry(server.node)
            self._counting.partitions = server.node.hosting.partitions.values
            server.node.hosting.count_traffic(self._counting.read)

    async def start(self) -> None:
        await super().start()
        node = self._owner.node
        self._changes = Changes(node.node_id, node.image, lambda: node.quorum.is_leader)
        node.metadata.loader.publishers.append(self._changes.follow)
        self._look()

    def _new_telemetry(self, broker: Broker) -> Telemetry:
        """Returns the receiver of the metrics that clients push. The decoder is imported with the first push."""
        self._deadlines = Deadlines(broker.clock, broker.scheduler)

        def receive(pushed: Pushed) -> None:
            if self._pushed is None:
                self._receivers = self._new_receivers(broker.clock.monotonic)
            for each in self._receivers:
                each(pushed)

        max_bytes = broker.config["telemetry.max.bytes"]
        return Telemetry(lambda: broker.image.configs, max_bytes, self._deadlines, broker.random.randbytes, receive)

    def _new_receivers(self, now: Callable[[], float]) -> Sequence[Callable[[Pushed], object]]:
        """Returns the receivers of pushed metrics. The first refuses what it cannot read, so that no other gets it."""
        from barnabas.metrics.pushed import PushedMetrics
        from barnabas.metrics.pushed_file import PushedFile

        self._pushed = PushedMetrics(now)
        shown = self._pushed.receive
        return (shown,) if self._file is None else (shown, PushedFile(self._file, now).receive)

    def _soon(self, call: Callable[[], object]) -> None:
        asyncio.get_running_loop().call_soon(call)

    def _arrived(self, context: Context) -> float | None:
        """Returns the time at which the last bytes of the request's connection arrived."""
        session = context.session
        known = self._connections.get(session.number)
        if known is not None:
            return known.last_active
        found = self._find(session)
        if found is not None:  # otherwise it is a request in an envelope
            # The loop's own time is that of the beginning of its turn, in whole milliseconds.
            found.clock = time.monotonic
            self._connections[session.number] = found
            session.on_close(self._forget)
        return None

    def _find(self, session: Session) -> Connection | None:
        """Returns the connection of a session. It is one of the newest, as it has not been timed yet."""
        for listener in (*self._owner.listeners, *self._owner.controller_listeners):
            if listener.endpoint.name == session.listener:
                for each in reversed(listener.connections):
                    if isinstance(each, Connection) and each.session is session:
                        return each
        return None

    def _forget(self, number: int) -> None:
        self._connections.pop(number, None)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + LOOKS_EACH_S

        def measure() -> None:
            self._lag_s = max(self._lag_s, loop.time() - due)
            self._counting.set_strides()
            self._look()

        self._timer = loop.call_at(due, measure)

    async def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._deadlines is not None:
            self._deadlines.close()
        if self._file is not None:
            self._file.close()
        await super().stop()

    def _application(self) -> Application:
        from barnabas.metrics.application import new_application
        from barnabas.metrics.exposition import Collector, new_registry

        return new_application(new_registry(Collector(self._counting, self._samples), self), self._unready)

    def collect(self) -> "Iterator[Metric]":
        """Yields the metrics that clients have pushed: a collector of prometheus_client."""
        return iter(()) if self._pushed is None else self._pushed.collect()

    def _samples(self) -> Iterator[Sample]:
        from barnabas.metrics.state import samples_of

        lag_s, self._lag_s = self._lag_s, 0.0
        yield Sample("barnabas_loop_lag_seconds", lag_s)
        for listener in (*self._owner.listeners, *self._owner.controller_listeners):
            yield Sample(
                "kafka_server_socketservermetrics_connection_count",
                len(listener.connections),
                (listener.endpoint.name,),
            )
            yield from authentications(listener)
        if self._changes is not None:
            yield from self._changes.samples()
        yield from samples_of(self._owner.node)
        yield from self._telemetry()

    def _telemetry(self) -> Iterator[Sample]:
        """Yields Apache Kafka's metrics of client metrics (``ClientMetricsStats``), and the clients that push."""
        node = self._owner.node
        telemetry = node.telemetry if isinstance(node, Broker) else None
        if telemetry is not None:
            name = "kafka_server_client_metrics_"
            yield Sample(name + "instance_count", len(telemetry.instances))
            yield Sample(name + "throttle", telemetry.throttled)
            yield Sample(name + "unknown_subscription_request", telemetry.unknown_subscriptions)
            yield Sample(name + "plugin_export", telemetry.received)
            yield Sample(name + "plugin_error", telemetry.unreadable)
        if self._pushed is not None:
            yield from self._pushed.samples()

    def _unready(self) -> str | None:
        node = self._owner.node
        if not isinstance(node, Broker):
            return None
        broker = node.image.brokers.get(node.node_id)
        if broker is None:
            return "the broker is not registered"
        return "the controller has fenced the broker" if broker.fenced else None


def authentications(listener: Listener) -> Iterator[Sample]:
    """Yields the numbers of successful and failed authentications of a listener.

    As in Apache Kafka's ``Selector``, a TLS handshake that fails is a failed authentication, also before SASL.
    """
    name, of_sasl, of_tls = listener.endpoint.name, listener.gates, listener.handshakes
    successful, failed = ({}, {}) if of_sasl is None else (dict(of_sasl.authenticated), dict(of_sasl.refused))
    if of_tls is not None:
        failed[TLS] = of_tls.failed
        if of_sasl is None:
            successful[TLS] = of_tls.finished
    for outcome, counts in (("successful", successful), ("failed", failed)):
        for mechanism, count in counts.items():
            yield Sample(f"kafka_server_socketservermetrics_{outcome}_authentication", count, (name, mechanism))


def new_service(server: Server) -> MetricsService:
    """Returns the service of a server.

    :raises ConfigError: a package is missing, the text is no address, or the file cannot be opened
    """
    text, path = server.config[LISTENER], server.config[FILE]
    require(LISTENER, "metrics", "prometheus_client", "opentelemetry")
    address = Address.parse(LISTENER, text)
    try:
        file = FileIO(path, "ab+") if path else None
    except OSError as error:
        raise ConfigError(FILE, path, f"a file that can be appended to: {error.strerror}") from error
    return MetricsService(address, server, file)
