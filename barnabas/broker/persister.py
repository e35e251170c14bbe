"""What share groups ask of the state of their partitions, several at once (Kafka's ``Persister``).

Knows nothing of where the state is kept: the share coordinator does, which on one node is here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from barnabas.share.coordinator import ShareCoordinator
from barnabas.share.messages import Outcome, Outcomes, Reply, SharePartitionKey, StateBatch, TopicPartition

Done = Callable[[Outcomes], object]
"""Called once, when all partitions have an outcome: at once, or when what was written is safe."""


class Persister:
    """The way of groups and of partitions' leaders to the share coordinator."""

    def __init__(self, coordinator: Callable[[], ShareCoordinator]) -> None:
        self._coordinator = coordinator

    def initialize(
        self, group_id: str, partitions: Mapping[bytes, Mapping[int, int]], state_epoch: int, done: Done
    ) -> None:
        """Begin states of that epoch; ``partitions``: topic id -> partition -> start offset, -1 where it is open."""
        starts = {(topic_id, index): at for topic_id, starts in partitions.items() for index, at in starts.items()}
        coordinator = self._coordinator()
        self._each(
            group_id, starts, lambda key, at, reply: coordinator.initialize(key, state_epoch, starts[at], reply), done
        )

    def read(self, group_id: str, topic_id: bytes, partition: int, leader_epoch: int, done: Done) -> None:
        """The whole state, for the leader of that epoch, which fences the leaders before."""
        coordinator = self._coordinator()
        self._each(
            group_id, [(topic_id, partition)], lambda key, _, reply: coordinator.read(key, leader_epoch, reply), done
        )

    def write(
        self,
        group_id: str,
        topic_id: bytes,
        partition: int,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        delivery_complete_count: int,
        batches: Sequence[StateBatch],
        done: Done,
    ) -> None:
        """Keep what became of records. FENCED_STATE_EPOCH, FENCED_LEADER_EPOCH: somebody newer is at it."""
        coordinator = self._coordinator()

        def write(key: SharePartitionKey, at: TopicPartition, reply: Reply) -> None:
            coordinator.write(key, state_epoch, leader_epoch, start_offset, delivery_complete_count, batches, reply)

        self._each(group_id, [(topic_id, partition)], write, done)

    def summary(self, group_id: str, partitions: Iterable[TopicPartition], done: Done) -> None:
        """Epochs, start offset and delivery complete count; UNINITIALIZED where there is no state."""
        coordinator = self._coordinator()
        self._each(group_id, partitions, lambda key, _, reply: reply(coordinator.read_summary(key)), done)

    def delete(self, group_id: str, partitions: Iterable[TopicPartition], done: Done) -> None:
        """Forget the states; where there is none, that is well too."""
        coordinator = self._coordinator()
        self._each(group_id, partitions, lambda key, _, reply: coordinator.delete(key, reply), done)

    def _each(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition],
        ask: Callable[[SharePartitionKey, TopicPartition, Reply], object],
        done: Done,
    ) -> None:
        """Ask about each partition once, and call ``done`` when all are answered for."""
        asked = list(dict.fromkeys(partitions))
        outcomes: Outcomes = {}

        def answered(at: TopicPartition, outcome: Outcome) -> None:
            outcomes[at] = outcome
            if len(outcomes) == len(asked):
                done({each: outcomes[each] for each in asked})

        if not asked:
            done({})
        for at in asked:
            ask(SharePartitionKey(group_id, *at), at, partial(answered, at))
