"""The leader's replication throttle: counts bytes sent to throttled replicas, and sends none to those out of sync while
the rate is exceeded (KIP-73).

Knows nothing of requests. Rules of Apache Kafka's ``ReplicaManager.shouldLeaderThrottle``: a follower in the ISR is
counted, but never throttled.
"""

from barnabas.broker import Broker
from barnabas.cluster.replication.partition import Partition
from barnabas.cluster.replication.throttle import is_throttled


def is_counted(broker: Broker, partition: Partition) -> bool:
    """Returns whether ``leader.replication.throttled.replicas`` of the topic has this leader's replica."""
    replicas = partition.log.config.leader_replication_throttled_replicas
    return bool(replicas) and is_throttled(replicas, partition.index, broker.node_id)


def is_held_back(broker: Broker, partition: Partition, follower_id: int) -> bool:
    """Returns whether a follower gets no records now."""
    if not is_counted(broker, partition):
        return False
    followers = partition.followers
    if followers is not None and follower_id in followers.isr:
        return False
    return broker.leader_throttle.pause_ms(broker.clock.time_ms()) > 0


def count(broker: Broker, partition: Partition | None, size: int) -> None:
    """Counts the bytes that a follower is sent."""
    if size and partition is not None and is_counted(broker, partition):
        broker.leader_throttle.record(size, broker.clock.time_ms())
