"""The requests and responses of elections: Vote, BeginQuorumEpoch and EndQuorumEpoch.

Knows nothing of when they are sent, nor of their effect. The fields are those of Apache Kafka's ``KafkaRaftClient``
(KIP-595, KIP-853, KIP-996).
"""

from collections.abc import Sequence

from barnabas.cluster.quorum.client import Leadership, ReplicaKey
from barnabas.cluster.quorum.elections import AskVote, BeginEpoch, EndEpoch, Message
from barnabas.cluster.quorum.fetching import Answer
from barnabas.cluster.topic_names import CLUSTER_METADATA
from barnabas.config.endpoints import Endpoint
from barnabas.peers.peers import error_of
from barnabas.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from barnabas.wire.messages.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from barnabas.wire.messages.vote import VoteRequest, VoteResponse

Request = VoteRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest
Response = VoteResponse | BeginQuorumEpochResponse | EndQuorumEpochResponse

VotePartition = VoteRequest.TopicData.PartitionData
EndPartition = EndQuorumEpochRequest.TopicData.PartitionData


def request_of(message: Message, own: ReplicaKey, cluster_id: str, endpoints: Sequence[Endpoint]) -> Request:
    """Returns the request for a message of the elections.

    :param endpoints: the endpoints of this node
    """
    if isinstance(message, AskVote):
        return vote_request(message, own, cluster_id)
    if isinstance(message, BeginEpoch):
        return begin_request(message, own, cluster_id, endpoints)
    return end_request(message, own, cluster_id, endpoints)


def vote_request(message: AskVote, own: ReplicaKey, cluster_id: str) -> VoteRequest:
    partition = VotePartition(
        partition_index=0,
        replica_epoch=message.epoch,
        replica_id=own.node_id,
        replica_directory_id=own.directory_id,
        voter_directory_id=message.voter.directory_id,
        last_offset_epoch=message.log_end.epoch,
        last_offset=message.log_end.offset,
        pre_vote=message.pre_vote,
    )
    topic = VoteRequest.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])
    return VoteRequest(cluster_id=cluster_id, voter_id=message.voter.node_id, topics=[topic])


def begin_request(
    message: BeginEpoch, own: ReplicaKey, cluster_id: str, endpoints: Sequence[Endpoint]
) -> BeginQuorumEpochRequest:
    kind = BeginQuorumEpochRequest
    partition = kind.TopicData.PartitionData(
        partition_index=0,
        voter_directory_id=message.voter.directory_id,
        leader_id=own.node_id,
        leader_epoch=message.epoch,
    )
    return kind(
        cluster_id=cluster_id,
        voter_id=message.voter.node_id,
        topics=[kind.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])],
        leader_endpoints=[kind.LeaderEndpoint(name=each.name, host=each.host, port=each.port) for each in endpoints],
    )


def end_request(
    message: EndEpoch, own: ReplicaKey, cluster_id: str, endpoints: Sequence[Endpoint]
) -> EndQuorumEpochRequest:
    kind = EndQuorumEpochRequest
    partition = EndPartition(
        partition_index=0,
        leader_id=own.node_id,
        leader_epoch=message.epoch,
        preferred_successors=[each.node_id for each in message.successors],
        preferred_candidates=[
            EndPartition.ReplicaInfo(candidate_id=each.node_id, candidate_directory_id=each.directory_id)
            for each in message.successors
        ],
    )
    return kind(
        cluster_id=cluster_id,
        topics=[kind.TopicData(topic_name=CLUSTER_METADATA, partitions=[partition])],
        leader_endpoints=[kind.LeaderEndpoint(name=each.name, host=each.host, port=each.port) for each in endpoints],
    )


def read_answer(response: Response) -> Answer:
    """Reads a response to any of the requests. The body is the partition's part of it."""
    error = error_of(response.error_code)
    partitions = [each for topic in response.topics for each in topic.partitions]
    if error is not None or len(partitions) != 1:
        return Answer(error)
    (body,) = partitions
    return Answer(
        error_of(body.error_code),
        Leadership(body.leader_id, body.leader_epoch),
        tuple((each.node_id, each.host, each.port) for each in response.node_endpoints),
        body,
    )
