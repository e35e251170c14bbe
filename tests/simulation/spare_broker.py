"""A broker of a simulation that comes, takes over replicas, hands them over again, and is unregistered.

Knows nothing of faults. It comes back with another disk.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from barnabas.api_handlers.forwarding import TIMEOUT_MS
from barnabas.errors import KafkaError
from barnabas.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest
from tests.simulation.clients import PAUSE_S, REQUEST_MS, Client, Place, check

STAY_S = 3.0
MOST = 4
"""The number of partitions that it takes over at most."""
ENOUGH = 100
"""How often the metadata of a broker may lag."""


class SpareBroker(Client):
    """Adds a broker to the cluster and removes it, again and again."""

    def __init__(self, *args: Any, places: list[Place]) -> None:
        super().__init__(*args)
        self.places = places
        self.node = self.cluster.add_broker(self.random)
        self.late_until = 0.0  #: the time from which on no unanswered request can unregister it any more

    async def run(self) -> None:
        while not self.is_stopping:
            await self._start()
            await self._until(self._is_known)
            for place in self.random.sample(self.places, min(MOST, len(self.places))):
                await self._move(place, [self.node.id, *self.random.sample(self.brokers, 2)])
            await self.pause(STAY_S)
            await self._until(self._has_handed_over)
            if self.is_stopping:
                return
            await self._leave()
            await self._until(self._is_nothing_late)

    async def _start(self) -> None:
        """Starts it on an empty disk, however often that fails."""
        self.cluster.renew(self.node)
        while not self.node.is_running:
            await self.pause()
            if self.node.life is None:
                self.cluster.network.say(f"{self.node.id} joins the cluster")
                self.node.start()
            elif self.node.has_failed_to_start:
                self.node.kill(power_cut=False)

    async def _leave(self) -> None:
        """Stops it, and unregisters it: nothing names it any more. Until then topics may still be created on it."""
        self.cluster.network.say(f"{self.node.id} leaves the cluster")
        self.node.is_gone = True
        self.node.kill(power_cut=False)
        await self._until(self._has_handed_over)
        await self._until(self._is_unregistered)
        for _ in range(ENOUGH):
            if self.is_stopping or not await self._names_it():
                return
            await self.pause(PAUSE_S)
        raise AssertionError(f"{self.node.id} was unregistered, and is still known")

    # ------------------------------------------------------------ requests

    async def _until(self, done: Callable[[], Awaitable[bool]]) -> None:
        """Repeats something until it is done, or the client is stopped."""
        while not self.is_stopping:
            try:
                if await done():
                    return
            except KafkaError:
                await self.pause()
            await self.pause()

    async def _metadata(self) -> Any:
        request = MetadataRequest(topics=None, allow_auto_topic_creation=False)
        return await self.ask(self.random.choice(self.brokers), request)

    async def _is_known(self) -> bool:
        return any(each.node_id == self.node.id for each in (await self._metadata()).brokers)

    async def _names_it(self) -> bool:
        try:
            return await self._is_known()
        except KafkaError:
            return True

    async def _has_handed_over(self) -> bool:
        """Returns whether it has no replica. Moves those that it has."""
        mine = [
            (topic.name, part.partition_index)
            for topic in (await self._metadata()).topics
            for part in topic.partitions
            if self.node.id in part.replica_nodes
        ]
        for place in mine:
            await self._move(place, self.random.sample(self.brokers, len(self.brokers)))
        return not mine and not self._has_replicas()

    def _has_replicas(self) -> bool:
        """Returns whether a node knows of a replica on it. The one that was asked may lag: it would be killed as the
        only replica in sync.
        """
        servers = [node.server for node in self.cluster.nodes.values() if node.server is not None]
        topics = [topic for server in servers for topic in server.node.image.topics_by_id.values()]
        return any(self.node.id in part.replicas for topic in topics for part in topic.partitions.values())

    async def _is_unregistered(self) -> bool:
        """Unregisters it. A node that was cut off may pass an unanswered request on after the next registration. The
        request names no broker epoch, so the controller would unregister the new broker.
        """
        try:
            answer = await self.ask(self.random.choice(self.brokers), UnregisterBrokerRequest(broker_id=self.node.id))
        except KafkaError:
            self.late_until = self.cluster.loop.now + TIMEOUT_MS / 1000
            raise
        check(answer.error_code)
        return True

    async def _is_nothing_late(self) -> bool:
        return self.cluster.loop.now >= self.late_until

    async def _move(self, place: Place, replicas: list[int]) -> None:
        kind = AlterPartitionReassignmentsRequest.ReassignableTopic
        partition = kind.ReassignablePartition(partition_index=place[1], replicas=replicas)
        topic = kind(name=place[0], partitions=[partition])
        try:
            request = AlterPartitionReassignmentsRequest(timeout_ms=REQUEST_MS, topics=[topic])
            check((await self.ask(self.random.choice(self.brokers), request)).error_code)
        except KafkaError:
            await self.pause()
