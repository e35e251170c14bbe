"""Vote (API key 52): a candidate asks for this node's vote, or for a pre-vote (KIP-595, KIP-996).

Knows nothing of how elections work. Apache Kafka's ``KafkaRaftClient.handleVoteRequest``.
"""

from barnabas.api_handlers import elections
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import error_shape
from barnabas.api_handlers.registry import api
from barnabas.cluster.quorum.client import ReplicaKey
from barnabas.cluster.quorum.elections import LogEnd
from barnabas.errors import KafkaError
from barnabas.wire.messages.vote import VoteRequest, VoteResponse


@api(VoteRequest)
def vote(request: VoteRequest, context: Context) -> VoteResponse:
    """Returns whether the vote is granted, and the current leader."""
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
    return elections.answer(VoteResponse, voter, context, error, vote_granted=granted)


@error_shape(VoteRequest)
def refused(request: VoteRequest, error: KafkaError, version: int) -> VoteResponse:
    return VoteResponse(error_code=error.code, topics=[])
