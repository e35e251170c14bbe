"""What is said to the transaction coordinator, and what it says back.

Knows nothing of the wire: errors are those of the newest versions, and whoever answers an older request turns them into
what that version knows.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from barnabas.errors import CloseConnection, KafkaError

NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1

Record = tuple[bytes, bytes | None]
"""Key and value of a record of ``__transaction_state``; without a value the transactional id is gone."""


class TopicPartition(NamedTuple):
    """Which partition."""

    topic: str
    partition: int


class Marker(NamedTuple):
    """What is written to each partition of a transaction when it ends."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    """Leader epoch of the coordinator's partition: a partition takes no marker of a former coordinator."""
    is_commit: bool
    transaction_version: int
    """Which generation of transactions the client speaks: 0, 1, or 2 (KIP-890), where the epoch rises at each end."""


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
    """The producer has sent something by a newer connection since: the request is late, and nobody waits for it."""


class InitProducer(NamedTuple):
    """InitProducerId with a transactional id. Id and epoch are those that the producer has, if it has any (KIP-360)."""

    transactional_id: str
    timeout_ms: int
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


class InitResult(NamedTuple):
    """The answer to an :class:`InitProducer`."""

    error: type[KafkaError] | None
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


class EndResult(NamedTuple):
    """The answer to an end: the id and epoch to go on with, of which clients hear from EndTxn 5 on."""

    error: type[KafkaError] | None
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
    """All that ListTransactions found, and which of the states that it was asked for there are not."""

    unknown_states: Sequence[str]
    transactions: Sequence[ListedTransaction]


PartitionErrors = Mapping[TopicPartition, type[KafkaError] | None]

Written = Callable[[type[KafkaError] | None], object]
Write = Callable[[str, Record, Written], object]
"""Append a record of a transactional id; the last one is called when it is safe, or cannot be: at once, or later."""

SendMarkers = Callable[[Marker, Sequence[TopicPartition], Callable[[PartitionErrors], object]], object]
"""Write a marker to partitions; the last one is called when each has taken or refused it: at once, or later."""

InitReply = Callable[[InitResult], object]
ErrorReply = Callable[[type[KafkaError] | None], object]
EndReply = Callable[[EndResult], object]
