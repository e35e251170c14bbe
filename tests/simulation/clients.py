"""Clients in a simulation, each a process that sends real requests over simulated connections.

Knows nothing of faults. The results of clients go to a history, which ``tests.history.checker`` checks.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from barnabas.config.endpoints import Endpoint
from barnabas.errors import (
    NONE,
    DuplicateSequenceNumber,
    KafkaError,
    LeaderNotAvailable,
    TopicAlreadyExists,
)
from barnabas.peers.network import NetworkPeers
from barnabas.peers.peers import error_of
from barnabas.records.batch import batches
from barnabas.records.builder import build_batch
from barnabas.records.record import records_of
from barnabas.wire.message import Request
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.messages.update_features import UpdateFeaturesRequest
from tests.history.records import INFO, OK, POLL, SEND, History, Operation, Poll, Send
from tests.simulation.cluster import SimulatedCluster, rack_of
from tests.simulation.loop import Life
from tests.simulation.network import FIRST_PORT, host_of
from tests.simulation.node import NodeClock

REQUEST_MS = 3000
PAUSE_S = 0.1
IN_FLIGHT = 5
NEAR = 0.5
"""The share of consumers that are in the rack of a broker."""
FORGETS = 0.1
"""How often a consumer asks the leader again which replica is near."""
GIVE_UP_S = 20
"""The time after which a producer gives up batches with an unknown outcome, in seconds."""
CONFIG = {
    "request.timeout.ms": REQUEST_MS,
    "connections.max.idle.ms": 600_000,
    "socket.connection.setup.timeout.ms": 2000,
}

UPGRADE, DOWNGRADE = 1, 2
"""How UpdateFeatures may change a level; the downgrade is a safe one."""
SET = 0
"""The operation that sets a config."""

Place = tuple[str, int]


class Client:
    """The common part of all clients: connections, and metadata.

    ``slowness`` multiplies its pauses, until it is to stop.
    """

    slowness = 1

    def __init__(self, name: str, cluster: SimulatedCluster, history: History, random: Random) -> None:
        self.name, self.history, self.random = name, history, random
        self.cluster, self.loop = cluster, cluster.loop
        self.life = Life(name)
        self.clock = self.cluster_clock = NodeClock(cluster.loop)
        self.cluster_scheduler = cluster.loop
        self.config: Any = CONFIG
        self.node_id = -1
        self.brokers = cluster.broker_ids
        self.peers = NetworkPeers(self, self._endpoint)
        self.leaders: dict[Place, int] = {}
        self.topic_ids: dict[str, bytes] = {}
        self.is_stopping = False
        self.task: asyncio.Task[None] | None = None

    @staticmethod
    def _endpoint(node_id: int) -> Endpoint:
        return Endpoint("PLAINTEXT", host_of(str(node_id)), FIRST_PORT, "PLAINTEXT")

    def start(self) -> None:
        self.task = self.loop.create_task(self.run(), context=self.life.context)

    async def run(self) -> None:
        """Runs the client until it is stopped."""
        raise NotImplementedError

    async def pause(self, seconds: float = PAUSE_S) -> None:
        await asyncio.sleep(self.random.uniform(0, 2 * seconds) * (1 if self.is_stopping else self.slowness))

    async def ask(self, node_id: int, request: Request, lane: str = "") -> Any:
        """Sends a request and returns the response. :raises KafkaError: there is none"""
        answered: asyncio.Future[Any] = self.loop.create_future()

        def done(response: Any, error: KafkaError | None) -> None:
            if not answered.done():
                if error is None:
                    answered.set_result(response)
                else:
                    answered.set_exception(error)

        self.peers.send(node_id, request, done, lane=lane)
        return await answered

    async def refresh(self, topic: str) -> None:
        """Refreshes the leaders of the topic's partitions. :raises KafkaError: they are not available"""
        self.leaders = {place: leader for place, leader in self.leaders.items() if place[0] != topic}
        request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=topic)])
        request.allow_auto_topic_creation = False
        response = await self.ask(self.random.choice(self.brokers), request)
        for found in response.topics:
            check(found.error_code)
            self.topic_ids[topic] = found.topic_id
            for each in found.partitions:
                if each.leader_id >= 0:
                    self.leaders[topic, each.partition_index] = each.leader_id

    async def leader(self, topic: str, partition: int) -> int:
        """Returns the partition's leader. :raises KafkaError: it is not known"""
        if (topic, partition) not in self.leaders:
            await self.refresh(topic)
        if (topic, partition) not in self.leaders:
            raise LeaderNotAvailable
        return self.leaders[topic, partition]


def somewhere(cluster: SimulatedCluster, random: Random) -> int | None:
    """Returns a broker for a consumer to be near to; None for every second consumer."""
    return random.choice(cluster.broker_ids) if random.random() < NEAR else None


def check(code: int) -> None:
    """Raises the error of that code, if it is one."""
    if code != NONE:
        raise error_of(code) or KafkaError()


def ask_versions() -> ApiVersionsRequest:
    """Returns a request whose response has the finalized features of the cluster."""
    return ApiVersionsRequest(client_software_name="simulation", client_software_version="1")


class Admin(Client):
    """Prepares a cluster for the other clients. It repeats each request until it has succeeded."""

    async def create(self, topics: Mapping[str, int], *, replicas: int, configs: Mapping[str, str]) -> None:
        """Creates topics with these partition counts."""
        new = CreateTopicsRequest.CreatableTopic
        config = new.CreatableTopicConfig
        for name, partitions in topics.items():
            wanted = new(name=name, num_partitions=partitions, replication_factor=replicas, assignments=[], configs=[])
            wanted.configs = [config(name=key, value=value) for key, value in configs.items()]
            request = CreateTopicsRequest(topics=[wanted], timeout_ms=REQUEST_MS, validate_only=False)
            await self._repeat(request, lambda answer: answer.topics[0].error_code)

    async def configure(self, resource_type: int, name: str, configs: Mapping[str, str]) -> None:
        """Sets configs of a resource."""
        kind = IncrementalAlterConfigsRequest.AlterConfigsResource
        wanted = [kind.AlterableConfig(name=key, config_operation=SET, value=value) for key, value in configs.items()]
        resource = kind(resource_type=resource_type, resource_name=name, configs=wanted)
        request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
        await self._repeat(request, lambda answer: answer.responses[0].error_code)

    async def lower(self, feature: str, level: int = 0) -> None:
        """Lowers a feature to a level."""
        await self._update(feature, level, DOWNGRADE)

    async def raise_to(self, feature: str, level: int) -> None:
        """Raises a feature to a level."""
        await self._update(feature, level, UPGRADE)

    async def _update(self, feature: str, level: int, upgrade_type: int) -> None:
        update = UpdateFeaturesRequest.FeatureUpdateKey(
            feature=feature, max_version_level=level, upgrade_type=upgrade_type
        )
        request = UpdateFeaturesRequest(timeout_ms=REQUEST_MS, feature_updates=[update])
        await self._repeat(request, lambda answer: answer.error_code)

    async def _repeat(self, request: Request, error_of: Callable[[Any], int]) -> None:
        while True:
            try:
                code = error_of(await self.ask(self.random.choice(self.brokers), request))
                if code in (NONE, TopicAlreadyExists.code):
                    return
                check(code)
            except KafkaError:
                await self.pause()


@dataclass(slots=True)
class Pending:
    """A batch that is not acknowledged yet."""

    sequence: int
    operation: Operation
    data: bytes


class Producer(Client):
    """An idempotent producer with up to five batches in flight for each partition, which are repeated in order.

    Batches with an unknown outcome are given up with the following ones, and a new producer id is used: so no record is
    sent with two ids, and a duplicate in a log is a fault of the brokers. Each partition gets a batch, if only after
    the faults have ended.
    """

    def __init__(self, *args: Any, places: list[Place], values: Callable[[], int], rate: float = 0.25) -> None:
        super().__init__(*args)
        self.places, self.values, self.rate = places, values, rate
        self._begun: set[Place] = set()  # the partitions for which there was a batch

    async def run(self) -> None:
        await asyncio.gather(*(self._produce(place) for place in self.places))

    def _is_done(self, place: Place) -> bool:
        """Returns whether there are no further batches for the partition."""
        return self.is_stopping and place in self._begun

    async def _produce(self, place: Place) -> None:
        while not self._is_done(place):
            try:
                request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
                answer = await self.ask(self.random.choice(self.brokers), request)
                check(answer.error_code)
                await self._produce_as(place, answer.producer_id, answer.producer_epoch)
            except KafkaError:
                await self.pause()

    async def _produce_as(self, place: Place, producer_id: int, epoch: int) -> None:
        """Produces with one producer id. :raises KafkaError: the outcome of batches is unknown"""
        pending: deque[Pending] = deque()
        sequence = 0
        give_up = self.loop.now + GIVE_UP_S
        while pending or not self._is_done(place):
            while len(pending) < IN_FLIGHT and not self._is_done(place) and (not pending or self.random.random() < 0.5):
                self._begun.add(place)
                pending.append(self._batch(place, producer_id, epoch, sequence))
                sequence += len(pending[-1].operation.sends)
            before = len(pending)
            try:
                await self._send(place, pending)
            except KafkaError as error:
                self.leaders.pop(place, None)
                if not error.retriable or self.loop.now > give_up:
                    for each in pending:
                        self._ended(each)
                    raise
            if len(pending) < before:
                give_up = self.loop.now + GIVE_UP_S
            await self.pause(self.rate)

    def _batch(self, place: Place, producer_id: int, epoch: int, sequence: int) -> Pending:
        sends = [Send(f"{place[0]}-{place[1]}", self.values()) for _ in range(self.random.choice((1, 1, 2, 3)))]
        producer = f"{self.name}/{producer_id}"
        operation = Operation(self.name, SEND, INFO, self.loop.now, sends=sends, producer=producer)
        records = [(None, str(send.value).encode(), self.clock.time_ms()) for send in sends]
        data = build_batch(records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        return Pending(sequence, operation, bytes(data))

    def _ended(self, pending: Pending) -> None:
        pending.operation.end = self.loop.now
        self.history.add(pending.operation)

    async def _send(self, place: Place, pending: deque[Pending]) -> None:
        """Sends all batches in order, and removes the acknowledged ones.

        :raises KafkaError: the first remaining batch was not acknowledged
        """
        leader = await self.leader(*place)
        requests = []
        for each in pending:
            part = ProduceRequest.TopicProduceData.PartitionProduceData(index=place[1], records=memoryview(each.data))
            topic = ProduceRequest.TopicProduceData(topic_id=self.topic_ids[place[0]], partition_data=[part])
            request = ProduceRequest(acks=-1, timeout_ms=REQUEST_MS, topic_data=[topic])
            requests.append(self.ask(leader, request, f"{place[0]}-{place[1]}"))
        for answer in await asyncio.gather(*requests, return_exceptions=True):
            if isinstance(answer, BaseException):
                raise answer
            response = answer.responses[0].partition_responses[0]
            if response.error_code == DuplicateSequenceNumber.code:
                response.error_code, response.base_offset = NONE, -1
            check(response.error_code)
            done = pending.popleft()
            for index, send in enumerate(done.operation.sends):
                send.offset = response.base_offset + index if response.base_offset >= 0 else -1
            done.operation.outcome = OK
            self._ended(done)


class Consumer(Client):
    """Reads partitions from their beginning, each record once.

    :param near: the broker in whose rack it is; it reads from the replica there, if the leader names it (KIP-392)
    """

    def __init__(
        self, *args: Any, places: list[Place], committed: bool = True, rate: float = 0.2, near: int | None = None
    ) -> None:
        super().__init__(*args)
        self.rate = rate
        self.rack = "" if near is None else rack_of(near)
        self.replicas: dict[Place, int] = {}  #: what it reads from instead of leaders
        self.positions = dict.fromkeys(places, 0)
        self.moved = ""  #: BEFORE, if a position was changed other than by reading since the last records
        self.committed = committed
        self.ends: dict[Place, int] = {}  #: the high watermarks of the last responses
        self.found: list[tuple[str, int, int]] = []  #: the records of the last response: key, offset, value

    async def run(self) -> None:
        while not self.is_stopping:
            await self.read(self.random.choice(list(self.positions)))
            await self.pause(self.rate)

    async def read(self, place: Place) -> bool:
        """Reads one partition further. Returns whether there was a response."""
        start = self.loop.now
        try:
            source = self.replicas.get(place)
            if source is None or self.random.random() < FORGETS:
                source = await self.leader(*place)
            partitions = [
                FetchRequest.FetchTopic.FetchPartition(
                    partition=place[1], fetch_offset=self.positions[place], partition_max_bytes=1 << 16
                )
            ]
            topics = [FetchRequest.FetchTopic(topic_id=self.topic_ids[place[0]], partitions=partitions)]
            request = FetchRequest(max_wait_ms=500, min_bytes=1, topics=topics, forgotten_topics_data=[])
            request.rack_id = self.rack
            request.isolation_level = int(self.committed)
            answer = await self.ask(source, request)
            check(answer.error_code)
            part = answer.responses[0].partitions[0]
            check(part.error_code)
        except KafkaError as error:
            if self.replicas.pop(place, None) is None:
                self.leaders.pop(place, None)
            await self.read_failed(place, error)
            return False
        if part.preferred_read_replica >= 0:
            self.replicas[place] = part.preferred_read_replica
        self.take(place, part, start)
        return True

    async def read_failed(self, place: Place, error: KafkaError) -> None:
        """Waits before the next attempt."""
        await self.pause()

    def take(self, place: Place, part: Any, start: float) -> None:
        """Takes the records of a response from the position on. :param start: when it was asked for"""
        self.ends[place] = part.high_watermark
        key, found = f"{place[0]}-{place[1]}", []
        aborted = sorted((each.first_offset, each.producer_id) for each in part.aborted_transactions or ())
        open_aborted: set[int] = set()
        for batch in batches(memoryview(part.records or b"")):
            while aborted and aborted[0][0] <= batch.last_offset:
                open_aborted.add(aborted.pop(0)[1])
            if batch.is_control:
                open_aborted.discard(batch.producer_id)
            elif not (self.committed and batch.is_transactional and batch.producer_id in open_aborted):
                for record in records_of(batch):
                    if record.offset >= self.positions[place]:
                        found.append((key, record.offset, int(record.value or b"-1")))
            self.positions[place] = max(self.positions[place], batch.last_offset + 1)
        self.found = found
        if found:
            poll = Poll(self.name, self.committed, found, self.loop.now, self.moved)
            self.history.add(Operation(self.name, POLL, OK, start, self.loop.now, polls=[poll]))
            self.moved = ""
