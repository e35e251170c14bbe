"""Runs the group coordinator against ``__consumer_offsets``: where its records go, and where they come back from.

Knows nothing of requests, nor of what the records say.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.coordinator_log import SEQUENCE_OF_COORDINATORS, CoordinatorLog
from barnabas.cluster.commands import CreatedTopic, CreateTopics, NewTopic
from barnabas.cluster.decision import random_uuid
from barnabas.cluster.image import MetadataDelta
from barnabas.cluster.topic_names import CONSUMER_OFFSETS
from barnabas.config.dynamic import GROUP_RESOURCE
from barnabas.config.group import GroupSettings
from barnabas.errors import KafkaError
from barnabas.groups.config import GroupConfig
from barnabas.groups.coordinator import GroupCoordinator
from barnabas.groups.environment import TopicsMade, TopicToMake
from barnabas.groups.ledger import Written
from barnabas.log.transactions import marker_of
from barnabas.offsets.pending import Producer, Transaction
from barnabas.offsets.records import Record
from barnabas.records.batch import Compression, RecordBatch
from barnabas.records.builder import build_batch
from barnabas.records.record import records_of

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

NO_PRODUCER = Producer(-1, -1)


class GroupLog:
    """The group coordinator of a broker, its log, and the life of both."""

    def __init__(self, broker: "Broker", new_uuid: Callable[[], str] | None = None) -> None:
        self._broker = broker
        self._log = CoordinatorLog(broker, CONSUMER_OFFSETS)
        self.coordinator = GroupCoordinator(
            GroupConfig.from_settings(broker.config),
            broker.clock,
            broker.scheduler,
            write=self.write,
            new_uuid=new_uuid or self._random_uuid,
            is_coordinator=self.is_coordinator,
            partition_of=self.index_of,
            image=lambda: broker.image,
            settings=lambda: broker.config,
            group_settings=self._settings_of,
            persister=lambda: broker.persister,
            create_topics=self._create_topics,
        )

    def _random_uuid(self) -> str:
        digits = random_uuid(self._broker.random).hex()
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    def _settings_of(self, group_id: str) -> GroupSettings:
        return GroupSettings(self._broker.config, self._broker.image.configs_of(GROUP_RESOURCE, group_id))

    def _create_topics(self, topics: Sequence[TopicToMake], made: TopicsMade) -> None:
        """Have the controller make the topics that a group needs."""
        wanted = [
            NewTopic(each.name, each.partitions, each.replication_factor, configs=tuple(each.configs))
            for each in topics
        ]

        def created(results: Sequence[CreatedTopic] | None, error: KafkaError | None) -> None:
            if results is None:
                made({each.name: str(error) for each in topics})
            else:
                made({each.name: str(each.error) for each in results if each.error is not None})

        self._broker.controller.submit(CreateTopics(wanted), created)

    # -------------------------------------------------------------- the topic

    def create_topic(self, done: Callable[[KafkaError | None], object]) -> None:
        """Creates the topic if there is none, and calls ``done`` when it is there; COORDINATOR_NOT_AVAILABLE if not."""
        self._log.create(done)

    def is_coordinator(self, group_id: str) -> bool:
        """Whether the group, should there be one, is here: this node leads its partition."""
        return self._log.leads(group_id)

    def index_of(self, group_id: str) -> int:
        """The partition of ``__consumer_offsets`` that keeps the group."""
        return self._log.index_of(group_id)

    # --------------------------------------------------------------- writing

    def write(
        self,
        group_id: str,
        records: Sequence[Record],
        written: Written,
        producer: Producer | None = None,
        appended: Callable[[], object] | None = None,
    ) -> None:
        """Append the records of a group as one batch, of the transaction of that producer where there is one."""
        now_ms = self._broker.clock.time_ms()
        of_producer = producer or NO_PRODUCER
        batch = build_batch(
            [(key, value, now_ms) for key, value in records],
            base_sequence=SEQUENCE_OF_COORDINATORS,
            compression=Compression(self._broker.config["offsets.topic.compression.codec"]),
            producer_id=of_producer.id,
            producer_epoch=of_producer.epoch,
            is_transactional=producer is not None,
        )
        self._log.append(group_id, batch, now_ms, written, by_coordinator=producer is not None, appended=appended)

    def transaction_ended(self, index: int, producer_id: int, is_commit: bool) -> None:
        """The marker of a producer has just been appended to that partition: what it decides is seen once it is safe.

        It ends all that the producer wrote before, whatever its epoch: the log takes none that is older (KIP-890).
        """

        def safe(error: type[KafkaError] | None) -> None:
            if error is None:
                self.coordinator.transaction_ended(index, producer_id, is_commit)

        self._log.when_safe(index, safe)

    # ---------------------------------------------------- start, follow, stop

    def start(self) -> None:
        """Bring all groups back from the log; to be called once all partitions are open."""
        self._log.load(self._load, self._broker.config["offsets.load.buffer.size"])
        self.coordinator.start()

    def _load(self, index: int, found: Iterable[RecordBatch]) -> None:
        """Take in all of a partition. Offsets of transactions that have not ended wait, as they did before."""
        coordinator = self.coordinator
        for batch in found:
            if not batch.is_control:
                transaction = Transaction(index, batch.producer_id) if batch.has_producer_id else None
                coordinator.load(((each.key or b"", each.value) for each in records_of(batch)), transaction)
            elif batch.has_producer_id and (marker := marker_of(batch)) is not None:
                coordinator.transaction_ended(index, batch.producer_id, not marker.is_abort)

    def stop(self) -> None:
        """No deadline strikes any more."""
        self.coordinator.stop()

    def on_image(self, delta: MetadataDelta) -> None:
        """With a topic goes what was committed about it; with a log the groups that it kept."""
        self._log.follow(delta, self.coordinator)
        changed = delta.partitions.keys() | delta.deleted_topics.keys()
        if changed:
            by_id = self._broker.image.topics_by_id
            topics = [by_id.get(each) or delta.deleted_topics.get(each) for each in changed]
            self.coordinator.topics_changed({topic.name for topic in topics if topic is not None})
