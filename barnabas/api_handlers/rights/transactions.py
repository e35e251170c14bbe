"""The guards of producers' ids and transactions, and of FindCoordinator.

Knows nothing of the state of a transaction. Apache Kafka's ``KafkaApis``.
"""

from barnabas.api_handlers.add_partitions_to_txn import SEVERAL_TRANSACTIONS
from barnabas.api_handlers.answering import Answer, then
from barnabas.api_handlers.find_coordinator import ASKS_FOR_SEVERAL, GROUP, KNOWS_SHARE, SHARE, TRANSACTION
from barnabas.api_handlers.rights.guard import EachOf, Guarded, Order, split
from barnabas.cluster.topic_names import INTERNAL
from barnabas.errors import (
    ClusterAuthorizationFailed,
    GroupAuthorizationFailed,
    KafkaError,
    OperationNotAttempted,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
    UnknownTopicOrPartition,
)
from barnabas.security.acls import Operation, ResourceType
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from barnabas.wire.messages.describe_transactions import DescribeTransactionsResponse
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.wire.messages.list_transactions import ListTransactionsResponse

WRITE, DESCRIBE, TOPIC = Operation.WRITE, Operation.DESCRIBE, ResourceType.TOPIC
TRANSACTIONAL_ID = ResourceType.TRANSACTIONAL_ID
TopicResult = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult


def init_producer_id(guarded: Guarded) -> Answer:
    """Needs WRITE on the transactional id; without one IDEMPOTENT_WRITE on the cluster, or WRITE on some topic."""
    access, transactional_id = guarded.access, guarded.request.transactional_id
    if transactional_id is not None:
        if access.allows(WRITE, TRANSACTIONAL_ID, transactional_id):
            return guarded.serve(guarded.request)
        return guarded.refused(TransactionalIdAuthorizationFailed)
    if access.on_cluster(Operation.IDEMPOTENT_WRITE) or access.on_some(WRITE, TOPIC):
        return guarded.serve(guarded.request)
    return guarded.refused(ClusterAuthorizationFailed)


def add_partitions_to_txn(guarded: Guarded) -> Answer:
    """Needs WRITE on the transactional id and each topic; of brokers, from version 4 on, CLUSTER_ACTION."""
    request, access = guarded.request, guarded.access
    if guarded.context.api_version >= SEVERAL_TRANSACTIONS:
        if access.on_cluster(Operation.CLUSTER_ACTION):
            return guarded.serve(request)
        return guarded.refused(ClusterAuthorizationFailed)
    if not access.allows(WRITE, TRANSACTIONAL_ID, request.v3_and_below_transactional_id):
        return guarded.refused(TransactionalIdAuthorizationFailed)
    names = {topic.name for topic in request.v3_and_below_topics}
    allowed = access.allowed(WRITE, TOPIC, names - set(INTERNAL))
    return guarded.serve(request) if names - set(INTERNAL) <= allowed else _not_attempted(guarded, allowed)


def _not_attempted(guarded: Guarded, allowed: frozenset[str]) -> AddPartitionsToTxnResponse:
    """Returns the response if a topic is refused: no partition is added then."""
    image = guarded.context.broker.image

    def code(topic: str, index: int) -> int:
        if topic not in allowed:
            return TopicAuthorizationFailed.code
        return (UnknownTopicOrPartition if image.partition(topic, index) is None else OperationNotAttempted).code

    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            TopicResult(
                name=topic.name,
                results_by_partition=[
                    TopicResult.AddPartitionsToTxnPartitionResult(
                        partition_index=index, partition_error_code=code(topic.name, index)
                    )
                    for index in topic.partitions
                ],
            )
            for topic in guarded.request.v3_and_below_topics
        ]
    )


def offset_for_leader_epoch(guarded: Guarded) -> Answer:
    """Needs CLUSTER_ACTION on the cluster, as followers have, or else DESCRIBE on each topic."""
    if guarded.access.on_cluster(Operation.CLUSTER_ACTION, logs_refusal=False):
        return guarded.serve(guarded.request)
    return EachOf(DESCRIBE, TOPIC, "topics", "topic", "topics")(guarded)


def show_topics(guarded: Guarded, response: DescribeTransactionsResponse) -> DescribeTransactionsResponse:
    """Leaves out the topics of a transaction that the sender may not describe."""
    names = (topic.topic for state in response.transaction_states for topic in state.topics)
    visible = guarded.access.allowed(DESCRIBE, TOPIC, names, logs_refusal=False)
    for state in response.transaction_states:
        state.topics = [topic for topic in state.topics if topic.topic in visible]
    return response


def list_transactions(guarded: Guarded) -> Answer:
    """Shows the transactional ids that the sender may describe."""

    def visible(response: ListTransactionsResponse) -> ListTransactionsResponse:
        names = (each.transactional_id for each in response.transaction_states)
        shown = guarded.access.allowed(DESCRIBE, TRANSACTIONAL_ID, names, logs_refusal=False)
        response.transaction_states = [each for each in response.transaction_states if each.transactional_id in shown]
        return response

    return then(guarded.serve(guarded.request), visible)


# ---------------------------------------------------------------- coordinators

KEYS: dict[int, tuple[ResourceType, type[KafkaError]]] = {
    GROUP: (ResourceType.GROUP, GroupAuthorizationFailed),
    TRANSACTION: (TRANSACTIONAL_ID, TransactionalIdAuthorizationFailed),
}
"""The type of resource that a key names, by the type of the key. Only brokers look up share partitions."""


def find_coordinator(guarded: Guarded) -> Answer:
    """Needs DESCRIBE on each group or transactional id; CLUSTER_ACTION on the cluster for share partitions."""
    request, access, version = guarded.request, guarded.access, guarded.context.api_version
    if request.key_type == SHARE and version >= KNOWS_SHARE:
        if access.on_cluster(Operation.CLUSTER_ACTION):
            return guarded.serve(request)
        return guarded.refused(ClusterAuthorizationFailed, has_message=True)
    if request.key_type not in KEYS:
        return guarded.serve(request)
    kind, error = KEYS[request.key_type]
    keys = request.coordinator_keys if version >= ASKS_FOR_SEVERAL else [request.key]
    allowed = access.allowed(DESCRIBE, kind, keys)
    if version < ASKS_FOR_SEVERAL:
        return guarded.serve(request) if request.key in allowed else guarded.refused(error, has_message=True)
    each = EachOf(DESCRIBE, kind, "coordinator_keys", "", "coordinators", Order.REQUEST, refuse=_refused_keys)
    return split(guarded, each, [key in allowed for key in keys])


def _refused_keys(guarded: Guarded, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    code = KEYS[request.key_type][1].code
    return FindCoordinatorResponse(
        coordinators=[
            FindCoordinatorResponse.Coordinator(
                key=key, node_id=-1, host="", port=-1, error_code=code, error_message=""
            )
            for key in request.coordinator_keys
        ]
    )
