"""The transaction coordinator: checks a command as far as that needs no state, and passes it to the shard of its id.

Knows nothing of how a transaction changes, nor of where shards come from.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from barnabas.errors import InvalidRequest, InvalidTransactionTimeout, KafkaError
from barnabas.transactions.config import TransactionConfig
from barnabas.transactions.listing import Filter
from barnabas.transactions.messages import (
    DescribedTransaction,
    EndReply,
    EndResult,
    ErrorReply,
    InitProducer,
    InitReply,
    InitResult,
    Listing,
    PartitionErrors,
    ProducerIdentity,
    TopicPartition,
)
from barnabas.transactions.shard import TransactionShard


class Shards(Protocol):
    """The shards of the transaction coordinator on this node."""

    def shard(self, transactional_id: str, /) -> TransactionShard:
        """Returns the shard that keeps the id.

        :raises NotCoordinator: it is not on this node
        :raises CoordinatorLoadInProgress: it is being loaded
        """

    def shards(self) -> Iterable[TransactionShard]:
        """Returns all shards on this node. :raises CoordinatorLoadInProgress: one of them is being loaded"""


class TransactionCoordinator:
    """The transactional ids that this node coordinates (Kafka's class of that name)."""

    def __init__(self, config: TransactionConfig, shards: Shards, time_ms: Callable[[], int]) -> None:
        self._config = config
        self._shards = shards
        self._time_ms = time_ms

    def init_producer_id(self, ask: InitProducer, reply: InitReply) -> None:
        """InitProducerId with a transactional id: replies with a new epoch, which fences the former producer.

        An open transaction is aborted first; until that is done the reply is CONCURRENT_TRANSACTIONS.
        """
        try:
            if not ask.transactional_id:
                raise InvalidRequest
            if not 0 < ask.timeout_ms <= self._config.transaction_max_timeout_ms:
                raise InvalidTransactionTimeout
            shard = self._shards.shard(ask.transactional_id)
        except KafkaError as error:
            reply(InitResult(error))
        else:
            shard.init_producer_id(ask, reply)

    def check_session(self, producer: ProducerIdentity) -> None:
        """Remembers by which session the producer sends. Commands of a producer do so by themselves.

        :raises Overtaken: the producer has sent something by a newer session
        """
        try:
            shard = self._shards.shard(producer.transactional_id)
        except KafkaError:
            return  # what the request is about is refused
        shard.check_session(producer)

    def add_partitions(
        self,
        producer: ProducerIdentity,
        partitions: Sequence[TopicPartition],
        reply: ErrorReply,
        *,
        client_version: int = 0,
    ) -> None:
        """AddPartitionsToTxn: replies when the partitions are part of the transaction, which the first one begins.

        :raises Overtaken: the producer has sent something by a newer session
        """
        try:
            shard = self._shard(producer.transactional_id)
        except KafkaError as error:
            reply(error)
        else:
            shard.add_partitions(producer, partitions, reply, client_version=client_version)

    def verify_partitions(self, producer: ProducerIdentity, partitions: Sequence[TopicPartition]) -> PartitionErrors:
        """Returns TRANSACTION_ABORTABLE for each partition that is not part of the transaction (KIP-890).

        :raises Overtaken: the producer has sent something by a newer session
        """
        try:
            shard = self._shard(producer.transactional_id)
        except KafkaError as error:
            return dict.fromkeys(partitions, error)
        return shard.verify_partitions(producer, partitions)

    def end(self, producer: ProducerIdentity, is_commit: bool, reply: EndReply, *, client_version: int = 0) -> None:
        """EndTxn: replies when the decision is written. The markers follow by themselves.

        :raises Overtaken: the producer has sent something by a newer session
        """
        try:
            shard = self._shard(producer.transactional_id)
        except KafkaError as error:
            reply(EndResult(error))
        else:
            shard.end(producer, is_commit, reply, client_version=client_version)

    def describe(self, transactional_id: str) -> DescribedTransaction:
        """DescribeTransactions, one of them. :raises TransactionalIdNotFound: there is no such id"""
        return self._shard(transactional_id).describe(transactional_id)

    def list_transactions(
        self,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        duration_ms: int = -1,
        pattern: str | None = None,
    ) -> Listing:
        """ListTransactions: returns the ids that pass all filters.

        :raises InvalidRegularExpression: ``pattern`` is not one
        :raises CoordinatorLoadInProgress: not all ids are loaded
        """
        wanted = Filter(states, producer_ids, duration_ms, pattern, self._time_ms())
        found = [each for shard in self._shards.shards() for each in shard.list_transactions(wanted)]
        return Listing(wanted.unknown_states, found)

    def _shard(self, transactional_id: str) -> TransactionShard:
        if not transactional_id:
            raise InvalidRequest
        return self._shards.shard(transactional_id)
