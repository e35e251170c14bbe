"""The common parts of the handlers of Vote, BeginQuorumEpoch and EndQuorumEpoch.

Knows nothing of how votes are decided.
"""

from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

from barnabas.api_handlers.context import Context
from barnabas.cluster.quorum.client import NO_NODE, Leadership, ReplicaKey
from barnabas.cluster.quorum.raft_voter import RaftVoter
from barnabas.cluster.topic_names import CLUSTER_METADATA
from barnabas.errors import NONE, InconsistentClusterId, InvalidRequest, KafkaError, NotController
from barnabas.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from barnabas.wire.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from barnabas.wire.messages.vote import VoteRequest, VoteResponse


class NamedEndpoint(Protocol):
    """An endpoint of the leader in a request."""

    name: str
    host: str
    port: int


R = TypeVar("R", VoteResponse, BeginQuorumEpochResponse, EndQuorumEpochResponse)


def voter_of(context: Context) -> RaftVoter:
    """Returns this node as a voter. :raises NotController: this node is not a voter"""
    quorum = context.broker.quorum
    if not isinstance(quorum, RaftVoter):
        raise NotController
    return quorum


def check(request: VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest, context: Context) -> None:
    """Checks the fields of the whole request.

    :raises InconsistentClusterId: it is meant for another cluster
    :raises InvalidRequest: it is for another partition than that of the metadata log
    """
    if request.cluster_id not in (None, context.broker.cluster_id):
        raise InconsistentClusterId
    wanted = [(topic.topic_name, [each.partition_index for each in topic.partitions]) for topic in request.topics]
    if wanted != [(CLUSTER_METADATA, [0])]:
        raise InvalidRequest


def meant(voter_id: int, directory_id: bytes, voter: RaftVoter) -> ReplicaKey:
    """Returns the replica key that a request names; that of this node if it names none."""
    return voter.key if voter_id == NO_NODE else ReplicaKey(voter_id, directory_id)


def learn(endpoints: Iterable[NamedEndpoint], leadership: Leadership, voter: RaftVoter, context: Context) -> None:
    """Stores the endpoints that a leader sends, unless its epoch is old."""
    leader_id, epoch = leadership
    for each in endpoints if leader_id != NO_NODE and epoch >= voter.leadership.epoch else ():
        if each.name == context.broker.config.controller_listener_name:
            voter.learn(leader_id, each.host, each.port)


def answer(kind: type[R], voter: RaftVoter, context: Context, error: KafkaError | None, **fields: Any) -> R:
    """Returns the response for the partition of the metadata log, which names the leader and its endpoints."""
    leader_id, epoch = voter.leadership
    topic: Any = kind.TopicData
    partition = topic.PartitionData(
        partition_index=0,
        error_code=NONE if error is None else error.code,
        leader_id=leader_id,
        leader_epoch=epoch,
        **fields,
    )
    response = kind(topics=[topic(topic_name=CLUSTER_METADATA, partitions=[partition])])
    where = voter.leader_endpoint(context.session.listener)
    if where is not None:
        response.node_endpoints = [kind.NodeEndpoint(node_id=leader_id, host=where.host, port=where.port)]
    return response
