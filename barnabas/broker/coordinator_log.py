"""An internal topic as the log of a coordinator: which partition keeps what, writing to it, and reading it back.

Knows nothing of what the records say, nor of requests. What a coordinator keeps lies in one partition, which its id
decides; the topic is made when somebody first asks for a coordinator.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from barnabas.cluster.commands import CreatedTopic, CreateTopics
from barnabas.cluster.image import MetadataDelta
from barnabas.cluster.internal_topics import new_internal_topic
from barnabas.cluster.partition import ACKS_ALL, Partition
from barnabas.errors import (
    CoordinatorNotAvailable,
    KafkaError,
    KafkaStorageError,
    MalformedMessage,
    MessageTooLarge,
    NotCoordinator,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    RecordListTooLarge,
    RequestTimedOut,
    TopicAlreadyExists,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from barnabas.groups.java_hash import partition_of
from barnabas.log_limit import LogLimit
from barnabas.records.batch import RecordBatch, batches

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

logger = logging.getLogger(__name__)

Written = Callable[[type[KafkaError] | None], object]

SEQUENCE_OF_COORDINATORS = 0
"""What Apache's coordinators write whether or not there is a producer; sequences are the producers' own."""

COORDINATOR_ERRORS: dict[type[KafkaError], type[KafkaError]] = {
    UnknownTopicOrPartition: CoordinatorNotAvailable,
    NotEnoughReplicas: CoordinatorNotAvailable,
    NotEnoughReplicasAfterAppend: CoordinatorNotAvailable,
    RequestTimedOut: CoordinatorNotAvailable,
    NotLeaderOrFollower: NotCoordinator,
    KafkaStorageError: NotCoordinator,
    MessageTooLarge: UnknownServerError,
    RecordListTooLarge: UnknownServerError,
}
"""What a client is told when its coordinator could not write: with that partition it has no business."""


class Coordinator(Protocol):
    """Whoever is to know what becomes of topics, and of its own among them."""

    def topics_deleted(self, topics: Iterable[str]) -> None: ...

    def resign(self) -> None: ...

    def resign_lost(self) -> None: ...


class CoordinatorLog:
    """One internal topic of a broker."""

    def __init__(self, broker: "Broker", topic: str) -> None:
        self._broker = broker
        self.topic = topic
        self._creation_failures = LogLimit(broker.clock)

    def create(self, done: Callable[[KafkaError | None], object]) -> None:
        """Creates the topic if there is none, and calls ``done`` when it is there; COORDINATOR_NOT_AVAILABLE if not."""
        broker = self._broker
        if self.topic in broker.image.topics_by_name:
            done(None)
            return

        def created(results: Sequence[CreatedTopic] | None, error: KafkaError | None) -> None:
            why = error if results is None else results[0].error
            if why is None or isinstance(why, TopicAlreadyExists):
                done(None)
            else:
                if self._creation_failures.is_due(why):
                    logger.warning("Cannot create %s: %s", self.topic, why)
                done(CoordinatorNotAvailable())

        broker.controller.submit(CreateTopics([new_internal_topic(self.topic, broker.config)]), created)

    def index_of(self, key: str) -> int:
        """The partition that keeps ``key``, or will once the topic is there."""
        topic = self._broker.image.topics_by_name.get(self.topic)
        if topic is not None:
            return partition_of(key, len(topic.partitions))
        return partition_of(key, new_internal_topic(self.topic, self._broker.config).num_partitions)

    def partition(self, key: str) -> Partition:
        """The same, as it is hosted here. :raises KafkaError: it is not"""
        return self._broker.partition(self.topic, self.index_of(key))

    def leads(self, key: str) -> bool:
        """Whether whatever is kept under ``key`` is kept here: this node leads its partition, and its disk is well."""
        try:
            partition = self.partition(key)
        except KafkaError:
            return False
        return partition.leads and not partition.log.is_offline

    def append(
        self,
        key: str,
        batch: bytes | bytearray,
        now_ms: int,
        written: Written,
        *,
        by_coordinator: bool = False,
        appended: Callable[[], object] | None = None,
    ) -> None:
        """Append a batch about ``key``; on one node it is safe when it is in the log.

        Where ``flush.messages`` wants it on the disk, when it is there. ``written`` is called with what a client is
        to be told, or None; ``appended`` at once when the batch is in the log, before anything follows it there.
        """
        try:
            partition = self.partition(key)
            last_offset = partition.append(
                RecordBatch.parse(batch), now_ms, acks=ACKS_ALL, by_coordinator=by_coordinator
            ).last_offset
        except KafkaError as error:
            logger.warning("%s: what is kept under %s could not be written: %s", self.topic, key, error)
            written(COORDINATOR_ERRORS.get(type(error), type(error)))
            return
        if appended is not None:
            appended()
        partition.when_safe(last_offset + 1, ACKS_ALL, partial(_told, written))

    def when_safe(self, index: int, written: Written) -> None:
        """Call back when all that partition ``index`` holds by now is safe; whatever was appended before comes first.

        :raises KafkaError: the partition is not hosted here
        """
        partition = self._broker.partition(self.topic, index)
        partition.when_safe(partition.log.log_end_offset, ACKS_ALL, partial(_told, written))

    def load(self, take: Callable[[int, Iterator[RecordBatch]], object], buffer_size: int) -> None:
        """Hand all that the log holds to ``take``, partition by partition, with its number.

        ``buffer_size`` bytes are read at a time. What cannot be read is logged.
        """
        topic = self._broker.image.topics_by_name.get(self.topic)
        for index in topic.partitions if topic is not None else ():
            try:
                partition = self._broker.partition(self.topic, index)
                if partition.log.log_start_offset < partition.log.log_end_offset:
                    take(index, _batches(partition, buffer_size))
            except (KafkaError, MalformedMessage) as error:
                logger.error("%s-%d: what it keeps cannot be loaded: %s", self.topic, index, error)

    def follow(self, delta: MetadataDelta, coordinator: Coordinator) -> None:
        """Tell the coordinator which topics are deleted, and when its own log is, or is no longer led here.

        The latter is so when the disk under a partition has failed.
        """
        deleted = {topic.name for topic in delta.deleted_topics.values()}
        if self.topic in deleted:
            coordinator.resign()
        elif deleted:
            coordinator.topics_deleted(deleted)
        topic = self._broker.image.topics_by_name.get(self.topic)
        if topic is not None and topic.id in delta.partitions:
            coordinator.resign_lost()


def _told(written: Written, error: type[KafkaError] | None) -> None:
    written(None if error is None else COORDINATOR_ERRORS.get(error, error))


def _batches(partition: Partition, size: int) -> Iterator[RecordBatch]:
    log = partition.log
    offset, end = log.log_start_offset, log.log_end_offset
    while offset < end:
        data = partition.read(offset, size, up_to=end, minimum_one=True)
        if not data:
            return
        for batch in batches(data):
            offset = batch.next_offset
            yield batch
