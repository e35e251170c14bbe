"""The brokers of the cluster, with their endpoints for each listener.

Knows nothing of responses. Results are cached until a broker changes.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

from barnabas.cluster.image.image import BrokerImage

T = TypeVar("T")


class Node(NamedTuple):
    """A broker under the address that it advertises for one listener."""

    id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool


class Nodes:
    """The nodes of the newest image.

    :param brokers: returns the brokers of the newest image: the same mapping as long as no broker has changed
    """

    def __init__(self, brokers: Callable[[], Mapping[int, BrokerImage]]) -> None:
        self._brokers = brokers
        self._seen: Mapping[int, BrokerImage] = {}
        self._by_id: dict[tuple[str, bool], dict[int, Node]] = {}
        self._described: dict[tuple[str, bool, Callable[[Node], Any]], list[Any]] = {}

    def of(self, listener: str, *, include_fenced: bool = False) -> Mapping[int, Node]:
        """Returns the nodes that advertise an address for that listener, by their ids."""
        self._forget_old()
        found = self._by_id.get((listener, include_fenced))
        if found is None:
            found = self._by_id[listener, include_fenced] = {
                broker.id: Node(broker.id, endpoint.host, endpoint.port, broker.rack, broker.fenced)
                for broker in self._seen.values()
                if (include_fenced or not broker.fenced) and (endpoint := broker.endpoints.get(listener)) is not None
            }
        return found

    def described(self, listener: str, describe: Callable[[Node], T], *, include_fenced: bool = False) -> list[T]:
        """Returns the result of ``describe`` for each of these nodes. The list is cached, and must not be changed.

        :param describe: a module-level function, since it is the key of the cache
        """
        self._forget_old()
        found = self._described.get((listener, include_fenced, describe))
        if found is None:
            nodes = self.of(listener, include_fenced=include_fenced)
            found = self._described[listener, include_fenced, describe] = [describe(node) for node in nodes.values()]
        return found

    def _forget_old(self) -> None:
        brokers = self._brokers()
        if brokers is not self._seen:
            self._seen = brokers
            self._by_id.clear()
            self._described.clear()
