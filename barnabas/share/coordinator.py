"""The share coordinator: passes each request to the shard of its share partition (KIP-932).

Knows nothing of how a state changes, nor of where shards come from. Apache Kafka's ``ShareCoordinatorService``.
"""

from collections.abc import Sequence
from typing import Protocol

from barnabas.errors import KafkaError
from barnabas.share.messages import Outcome, Reply, SharePartitionKey, StateBatch
from barnabas.share.records import coordinator_key
from barnabas.share.shard import ShareShard


class Shards(Protocol):
    """The shards of the share coordinator on this node."""

    def shard(self, key: str, /) -> ShareShard:
        """Returns the shard that keeps the share partition ``group:topic id:partition``.

        :raises NotCoordinator: it is not on this node
        :raises CoordinatorLoadInProgress: it is being loaded
        """


class ShareCoordinator:
    """The share partitions that this node coordinates. Each command replies once, with an Outcome."""

    def __init__(self, shards: Shards) -> None:
        self._shards = shards

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, reply: Reply) -> None:
        """InitializeShareGroupState: starts a new state of that epoch. A start offset of -1 is not known yet."""
        try:
            shard = self._shard(key)
        except KafkaError as error:
            reply(_failed("initialize share group state", error))
        else:
            shard.initialize(key, state_epoch, start_offset, reply)

    def read(self, key: SharePartitionKey, leader_epoch: int, reply: Reply) -> None:
        """ReadShareGroupState: replies with the state, and fences leaders of earlier epochs. -1 is not an epoch."""
        try:
            shard = self._shard(key)
        except KafkaError as error:
            reply(_failed("read share group state", error))
        else:
            shard.read(key, leader_epoch, reply)

    def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
        reply: Reply,
    ) -> None:
        """WriteShareGroupState: merges the batches into the state. A start offset of -1 leaves it where it is."""
        try:
            shard = self._shard(key)
        except KafkaError as error:
            reply(_failed("write share group state", error))
        else:
            shard.write(key, state_epoch, leader_epoch, start_offset, delivery_complete_count, batches, reply)

    def read_summary(self, key: SharePartitionKey) -> Outcome:
        """ReadShareGroupStateSummary: returns the state without its batches, or UNINITIALIZED."""
        try:
            return self._shard(key).read_summary(key)
        except KafkaError as error:
            return _failed("read share group state summary", error)

    def delete(self, key: SharePartitionKey, reply: Reply) -> None:
        """DeleteShareGroupState: deletes the state, if there is one."""
        try:
            shard = self._shard(key)
        except KafkaError as error:
            reply(_failed("delete share group state", error))
        else:
            shard.delete(key, reply)

    def _shard(self, key: SharePartitionKey) -> ShareShard:
        return self._shards.shard(coordinator_key(key))


def _failed(what: str, error: KafkaError) -> Outcome:
    """A shard that is not here refuses with the text of ``ShareCoordinatorService``."""
    return Outcome(type(error)(f"Unable to {what}: {error}"))
