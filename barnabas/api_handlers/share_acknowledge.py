"""ShareAcknowledge (API key 79): a member of a share group acknowledges records that it has acquired.

Knows nothing of the states of records. Follows Apache Kafka's ``KafkaApis.handleShareAcknowledgeRequest`` (KIP-932,
KIP-1222).
"""

from typing import TYPE_CHECKING

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.by_topic import by_topic
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.api_handlers.share_answers import (
    acknowledgements,
    hidden_topics,
    key_of,
    leader_endpoints,
    leader_of,
    message_of,
)
from barnabas.broker.share_sessions import FINAL_EPOCH, INITIAL_EPOCH
from barnabas.cluster.image.image import MetadataImage
from barnabas.errors import InvalidShareSessionEpoch, KafkaError
from barnabas.share.messages import TopicPartition
from barnabas.wire.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse

if TYPE_CHECKING:
    from barnabas.api_handlers.access import Access

TopicData = ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse
PartitionData = TopicData.PartitionData


@api(ShareAcknowledgeRequest)
def share_acknowledge(
    request: ShareAcknowledgeRequest, context: Context, access: "Access | None" = None
) -> ShareAcknowledgeResponse | Later[ShareAcknowledgeResponse]:
    """Acknowledges records of each partition. Responds once the new states are durable.

    :param access: the rights of the sender; None if there is no authorizer
    """
    try:
        return handle(request, context, access)
    except KafkaError as error:
        return ShareAcknowledgeResponse(error_code=error.code, responses=[], node_endpoints=[])


def handle(
    request: ShareAcknowledgeRequest, context: Context, access: "Access | None" = None
) -> Later[ShareAcknowledgeResponse]:
    """Acknowledges the records.

    :raises KafkaError: the request as a whole is refused
    """
    broker = context.broker
    key = key_of(request.group_id, request.member_id, context)
    shares = broker.share_partitions
    if request.share_session_epoch == INITIAL_EPOCH:
        raise InvalidShareSessionEpoch
    is_final = request.share_session_epoch == FINAL_EPOCH
    session = shares.sessions.get(key) if is_final else shares.sessions.continue_(key, request.share_session_epoch)
    hidden = hidden_topics((topic.topic_id for topic in request.topics), access, broker.image)
    acknowledged_batches, refused = acknowledgements(
        request.topics, broker.image, is_renewal=request.is_renew_ack, hidden=hidden
    )
    later: Later[ShareAcknowledgeResponse] = Later()

    def answer(results: dict[TopicPartition, KafkaError | None]) -> None:
        answers = {at: partition_data(at, error, broker.image) for at, error in (results | refused).items()}
        later.resolve(
            ShareAcknowledgeResponse(
                acquisition_lock_timeout_ms=shares.of_group(key.group_id).lock_ms,
                responses=[
                    TopicData(topic_id=topic_id, partitions=partitions) for topic_id, partitions in by_topic(answers)
                ],
                node_endpoints=[
                    ShareAcknowledgeResponse.NodeEndpoint(
                        node_id=node.id, host=node.host, port=node.port, rack=node.rack
                    )
                    for node in leader_endpoints(answers.values(), context)
                ],
            )
        )

    def acknowledged(results: dict[TopicPartition, KafkaError | None]) -> None:
        if is_final:
            shares.close_session(session, lambda: answer(results))
        else:
            answer(results)

    shares.acknowledge(key, acknowledged_batches, acknowledged)
    return later


def partition_data(at: TopicPartition, error: KafkaError | None, image: MetadataImage) -> PartitionData:
    leader_id, leader_epoch = leader_of(at, error, image)
    return PartitionData(
        partition_index=at[1],
        error_code=error.code if error is not None else 0,
        error_message=message_of(error),
        current_leader=PartitionData.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch),
    )
