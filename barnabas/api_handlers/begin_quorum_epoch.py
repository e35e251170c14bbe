"""BeginQuorumEpoch (API key 53): the new leader of the metadata quorum announces itself (KIP-595).

Knows nothing of how elections work. Apache Kafka's ``KafkaRaftClient.handleBeginQuorumEpochRequest``.
"""

from barnabas.api_handlers import elections
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import error_shape
from barnabas.api_handlers.registry import api
from barnabas.cluster.quorum.client import Leadership
from barnabas.errors import KafkaError
from barnabas.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse


@api(BeginQuorumEpochRequest)
def begin_quorum_epoch(request: BeginQuorumEpochRequest, context: Context) -> BeginQuorumEpochResponse:
    """Follows the new leader."""
    voter = elections.voter_of(context)
    elections.check(request, context)
    (topic,) = request.topics
    (partition,) = topic.partitions
    elections.learn(request.leader_endpoints, Leadership(partition.leader_id, partition.leader_epoch), voter, context)
    error = voter.begin_epoch(
        partition.leader_id,
        partition.leader_epoch,
        elections.meant(request.voter_id, partition.voter_directory_id, voter),
    )
    return elections.answer(BeginQuorumEpochResponse, voter, context, error)


@error_shape(BeginQuorumEpochRequest)
def refused(request: BeginQuorumEpochRequest, error: KafkaError, version: int) -> BeginQuorumEpochResponse:
    return BeginQuorumEpochResponse(error_code=error.code, topics=[])
