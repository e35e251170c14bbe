"""What share groups ask of whoever keeps the state of their partitions (KIP-932).

Knows nothing of where that is: on one node it is the share coordinator beside the group coordinator.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from barnabas.errors import KafkaError

TopicPartition = tuple[bytes, int]
"""A topic's id and the number of a partition."""


class State(Protocol):
    """What is kept of a share partition, as far as its group has to know it."""

    @property
    def start_offset(self) -> int:
        """-1: nobody has read of it yet, and ``share.auto.offset.reset`` decides where it begins."""

    @property
    def leader_epoch(self) -> int: ...

    @property
    def delivery_complete_count(self) -> int:
        """Records from the start offset on that need not be delivered any more; -1 where that is not known."""


class Outcome(Protocol):
    """What became of a question about one share partition."""

    @property
    def error(self) -> type[KafkaError] | None: ...

    @property
    def message(self) -> str | None: ...

    @property
    def state(self) -> State: ...


Done = Callable[[Mapping[TopicPartition, Outcome]], object]
"""Called once, when there is an outcome for each partition: at once, or later."""


class Persister(Protocol):
    """Kafka's ``Persister``."""

    def initialize(
        self, group_id: str, partitions: Mapping[bytes, Mapping[int, int]], state_epoch: int, done: Done, /
    ) -> None:
        """Begin states of that epoch; ``partitions``: topic id -> partition -> start offset, -1 where it is open."""

    def summary(self, group_id: str, partitions: Iterable[TopicPartition], done: Done, /) -> None:
        """Where share partitions begin; start offset -1 where there is no state."""

    def delete(self, group_id: str, partitions: Iterable[TopicPartition], done: Done, /) -> None:
        """Forget the states; where there is none, that is well too."""
