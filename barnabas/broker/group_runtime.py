"""Runs the group coordinator over ``__consumer_offsets``.

Knows nothing of requests, nor of the contents of the records.
"""

from collections.abc import Callable, Sequence
from functools import partial

from barnabas.broker.environment import NodeEnvironment
from barnabas.broker.internal_topic import BASE_SEQUENCE, runtime_environment
from barnabas.cluster.controller.commands.topics import CreatedTopic, NewTopic
from barnabas.cluster.image.image import MetadataDelta
from barnabas.cluster.topic_names import CONSUMER_OFFSETS
from barnabas.config.dynamic import GROUP_RESOURCE
from barnabas.config.group import GroupSettings
from barnabas.coordinators.runtime import CoordinatorRuntime
from barnabas.coordinators.shard import ShardContext
from barnabas.errors import KafkaError
from barnabas.groups.config import GroupConfig
from barnabas.groups.coordinator import GroupCoordinator
from barnabas.groups.environment import TopicsMade, TopicToMake
from barnabas.groups.ledger import Written
from barnabas.groups.persister import Persister
from barnabas.groups.shard import GroupShard
from barnabas.offsets.pending import Producer
from barnabas.offsets.records import Record
from barnabas.records.batch import Compression
from barnabas.records.builder import build_batch
from barnabas.uuids import random_uuid

NO_PRODUCER = Producer(-1, -1)


class GroupRuntime(CoordinatorRuntime[GroupShard]):
    """The shards of the group coordinator, and the coordinator itself."""

    def __init__(self, node: NodeEnvironment, persister: Callable[[], Persister]) -> None:
        environment = runtime_environment(
            node,
            CONSUMER_OFFSETS,
            load_buffer_size="offsets.load.buffer.size",
            write_timeout_ms="offsets.commit.timeout.ms",
        )
        super().__init__(CONSUMER_OFFSETS, environment)
        self._node = node
        self._persister = persister
        self._config = GroupConfig.from_settings(node.config)
        self.coordinator = GroupCoordinator(self._config, self, lambda: node.config)

    def new_shard(self, context: ShardContext[GroupShard]) -> GroupShard:
        node = self._node
        return GroupShard(
            self._config,
            node.clock,
            context.deadlines,
            write=partial(self._write, context),
            new_uuid=self._new_uuid,
            index=context.index,
            rebalances=self.coordinator.rebalances,
            image=lambda: node.image,
            settings=lambda: node.config,
            group_settings=self._settings_of,
            persister=self._persister,
            create_topics=self._create_topics,
        )

    def _new_uuid(self) -> str:
        digits = random_uuid(self._node.random.randbytes).hex()
        return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))

    def _settings_of(self, group_id: str) -> GroupSettings:
        return GroupSettings(self._node.config, self._node.image.configs_of(GROUP_RESOURCE, group_id))

    def _create_topics(self, topics: Sequence[TopicToMake], made: TopicsMade) -> None:
        """Asks the controller to create the topics that a group needs."""
        wanted = [
            NewTopic(each.name, each.partitions, each.replication_factor, configs=tuple(each.configs))
            for each in topics
        ]

        def created(results: Sequence[CreatedTopic] | None, error: KafkaError | None) -> None:
            if results is None:
                made({each.name: str(error) for each in topics})
            else:
                made({each.name: str(each.error) for each in results if each.error is not None})

        self._node.create_topics(wanted, created)

    # ------------------------------------------------------------ writing

    def _write(
        self,
        context: ShardContext[GroupShard],
        group_id: str,
        records: Sequence[Record],
        written: Written,
        producer: Producer | None = None,
        appended: Callable[[], object] | None = None,
    ) -> None:
        """Appends the records of a group as one batch, in the producer's transaction if there is one."""
        if not records:
            context.when_written(written)
            return
        now_ms = self._node.clock.time_ms()
        of_producer = producer or NO_PRODUCER
        batch = build_batch(
            [(key, value, now_ms) for key, value in records],
            base_sequence=BASE_SEQUENCE,
            compression=Compression(self._node.config["offsets.topic.compression.codec"]),
            producer_id=of_producer.id,
            producer_epoch=of_producer.epoch,
            is_transactional=producer is not None,
        )
        context.append(
            batch,
            now_ms,
            written,
            by_coordinator=producer is not None,
            appended=None if appended is None else lambda offset: appended(),
        )

    def transaction_ended(self, index: int, producer_id: int, is_commit: bool) -> None:
        """Applies a marker that was just appended to that partition, once it is replicated or flushed.

        It ends the producer's transaction with any epoch: the log refuses markers of older epochs (KIP-890).
        """
        self.when_safe(index, lambda shard: shard.replay_end_marker(producer_id, is_commit))

    # ------------------------------------------------------------ metadata

    def on_image(self, delta: MetadataDelta) -> None:
        """Drops the offsets of deleted topics, and notifies groups of changed topics."""
        deleted = {topic.name for topic in delta.deleted_topics.values()}
        if deleted:
            self.for_all(lambda shard: shard.topics_deleted(deleted))
        changed = delta.partitions.keys() | delta.deleted_topics.keys()
        if changed:
            by_id = self._node.image.topics_by_id
            topics = [by_id.get(each) or delta.deleted_topics.get(each) for each in changed]
            names = {topic.name for topic in topics if topic is not None}
            self.for_all(lambda shard: shard.topics_changed(names))
