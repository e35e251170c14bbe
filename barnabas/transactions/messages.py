"""The commands and results of the transaction coordinator.

Knows nothing of the wire: errors are those of the newest versions, and handlers convert them for older requests into
what that version knows.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from barnabas.errors import CloseConnection, KafkaError

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1

Record = tuple[bytes, bytes | None]
"""Key and value of a record of ``__transaction_state``; a tombstone has no value."""


class TopicPartition(NamedTuple):
    """A partition by its topic's name."""

    topic: str
    partition: int


def by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Groups the indexes of partitions by topic, as requests and records list them."""
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        indexes = topics.get(topic)
        if indexes is None:
            topics[topic] = [index]
        else:
            indexes.append(index)
    return topics


class Marker(NamedTuple):
    """The marker in each partition of a transaction that ends."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    """The leader epoch of the coordinator's partition. A partition refuses markers of former coordinators."""
    is_commit: bool
    transaction_version: int
    """The transaction.version of the client: 0, 1, or 2, at which the epoch rises at each end (KIP-890)."""


class Path(Enum):
    """Which coordinator a producer's connection is to: it may have one for each."""

    TRANSACTIONS = "to the coordinator of its transactions"
    GROUPS = "to the coordinator of the group whose offsets it commits"


class ProducerIdentity(NamedTuple):
    """A transactional producer, and the session by which it sends a request."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    session: int = 0
    """The number of the session; 0 where it is of no consequence."""
    path: Path = Path.TRANSACTIONS


class Overtaken(CloseConnection):
    """The producer has sent a request by a newer connection since, so no client waits for the answer to this one."""


class InitProducer(NamedTuple):
    """InitProducerId with a transactional id, and with the producer's current id and epoch, if it has one (KIP-360)."""

    transactional_id: str
    timeout_ms: int
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


class InitResult(NamedTuple):
    """The result of an :class:`InitProducer`."""

    error: KafkaError | None
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


class EndResult(NamedTuple):
    """The result of an EndTxn: the id and epoch to continue with, which clients get from version 5 on."""

    error: KafkaError | None
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


class DescribedTransaction(NamedTuple):
    """A transactional id as DescribeTransactions shows it."""

    transactional_id: str
    state: str
    """By Kafka's name: Empty, Ongoing, PrepareCommit, ..."""
    timeout_ms: int
    start_time_ms: int
    """-1 where no transaction is open."""
    producer_id: int
    producer_epoch: int
    partitions: Sequence[TopicPartition]


class ListedTransaction(NamedTuple):
    """A transactional id as ListTransactions shows it."""

    transactional_id: str
    producer_id: int
    state: str


class Listing(NamedTuple):
    """The result of ListTransactions, and the requested states that do not exist."""

    unknown_states: Sequence[str]
    transactions: Sequence[ListedTransaction]


PartitionErrors = Mapping[TopicPartition, KafkaError | None]

Written = Callable[[KafkaError | None], object]
Write = Callable[[str, Record, Written], object]
"""Appends a record of a transactional id. The callback gets None when it is safe, or the error: at once, or later."""

SendMarkers = Callable[[Marker, Sequence[TopicPartition], Callable[[PartitionErrors], object]], object]
"""Sends a marker to partitions. The callback is called with the results of some of them, as they arrive."""

InitReply = Callable[[InitResult], object]
ErrorReply = Callable[[KafkaError | None], object]
EndReply = Callable[[EndResult], object]
