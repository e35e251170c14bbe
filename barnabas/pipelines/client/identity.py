"""Producer ids, by which a broker recognizes batches that it already has, and the transactions of a producer (KIP-98).

Knows nothing of batches and queues.
"""

import weakref
from dataclasses import dataclass, field
from typing import Any

from kafka.protocol.metadata import CoordinatorType
from kafka.protocol.producer import InitProducerIdRequest

from barnabas.columnar.encoding import ProducerStamp, after
from barnabas.errors import InvalidTransactionTimeout, KafkaError, UnknownServerError
from barnabas.pipelines.client import TopicPartition
from barnabas.pipelines.client.cluster import Cluster


@dataclass
class Identity:
    """A producer's id and epoch, and the next sequence number of each partition."""

    producer_id: int
    epoch: int
    transactional_id: str | None = None
    sequences: dict[TopicPartition, int] = field(default_factory=dict)

    def next(self, topic_partition: TopicPartition, count: int) -> ProducerStamp:
        """Returns the stamp of the next batch, which has `count` records."""
        sequence = self.sequences.get(topic_partition, 0)
        self.sequences[topic_partition] = after(sequence, count)
        return ProducerStamp(self.producer_id, self.epoch, sequence, self.transactional_id is not None)


_free: weakref.WeakKeyDictionary[Cluster, list[Identity]] = weakref.WeakKeyDictionary()
"""Identities that no writer uses, by the cluster that issued them. A forked process has other clusters."""


def idempotent(cluster: Cluster) -> Identity:
    """Returns an identity without transactions: one that a writer released, or a new one."""
    kept = _free.get(cluster)
    if kept:
        return kept.pop()
    identity: Identity = cluster.run(cluster.retrying, lambda: new_identity(cluster))
    return identity


def release(cluster: Cluster, identity: Identity) -> None:
    """Lets another writer use an identity. All its batches must be acknowledged."""
    _free.setdefault(cluster, []).append(identity)


async def new_identity(
    cluster: Cluster, transactional_id: str | None = None, transaction_timeout_ms: int = 60_000
) -> Identity:
    """Requests a producer id, once. For a transactional id this fences its last owner and aborts that one's
    transaction.
    """
    request = InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=transaction_timeout_ms,
        producer_id=-1,
        producer_epoch=-1,
        enable2_pc=False,
        keep_prepared_txn=False,
        max_version=4,
    )
    response = await _ask(cluster, transactional_id, request)
    if response.error_code:
        error = KafkaError.by_code.get(response.error_code, UnknownServerError)
        if error is InvalidTransactionTimeout:
            raise error(
                f"kafka.transaction.timeout.ms is {transaction_timeout_ms}, more than the brokers allow "
                "(transaction.max.timeout.ms)"
            )
        raise error(f"{transactional_id or 'a producer id'}: {error()}")
    return Identity(response.producer_id, response.producer_epoch, transactional_id)


async def _ask(cluster: Cluster, transactional_id: str | None, request: Any) -> Any:
    if transactional_id is None:
        return await cluster.send_to_any(request)
    return await cluster.send_to_coordinator(transactional_id, request, CoordinatorType.TRANSACTION)
