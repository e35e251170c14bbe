"""RemoveRaftVoter (API key 81): makes a voter of the metadata quorum an observer (KIP-853).

Knows nothing of how voters change. Apache Kafka's ``KafkaRaftClient.handleRemoveVoterRequest``.
"""

from barnabas.api_handlers import voter_changes
from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.wire.message import Response
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse


@api(RemoveRaftVoterRequest)
def remove_raft_voter(request: RemoveRaftVoterRequest, context: Context) -> Later[Response]:
    """Removes the voter. Responds when the change is committed; a leader that is removed then resigns."""
    leader = voter_changes.leader_of(context, request.cluster_id)
    key = voter_changes.key_of(request, "Remove")
    later, done = voter_changes.answer(request, RemoveRaftVoterResponse(), context)
    leader.changes.remove(key, done)
    return later
