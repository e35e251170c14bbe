"""Limits the rate of new connections: of the broker, of each listener, and of each address (KIP-612).

Knows nothing of sockets: a listener calls it for each new connection. Follows Apache Kafka's ``ConnectionQuotas``.
"""

from collections.abc import Callable, Mapping
from typing import Final

from barnabas.security.quotas.entities import Limits, ip_limit_of
from barnabas.security.quotas.rates import Rate, Windows

UNLIMITED: Final = 2**31 - 1
"""The value of ``max.connection.creation.rate`` for no limit."""

MOST_ADDRESSES = 10_000
"""The number of addresses from which on idle ones are removed."""


class ConnectionRates:
    """The rates of one broker's connections.

    :param time: returns seconds that never decrease
    :param of_broker: the broker's limit, in connections per second
    :param of_listeners: the limits of listeners, by name
    :param addresses: the quotas of addresses
    :param protected: the listener of other brokers, which is exempt from the broker's limit
    """

    def __init__(
        self,
        time: Callable[[], float],
        windows: Windows,
        *,
        of_broker: float,
        of_listeners: Mapping[str, float],
        addresses: Limits,
        protected: str | None = None,
    ) -> None:
        self._time = time
        self._windows = windows
        self._of_broker = of_broker
        self._of_listeners = of_listeners
        self._protected = protected
        self._addresses = addresses
        self._broker = Rate(windows)
        self._listeners = {name: Rate(windows) for name in of_listeners}
        self._by_address: dict[str, Rate] = {}

    def arrives(self, listener: str) -> int:
        """Records a connection, and returns how many milliseconds it is delayed."""
        now_ms = self._now_ms()
        wait_ms = 0
        if listener in self._listeners:
            wait_ms = self._record(self._listeners[listener], self._of_listeners[listener], now_ms)
        if self._of_broker != UNLIMITED and listener != self._protected:
            wait_ms = max(wait_ms, self._record(self._broker, self._of_broker, now_ms))
        return wait_ms

    def refuses(self, listener: str, address: str) -> int:
        """Returns 0 if a connection from the address is accepted, otherwise the delay in milliseconds before it is
        closed.

        A refused connection is not recorded.
        """
        bound = ip_limit_of(self._addresses, address)
        if bound is None:
            return 0
        now_ms = self._now_ms()
        rate = self._by_address.get(address)
        if rate is None:
            if len(self._by_address) >= MOST_ADDRESSES:
                self._by_address = {at: each for at, each in self._by_address.items() if not each.is_idle(now_ms)}
            rate = self._by_address[address] = Rate(self._windows)
        throttle_ms = self._record(rate, bound, now_ms)
        if throttle_ms:
            rate.record(-1, now_ms)
            if listener in self._listeners:
                self._listeners[listener].record(-1, now_ms)
            if listener != self._protected:
                self._broker.record(-1, now_ms)
        return throttle_ms

    def taking_over(self, before: "ConnectionRates | None") -> "ConnectionRates":
        """Returns these rates with the usage of earlier ones, which had other limits."""
        if before is not None:
            self._broker, self._by_address = before._broker, before._by_address
            self._listeners |= {name: rate for name, rate in before._listeners.items() if name in self._of_listeners}
        return self

    def _record(self, rate: Rate, bound: float, now_ms: int) -> int:
        """Returns the throttle time, which is at most the length of one sample, as in Kafka."""
        rate.record(1, now_ms)
        return min(rate.throttle_ms(bound, now_ms), self._windows.length_ms)

    def _now_ms(self) -> int:
        return int(self._time() * 1000)
