"""Which node of the cluster leads a partition, and which one coordinates a group or a transactional id.

Knows nothing of recordings. Metadata is requested at the first use, and again after :meth:`Routes.forget`.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from barnabas.diagnosis import Address
from barnabas.wire.message import Request
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.metadata import MetadataRequest

Ask = Callable[[Address, Request, int], Awaitable[Any]]
"""Sends a request in a version to a node, and returns the response. :raises OSError, KafkaError: there is none"""

METADATA_VERSION: Final = 1
"""Every broker since 0.10 has it. A request for all topics cannot create a topic."""
COORDINATOR_VERSION: Final = 1
GROUP, TRANSACTION = 0, 1  # key_type of FindCoordinator


class Routes:
    """The routes, as the cluster tells them.

    :param bootstrap: the node that Metadata is requested from
    """

    def __init__(self, bootstrap: Address, ask: Ask) -> None:
        self._bootstrap = bootstrap
        self._ask = ask
        self._leaders: dict[tuple[str, int], Address] = {}
        self._coordinators: dict[tuple[int, str], Address] = {}

    async def leader(self, topic: str, partition: int) -> Address | None:
        """Returns the leader of a partition; None if there is none."""
        if (topic, partition) not in self._leaders:
            await self._learn_leaders()
        return self._leaders.get((topic, partition))

    async def coordinator(self, kind: int, key: str) -> Address | None:
        """Returns the coordinator of a group or of a transactional id; None if there is none yet.

        :param kind: :data:`GROUP` or :data:`TRANSACTION`
        """
        found = self._coordinators.get((kind, key))
        if found is None:
            request = FindCoordinatorRequest(key=key, key_type=kind)
            response = await self._ask(self._bootstrap, request, COORDINATOR_VERSION)
            if response.error_code:
                return None
            found = self._coordinators[kind, key] = Address(response.host, response.port)
        return found

    async def _learn_leaders(self) -> None:
        response = await self._ask(self._bootstrap, MetadataRequest(topics=None), METADATA_VERSION)
        nodes = {broker.node_id: Address(broker.host, broker.port) for broker in response.brokers}
        self._leaders = {
            (topic.name, partition.partition_index): nodes[partition.leader_id]
            for topic in response.topics
            for partition in topic.partitions
            if partition.leader_id in nodes
        }

    def forget(self) -> None:
        """Forgets all routes, since one of them was wrong."""
        self._leaders.clear()
        self._coordinators.clear()
