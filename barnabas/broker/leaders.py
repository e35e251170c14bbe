"""Finds the leader of a partition, or the coordinator of a key.

Knows nothing of the requests to it.
"""

from barnabas.cluster.image.image import MetadataImage, PartitionImage
from barnabas.groups.java_hash import partition_of


def leader_of(image: MetadataImage, topic: str, index: int) -> int | None:
    """Returns the id of the broker that leads the partition; None if there is none, or if it is fenced."""
    return _live_leader(image, image.partition(topic, index))


def coordinator_of(image: MetadataImage, topic: str, key: str) -> int | None:
    """Returns the id of the broker that leads the partition of ``key`` in an internal topic; None as above."""
    found = image.topics_by_name.get(topic)
    if found is None:
        return None
    return _live_leader(image, found.partitions.get(partition_of(key, len(found.partitions))))


def _live_leader(image: MetadataImage, partition: PartitionImage | None) -> int | None:
    if partition is None:
        return None
    broker = image.brokers.get(partition.leader)
    return None if broker is None or broker.fenced else partition.leader
