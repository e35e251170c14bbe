"""Runs the share coordinator over ``__share_group_state``.

Knows nothing of requests, nor of the contents of the records.
"""

import logging
from collections.abc import Callable
from functools import partial

from barnabas.broker.environment import NodeEnvironment
from barnabas.broker.internal_topic import BASE_SEQUENCE, runtime_environment
from barnabas.cluster.image.image import MetadataDelta
from barnabas.cluster.topic_names import SHARE_GROUP_STATE
from barnabas.coordinators.runtime import CoordinatorRuntime
from barnabas.coordinators.shard import ShardContext
from barnabas.errors import KafkaError
from barnabas.records.batch import Compression
from barnabas.records.builder import build_batch
from barnabas.share.config import ShareCoordinatorConfig
from barnabas.share.coordinator import ShareCoordinator
from barnabas.share.shard import ShareShard, Written

logger = logging.getLogger(__name__)


class ShareRuntime(CoordinatorRuntime[ShareShard]):
    """The shards of the share coordinator, and the coordinator itself."""

    def __init__(self, node: NodeEnvironment) -> None:
        environment = runtime_environment(
            node,
            SHARE_GROUP_STATE,
            load_buffer_size="share.coordinator.load.buffer.size",
            write_timeout_ms="share.coordinator.write.timeout.ms",
        )
        super().__init__(SHARE_GROUP_STATE, environment)
        self._node = node
        self._config = ShareCoordinatorConfig.from_settings(node.config)
        self._compression = Compression(node.config["share.coordinator.state.topic.compression.codec"])
        self.coordinator = ShareCoordinator(self)

    def new_shard(self, context: ShardContext[ShareShard]) -> ShareShard:
        return ShareShard(
            self._config,
            self._node.clock,
            context.deadlines,
            append=partial(self._append, context),
            when_written=context.when_written,
            has_partition=self._has_partition,
            prune=partial(self._prune, context),
        )

    def _has_partition(self, topic_id: bytes, index: int) -> bool:
        topic = self._node.image.topics_by_id.get(topic_id)
        return topic is not None and index in topic.partitions

    def _append(
        self,
        context: ShardContext[ShareShard],
        key: bytes,
        value: bytes | None,
        appended: Callable[[int], object],
        written: Written,
    ) -> None:
        """Appends one record as a batch of its own."""
        now_ms = self._node.clock.time_ms()
        batch = build_batch(
            [(key, value, now_ms)],
            base_sequence=BASE_SEQUENCE,
            compression=self._compression,
        )
        context.append(batch, now_ms, written, appended=appended)

    @staticmethod
    def _prune(context: ShardContext[ShareShard], offset: int) -> bool:
        """Deletes the records below ``offset``, and returns whether it could.

        The snapshot at ``offset`` has to be committed: another leader may lack it, and then what it replaces is needed.
        """
        log = context.partition.log
        if offset >= log.high_watermark:
            return False
        try:
            log.delete_records_before(offset)
        except (KafkaError, OSError) as error:
            logger.warning("%s: cannot delete the records below offset %d: %s", context, offset, error)
            return False
        return True

    def on_image(self, delta: MetadataDelta) -> None:
        """Deletes the states of deleted topics."""
        if delta.deleted_topics:
            self.for_all(lambda shard: shard.topics_deleted(delta.deleted_topics))
