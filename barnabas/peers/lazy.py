"""The nodes of a cluster as one node reaches them: itself in the process, the others over the network.

Knows nothing of connections. Their modules are imported with the first request to another node, which a single node
never sends.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from barnabas.config.validators import ConfigError
from barnabas.errors import NetworkException
from barnabas.peers.peers import ApiVersions, Done, Peers
from barnabas.wire.message import Request

if TYPE_CHECKING:
    from barnabas.peers.network import NetworkPeers


logger = logging.getLogger(__name__)


class LazyPeers:
    """Peers: ``local`` handles requests to the node itself, and ``connect`` creates the peers for all other nodes."""

    def __init__(self, node_id: int, local: Peers, connect: Callable[[], "NetworkPeers"]) -> None:
        self._node_id = node_id
        self._local = local
        self._connect = connect
        self._network: NetworkPeers | None = None

    def send(
        self, node_id: int, request: Request, done: Done, *, lane: str = "", timeout_ms: int | None = None
    ) -> None:
        if node_id == self._node_id:
            self._local.send(node_id, request, done, lane=lane, timeout_ms=timeout_ms)
            return
        try:
            self.prepare()
        except ConfigError as error:
            logger.error("Cannot reach other nodes: %s", error)
            done(None, NetworkException())
            return
        cast("NetworkPeers", self._network).send(node_id, request, done, lane=lane, timeout_ms=timeout_ms)

    def prepare(self) -> None:
        """Creates the peers for the other nodes before the first request.

        :raises ConfigError: the configs of the inter-broker listener are not valid on this node
        """
        if self._network is None:
            self._network = self._connect()

    def versions_of(self, node_id: int) -> ApiVersions | None:
        return None if self._network is None else self._network.versions_of(node_id)

    def close(self) -> None:
        """Closes the connections. Pending requests get NETWORK_EXCEPTION."""
        if self._network is not None:
            self._network.close()
