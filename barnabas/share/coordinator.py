"""The share coordinator: what is kept of share partitions, as a state machine (``ShareCoordinatorShard``).

Knows nothing of requests, logs and files.
"""

from collections.abc import Sequence

from barnabas.share.messages import Outcome, Reply, SharePartitionKey, StateBatch


class ShareCoordinator:
    """What is kept of each share partition."""

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int, reply: Reply) -> None:
        raise NotImplementedError

    def read(self, key: SharePartitionKey, leader_epoch: int, reply: Reply) -> None:
        raise NotImplementedError

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
        raise NotImplementedError

    def read_summary(self, key: SharePartitionKey) -> Outcome:
        raise NotImplementedError

    def delete(self, key: SharePartitionKey, reply: Reply) -> None:
        raise NotImplementedError
