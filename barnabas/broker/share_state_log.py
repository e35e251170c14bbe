"""Runs the share coordinator against ``__share_group_state``: where its records go, and where they come back from.

Knows nothing of requests, nor of what the records say.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from barnabas.broker.coordinator_log import SEQUENCE_OF_COORDINATORS, CoordinatorLog, Written
from barnabas.cluster.image import MetadataDelta
from barnabas.cluster.topic_names import SHARE_GROUP_STATE
from barnabas.errors import KafkaError
from barnabas.records.batch import Compression, RecordBatch
from barnabas.records.builder import build_batch
from barnabas.records.record import records_of
from barnabas.share.config import ShareCoordinatorConfig
from barnabas.share.coordinator import ShareCoordinator

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

logger = logging.getLogger(__name__)


class ShareStateLog:
    """The share coordinator of a broker, its log, and the life of both."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._log = CoordinatorLog(broker, SHARE_GROUP_STATE)
        self.coordinator = ShareCoordinator(
            ShareCoordinatorConfig.from_settings(broker.config),
            broker.clock,
            broker.scheduler,
            append=self.append,
            is_coordinator=self.is_coordinator,
            has_partition=self._has_partition,
            prune=self._prune,
        )

    # -------------------------------------------------------------- the topic

    def create_topic(self, done: Callable[[KafkaError | None], object]) -> None:
        """Creates the topic if there is none, and calls ``done`` when it is there; COORDINATOR_NOT_AVAILABLE if not."""
        self._log.create(done)

    def is_coordinator(self, key: str) -> bool:
        """Whether the state of the share partition ``group:topic id:partition`` is here."""
        return self._log.leads(key)

    def _has_partition(self, topic_id: bytes, index: int) -> bool:
        topic = self._broker.image.topics_by_id.get(topic_id)
        return topic is not None and index in topic.partitions

    # --------------------------------------------------------------- writing

    def append(
        self, key: str, record_key: bytes, value: bytes | None, appended: Callable[[int, int], object], written: Written
    ) -> None:
        """Append one record as a batch of its own. ``appended`` gets the partition's number and the record's offset."""
        broker = self._broker
        now_ms = broker.clock.time_ms()
        batch = build_batch(
            [(record_key, value, now_ms)],
            base_sequence=SEQUENCE_OF_COORDINATORS,
            compression=Compression(broker.config["share.coordinator.state.topic.compression.codec"]),
        )

        def in_the_log() -> None:
            index = self._log.index_of(key)
            appended(index, broker.partition(SHARE_GROUP_STATE, index).log.log_end_offset - 1)

        self._log.append(key, batch, now_ms, written, appended=in_the_log)

    def _prune(self, index: int, offset: int) -> None:
        """Nothing below the offset is needed any more."""
        try:
            log = self._broker.partition(SHARE_GROUP_STATE, index).log
            if offset > log.log_start_offset:
                log.delete_records_before(offset)
        except (KafkaError, OSError) as error:
            logger.warning("%s-%d could not be shortened: %s", SHARE_GROUP_STATE, index, error)

    # ---------------------------------------------------- start, follow, stop

    def start(self) -> None:
        """Bring everything back from the log; to be called once all partitions are open."""
        load = self.coordinator.load
        size = self._broker.config["share.coordinator.load.buffer.size"]
        self._log.load(lambda index, found: load(index, _records(found)), size)
        self.coordinator.start()

    def stop(self) -> None:
        """No deadline strikes any more."""
        self.coordinator.stop()

    def on_image(self, delta: MetadataDelta) -> None:
        """With a topic goes what groups know of it; with a log what it kept."""
        if any(topic.name == SHARE_GROUP_STATE for topic in delta.deleted_topics.values()):
            self.coordinator.resign()
        elif delta.deleted_topics:
            self.coordinator.topics_deleted(delta.deleted_topics)
        topic = self._broker.image.topics_by_name.get(SHARE_GROUP_STATE)
        if topic is not None and topic.id in delta.partitions:
            self.coordinator.resign_lost()


def _records(found: Iterable[RecordBatch]) -> Iterator[tuple[int, bytes, bytes | None]]:
    for batch in found:
        if not batch.is_control:
            for record in records_of(batch):
                yield record.offset, record.key or b"", record.value
