"""The partition ``_schemas``-0 as a log of records: read into a store, and appended to by the node that leads it.

Knows nothing of the contents of the records. A record is appended, and applied once all in-sync replicas have it.
"""

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from typing import Final

from barnabas.broker import Broker
from barnabas.cluster.controller.commands.topics import CreatedTopic, NewTopic
from barnabas.cluster.replication.partition import ACKS_ALL, READ_UNCOMMITTED, Partition
from barnabas.errors import KafkaError, TopicAlreadyExists
from barnabas.records.batch import batches
from barnabas.records.builder import build_batch
from barnabas.records.record import records_of
from barnabas.registry.errors import error
from barnabas.registry.store import NOOP, Record, Store, record

logger = logging.getLogger(__name__)

TOPIC: Final = "_schemas"
WAIT_S: Final = 30.0
READ_BYTES: Final = 1 << 20
COPIES: Final = 3


class SchemasLog:
    """The log, and the store to which its records are applied.

    :param url: the URL of this node's registry for those of other nodes
    """

    def __init__(self, broker: Broker, url: str) -> None:
        self._broker = broker
        self._url = url
        self.store = Store()
        self._next = 0
        self._topic_id = b""

    @property
    def cluster_id(self) -> str:
        return self._broker.cluster_id

    # ------------------------------------------------------------ who writes

    @property
    def exists(self) -> bool:
        return TOPIC in self._broker.image.topics_by_name

    @property
    def leads(self) -> bool:
        """Whether this node writes: it leads the partition, or is the only node and will create it."""
        if not self.exists:
            return len(self._broker.image.brokers) <= 1
        partition = self._broker.partitions.get((TOPIC, 0))
        return partition is not None and partition.leads

    @property
    def leader_url(self) -> str | None:
        """The URL of the registry that writes; None if this node does not know it."""
        self.read()
        url = self.store.leader_url
        return None if url == self._url else url

    async def announce(self) -> None:
        """Announces the URL of this registry, if this node writes and another one has announced itself last.

        The URL is in a NOOP record, whose value other registries do not read. A single node announces nothing.
        """
        if len(self._broker.image.brokers) <= 1:
            return
        if not self.exists:
            await self.create()
        if self.leads:
            await self.catch_up()
            if self.store.leader_url != self._url:
                await self.append([record(NOOP, {"leader": self._url})])

    async def create(self) -> None:
        """Creates the topic, if there is none. :raises RegistryError: it cannot be created"""
        if self.exists:
            return
        created: asyncio.Future[KafkaError | None] = asyncio.get_running_loop().create_future()

        def done(results: Sequence[CreatedTopic] | None, why: KafkaError | None) -> None:
            if not created.done():
                created.set_result(why if results is None else next((each.error for each in results), None))

        copies = min(COPIES, len(self._broker.image.brokers))
        self._broker.create_topics([NewTopic(TOPIC, 1, copies, configs=[("cleanup.policy", "compact")])], done)
        why = await created
        if why is not None and not isinstance(why, TopicAlreadyExists):
            raise error("store_error", f"The topic {TOPIC} cannot be created: {why}")

    # ------------------------------------------------------------ reading

    def _partition(self) -> Partition | None:
        return self._broker.partitions.get((TOPIC, 0))

    def read(self) -> None:
        """Applies the records that have become readable."""
        partition = self._partition()
        if partition is None or partition.topic_id != self._topic_id:
            self.store, self._next = Store(), 0  # the topic was deleted, and perhaps created again
            self._topic_id = b"" if partition is None else partition.topic_id
        if partition is None:
            return
        self._next = max(self._next, partition.log.log_start_offset)
        end = partition.readable_up_to(READ_UNCOMMITTED)
        while self._next < end:
            data = partition.read(self._next, READ_BYTES, up_to=end, minimum_one=True)
            for batch in batches(memoryview(data)):
                if not batch.is_control:
                    for each in records_of(batch):
                        if each.offset >= self._next:
                            self._apply(each.offset, each.key, each.value)
                self._next = batch.next_offset
            if not data:
                return

    def _apply(self, offset: int, key: bytes | None, value: bytes | None) -> None:
        try:
            self.store.apply(key, value)
        except (ValueError, KeyError, TypeError, AttributeError) as why:
            logger.warning("Ignored the record at offset %d of %s, which is not a registry's: %s", offset, TOPIC, why)

    async def catch_up(self) -> None:
        """Applies all records that previous leaders of the partition have appended.

        :raises RegistryError: they are not committed yet, or cannot be read
        """
        partition = self._partition()
        try:
            if partition is not None and partition.leads:
                await self._safe(partition, partition.log.log_end_offset)
            self.read()
        except KafkaError as why:
            raise error("store_error", f"{TOPIC} cannot be read: {why!r}") from why

    # ------------------------------------------------------------ appending

    async def append(self, records: Sequence[Record]) -> None:
        """Appends records as one batch, waits until all in-sync replicas have it, and applies it.

        :raises RegistryError: that takes too long, or this node is no longer the leader
        """
        await self.create()
        partition, now_ms = self._partition(), self._broker.clock.time_ms()
        if partition is None or not partition.leads:
            raise error("unknown_leader")
        data = build_batch([(key, value, now_ms, ()) for key, value in records])
        try:
            appended = partition.append(next(batches(data)), now_ms, acks=ACKS_ALL)
            await self._safe(partition, appended.last_offset + 1)
            self.read()
        except KafkaError as why:
            raise error("store_error", f"{TOPIC} cannot be written: {why!r}") from why

    async def _safe(self, partition: Partition, end: int) -> None:
        if partition.is_safe(end, ACKS_ALL):
            return
        safe: asyncio.Future[KafkaError | None] = asyncio.get_running_loop().create_future()
        done = partial(_settle, safe)
        partition.when_safe(end, ACKS_ALL, done)
        try:
            why = await asyncio.wait_for(safe, WAIT_S)
        except TimeoutError:
            raise error("timed_out", f"{TOPIC} was not copied to the in-sync replicas in time") from None
        finally:
            partition.stop_waiting(done)
        if why is not None:
            raise why


def _settle(safe: "asyncio.Future[KafkaError | None]", why: KafkaError | None) -> None:
    if not safe.done():
        safe.set_result(why)
