"""The persister: the interface through which share groups initialize and delete the state of their share partitions
(KIP-932).

Knows nothing of where the state is stored.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from barnabas.errors import KafkaError

TopicPartition = tuple[bytes, int]
"""A topic id and a partition."""


class Outcome(Protocol):
    """The outcome for one share partition."""

    @property
    def error(self) -> KafkaError | None: ...


Done = Callable[[Mapping[TopicPartition, Outcome]], object]
"""Called once, when every partition has an outcome."""


class Persister(Protocol):
    """Kafka's ``Persister``."""

    def initialize(
        self, group_id: str, partitions: Mapping[bytes, Mapping[int, int]], state_epoch: int, done: Done, /
    ) -> None:
        """Initializes the state of share partitions, with that state epoch.

        :param partitions: start offsets by topic id and partition; -1 if ``share.auto.offset.reset`` decides
        """

    def delete(self, group_id: str, partitions: Iterable[TopicPartition], done: Done, /) -> None:
        """Deletes the state of share partitions. It is no error if there is none."""
