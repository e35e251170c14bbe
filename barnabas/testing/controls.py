"""Controls of a running server for tests: faults, time, a reset, saved states, topics and records.

Knows nothing of threads and of HTTP. Everything here runs in the server's event loop; :class:`~barnabas.testing.Broker`
calls it from the thread of a test, the admin API from a request.
"""

import asyncio
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self
from weakref import WeakKeyDictionary

from barnabas.broker import Broker
from barnabas.clock import SystemClock
from barnabas.cluster.controller.commands.topics import CreateTopics, DeleteTopics, NewTopic
from barnabas.cluster.image.image import MetadataImage
from barnabas.errors import KafkaError, NotLeaderOrFollower, UnknownTopicOrPartition
from barnabas.log.partition_log import PartitionLog
from barnabas.peers.peers import error_of
from barnabas.records.batch import RecordBatch, batches
from barnabas.records.builder import build_batch
from barnabas.records.partitioner import partition_for
from barnabas.records.record import records_of
from barnabas.server.server import Server
from barnabas.testing.resetting import AtStart, reset
from barnabas.testing.turning import TurnedClock
from barnabas.wire.message import Request
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest

if TYPE_CHECKING:
    from barnabas.testing.faulting import Faults
    from barnabas.testing.json_records import NewRecord
    from barnabas.testing.saving import State


RECORDS_A_BATCH: Final = 500

CONTROLLER_TIMEOUT_MS: Final = 30_000
"""How long the active controller of a cluster may take."""

LOOK_S: Final = 0.01
"""The polling interval of waits for this node's metadata."""


class Record(NamedTuple):
    """A record as a consumer returns it."""

    topic: str
    partition: int
    offset: int
    timestamp: int  #: milliseconds since 1970
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class Controls:
    """The controls of one server."""

    _by_server: "WeakKeyDictionary[Server, Self]" = WeakKeyDictionary()

    def __init__(self, server: Server) -> None:
        self._server = server
        self._at_start = AtStart({})
        self._has_begun = False
        self._loop: asyncio.AbstractEventLoop
        self._faults: Faults | None = None
        self._state_numbers = itertools.count(1)
        self.states: dict[str, State] = {}  #: the states that were saved by HTTP

    @classmethod
    def of(cls, server: Server) -> Self:
        """Returns the controls of a server: always the same object."""
        found = cls._by_server.get(server)
        if found is None:
            found = cls._by_server[server] = cls(server)
        return found

    def begin(self, loop: asyncio.AbstractEventLoop, image: MetadataImage) -> None:
        """Records the server's event loop, and its state after the start, which :meth:`reset` restores.

        Has no effect when called again.
        """
        if self._has_begun:
            return
        self._has_begun, self._loop = True, loop
        self._at_start = AtStart(image.features, tuple(image.acls.values()), {user for user, _ in image.credentials})

    @property
    def broker(self) -> Broker:
        return self._server.broker

    @property
    def is_alone(self) -> bool:
        """Whether no other node belongs to the cluster. Only then the state of this node is that of the cluster."""
        return self.broker.quorum.is_sole_voter and len(self.broker.image.brokers) == 1

    @property
    def bootstrap_servers(self) -> str:
        """Host and port of the first listener for clients."""
        return str(self._server.listeners[0].endpoint).partition("://")[2]

    # ------------------------------------------------------------ faults and requests

    @property
    def faults(self) -> "Faults":
        """The rules; they may be used in any thread."""
        if self._faults is None:
            from barnabas.faults.rules import Rules
            from barnabas.testing.faulting import Faults

            # Rules use the broker's clock, which a test may advance. Recorded requests have the machine's time, as
            # clients do.
            node_id = self.broker.node_id
            rules = partial(Rules, self._server.clock, Random(0), node=node_id)
            self._faults = Faults(
                rules,
                self._server.listeners,
                self._topic_name,
                self._call,
                SystemClock(),
                self._loop,
                lambda connection: node_id,
            )
        return self._faults

    def _topic_name(self, topic_id: bytes) -> str | None:
        topic = self.broker.image.topics_by_id.get(topic_id)
        return None if topic is None else topic.name

    @property
    def has_faults(self) -> bool:
        """Whether :attr:`faults` has been used."""
        return self._faults is not None

    def _call(self, function: Callable[[], Any]) -> Any:
        try:
            is_here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_here = False
        if is_here:
            return function()

        async def call() -> Any:
            return function()

        return asyncio.run_coroutine_threadsafe(call(), self._loop).result()

    # ------------------------------------------------------------ time

    @property
    def clock(self) -> TurnedClock:
        """The clock. :raises RuntimeError: this server uses the machine's clock, which cannot be advanced"""
        clock = self._server.clock
        if not isinstance(clock, TurnedClock):
            raise RuntimeError(
                "this broker uses the machine's clock: only the clock of a broker for tests can be advanced"
            )
        return clock

    async def advance(self, seconds: float) -> None:
        """Advances the clock. Timers that are due have run when this returns."""
        await self.clock.advance(seconds, self.settled)

    async def settled(self) -> None:
        """Waits for the background threads, and for the callbacks of their work."""
        for _ in range(3):
            done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._server.background.run(lambda: None, partial(_finish, done))
            await done

    # ------------------------------------------------------------ all of it

    async def reset(self) -> None:
        """Brings the server to the state in which it started, and lifts all faults. Connections stay."""
        if isinstance(self._server.clock, TurnedClock):
            self._server.clock.set_back()
        if self._faults is not None:
            self._faults.clear()
            self._faults.stop_recording()
        emptied: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        reset(self.broker, self._at_start, partial(emptied.set_result, None))
        await emptied

    def save(self) -> "State":
        """Returns the state of the server."""
        from barnabas.testing.saving import save

        return save(self.broker)

    def keep(self, state: "State") -> str:
        """Keeps a state under a new name among :attr:`states`. Returns the name."""
        name = str(next(self._state_numbers))
        self.states[name] = state
        return name

    async def restore(self, state: "State") -> None:
        """Replaces the state of the server by a saved one. Faults, connections and the clock stay."""
        from barnabas.testing.saving import restore

        await restore(self.broker, state, self._at_start)

    # ------------------------------------------------------------ topics and records

    async def submit(self, command: Any) -> Any:
        """Returns the result of a controller command once it is committed. :raises KafkaError: it is refused"""
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def done(result: Any, error: KafkaError | None) -> None:
            if error is None:
                answered.set_result(result)
            else:
                answered.set_exception(error)

        self.broker.controller.submit(command, done)
        return await answered

    async def create_topic(self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        """Creates a topic, which can be used when this returns.

        :raises KafkaError: an error of CreateTopics, such as TopicAlreadyExists
        """
        given = list((configs or {}).items())
        if self.broker.quorum.is_leader:
            (created,) = await self.submit(CreateTopics([NewTopic(name, partitions, -1, configs=given)]))
            if created.error is not None:
                raise created.error
        else:
            new = CreateTopicsRequest.CreatableTopic
            topic = new(
                name=name,
                num_partitions=partitions,
                replication_factor=-1,
                assignments=[],
                configs=[new.CreatableTopicConfig(name=key, value=value) for key, value in given],
            )
            request = CreateTopicsRequest(topics=[topic], timeout_ms=CONTROLLER_TIMEOUT_MS)
            await self._ask_controller(request, lambda response: response.topics[0])
        await self._until(lambda: self.broker.hosting.is_ready(name))

    async def delete_topic(self, name: str) -> None:
        """Deletes a topic. :raises UnknownTopicOrPartition: there is none"""
        topic = self.broker.image.topics_by_name.get(name)
        if topic is None:
            raise UnknownTopicOrPartition(f"there is no topic {name}")
        if self.broker.quorum.is_leader:
            await self.submit(DeleteTopics([(None, topic.id)]))
        else:
            state = DeleteTopicsRequest.DeleteTopicState(topic_id=topic.id)
            await self._ask_controller(
                DeleteTopicsRequest(topics=[state], timeout_ms=CONTROLLER_TIMEOUT_MS),
                lambda response: response.responses[0],
            )
        await self._until(lambda: topic.id not in self.broker.image.topics_by_id)

    async def _ask_controller(self, request: Request, result: Callable[[Any], Any]) -> None:
        """Has another node, the active controller, do it. :raises KafkaError: it refuses, or cannot be reached

        :param result: returns the part of the response with the error
        """
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def done(response: Any, error: KafkaError | None) -> None:
            if error is None:
                answered.set_result(response)
            else:
                answered.set_exception(error)

        self.broker.controller_channel.send(request, done, timeout_ms=CONTROLLER_TIMEOUT_MS)
        found = result(await answered)
        error = error_of(found.error_code, found.error_message)
        if error is not None:
            raise error

    async def _until(self, condition: Callable[[], bool]) -> None:
        """Waits until this node has applied a change of the metadata."""
        async with asyncio.timeout(CONTROLLER_TIMEOUT_MS / 1000):
            while not condition():
                await asyncio.sleep(LOOK_S)

    def topics(self) -> list[str]:
        """Returns the names of the topics, without internal ones."""
        return sorted(name for name in self.broker.image.topics_by_name if not name.startswith("__"))

    def records(self, topic: str, *, committed: bool = False) -> list[Record]:
        """Returns all records of a topic by partition and offset; none if it does not exist."""
        return [
            Record(topic, index, record.offset, record.timestamp, record.key, record.value, record.headers)
            for (name, index), partition in sorted(self.broker.partitions.items())
            if name == topic
            for batch in _batches(partition.log, committed)
            for record in records_of(batch)
            if record.offset >= partition.log.log_start_offset
        ]

    async def append(self, records: Iterable["NewRecord"]) -> int:
        """Appends records in their order, one batch for each partition; topics that are missing are created.

        Returns how many there are.

        :raises KafkaError: a topic cannot be created, a partition does not exist, or is led by another node
        """
        by_partition: dict[tuple[str, int], list[Any]] = defaultdict(list)
        count, now_ms = 0, self.broker.clock.time_ms()
        for record in records:
            found = self.broker.image.topics_by_name.get(record.topic)
            if found is None:
                await self.create_topic(record.topic, -1)
                found = self.broker.image.topics_by_name[record.topic]
            index = record.partition
            if index is None:
                index = partition_for(record.key, len(found.partitions), count)
            timestamp = now_ms if record.timestamp is None else record.timestamp
            of_image = found.partitions.get(index)
            if of_image is not None and of_image.leader != self.broker.node_id:
                raise NotLeaderOrFollower(f"partition {index} of {record.topic} is led by node {of_image.leader}")
            by_partition[record.topic, index].append((record.key, record.value, timestamp, record.headers))
            count += 1
        for key, found_records in by_partition.items():
            partition = self.broker.partition(*key)
            for first in range(0, len(found_records), RECORDS_A_BATCH):
                data = build_batch(found_records[first : first + RECORDS_A_BATCH])
                partition.append(next(batches(data)), now_ms)
        return count


def _finish(done: "asyncio.Future[None]", error: BaseException | None) -> None:
    done.set_result(None)


def _batches(log: PartitionLog, committed: bool) -> Iterator[RecordBatch]:
    """Yields the batches without control batches, or those that a read_committed consumer gets."""
    offset, end = log.log_start_offset, log.last_stable_offset if committed else log.high_watermark
    while offset < end:
        data = log.read(offset, 1 << 20, up_to=end, minimum_one=True)
        aborted = log.aborted_transactions(offset, data) if committed else []
        for batch in batches(memoryview(data)):
            offset = batch.next_offset
            if batch.is_control or (
                batch.is_transactional
                and any(
                    each.producer_id == batch.producer_id and each.first_offset <= batch.base_offset <= each.last_offset
                    for each in aborted
                )
            ):
                continue
            yield batch
