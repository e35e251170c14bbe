"""BeginQuorumEpoch (API key 53): a node tells that it leads the metadata quorum (KIP-595).

Knows nothing of how elections go. Apache Kafka's ``KafkaRaftClient.handleBeginQuorumEpochRequest``.
"""

from barnabas.api_handlers import elections
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import error_shape
from barnabas.api_handlers.registry import api
from barnabas.cluster.quorum.client import Leadership
from barnabas.errors import NONE, KafkaError
from barnabas.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse

Topic = BeginQuorumEpochResponse.TopicData


@api(BeginQuorumEpochRequest)
def begin_quorum_epoch(request: BeginQuorumEpochRequest, context: Context) -> BeginQuorumEpochResponse:
    """Follows the new leader."""
    voter = elections.voter_of(context)
    elections.check(request, context)
    (topic,) = request.topics
    (told,) = topic.partitions
    elections.learn(request.leader_endpoints, Leadership(told.leader_id, told.leader_epoch), voter, context)
    error = voter.begin_epoch(
        told.leader_id,
        told.leader_epoch,
        elections.meant(request.voter_id, told.voter_directory_id, voter),
    )
    partition = Topic.PartitionData(
        partition_index=0,
        error_code=NONE if error is None else error.code,
        leader_id=voter.leadership.leader_id,
        leader_epoch=voter.leadership.epoch,
    )
    response = BeginQuorumEpochResponse(topics=[Topic(topic_name=topic.topic_name, partitions=[partition])])
    if (where := voter.leader_endpoint(context.session.listener)) is not None:
        response.node_endpoints = [
            BeginQuorumEpochResponse.NodeEndpoint(node_id=voter.leadership.leader_id, host=where.host, port=where.port)
        ]
    return response


@error_shape(BeginQuorumEpochRequest)
def refused(request: BeginQuorumEpochRequest, error: KafkaError, version: int) -> BeginQuorumEpochResponse:
    return BeginQuorumEpochResponse(error_code=error.code, topics=[])
