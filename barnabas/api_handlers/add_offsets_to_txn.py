"""AddOffsetsToTxn (API key 25): adds the offsets of a group to a transaction (KIP-98).

Knows nothing of the group. Adds the group's partition of ``__consumer_offsets``, as AddPartitionsToTxn would.
"""

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.outcome import coordinators_code
from barnabas.api_handlers.registry import api
from barnabas.cluster.topic_names import CONSUMER_OFFSETS
from barnabas.errors import KafkaError
from barnabas.transactions.messages import ProducerIdentity, TopicPartition
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse


@api(AddOffsetsToTxnRequest)
def add_offsets_to_txn(request: AddOffsetsToTxnRequest, context: Context) -> Later[AddOffsetsToTxnResponse]:
    """Adds the partition that stores the group. Responds once that is durable."""
    later: Later[AddOffsetsToTxnResponse] = Later()
    broker, version = context.broker, context.api_version

    def answer(error: KafkaError | None) -> None:
        later.resolve(AddOffsetsToTxnResponse(error_code=coordinators_code(error, version)))

    partition = TopicPartition(CONSUMER_OFFSETS, broker.coordinators.groups.partition_of(request.group_id))
    session = context.session.number
    producer = ProducerIdentity(request.transactional_id, request.producer_id, request.producer_epoch, session)
    broker.transactions.add_partitions(producer, [partition], answer)
    return later
