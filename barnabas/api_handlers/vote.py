"""Vote (API key 52): a candidate asks for this node's vote, or whether it would get it (KIP-595, KIP-996).

Knows nothing of how elections go. Apache Kafka's ``KafkaRaftClient.handleVoteRequest``.
"""

from barnabas.api_handlers import elections
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import error_shape
from barnabas.api_handlers.registry import api
from barnabas.cluster.quorum.client import ReplicaKey
from barnabas.cluster.quorum.elections import LogEnd
from barnabas.errors import NONE, KafkaError
from barnabas.wire.messages.vote import VoteRequest, VoteResponse

Topic = VoteResponse.TopicData


@api(VoteRequest)
def vote(request: VoteRequest, context: Context) -> VoteResponse:
    """Answers whether the candidate has the vote, and who leads."""
    voter = elections.voter_of(context)
    elections.check(request, context)
    (topic,) = request.topics
    (wanted,) = topic.partitions
    error, granted = voter.vote(
        ReplicaKey(wanted.replica_id, wanted.replica_directory_id),
        wanted.replica_epoch,
        LogEnd(wanted.last_offset_epoch, wanted.last_offset),
        elections.meant(request.voter_id, wanted.voter_directory_id, voter),
        pre_vote=wanted.pre_vote,
    )
    partition = Topic.PartitionData(
        partition_index=0,
        error_code=NONE if error is None else error.code,
        leader_id=voter.leadership.leader_id,
        leader_epoch=voter.leadership.epoch,
        vote_granted=granted,
    )
    response = VoteResponse(topics=[Topic(topic_name=topic.topic_name, partitions=[partition])])
    if (where := voter.leader_endpoint(context.session.listener)) is not None:
        response.node_endpoints = [
            VoteResponse.NodeEndpoint(node_id=voter.leadership.leader_id, host=where.host, port=where.port)
        ]
    return response


@error_shape(VoteRequest)
def refused(request: VoteRequest, error: KafkaError, version: int) -> VoteResponse:
    return VoteResponse(error_code=error.code, topics=[])
