"""DescribeQuorum (API key 55): the voters and observers of the metadata quorum, and their log end offsets (KIP-595).

Knows nothing of how replicas fetch. This node is the leader and the only voter.
"""

from barnabas.api_handlers.context import Context
from barnabas.api_handlers.registry import api
from barnabas.broker import Broker
from barnabas.cluster.quorum.sole_voter import SoleVoter
from barnabas.cluster.topic_names import CLUSTER_METADATA
from barnabas.errors import UnknownTopicOrPartition
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse

Topic = DescribeQuorumResponse.TopicData
Partition = Topic.PartitionData


@api(DescribeQuorumRequest)
def describe_quorum(request: DescribeQuorumRequest, context: Context) -> DescribeQuorumResponse:
    """Describes the metadata quorum. A request for anything else, or for more, has UNKNOWN_TOPIC_OR_PARTITION."""
    requested = [(topic.topic_name, [each.partition_index for each in topic.partitions]) for topic in request.topics]
    if requested == [(CLUSTER_METADATA, [0])]:
        return DescribeQuorumResponse(
            error_message="",
            topics=[Topic(topic_name=CLUSTER_METADATA, partitions=[metadata_partition(context.broker)])],
            nodes=nodes(context.broker),
        )
    return DescribeQuorumResponse(
        error_message="",
        topics=[
            Topic(topic_name=name, partitions=list(map(missing_partition, indexes))) for name, indexes in requested
        ],
    )


def metadata_partition(broker: Broker) -> Partition:
    quorum, now_ms = broker.quorum, broker.clock.time_ms()
    assert isinstance(quorum, SoleVoter)
    voter = DescribeQuorumResponse.ReplicaState(
        replica_id=quorum.node_id,
        replica_directory_id=quorum.voter_directory_id,
        log_end_offset=quorum.log.log_end_offset,
        last_fetch_timestamp=now_ms,
        last_caught_up_timestamp=now_ms,
    )
    return Partition(
        partition_index=0,
        error_message="",
        leader_id=quorum.leadership.leader_id,
        leader_epoch=quorum.leadership.epoch,
        high_watermark=quorum.log.high_watermark,
        current_voters=[voter],
        observers=[],
    )


def nodes(broker: Broker) -> list[DescribeQuorumResponse.Node]:
    """Returns the voters and their endpoints."""
    quorum = broker.quorum
    return [
        DescribeQuorumResponse.Node(
            node_id=quorum.node_id,
            listeners=[
                DescribeQuorumResponse.Node.Listener(name=each.name, host=each.host, port=each.port)
                for each in quorum.voter_endpoints
            ],
        )
    ]


def missing_partition(index: int) -> Partition:
    error = UnknownTopicOrPartition()
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
