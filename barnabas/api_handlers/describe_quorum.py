"""DescribeQuorum (API key 55): the voters and observers of the metadata quorum, and their log end offsets (KIP-595).

Knows nothing of how replicas fetch. Only the leader knows their log end offsets.
"""

from typing import TYPE_CHECKING

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.cluster.quorum.client import ReplicaKey
from barnabas.cluster.quorum.leader_log import UNKNOWN, Replica
from barnabas.cluster.quorum.quorum import Quorum
from barnabas.cluster.topic_names import CLUSTER_METADATA
from barnabas.errors import KafkaError, NotLeaderOrFollower, UnknownTopicOrPartition
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse

if TYPE_CHECKING:
    from barnabas.broker import Node

Topic = DescribeQuorumResponse.TopicData
Partition = Topic.PartitionData


@api(DescribeQuorumRequest)
def describe_quorum(request: DescribeQuorumRequest, context: Context) -> DescribeQuorumResponse:
    """Describes the metadata quorum. A request that names other partitions has UNKNOWN_TOPIC_OR_PARTITION."""
    requested = [(topic.topic_name, [each.partition_index for each in topic.partitions]) for topic in request.topics]
    if requested == [(CLUSTER_METADATA, [0])]:
        partition = metadata_partition(context.broker)
        return DescribeQuorumResponse(
            error_message="",
            topics=[Topic(topic_name=CLUSTER_METADATA, partitions=[partition])],
            nodes=nodes(context.broker.quorum) if not partition.error_code else [],
        )
    return DescribeQuorumResponse(
        error_message="",
        topics=[
            Topic(topic_name=name, partitions=list(map(missing_partition, indexes))) for name, indexes in requested
        ],
    )


def metadata_partition(broker: "Node") -> Partition:
    quorum, now_ms = broker.quorum, broker.clock.time_ms()
    log = quorum.leader_log
    if log is None or not quorum.is_leader:
        return failed_partition(0, NotLeaderOrFollower())
    own = DescribeQuorumResponse.ReplicaState(
        replica_id=quorum.node_id,
        replica_directory_id=quorum.voter_directory_id,
        log_end_offset=quorum.next_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    keys = quorum.voters()
    has_vote = quorum.node_id in keys
    followers = [replica_state(each, keys[each.key.node_id]) for each in log.followers()]
    voters = [*([own] if has_vote else []), *followers]
    return Partition(
        partition_index=0,
        error_message="",
        leader_id=quorum.leadership.leader_id,
        leader_epoch=quorum.leadership.epoch,
        high_watermark=UNKNOWN if quorum.high_watermark is None else quorum.high_watermark,
        current_voters=sorted(voters, key=lambda voter: voter.replica_id),
        observers=[*(replica_state(each, each.key) for each in log.observers(now_ms)), *([] if has_vote else [own])],
    )


def replica_state(replica: Replica, key: ReplicaKey) -> DescribeQuorumResponse.ReplicaState:
    """Returns the state of a replica. Where configs name the voters, a voter's key has no directory id."""
    return DescribeQuorumResponse.ReplicaState(
        replica_id=key.node_id,
        replica_directory_id=key.directory_id,
        log_end_offset=replica.log_end_offset,
        last_fetch_timestamp=replica.last_fetch_ms,
        last_caught_up_timestamp=replica.last_caught_up_ms,
    )


def nodes(quorum: Quorum) -> list[DescribeQuorumResponse.Node]:
    """Returns the voters and their endpoints."""
    return [
        DescribeQuorumResponse.Node(
            node_id=node_id,
            listeners=[
                DescribeQuorumResponse.Node.Listener(name=each.name, host=each.host, port=each.port)
                for each in quorum.endpoints_of(node_id)
            ],
        )
        for node_id in sorted(quorum.voters())
    ]


def missing_partition(index: int) -> Partition:
    return failed_partition(index, UnknownTopicOrPartition())


def failed_partition(index: int, error: KafkaError) -> Partition:
    return Partition(
        partition_index=index,
        error_code=error.code,
        error_message=str(error),
        leader_id=0,
        leader_epoch=0,
        high_watermark=0,
        current_voters=[],
        observers=[],
    )
