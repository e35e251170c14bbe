"""UpdateRaftVoter (API key 82): a voter sends the leader its endpoints and its supported ``kraft.version`` (KIP-853).

Knows nothing of how voters change. Apache Kafka's ``KafkaRaftClient.handleUpdateVoterRequest``.
"""

from barnabas.api_handlers import voter_changes
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.cluster.quorum.client import NO_NODE, ReplicaKey
from barnabas.cluster.quorum.raft_voter import RaftVoter
from barnabas.cluster.quorum.voters import Levels
from barnabas.errors import (
    NONE,
    FencedLeaderEpoch,
    InconsistentClusterId,
    InvalidRequest,
    KafkaError,
    NotLeaderOrFollower,
    UnknownLeaderEpoch,
)
from barnabas.wire.messages.update_raft_voter import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from barnabas.wire.types import ZERO_UUID


@api(UpdateRaftVoterRequest)
def update_raft_voter(request: UpdateRaftVoterRequest, context: Context) -> UpdateRaftVoterResponse:
    """Updates the voter. The response names the leader, too."""
    quorum = context.broker.quorum
    error: KafkaError | None = NotLeaderOrFollower()
    if request.cluster_id not in (None, context.broker.cluster_id):
        error = InconsistentClusterId()
    elif isinstance(quorum, RaftVoter):
        error = refusal(request, quorum)
    leader_id, epoch = quorum.leadership
    endpoint = quorum.endpoint_of(leader_id) if leader_id != NO_NODE else None
    return UpdateRaftVoterResponse(
        error_code=NONE if error is None else error.code,
        current_leader=UpdateRaftVoterResponse.CurrentLeader(
            leader_id=leader_id,
            leader_epoch=epoch,
            host="" if endpoint is None else endpoint.host,
            port=0 if endpoint is None else endpoint.port,
        ),
    )


def refusal(request: UpdateRaftVoterRequest, quorum: RaftVoter) -> KafkaError | None:
    """Updates the voter, or returns the error with which the update is refused."""
    epoch, known = request.current_leader_epoch, quorum.leadership.epoch
    if epoch != known:
        return FencedLeaderEpoch() if epoch < known else UnknownLeaderEpoch()
    if not quorum.is_elected:
        return NotLeaderOrFollower()
    if request.voter_id < 0 or request.voter_directory_id == ZERO_UUID:
        return InvalidRequest()
    levels = request.kraft_version_feature
    try:
        quorum.changes.update(
            ReplicaKey(request.voter_id, request.voter_directory_id),
            voter_changes.endpoints_of(request.listeners),
            Levels(levels.min_supported_version, levels.max_supported_version),
        )
    except KafkaError as error:
        return error
    return None
