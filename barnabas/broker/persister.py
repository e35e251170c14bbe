"""What share groups ask of the state of their partitions, several at once (Kafka's ``Persister``).

Knows nothing of where the state is kept: the share coordinator does, which on one node is here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from barnabas.errors import CoordinatorNotAvailable, KafkaError
from barnabas.share.gathering import Ask, Done, gather
from barnabas.share.messages import Outcome, Outcomes, Reply, SharePartitionKey, StateBatch, TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.share_state_log import ShareStateLog
    from barnabas.share.coordinator import ShareCoordinator


class Persister:
    """The way of groups and of partitions' leaders to the share coordinator."""

    def __init__(self, log: "Callable[[], ShareStateLog]") -> None:
        self._log = log
        #: Called with a group and partitions whose states have begun anew, or ended.
        self.on_change: Callable[[str, Iterable[TopicPartition]], object] = lambda group_id, partitions: None

    @property
    def _coordinator(self) -> "ShareCoordinator":
        return self._log().coordinator

    def initialize(
        self, group_id: str, partitions: Mapping[bytes, Mapping[int, int]], state_epoch: int, done: Done
    ) -> None:
        """Begin states of that epoch; ``partitions``: topic id -> partition -> start offset, -1 where it is open."""

        def ask(start_offset: int, key: SharePartitionKey, reply: Reply) -> None:
            self._coordinator.initialize(key, state_epoch, start_offset, reply)

        self._gather(
            group_id,
            [
                ((topic_id, index), partial(ask, start_offset))
                for topic_id, starts in partitions.items()
                for index, start_offset in starts.items()
            ],
            partial(self._changed, group_id, done),
        )

    def read(self, group_id: str, topic_id: bytes, partition: int, leader_epoch: int, done: Done) -> None:
        """The whole state, for the leader of that epoch, which fences the leaders before."""
        self._gather(
            group_id,
            [((topic_id, partition), lambda key, reply: self._coordinator.read(key, leader_epoch, reply))],
            done,
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

        def ask(key: SharePartitionKey, reply: Reply) -> None:
            self._coordinator.write(
                key, state_epoch, leader_epoch, start_offset, delivery_complete_count, batches, reply
            )

        self._gather(group_id, [((topic_id, partition), ask)], done)

    def summary(self, group_id: str, partitions: Iterable[TopicPartition], done: Done) -> None:
        """Epochs, start offset and delivery complete count; UNINITIALIZED where there is no state."""

        def ask(key: SharePartitionKey, reply: Reply) -> None:
            reply(self._coordinator.read_summary(key))

        self._gather(group_id, [(each, ask) for each in dict.fromkeys(partitions)], done)

    def delete(self, group_id: str, partitions: Iterable[TopicPartition], done: Done) -> None:
        """Forget the states; where there is none, that is well too."""
        asks = [(each, self._coordinator.delete) for each in dict.fromkeys(partitions)]
        self._gather(group_id, asks, partial(self._changed, group_id, done))

    def _changed(self, group_id: str, done: Done, outcomes: Outcomes) -> None:
        self.on_change(group_id, outcomes)
        done(outcomes)

    def _gather(self, group_id: str, asks: Sequence[tuple[TopicPartition, Ask]], done: Done) -> None:
        """As a client would: look for the coordinator first, which makes the topic; unless there is nothing to ask."""
        if not asks:
            done({})
            return

        def created(error: KafkaError | None) -> None:
            if error is None:
                gather(group_id, asks, done)
            else:
                done({place: Outcome(CoordinatorNotAvailable, str(error)) for place, _ in asks})

        self._log().create_topic(created)
