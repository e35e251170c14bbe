"""Runs the transaction coordinator over ``__transaction_state``.

Knows nothing of requests, nor of the contents of the records.
"""

from collections.abc import Callable
from functools import partial

from barnabas.broker.environment import NodeEnvironment
from barnabas.broker.internal_topic import runtime_environment
from barnabas.cluster.image.image import MetadataDelta
from barnabas.cluster.topic_names import TRANSACTION_STATE
from barnabas.coordinators.runtime import CoordinatorRuntime
from barnabas.coordinators.shard import ShardContext
from barnabas.records.builder import build_batch
from barnabas.transactions.config import TransactionConfig
from barnabas.transactions.coordinator import TransactionCoordinator
from barnabas.transactions.messages import (
    Record,
    SendMarkers,
    Written,
)
from barnabas.transactions.shard import TransactionShard

FEATURE = "transaction.version"


class TransactionRuntime(CoordinatorRuntime[TransactionShard]):
    """The shards of the transaction coordinator, and the coordinator itself."""

    def __init__(self, node: NodeEnvironment, send_markers: SendMarkers, next_producer_id: Callable[[], int]) -> None:
        environment = runtime_environment(
            node,
            TRANSACTION_STATE,
            load_buffer_size="transaction.state.log.load.buffer.size",
            write_timeout_ms="request.timeout.ms",
        )
        super().__init__(TRANSACTION_STATE, environment)
        self._node = node
        self._send_markers = send_markers
        self._next_producer_id = next_producer_id
        self._config = TransactionConfig.from_settings(node.config)
        self.coordinator = TransactionCoordinator(self._config, self, node.clock.time_ms)

    def new_shard(self, context: ShardContext[TransactionShard]) -> TransactionShard:
        node = self._node
        return TransactionShard(
            self._config,
            node.clock,
            context.deadlines,
            write=partial(self._write, context),
            send_markers=self._send_markers,
            next_producer_id=self._next_producer_id,
            coordinator_epoch=lambda: context.epoch,
            transaction_version=lambda: node.image.features.get(FEATURE, 0),
        )

    def _write(
        self, context: ShardContext[TransactionShard], transactional_id: str, record: Record, written: Written
    ) -> None:
        """Appends a record, alone and uncompressed, as all are (``TransactionLog.EnforcedCompression``)."""
        now_ms = self._node.clock.time_ms()
        context.append(build_batch([(*record, now_ms)]), now_ms, written)

    def on_image(self, delta: MetadataDelta) -> None:
        """Stops waiting for markers in partitions of deleted topics."""
        deleted = {topic.name for topic in delta.deleted_topics.values()}
        if deleted:
            self.for_all(lambda shard: shard.topics_deleted(deleted))
