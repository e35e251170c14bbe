"""The metadata image that a data directory is checked against: topics, their ids and configs, and brokers.

Knows nothing of the other partitions. The broker's own decoder reads the records into the broker's own image.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from barnabas.cluster.image.image import MetadataImage, PartitionImage
from barnabas.cluster.quorum.record_batches import Control, decode_batches
from barnabas.cluster.quorum.snapshots import decode_snapshot, parse_file_name
from barnabas.config.dynamic import TOPIC_RESOURCE
from barnabas.errors import CorruptMessage, KafkaError, MalformedMessage
from barnabas.wire.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)

METADATA_TOPIC = "__cluster_metadata"
METADATA_DIRECTORY = f"{METADATA_TOPIC}-0"
METADATA_TOPIC_ID = bytes(15) + b"\1"


class Unreadable(Exception):
    """The metadata log cannot be decoded."""


class Cluster:
    """The metadata image, or None if there is no metadata log."""

    def __init__(self, image: MetadataImage | None = None) -> None:
        self.image = image

    def topic_id(self, topic: str) -> bytes | None:
        """Returns the topic's id; None if the topic is unknown."""
        if topic == METADATA_TOPIC:
            return METADATA_TOPIC_ID
        found = self.image.topics_by_name.get(topic) if self.image is not None else None
        return found.id if found is not None else None

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        return self.image.partition(topic, index) if self.image is not None else None

    def compacts(self, topic: str) -> bool | None:
        """Returns whether the topic's own cleanup.policy compacts it; None if it has none, or the topic is unknown."""
        if topic == METADATA_TOPIC:
            return False
        if self.image is None or topic not in self.image.topics_by_name:
            return None
        policy = self.image.configs.get((TOPIC_RESOURCE, topic), {}).get("cleanup.policy")
        return None if policy is None else "compact" in policy


def load(directory: Path) -> MetadataImage:
    """Returns the image of the latest valid snapshot in ``directory`` and of the log after it.

    :raises Unreadable: it cannot be decoded
    """
    try:
        image = _from_snapshot(directory)
        ready = list(_records_after(directory, image.offset))
        if ready:
            image, _ = image.apply([record for _, record in ready], offset=ready[-1][0], epoch=image.epoch)
    except (CorruptMessage, MalformedMessage, KafkaError, KeyError) as error:
        raise Unreadable(f"the metadata cannot be decoded: {error}") from error
    return image


def _from_snapshot(directory: Path) -> MetadataImage:
    """Returns the image of the latest valid snapshot; an empty one if the log begins at offset 0."""
    found = (parse_file_name(path.name) for path in directory.iterdir())
    damage: CorruptMessage | None = None
    for snapshot in sorted((each for each in found if each is not None), reverse=True):
        try:
            records = decode_snapshot((directory / snapshot.file_name).read_bytes()).records
        except CorruptMessage as error:
            damage = damage or error
            continue
        return MetadataImage().apply(records, offset=snapshot.end_offset - 1, epoch=snapshot.epoch)[0]
    if damage is not None and not (directory / f"{0:020d}.log").exists():
        raise damage
    return MetadataImage()


def _records_after(directory: Path, offset: int) -> Iterator[tuple[int, Any]]:
    """Yields the records of the log after that offset; those of a transaction when it is committed (KIP-868)."""
    uncommitted: list[tuple[int, Any]] | None = None
    for path in sorted(directory.glob("*.log")):
        for batch, records in decode_batches(path.read_bytes()):
            for number, record in enumerate(records):
                at = batch.base_offset + number
                if at <= offset or isinstance(record, Control):
                    continue
                if isinstance(record, BeginTransactionRecord):
                    uncommitted = []
                elif isinstance(record, EndTransactionRecord):
                    yield from uncommitted or ()
                    uncommitted = None
                elif isinstance(record, AbortTransactionRecord):
                    uncommitted = None
                elif uncommitted is None:
                    yield at, record
                else:
                    uncommitted.append((at, record))
