"""The common parts of the handlers of AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter.

Knows nothing of how voters change.
"""

from collections.abc import Iterable
from typing import Protocol

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import resolve_with_error
from barnabas.cluster.quorum.client import ReplicaKey
from barnabas.cluster.quorum.raft_voter import RaftVoter
from barnabas.cluster.quorum.voter_changes import Done
from barnabas.config.endpoints import Endpoint
from barnabas.errors import InconsistentClusterId, InvalidRequest, KafkaError, NotLeaderOrFollower, UnsupportedVersion
from barnabas.wire.message import Request, Response
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.wire.types import ZERO_UUID


class Listener(Protocol):
    """An endpoint of a voter in a request."""

    name: str
    host: str
    port: int


def leader_of(context: Context, cluster_id: str | None) -> RaftVoter:
    """Returns this node as the leader of the quorum.

    :raises InconsistentClusterId: the request is meant for another cluster
    :raises NotLeaderOrFollower: another node leads
    :raises UnsupportedVersion: this node is the only voter, and no other node can fetch its log
    """
    quorum = context.broker.quorum
    if cluster_id not in (None, context.broker.cluster_id):
        raise InconsistentClusterId(
            f'The given id "{cluster_id}" doesn\'t match the cluster id "{context.broker.cluster_id}"'
        )
    if not isinstance(quorum, RaftVoter):
        raise UnsupportedVersion("The voters of a node without controller.quorum.bootstrap.servers cannot change")
    if not quorum.is_elected:
        raise NotLeaderOrFollower
    return quorum


def key_of(request: AddRaftVoterRequest | RemoveRaftVoterRequest, what: str) -> ReplicaKey:
    """Returns the voter that is added or removed. :raises InvalidRequest: it has no id, or no directory"""
    if request.voter_id < 0 or request.voter_directory_id == ZERO_UUID:
        raise InvalidRequest(f"{what} voter request didn't include a valid voter")
    return ReplicaKey(request.voter_id, request.voter_directory_id)


def endpoints_of(listeners: Iterable[Listener]) -> list[Endpoint]:
    """Returns the endpoints of a voter. Their security protocols are in the node's configs, not in the request."""
    return [Endpoint(each.name, each.host, each.port, "") for each in listeners]


def answer(request: Request, response: Response, context: Context) -> tuple[Later[Response], Done]:
    """Returns a response that comes later, and the callback for the result of the change."""
    later: Later[Response] = Later()

    def done(error: KafkaError | None) -> None:
        if error is None:
            later.resolve(response)
        else:
            resolve_with_error(later, request, error, context.api_version)

    return later, done
