"""The client of one cluster in one process: keeps connections and metadata, and retries requests until they succeed.

kafka-python connects, authenticates and encodes. Its event loop runs on the calling thread, under a lock. Knows nothing
of records, nor of Spark.
"""

import atexit
import functools
import os
import re
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar
from uuid import UUID

from kafka import errors as kafka_errors
from kafka.net.selector import NetworkSelector
from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest, MetadataRequest

from barnabas.diagnosis import Address, AdvertisedBroker, diagnose
from barnabas.errors import (
    InvalidTopicException,
    KafkaError,
    LeaderNotAvailable,
    NetworkException,
    UnknownTopicOrPartition,
)
from barnabas.pipelines.client import EARLIEST, LATEST, NEW_TOPIC_PATIENCE, TopicPartition, positions
from barnabas.pipelines.client.connections import REFUSALS, Connections
from barnabas.pipelines.client.positions import ListedOffset
from barnabas.pipelines.client.settings import ClientSettings

__all__ = ["EARLIEST", "LATEST", "Cluster", "ListedOffset", "Topic", "TopicPartition", "Unauthenticated"]

LARGEST_RESPONSE = 1 << 30
IN_FLIGHT = 64
"""The limit of requests in flight to a broker. A task sends few; the limit only bounds the effect of a bug."""

Answer = TypeVar("Answer")
Given = ParamSpec("Given")
Request = Any
"""A request of `kafka.protocol`, which has no type annotations."""


class Unauthenticated(Exception):
    """The brokers refuse this client's credentials or certificate."""


class Topic(NamedTuple):
    """A topic's metadata."""

    name: str
    id: UUID | None  #: None before Kafka 2.8
    leaders: dict[int, int]  #: by partition; -1 if there is none
    internal: bool


class Cluster:
    """Requests to one cluster, which survive restarts of brokers and changes of leaders. Created by `of`, kept until
    exit.

    All methods raise the errors of `barnabas.errors` from responses, with the topic and partition in the message;
    NetworkException if no broker responds within ``default.api.timeout.ms``; and Unauthenticated.
    """

    _kept: dict[tuple[int, ClientSettings], "Cluster"] = {}
    _inherited: list["Cluster"] = []
    _keeping = threading.Lock()

    @classmethod
    def of(cls, settings: ClientSettings) -> "Cluster":
        """Returns this process's client with these settings."""
        with cls._keeping:
            found = cls._kept.get((os.getpid(), settings))
            if found is None or found.closed:
                found = cls._kept[os.getpid(), settings] = cls(settings)
            return found

    def __init__(self, settings: ClientSettings) -> None:
        self.settings = settings
        self.closed = False
        self._net = NetworkSelector(client_id=settings["client.id"], slow_task_threshold_secs=0)
        self._connections = Connections(
            self._net,
            receive_message_max_bytes=LARGEST_RESPONSE,
            max_in_flight_requests_per_connection=IN_FLIGHT,
            **settings.for_kafka_python(),
        )
        self._connections.cluster.config["allow_auto_create_topics"] = False
        self._lock = threading.RLock()
        self._topics: dict[str, Topic] = {}
        self._described_at: dict[str, float] = {}  # by topic, in seconds of time.monotonic()
        self._coordinators: dict[tuple[int, str], Any] = {}

    # Metadata

    def partitions(self, topic: str) -> list[int]:
        """Returns the partitions of a topic, sorted, from cached metadata.

        :raises UnknownTopicOrPartition: there is no such topic.
        """
        return sorted(self.run(self.topic, topic).leaders)

    def topic_id(self, topic: str) -> UUID | None:
        """Returns the id of a topic, or None if the brokers are older than Kafka 2.8.

        :raises UnknownTopicOrPartition: there is no such topic.
        """
        return self.run(self.topic, topic).id

    def leader(self, topic_partition: TopicPartition) -> int:
        """Returns the node that leads a partition. Waits for one if there is none."""
        return self.run(self.leader_of, topic_partition)

    def topics(self, pattern: str | None = None) -> list[str]:
        """Returns the names of the topics that match a pattern anywhere, without internal ones, from new metadata."""
        return sorted(self.matching(pattern or ""))

    def matching(self, pattern: str) -> dict[str, Topic]:
        """Does the same as `topics`; returns the topics' metadata."""
        every = self.run(self.retrying, lambda: self._describe(None))
        found = re.compile(pattern).search
        return {name: topic for name, topic in every.items() if not topic.internal and found(name)}

    def describe(self, topics: Sequence[str]) -> dict[str, Topic]:
        """Returns new metadata of topics, without those that do not exist."""
        return self.run(self.retrying, lambda: self._describe(topics))

    def forget(self) -> None:
        """Clears the cached metadata of topics."""
        self._topics.clear()

    async def leader_of(self, topic_partition: TopicPartition) -> int:
        """Does the same as `leader`, for a coroutine."""

        patience = time.monotonic() + NEW_TOPIC_PATIENCE

        async def attempt() -> int:
            topic = await self.topic(topic_partition.topic)
            while topic_partition.partition not in topic.leaders:  # it may be newer than the metadata
                if time.monotonic() > patience:
                    raise UnknownTopicOrPartition(
                        f"topic {topic.name} has no partition {topic_partition.partition}, only {_span(topic.leaders)}"
                    )
                await self.pause()
                self.forget()
                topic = await self.topic(topic_partition.topic)
            leader = topic.leaders[topic_partition.partition]
            if leader < 0:
                raise LeaderNotAvailable(f"{topic.name}-{topic_partition.partition} has no leader")
            return leader

        return await self.retrying(attempt)

    async def by_leader(self, topic_partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        """Returns these partitions by their leader."""
        result: dict[int, list[TopicPartition]] = {}
        for topic_partition in topic_partitions:
            result.setdefault(await self.leader_of(topic_partition), []).append(topic_partition)
        return result

    async def topic(self, topic: str) -> Topic:
        """Returns cached metadata of a topic, unless it is too old. Waits some time for topics that are new.

        :raises UnknownTopicOrPartition: there is no such topic.
        """
        if time.monotonic() - self._described_at.get(topic, 0.0) > self.settings.seconds("metadata.max.age.ms"):
            self._topics.pop(topic, None)
        patience = time.monotonic() + NEW_TOPIC_PATIENCE
        while topic not in self._topics:
            await self.retrying(lambda: self._describe([topic]))
            if topic not in self._topics:
                if time.monotonic() > patience:
                    raise UnknownTopicOrPartition(
                        f"topic {topic} does not exist at {self.settings['bootstrap.servers']}; check its name"
                    )
                await self.pause()
        return self._topics[topic]

    async def _describe(self, topics: Sequence[str] | None) -> dict[str, Topic]:
        request = MetadataRequest(
            topics=None if topics is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics],
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        )
        response = await self.send_to_any(request)
        self._connections.cluster.update_metadata(response)
        described = {}
        for answered in response.topics:
            self._topics.pop(answered.name, None)
            error = KafkaError.by_code.get(answered.error_code)
            if answered.error_code == UnknownTopicOrPartition.code:
                continue
            if answered.error_code == InvalidTopicException.code:
                raise InvalidTopicException(f"{answered.name!r} is not a valid topic name")
            if error is not None and answered.error_code:
                raise error(f"topic {answered.name}: {error()}")
            leaders = {found.partition_index: found.leader_id for found in answered.partitions}
            topic_id = answered.topic_id if answered.topic_id and answered.topic_id.int else None
            described[answered.name] = Topic(
                answered.name, topic_id, dict(sorted(leaders.items())), answered.is_internal
            )
        self._topics.update(described)
        self._described_at.update(dict.fromkeys(described, time.monotonic()))
        return described

    # Offsets

    def list_offsets(
        self, asks: Mapping[TopicPartition, int], *, committed: bool = False
    ) -> dict[TopicPartition, ListedOffset]:
        """Returns the offset of EARLIEST, LATEST or a time in ms (of the first record since then) for each partition.

        :param committed: LATEST is the last stable offset.
        """
        return self.run(positions.list_offsets, self, asks, committed)

    def commit(
        self,
        group: str,
        offsets: Mapping[TopicPartition, int],
        metadata: str = "",
        *,
        patience: float | None = None,
    ) -> None:
        """Commits offsets for a group without members.

        :param patience: seconds to retry; ``default.api.timeout.ms`` if None.
        """
        self.run(positions.commit, self, group, offsets, metadata, patience)

    def committed(
        self, group: str, topic_partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, Any]:
        """Returns a group's committed offsets as kafka-python's OffsetAndMetadata; those of all partitions if none are
        given.
        """
        return self.run(positions.committed, self, group, topic_partitions)

    # Requests

    async def send(self, node_id: Any, request: Request, timeout_ms: float | None = None) -> Any:
        """Sends a request to a node and returns the response.

        :raises KafkaError: kafka-python's, if the node cannot be reached.
        """
        delay = self._connections.connection_delay(node_id)
        if delay:
            await self._net.sleep(delay)
        return await self._connections.send(request, node_id, request_timeout_ms=timeout_ms)

    def start_send(self, node_id: Any, request: Request) -> Any:
        """Sends a request as `send` does; returns an awaitable of the response. For a coroutine."""
        return self._connections.call_soon(self.send, node_id, request)

    async def send_to_any(self, request: Request) -> Any:
        """Sends a request to any node and returns the response. If no node can be reached, bootstraps again from the
        configured servers (KIP-899).
        """
        if not self._connections.bootstrapped or self._connections.least_loaded_node() is None:
            await self._bootstrap()
        try:
            return await self._connections.send(request)
        except kafka_errors.RetriableError:
            await self._bootstrap()
            raise

    async def send_to_coordinator(
        self, key: str, request: Request, kind: CoordinatorType = CoordinatorType.GROUP
    ) -> Any:
        """Sends a request to the coordinator of a group or transactional id and returns the response. After an error
        NOT_COORDINATOR the caller calls `forget_coordinator`.
        """
        return await self.send(await self.coordinator(key, kind), request)

    async def coordinator(self, key: str, kind: CoordinatorType = CoordinatorType.GROUP) -> Any:
        """Returns the coordinator of a group or transactional id."""
        known = self._coordinators.get((kind.value, key))
        if known is None:
            request = FindCoordinatorRequest(key=key, key_type=kind.value, coordinator_keys=[key])
            response = await self.send_to_any(request)
            found = response.coordinators[0] if response.API_VERSION >= 4 else response
            if found.error_code:
                raise KafkaError.by_code[found.error_code](f"{kind.name.lower()} {key}: {found.error_message}")
            # It has its own connection, so that requests to it do not wait behind a fetch
            known = self._connections.cluster.add_coordinator(found, kind, key)
            self._coordinators[kind.value, key] = known
        return known

    def forget_coordinator(self, key: str, kind: CoordinatorType = CoordinatorType.GROUP) -> None:
        """Clears a cached coordinator: it has moved, or does not respond."""
        self._coordinators.pop((kind.value, key), None)

    async def retrying(self, attempt: Callable[[], Awaitable[Answer]], *, until: float | None = None) -> Answer:
        """Calls `attempt` until it succeeds, with pauses, and clears cached metadata in between.

        :param until: a time of `time.monotonic()` after which the last error is raised; by default
            ``default.api.timeout.ms`` from now.
        """
        deadline = until if until is not None else time.monotonic() + self.settings.seconds("default.api.timeout.ms")
        while True:
            try:
                return await attempt()
            except REFUSALS:
                raise
            except (kafka_errors.RetriableError, kafka_errors.UnknownBrokerIdError) as problem:
                if time.monotonic() >= deadline:
                    raise self._unreachable(problem) from problem
            except KafkaError as problem:
                if not problem.retriable or isinstance(problem, UnknownTopicOrPartition):
                    raise
                if time.monotonic() >= deadline:
                    raise
            self.forget()
            await self.pause()

    async def pause(self, seconds: float | None = None) -> None:
        """Sleeps, by default for ``retry.backoff.ms``."""
        await self._net.sleep(self.settings.seconds("retry.backoff.ms") if seconds is None else seconds)

    async def _bootstrap(self) -> None:
        await self._connections.bootstrap_async(int(self.settings["default.api.timeout.ms"]))

    def _unreachable(self, problem: Exception) -> NetworkException:
        """Returns the error, with the diagnosis of the connection, if there is one."""
        servers = [Address.parse(each) for each in self.settings["bootstrap.servers"].split(",") if each.strip()]
        cause = diagnose(servers, self._advertised, tls=self.settings["security.protocol"].endswith("SSL"))
        return NetworkException(
            f"no broker of {self.settings['bootstrap.servers']} answered within "
            f"{self.settings.seconds('default.api.timeout.ms'):g} s (default.api.timeout.ms): {problem}"
            + (f". {cause}" if cause else "")
        )

    def _advertised(self) -> list[AdvertisedBroker]:
        """Returns the brokers of the last metadata."""
        return [
            AdvertisedBroker(broker.node_id, Address(broker.host, broker.port))
            for broker in self._connections.cluster.brokers()
        ]

    # The event loop

    def run(self, function: Callable[Given, Awaitable[Answer]], *args: Given.args, **kwargs: Given.kwargs) -> Answer:
        """Runs the event loop until this coroutine function has returned; returns its result."""
        result: Answer = self.finish(self._net.call_soon_with_future(functools.partial(function, *args, **kwargs)))
        return result

    def start(self, function: Callable[..., Any], *args: Any) -> Any:
        """Starts a coroutine and sends its first requests; it continues whenever the loop runs. Returns what `finish`
        takes.
        """
        with self._lock:
            begun = self._net.call_soon_with_future(function, *args)
            while self._net._ready:  # kafka-python writes a request some steps after it is created
                self._net.poll(timeout_ms=0)
        return begun

    def finish(self, begun: Any) -> Any:
        """Runs the event loop until the coroutine of `start` is done; returns its result, or raises its error."""
        try:
            with self._lock:
                if not begun.is_done:
                    self._net.poll(future=begun)
        except BaseException:
            self.close()  # a request may have been sent in part
            raise
        if begun.exception is None:
            return begun.value
        if isinstance(begun.exception, REFUSALS):
            self.close()  # kafka-python would not retry, but a password may be corrected
            protocol = self.settings["security.protocol"]
            if "SASL" in protocol:
                protocol += f" {self.settings['sasl.mechanism']}"
            raise Unauthenticated(
                f"{self.settings['bootstrap.servers']} refuses this client ({protocol}): {begun.exception}"
            ) from begun.exception
        raise begun.exception

    def admin(self) -> Any:
        """Returns a `kafka.KafkaAdminClient` with the same settings, which the caller must close."""
        from kafka import KafkaAdminClient

        known = KafkaAdminClient.DEFAULT_CONFIG
        settings = {name: value for name, value in self.settings.for_kafka_python().items() if name in known}
        return KafkaAdminClient(**settings)

    def close(self) -> None:
        """Closes all connections; `of` creates a new client."""
        if not self.closed:
            self.closed = True
            with self._lock:
                self._connections.close()
                self._net.close()

    @classmethod
    def _forked(cls) -> None:
        """Keeps the parent's clients unused in a forked child. Closing them would close the parent's sockets."""
        cls._keeping = threading.Lock()
        cls._inherited.extend(cls._kept.values())
        cls._kept.clear()

    @classmethod
    def _close_all(cls) -> None:
        for (pid, _), cluster in list(cls._kept.items()):
            if pid == os.getpid():
                cluster.close()


def _span(partitions: Iterable[int]) -> str:
    known = sorted(partitions)
    return f"{known[0]} to {known[-1]}" if len(known) > 1 else ", ".join(map(str, known))


os.register_at_fork(after_in_child=Cluster._forked)
atexit.register(Cluster._close_all)
