"""Fetches of one partition: asked of whoever leads it, or is nearer, and again until they succeed.

Knows nothing of what is in the bytes that come.
"""

import time
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from kafka import errors as kafka_errors
from kafka.protocol.consumer import FetchRequest, IsolationLevel

from barnabas.columnar.decoding import Aborted
from barnabas.errors import (
    KafkaError,
    NotLeaderOrFollower,
    UnknownServerError,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from barnabas.pipelines.client import TopicPartition

if TYPE_CHECKING:
    from barnabas.pipelines.client.cluster import Cluster

LAST_BY_NAME = 12
"""The last version of Fetch that names topics: later ones want ids (KIP-516)."""


class TopicGone(Exception):
    """The topic was deleted since the range was planned; one of its name may have been made again."""


class FetchSettings(NamedTuple):
    """How to fetch, as Kafka's consumer is told: `bytes_at_once` is max.partition.fetch.bytes, `rack` client.rack.

    Failures are survived for `patience` seconds, from the first one on.
    """

    bytes_at_once: int = 4 << 20
    max_wait_ms: int = 500
    committed: bool = False
    rack: str = ""
    patience: float = 60.0


class Fetched(NamedTuple):
    """What a partition answered: batches, as they are, and how far it reaches at the time.

    `stable_offset` is where the first open transaction begins. `aborted` is None where all records are wanted.
    """

    data: bytes
    aborted: list[Aborted] | None
    high_watermark: int
    stable_offset: int


class Fetcher:
    """One partition, of the topic that has this id: one of that name which was made later is another."""

    def __init__(
        self, cluster: "Cluster", where: TopicPartition, topic_id: UUID | None, settings: FetchSettings
    ) -> None:
        self._cluster, self._where, self._settings = cluster, where, settings
        self._topic_id = topic_id
        self._nearer: int | None = None
        self._nearer_until = 0.0
        self._throttled_until = 0.0

    async def fetch(self, offset: int) -> Fetched:
        """The batches from that offset on; no bytes where none came in time.

        Raises TopicGone; OffsetOutOfRange; NetworkException and what else brokers answer once patience is over, which
        begins with the first failure: what was begun ahead may be waited for much later.
        """
        try:
            return await self._attempt(offset)
        except (kafka_errors.KafkaError, KafkaError):
            self._cluster.forget()
            until = time.monotonic() + self._settings.patience
            return await self._cluster.retrying(lambda: self._attempt(offset), until=until)

    async def _attempt(self, offset: int) -> Fetched:
        if (pause := self._throttled_until - time.monotonic()) > 0:
            await self._cluster.pause(pause)
        await self._check_topic()
        nearer = self._nearer if time.monotonic() < self._nearer_until else None
        node = await self._cluster.leader_of(self._where) if nearer is None else nearer
        self._nearer = None  # until it has answered well
        response = await self._cluster.ask(node, self._request(offset))
        if response.throttle_time_ms:
            self._throttled_until = time.monotonic() + response.throttle_time_ms / 1000
        answer = self._answer(response)
        if answer.error_code:
            await self._fail(answer.error_code, offset, at_leader=nearer is None)
        if response.API_VERSION <= LAST_BY_NAME and self._topic_id is not None:
            self._cluster.forget()  # whose records are these? Only metadata knows, and what it says now was so before
            await self._check_topic()
        self._prefer(nearer, answer)
        committed = self._settings.committed
        aborted = [Aborted(each.producer_id, each.first_offset) for each in answer.aborted_transactions or ()]
        return Fetched(
            answer.records or b"", aborted if committed else None, answer.high_watermark, answer.last_stable_offset
        )

    async def _check_topic(self) -> None:
        """Raises TopicGone where metadata knows the topic by another id, or not at all."""
        topic_id = await self._known_id()
        if self._topic_id is None:
            self._topic_id = topic_id
        elif topic_id not in (None, self._topic_id):
            self._cluster.forget()  # what is kept may be of the topic before, and the id that is wanted newer
            if await self._known_id() not in (None, self._topic_id):
                raise TopicGone(f"topic {self._where.topic} was deleted and made again: its id was {self._topic_id}")

    async def _known_id(self) -> UUID | None:
        try:
            return (await self._cluster.known(self._where.topic)).id
        except UnknownTopicOrPartition as error:
            raise TopicGone(f"topic {self._where.topic} was deleted") from error

    def _request(self, offset: int) -> Any:
        settings = self._settings
        partition = FetchRequest.FetchTopic.FetchPartition(
            partition=self._where.partition,
            current_leader_epoch=-1,
            fetch_offset=offset,
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=settings.bytes_at_once,
        )
        topic = FetchRequest.FetchTopic(topic=self._where.topic, topic_id=self._topic_id, partitions=[partition])
        isolation = IsolationLevel.READ_COMMITTED if settings.committed else IsolationLevel.READ_UNCOMMITTED
        return FetchRequest(
            replica_id=-1,
            max_wait_ms=settings.max_wait_ms,
            min_bytes=1,
            max_bytes=settings.bytes_at_once,
            isolation_level=isolation,
            session_id=0,
            session_epoch=-1,  # no fetch session: each fetch stands for itself
            topics=[topic],
            forgotten_topics_data=[],
            rack_id=settings.rack,
            min_version=4,  # record batches, and which transactions were aborted
            max_version=FetchRequest.max_version if self._topic_id else LAST_BY_NAME,
        )

    def _answer(self, response: Any) -> Any:
        if response.error_code:
            raise _error(response.error_code, f"fetching {self._where}")
        for topic in response.responses:
            for answer in topic.partitions:
                if answer.partition_index == self._where.partition:
                    return answer
        raise UnknownServerError(f"fetching {self._where}: the broker's answer does not speak of it")

    async def _fail(self, code: int, offset: int, *, at_leader: bool) -> None:
        """Raise what the answer says, once it is sure that it will not pass."""
        error = _error(code, f"fetching {self._where} at offset {offset}")
        if not at_leader:
            raise NotLeaderOrFollower(f"{error}, says a replica; asking the leader") from error
        if isinstance(error, UnknownTopicOrPartition | UnknownTopicId):
            self._cluster.forget()
            await self._check_topic()
            raise NotLeaderOrFollower(str(error)) from error  # a broker that has not heard of it yet
        raise error

    def _prefer(self, asked: int | None, answer: Any) -> None:
        """Where to ask next: a replica that the leader has named (KIP-392), for as long as metadata is believed."""
        named = getattr(answer, "preferred_read_replica", -1)
        if named is not None and named >= 0:
            self._nearer = named
            self._nearer_until = time.monotonic() + self._cluster.settings.seconds("metadata.max.age.ms")
        else:
            self._nearer = asked


def _error(code: int, doing: str) -> KafkaError:
    error = KafkaError.by_code.get(code, UnknownServerError)
    return error(f"{doing}: {error()}")
