"""What share groups ask of whoever keeps the state of their partitions (KIP-932).

Knows nothing of where that is: on one node it is the share coordinator beside the group coordinator.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from barnabas.errors import KafkaError

TopicPartition = tuple[bytes, int]
"""A topic's id and the number of a partition."""


class Outcome(Protocol):
    """What became of a question about one share partition."""

    @property
    def error(self) -> type[KafkaError] | None: ...


Done = Callable[[Mapping[TopicPartition, Outcome]], object]
"""Called once, when there is an outcome for each partition: at once, or later."""


class Persister(Protocol):
    """Kafka's ``Persister``."""

    def initialize(
        self, group_id: str, partitions: Mapping[bytes, Mapping[int, int]], state_epoch: int, done: Done, /
    ) -> None:
        """Begin states of that epoch; ``partitions``: topic id -> partition -> start offset, -1 where it is open."""

    def delete(self, group_id: str, partitions: Iterable[TopicPartition], done: Done, /) -> None:
        """Forget the states; where there is none, that is well too."""
