"""AddRaftVoter (API key 80): makes an observer of the metadata quorum a voter (KIP-853).

Knows nothing of how voters change. Apache Kafka's ``KafkaRaftClient.handleAddVoterRequest``.
"""

from barnabas.api_handlers import voter_changes
from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.errors import InvalidRequest
from barnabas.wire.message import Response
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse


@api(AddRaftVoterRequest)
def add_raft_voter(request: AddRaftVoterRequest, context: Context) -> Later[Response]:
    """Adds the voter. Responds when the change is committed; with ``ack_when_committed`` false, when it is appended."""
    leader = voter_changes.leader_of(context, request.cluster_id)
    key = voter_changes.key_of(request, "Add")
    endpoints = voter_changes.endpoints_of(request.listeners)
    listener = context.broker.config.controller_listener_name
    if not any(each.name == listener for each in endpoints):
        named = ", ".join(f"ListenerName({each.name})={each.host}/<unresolved>:{each.port}" for each in endpoints)
        raise InvalidRequest(
            f"Add voter request didn't include the endpoint (Endpoints(endpoints={{{named}}})) for the default "
            f"listener ListenerName({listener})"
        )
    later, done = voter_changes.answer(request, AddRaftVoterResponse(), context)
    leader.changes.add(key, endpoints, done, waits=request.ack_when_committed)
    return later
