"""Runs the group coordinator against ``__consumer_offsets``: where its records go, and where they come back from.

Knows nothing of requests, nor of what the records say. A group is kept in one partition, which its id decides; the
topic is made when somebody first asks for a group's coordinator.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from barnabas.cluster.commands import CreateTopics
from barnabas.cluster.decision import random_uuid
from barnabas.cluster.image import MetadataDelta
from barnabas.cluster.internal_topics import new_internal_topic
from barnabas.cluster.partition import Partition
from barnabas.cluster.topic_names import CONSUMER_OFFSETS
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
from barnabas.groups.config import GroupConfig
from barnabas.groups.coordinator import GroupCoordinator
from barnabas.groups.java_hash import partition_of, partitions_in_list_order, partitions_in_order, timeline_order
from barnabas.groups.messages import ListedGroup
from barnabas.groups.rebalance import Written
from barnabas.offsets.records import Record
from barnabas.records.batch import Compression, RecordBatch, batches
from barnabas.records.builder import build_batch
from barnabas.records.record import records_of

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

logger = logging.getLogger(__name__)

NO_SEQUENCE_OF_COORDINATORS = 0
"""What Apache's coordinators write where no producer is; not the -1 of clients."""

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


class GroupLog:
    """The group coordinator of a broker, its log, and the life of both."""

    def __init__(self, broker: "Broker", new_uuid: Callable[[], str] | None = None) -> None:
        self._broker = broker
        self.coordinator = GroupCoordinator(
            GroupConfig.from_settings(broker.config),
            broker.clock,
            broker.scheduler,
            write=self.write,
            new_uuid=new_uuid or self._random_uuid,
            is_coordinator=self.is_coordinator,
        )

    def _random_uuid(self) -> str:
        digits = random_uuid(self._broker.random).hex()
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    # -------------------------------------------------------------- the topic

    def create_topic(self) -> None:
        """See to it that the topic is there; COORDINATOR_NOT_AVAILABLE where it cannot be made."""
        broker = self._broker
        if CONSUMER_OFFSETS in broker.image.topics_by_name:
            return
        (made,) = broker.controller.submit(CreateTopics([new_internal_topic(CONSUMER_OFFSETS, broker.config)]))
        if made.error is not None and not isinstance(made.error, TopicAlreadyExists):
            logger.warning("%s cannot be made: %s", CONSUMER_OFFSETS, made.error)
            raise CoordinatorNotAvailable

    def is_coordinator(self, group_id: str) -> bool:
        """Whether the group, should there be one, is here: this node leads its partition."""
        try:
            return self._partition(group_id).leads
        except KafkaError:
            return False

    def in_order(self, group_ids: Iterable[str]) -> list[str]:
        """The groups in the order in which Apache Kafka answers for them: partition by partition."""
        partitions: dict[int, list[str]] = {}
        for group_id in group_ids:
            partitions.setdefault(self._index(group_id), []).append(group_id)
        if len(partitions) > 1:
            return [each for index in partitions_in_order(CONSUMER_OFFSETS, partitions) for each in partitions[index]]
        return [each for group in partitions.values() for each in group]

    def in_list_order(self, groups: Iterable[ListedGroup]) -> list[ListedGroup]:
        """All groups in the order in which Apache Kafka lists them: that of its hash tables."""
        topic = self._broker.image.topics_by_name.get(CONSUMER_OFFSETS)
        if topic is None:
            return list(groups)
        partitions: dict[int, dict[str, ListedGroup]] = {}
        for group in groups:
            partitions.setdefault(self._index(group.group_id), {})[group.group_id] = group
        return [
            partitions[index][group_id]
            for index in partitions_in_list_order(CONSUMER_OFFSETS, len(topic.partitions))
            if index in partitions
            for group_id in timeline_order(partitions[index])
        ]

    def _index(self, group_id: str) -> int:
        topic = self._broker.image.topics_by_name.get(CONSUMER_OFFSETS)
        return 0 if topic is None else partition_of(group_id, len(topic.partitions))

    def _partition(self, group_id: str) -> Partition:
        return self._broker.partition(CONSUMER_OFFSETS, self._index(group_id))

    # --------------------------------------------------------------- writing

    def write(self, group_id: str, records: Sequence[Record], written: Written) -> None:
        """Append the records of a group as one batch; on one node they are safe when they are in the log.

        Where ``flush.messages`` wants them on the disk, when they are there.
        """
        now_ms = self._broker.clock.time_ms()
        batch = build_batch(
            [(key, value, now_ms) for key, value in records],
            base_sequence=NO_SEQUENCE_OF_COORDINATORS,
            compression=Compression(self._broker.config["offsets.topic.compression.codec"]),
        )
        try:
            partition = self._partition(group_id)
            appended = partition.append(RecordBatch.parse(batch), now_ms, all_in_sync=True)
        except KafkaError as error:
            logger.warning("group %s: %d records could not be written: %s", group_id, len(records), error)
            written(COORDINATOR_ERRORS.get(type(error), type(error)))
            return
        log = partition.log
        if appended.last_offset - log.recovery_point < log.config.flush_messages - 1:
            written(None)
        else:
            log.when_flushed(appended.last_offset + 1, lambda: written(NotCoordinator if log.is_offline else None))

    # ---------------------------------------------------- start, follow, stop

    def start(self) -> None:
        """Bring all groups back from the log; to be called once all partitions are open."""
        topic = self._broker.image.topics_by_name.get(CONSUMER_OFFSETS)
        for index in topic.partitions if topic is not None else ():
            try:
                self._load(self._broker.partition(CONSUMER_OFFSETS, index))
            except (KafkaError, MalformedMessage) as error:
                logger.error("%s-%d: its groups cannot be loaded: %s", CONSUMER_OFFSETS, index, error)
        self.coordinator.start()

    def stop(self) -> None:
        """No deadline strikes any more."""
        self.coordinator.stop()

    def on_image(self, delta: MetadataDelta) -> None:
        """Topics may have been deleted, and with them what was committed about them; or groups with their log.

        Or the log of some is in a directory whose disk has failed.
        """
        deleted = {topic.name for topic in delta.deleted_topics.values()}
        if CONSUMER_OFFSETS in deleted:
            self.coordinator.resign()
        elif deleted:
            self.coordinator.topics_deleted(deleted)
        topic = self._broker.image.topics_by_name.get(CONSUMER_OFFSETS)
        if topic is not None and topic.id in delta.partitions:
            self.coordinator.resign_lost()

    def _load(self, partition: Partition) -> None:
        log = partition.log
        if log.log_start_offset < log.log_end_offset:
            self.coordinator.load(committed_records(self._batches(partition)))

    def _batches(self, partition: Partition) -> Iterator[RecordBatch]:
        size = self._broker.config["offsets.load.buffer.size"]
        log = partition.log
        offset, end = log.log_start_offset, log.log_end_offset
        while offset < end:
            data = partition.read(offset, size, up_to=end, minimum_one=True)
            if not data:
                return
            for batch in batches(data):
                offset = batch.next_offset
                yield batch


def committed_records(found: Iterable[RecordBatch]) -> Iterator[Record]:
    """The records of batches, those of a transaction where it was committed: an Apache broker may have written some."""
    pending: dict[int, list[Record]] = {}
    for batch in found:
        records = [(record.key or b"", record.value) for record in records_of(batch)]
        if batch.is_control:
            decided = pending.pop(batch.producer_id, [])
            if any(is_commit_marker(key) for key, _ in records):
                yield from decided
        elif batch.is_transactional:
            pending.setdefault(batch.producer_id, []).extend(records)
        else:
            yield from records


def is_commit_marker(key: bytes) -> bool:
    """Whether a control record with that key ends a transaction well: an int16 version, then an int16 type of 1."""
    return key[2:4] == b"\0\1"
