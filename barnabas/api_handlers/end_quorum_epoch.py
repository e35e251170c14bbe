"""EndQuorumEpoch (API key 54): the leader of the metadata quorum resigns (KIP-595).

Knows nothing of how elections work. Apache Kafka's ``KafkaRaftClient.handleEndQuorumEpochRequest``.
"""

from barnabas.api_handlers import elections
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import error_shape
from barnabas.api_handlers.registry import api
from barnabas.cluster.quorum.client import Leadership, ReplicaKey
from barnabas.errors import KafkaError
from barnabas.wire.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse


@api(EndQuorumEpochRequest)
def end_quorum_epoch(request: EndQuorumEpochRequest, context: Context) -> EndQuorumEpochResponse:
    """Starts an election, after a delay that depends on this node's place among the preferred successors."""
    voter = elections.voter_of(context)
    elections.check(request, context)
    (topic,) = request.topics
    (ended,) = topic.partitions
    elections.learn(request.leader_endpoints, Leadership(ended.leader_id, ended.leader_epoch), voter, context)
    successors = [ReplicaKey(each.candidate_id, each.candidate_directory_id) for each in ended.preferred_candidates]
    error = voter.end_epoch(
        ended.leader_id, ended.leader_epoch, successors or [ReplicaKey(each) for each in ended.preferred_successors]
    )
    return elections.answer(EndQuorumEpochResponse, voter, context, error)


@error_shape(EndQuorumEpochRequest)
def refused(request: EndQuorumEpochRequest, error: KafkaError, version: int) -> EndQuorumEpochResponse:
    return EndQuorumEpochResponse(error_code=error.code, topics=[])
