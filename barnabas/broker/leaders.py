"""Finds the leader of a partition, or the coordinator of a key.

Knows nothing of the requests to it.
"""

from barnabas.cluster.image.image import MetadataImage, PartitionImage
from barnabas.groups.java_hash import partition_of

CoordinatorTerm = tuple[int, int]
"""A broker, and the leader epoch of the partition for which it is a coordinator; -1 for what is not known."""


def leader_of(image: MetadataImage, topic: str, index: int) -> int | None:
    """Returns the id of the broker that leads the partition; None if there is none, or if it is fenced."""
    return _live_leader(image, image.partition(topic, index))


def coordinator_of(image: MetadataImage, topic: str, key: str) -> int | None:
    """Returns the id of the broker that leads the partition of ``key`` in an internal topic; None as above."""
    return _live_leader(image, _partition_of(image, topic, key))


def coordinator_term(image: MetadataImage, topic: str, key: str) -> CoordinatorTerm:
    """Returns the term of the coordinator of ``key``, as its partition of an internal topic has it."""
    partition = _partition_of(image, topic, key)
    return (-1, -1) if partition is None else (partition.leader, partition.leader_epoch)


def _partition_of(image: MetadataImage, topic: str, key: str) -> PartitionImage | None:
    found = image.topics_by_name.get(topic)
    return None if found is None else found.partitions.get(partition_of(key, len(found.partitions)))


def _live_leader(image: MetadataImage, partition: PartitionImage | None) -> int | None:
    if partition is None:
        return None
    broker = image.brokers.get(partition.leader)
    return None if broker is None or broker.fenced else partition.leader
