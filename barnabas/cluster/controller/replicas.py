"""Replicas and the registrations of their brokers: which ones may lead, and which directories they have.

Knows nothing of decisions. The rules are those of Apache Kafka's ``ClusterControlManager``, ``BrokerRegistration`` and
``DirectoryId`` (KIP-858).
"""

from collections.abc import Iterable

from barnabas.cluster.image.image import MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY, MetadataImage, PartitionImage

LOST_DIRECTORY = bytes(15) + b"\2"
"""The directory of a replica whose directory is offline and not known (``DirectoryId.LOST``)."""

RESERVED_DIRECTORIES = 100
"""Ids below this number are reserved (``DirectoryId.reserved``)."""


def is_active(broker_id: int, image: MetadataImage) -> bool:
    """Returns whether the broker may be in the ISR and lead: registered, not fenced, not shutting down."""
    broker = image.brokers.get(broker_id)
    return broker is not None and not broker.fenced and not broker.in_controlled_shutdown


def has_online_directory(broker_id: int, partition: PartitionImage, image: MetadataImage) -> bool:
    """Returns whether the directory of the broker's replica is online, according to the metadata (KIP-858)."""
    directory = partition.directories[partition.replicas.index(broker_id)]
    return is_online(directory, image.brokers[broker_id].log_dirs)


def is_online(directory: bytes, log_dirs: tuple[bytes, ...]) -> bool:
    """Returns whether a replica's directory is online on a broker with these directories.

    A broker without directories was registered at a metadata.version that does not record them.
    """
    if directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
        return True
    return directory != LOST_DIRECTORY and (not log_dirs or directory in log_dirs)


def is_reserved(directory: bytes) -> bool:
    return int.from_bytes(directory, "big") < RESERVED_DIRECTORIES


def default_directory(broker_id: int, image: MetadataImage) -> bytes:
    """Returns the directory of a new replica; UNASSIGNED if the broker has several."""
    broker = image.brokers.get(broker_id)
    if broker is None or len(broker.log_dirs) > 1:
        return UNASSIGNED_DIRECTORY
    return broker.log_dirs[0] if broker.log_dirs else MIGRATING_DIRECTORY


def default_directories(broker_ids: Iterable[int], image: MetadataImage) -> list[bytes]:
    return [default_directory(broker_id, image) for broker_id in broker_ids]
