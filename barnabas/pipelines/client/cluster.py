"""One cluster as one process sees it: connections that are kept, who leads what, and requests tried until they succeed.

kafka-python connects, authenticates and encodes; its loop runs on the thread of whoever asks, under a lock. Knows
nothing of records, nor of Spark.
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

LARGEST_ANSWER = 1 << 30
IN_FLIGHT = 64
"""Fetches are few and commits fewer: this only keeps a mistake from growing without end."""

Answer = TypeVar("Answer")
Given = ParamSpec("Given")
Request = Any
"""A request of `kafka.protocol`, which has no types."""


class Unauthenticated(Exception):
    """The brokers do not let this client in."""


class Topic(NamedTuple):
    """What metadata says of a topic: `id` is None before Kafka 2.8; `leaders` by partition, -1 where there is none."""

    name: str
    id: UUID | None
    leaders: dict[int, int]
    internal: bool


class Cluster:
    """Ask a cluster things; survives restarts of brokers and moves of leaders. Made by `of`, kept until exit.

    Errors: those of `barnabas.errors` as the brokers answer them, naming the topic and partition; NetworkException
    where no broker answers for ``default.api.timeout.ms``; Unauthenticated.
    """

    _kept: dict[tuple[int, ClientSettings], "Cluster"] = {}
    _inherited: list["Cluster"] = []
    _keeping = threading.Lock()

    @classmethod
    def of(cls, settings: ClientSettings) -> "Cluster":
        """The one of this process and these settings."""
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
            receive_message_max_bytes=LARGEST_ANSWER,
            max_in_flight_requests_per_connection=IN_FLIGHT,
            **settings.for_kafka_python(),
        )
        self._connections.cluster.config["allow_auto_create_topics"] = False
        self._lock = threading.RLock()
        self._topics: dict[str, Topic] = {}
        self._known_at: dict[str, float] = {}  # when, by topic
        self._coordinators: dict[tuple[int, str], Any] = {}

    # What is known of topics

    def partitions(self, topic: str) -> list[int]:
        """The partitions of a topic, in order, as metadata knew it last; raises UnknownTopicOrPartition."""
        return sorted(self.run(self.known, topic).leaders)

    def topic_id(self, topic: str) -> UUID | None:
        """The id of a topic, None where the brokers are older than Kafka 2.8; raises UnknownTopicOrPartition."""
        return self.run(self.known, topic).id

    def leader(self, topic_partition: TopicPartition) -> int:
        """The node that leads a partition, waited for where there is none."""
        return self.run(self.leader_of, topic_partition)

    def topics(self, pattern: str | None = None) -> list[str]:
        """The names of the topics in which a pattern is found, internal ones left out; asked afresh."""
        return sorted(self.matching(pattern or ""))

    def matching(self, pattern: str) -> dict[str, Topic]:
        """As `topics`, with all that is known of them."""
        every = self.run(self.retrying, lambda: self._describe(None))
        found = re.compile(pattern).search
        return {name: topic for name, topic in every.items() if not topic.internal and found(name)}

    def describe(self, topics: Sequence[str]) -> dict[str, Topic]:
        """Topics as they are now, those that do not exist left out."""
        return self.run(self.retrying, lambda: self._describe(topics))

    def forget(self) -> None:
        """Ask again for what is known of topics before it is used next."""
        self._topics.clear()

    async def leader_of(self, topic_partition: TopicPartition) -> int:
        """As `leader`, for a coroutine."""

        patience = time.monotonic() + NEW_TOPIC_PATIENCE

        async def attempt() -> int:
            topic = await self.known(topic_partition.topic)
            while topic_partition.partition not in topic.leaders:  # it may have been added since
                if time.monotonic() > patience:
                    raise UnknownTopicOrPartition(
                        f"topic {topic.name} has no partition {topic_partition.partition}, only {_span(topic.leaders)}"
                    )
                await self.pause()
                self.forget()
                topic = await self.known(topic_partition.topic)
            leader = topic.leaders[topic_partition.partition]
            if leader < 0:
                raise LeaderNotAvailable(f"{topic.name}-{topic_partition.partition} has no leader")
            return leader

        return await self.retrying(attempt)

    async def by_leader(self, topic_partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
        """Who leads what."""
        result: dict[int, list[TopicPartition]] = {}
        for topic_partition in topic_partitions:
            result.setdefault(await self.leader_of(topic_partition), []).append(topic_partition)
        return result

    async def known(self, topic: str) -> Topic:
        """What was known last, if that is not too long ago; patient with topics that are new."""
        if time.monotonic() - self._known_at.get(topic, 0.0) > self.settings.seconds("metadata.max.age.ms"):
            self._topics.pop(topic, None)
        patience = time.monotonic() + NEW_TOPIC_PATIENCE
        while topic not in self._topics:
            await self.retrying(lambda: self._describe([topic]))
            if topic not in self._topics:
                if time.monotonic() > patience:
                    raise UnknownTopicOrPartition(
                        f"topic {topic} does not exist at {self.settings['bootstrap.servers']}; is its name right?"
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
        response = await self.ask_any(request)
        self._connections.cluster.update_metadata(response)
        described = {}
        for answered in response.topics:
            self._topics.pop(answered.name, None)
            error = KafkaError.by_code.get(answered.error_code)
            if answered.error_code == UnknownTopicOrPartition.code:
                continue
            if answered.error_code == InvalidTopicException.code:
                raise InvalidTopicException(f"no topic can be called {answered.name!r}")
            if error is not None and answered.error_code:
                raise error(f"topic {answered.name}: {error()}")
            leaders = {found.partition_index: found.leader_id for found in answered.partitions}
            topic_id = answered.topic_id if answered.topic_id and answered.topic_id.int else None
            described[answered.name] = Topic(
                answered.name, topic_id, dict(sorted(leaders.items())), answered.is_internal
            )
        self._topics.update(described)
        self._known_at.update(dict.fromkeys(described, time.monotonic()))
        return described

    # Offsets

    def list_offsets(
        self, asks: Mapping[TopicPartition, int], *, committed: bool = False
    ) -> dict[TopicPartition, ListedOffset]:
        """For each partition, the offset of EARLIEST, LATEST, or of the first record as young as a time in ms.

        With `committed`, LATEST is where the first transaction that is still open begins.
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
        """Commit offsets for a group that has no members; try for `patience` seconds, else default.api.timeout.ms."""
        self.run(positions.commit, self, group, offsets, metadata, patience)

    def committed(
        self, group: str, topic_partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, Any]:
        """What a group has committed, as kafka-python's OffsetAndMetadata; all of it, with no partitions given."""
        return self.run(positions.committed, self, group, topic_partitions)

    # Requests

    async def ask(self, node_id: Any, request: Request, timeout_ms: float | None = None) -> Any:
        """The answer of one node; kafka-python's errors where it cannot be reached."""
        delay = self._connections.connection_delay(node_id)
        if delay:
            await self._net.sleep(delay)
        return await self._connections.send(request, node_id, request_timeout_ms=timeout_ms)

    def begin(self, node_id: Any, request: Request) -> Any:
        """As `ask`, but only begun: whoever awaits what is returned gets the answer. For a coroutine."""
        return self._connections.call_soon(self.ask, node_id, request)

    async def ask_any(self, request: Request) -> Any:
        """The answer of any node; where none can be reached, begin again with those that were configured (KIP-899)."""
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
        """The answer of who coordinates a group or transactional id; `forget_coordinator` once it does not any more."""
        return await self.ask(await self.coordinator(key, kind), request)

    async def coordinator(self, key: str, kind: CoordinatorType = CoordinatorType.GROUP) -> Any:
        """The node that coordinates a group or a transactional id."""
        known = self._coordinators.get((kind.value, key))
        if known is None:
            request = FindCoordinatorRequest(key=key, key_type=kind.value, coordinator_keys=[key])
            response = await self.ask_any(request)
            found = response.coordinators[0] if response.API_VERSION >= 4 else response
            if found.error_code:
                raise KafkaError.by_code[found.error_code](f"{kind.name.lower()} {key}: {found.error_message}")
            # A connection of its own: what is asked of a coordinator must not wait behind a fetch
            known = self._connections.cluster.add_coordinator(found, kind, key)
            self._coordinators[kind.value, key] = known
        return known

    def forget_coordinator(self, key: str, kind: CoordinatorType = CoordinatorType.GROUP) -> None:
        """Look for it again: it said that it is not any more, or does not answer."""
        self._coordinators.pop((kind.value, key), None)

    async def retrying(self, attempt: Callable[[], Awaitable[Answer]], *, until: float | None = None) -> Answer:
        """Attempt until it works, with pauses; metadata is forgotten in between.

        Until a time of `time.monotonic()`, else for ``default.api.timeout.ms``; then what went wrong last is raised.
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
        """Wait, for ``retry.backoff.ms`` if not said otherwise."""
        await self._net.sleep(self.settings.seconds("retry.backoff.ms") if seconds is None else seconds)

    async def _bootstrap(self) -> None:
        await self._connections.bootstrap_async(int(self.settings["default.api.timeout.ms"]))

    def _unreachable(self, problem: Exception) -> NetworkException:
        return NetworkException(
            f"no broker of {self.settings['bootstrap.servers']} answered within "
            f"{self.settings.seconds('default.api.timeout.ms'):g} s (default.api.timeout.ms): {problem}"
        )

    # The loop

    def run(self, function: Callable[Given, Awaitable[Answer]], *args: Given.args, **kwargs: Given.kwargs) -> Answer:
        """Drive the loop until this coroutine function has returned, and return what it did."""
        result: Answer = self.finish(self._net.call_soon_with_future(functools.partial(function, *args, **kwargs)))
        return result

    def start(self, function: Callable[..., Any], *args: Any) -> Any:
        """Begin a coroutine, send what it asks, and return what `finish` wants; it goes on whenever the loop runs."""
        with self._lock:
            begun = self._net.call_soon_with_future(function, *args)
            while self._net._ready:  # a request is written some steps after it was made
                self._net.poll(timeout_ms=0)
        return begun

    def finish(self, begun: Any) -> Any:
        """Drive the loop until what was begun is done; its result, or its error."""
        try:
            with self._lock:
                if not begun.is_done:
                    self._net.poll(future=begun)
        except BaseException:
            self.close()  # interrupted in the midst of things: nobody knows what is half sent
            raise
        if begun.exception is None:
            return begun.value
        if isinstance(begun.exception, REFUSALS):
            self.close()  # kafka-python would remember it for ever, and passwords get mended
            way = self.settings["security.protocol"]
            if "SASL" in way:
                way += f" {self.settings['sasl.mechanism']}"
            raise Unauthenticated(
                f"{self.settings['bootstrap.servers']} does not let this client in ({way}): {begun.exception}"
            ) from begun.exception
        raise begun.exception

    def admin(self) -> Any:
        """A `kafka.KafkaAdminClient` of the same settings; whoever asks for it closes it."""
        from kafka import KafkaAdminClient

        known = KafkaAdminClient.DEFAULT_CONFIG
        settings = {name: value for name, value in self.settings.for_kafka_python().items() if name in known}
        return KafkaAdminClient(**settings)

    def close(self) -> None:
        """Close all connections; `of` makes a new one."""
        if not self.closed:
            self.closed = True
            with self._lock:
                self._connections.close()
                self._net.close()

    @classmethod
    def _forked(cls) -> None:
        """A child has its parent's sockets: to close them would close the parent's, so they are left alone."""
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
