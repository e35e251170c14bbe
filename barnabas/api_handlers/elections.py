"""What the handlers of the requests of elections have in common: Vote, BeginQuorumEpoch and EndQuorumEpoch.

Knows nothing of how elections go.
"""

from collections.abc import Iterable
from typing import Protocol

from barnabas.api_handlers.context import Context
from barnabas.cluster.quorum.client import NO_NODE, Leadership, ReplicaKey
from barnabas.cluster.quorum.raft_voter import RaftVoter
from barnabas.cluster.topic_names import CLUSTER_METADATA
from barnabas.errors import InconsistentClusterId, InvalidRequest, NotController
from barnabas.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from barnabas.wire.messages.end_quorum_epoch import EndQuorumEpochRequest
from barnabas.wire.messages.vote import VoteRequest


class NamedEndpoint(Protocol):
    """Where a leader listens, as a request says it."""

    name: str
    host: str
    port: int


def voter_of(context: Context) -> RaftVoter:
    """Returns this node as a voter. :raises NotController: it takes no part in elections"""
    quorum = context.broker.quorum
    if not isinstance(quorum, RaftVoter):
        raise NotController
    return quorum


def check(request: VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest, context: Context) -> None:
    """Checks what concerns the whole request.

    :raises InconsistentClusterId: it is meant for another cluster
    :raises InvalidRequest: it is for another partition than that of the metadata log
    """
    if request.cluster_id not in (None, context.broker.cluster_id):
        raise InconsistentClusterId
    wanted = [(topic.topic_name, [each.partition_index for each in topic.partitions]) for topic in request.topics]
    if wanted != [(CLUSTER_METADATA, [0])]:
        raise InvalidRequest


def meant(voter_id: int, directory_id: bytes, voter: RaftVoter) -> ReplicaKey:
    """Returns the voter that a request names; this one, if it names none."""
    return voter.key if voter_id == NO_NODE else ReplicaKey(voter_id, directory_id)


def learn(endpoints: Iterable[NamedEndpoint], leadership: Leadership, voter: RaftVoter, context: Context) -> None:
    """Notes where a leader says that it listens, unless it has been replaced."""
    leader_id, epoch = leadership
    for each in endpoints if leader_id != NO_NODE and epoch >= voter.leadership.epoch else ():
        if each.name == context.broker.config.controller_listener_name:
            voter.learn(leader_id, each.host, each.port)
