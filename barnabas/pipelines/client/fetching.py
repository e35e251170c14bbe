"""Fetches from one partition: from its leader or a nearer replica, and again until it succeeds.

Knows nothing of the content of the fetched bytes.
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

LAST_VERSION_BY_NAME = 12
"""The last version of Fetch with topic names; later ones use topic ids (KIP-516)."""


class TopicGone(Exception):
    """The topic was deleted since the range was planned; a new topic of the same name may exist."""


class FetchSettings(NamedTuple):
    """Settings of fetches."""

    bytes_at_once: int = 4 << 20  #: max.partition.fetch.bytes
    max_wait_ms: int = 500
    committed: bool = False
    rack: str = ""  #: client.rack
    patience: float = 60.0  #: seconds to retry after the first failure


class Fetched(NamedTuple):
    """The response of a partition."""

    data: bytes  #: record batches
    aborted: list[Aborted] | None  #: None with read_uncommitted
    high_watermark: int
    stable_offset: int  #: the first offset of the first open transaction


class Fetcher:
    """Fetches from one partition of the topic with this id; a new topic of the same name is another one."""

    def __init__(
        self, cluster: "Cluster", where: TopicPartition, topic_id: UUID | None, settings: FetchSettings
    ) -> None:
        self._cluster, self._where, self._settings = cluster, where, settings
        self._topic_id = topic_id
        self._nearer: int | None = None
        self._nearer_until = 0.0
        self._throttled_until = 0.0

    async def fetch(self, offset: int) -> Fetched:
        """Returns the batches from this offset on, or no bytes if there were none within `max_wait_ms`.

        Failures are retried for `patience` seconds after the first one, as a fetch that was sent ahead may be awaited
        much later.
        ahead may be awaited much later.

        :raises TopicGone: the topic was deleted.
        :raises OffsetOutOfRange: the partition does not have this offset.
        :raises NetworkException: no broker responds.
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
        self._nearer = None  # set again after a response without an error
        response = await self._cluster.send(node, self._request(offset))
        if response.throttle_time_ms:
            self._throttled_until = time.monotonic() + response.throttle_time_ms / 1000
        answer = self._answer(response)
        if answer.error_code:
            await self._fail(answer.error_code, offset, at_leader=nearer is None)
        if response.API_VERSION <= LAST_VERSION_BY_NAME and self._topic_id is not None:
            self._cluster.forget()  # if metadata has the right id now, the records are of that topic
            await self._check_topic()
        self._prefer(nearer, answer)
        committed = self._settings.committed
        aborted = [Aborted(each.producer_id, each.first_offset) for each in answer.aborted_transactions or ()]
        return Fetched(
            answer.records or b"", aborted if committed else None, answer.high_watermark, answer.last_stable_offset
        )

    async def _check_topic(self) -> None:
        """:raises TopicGone: metadata has another id for the topic, or does not have the topic."""
        topic_id = await self._known_id()
        if self._topic_id is None:
            self._topic_id = topic_id
        elif topic_id not in (None, self._topic_id):
            self._cluster.forget()  # the cached metadata may be older than the wanted id
            if await self._known_id() not in (None, self._topic_id):
                raise TopicGone(f"topic {self._where.topic} was deleted and created again: its id was {self._topic_id}")

    async def _known_id(self) -> UUID | None:
        try:
            return (await self._cluster.topic(self._where.topic)).id
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
            session_epoch=-1,  # without a fetch session
            topics=[topic],
            forgotten_topics_data=[],
            rack_id=settings.rack,
            min_version=4,  # the first with record batches and aborted transactions
            max_version=FetchRequest.max_version if self._topic_id else LAST_VERSION_BY_NAME,
        )

    def _answer(self, response: Any) -> Any:
        if response.error_code:
            raise _error(response.error_code, f"fetching {self._where}")
        for topic in response.responses:
            for answer in topic.partitions:
                if answer.partition_index == self._where.partition:
                    return answer
        raise UnknownServerError(f"fetching {self._where}: the response does not contain the partition")

    async def _fail(self, code: int, offset: int, *, at_leader: bool) -> None:
        """Raises the error of a response, after checking whether it is permanent."""
        error = _error(code, f"fetching {self._where} at offset {offset}")
        if not at_leader:
            raise NotLeaderOrFollower(f"{error} at a replica; fetching from the leader") from error
        if isinstance(error, UnknownTopicOrPartition | UnknownTopicId):
            self._cluster.forget()
            await self._check_topic()
            raise NotLeaderOrFollower(str(error)) from error  # a broker that does not know the topic yet
        raise error

    def _prefer(self, replica: int | None, answer: Any) -> None:
        """Remembers the replica that the leader prefers (KIP-392), for as long as metadata is valid."""
        named = getattr(answer, "preferred_read_replica", -1)
        if named is not None and named >= 0:
            self._nearer = named
            self._nearer_until = time.monotonic() + self._cluster.settings.seconds("metadata.max.age.ms")
        else:
            self._nearer = replica


def _error(code: int, doing: str) -> KafkaError:
    error = KafkaError.by_code.get(code, UnknownServerError)
    return error(f"{doing}: {error()}")
