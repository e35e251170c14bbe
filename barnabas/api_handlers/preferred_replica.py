"""The preferred read replica of a consumer: one in the same rack (KIP-392).

Knows nothing of requests. Rules of Apache Kafka's ``ReplicaManager.findPreferredReadReplica`` and
``RackAwareReplicaSelector``. Imported where ``replica.selector.class`` names that class.
"""

from collections.abc import Mapping

from barnabas.broker.nodes import Node
from barnabas.cluster.replication.partition import Partition
from barnabas.wire.messages.fetch import FetchResponse

PartitionData = FetchResponse.FetchableTopicResponse.PartitionData


def preferred(partition: Partition, offset: int, rack: str, nodes: Mapping[int, Node]) -> PartitionData | None:
    """Returns the answer that names the preferred read replica of a consumer's rack; None if the consumer reads from
    the leader.

    Candidates are in sync and have the offset in their logs; the one with the highest log end offset is chosen.

    :param nodes: the nodes that advertise an address for the consumer's listener
    """
    followers = partition.followers
    leader = nodes.get(partition.node_id)
    if followers is None or (leader is not None and leader.rack == rack):
        return None
    near = [
        replica
        for replica in followers.in_sync()
        if replica.log_start_offset <= offset <= replica.log_end_offset
        and replica.broker_id in nodes
        and nodes[replica.broker_id].rack == rack
    ]
    if not near:
        return None
    log = partition.log
    return PartitionData(
        partition_index=partition.index,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        aborted_transactions=None,
        preferred_read_replica=max(
            near, key=lambda each: (each.log_end_offset, each.caught_up_at, each.broker_id)
        ).broker_id,
        records=b"",
    )
