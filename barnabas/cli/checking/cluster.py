"""What the metadata log says of a data directory: its topics, their ids and configs, its owner.

Knows nothing of the other partitions. The records are read by the broker's own decoder, into its own image.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from barnabas.cluster.image import MetadataImage, PartitionImage
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
    """The metadata log says nothing that makes sense."""


class Cluster:
    """The metadata image, and what a check asks of it. Without a metadata log nothing is known."""

    def __init__(self, image: MetadataImage | None = None) -> None:
        self.image = image

    def topic_id(self, topic: str) -> bytes | None:
        """The topic's id; None if it is not known, or there is no such topic."""
        if topic == METADATA_TOPIC:
            return METADATA_TOPIC_ID
        found = self.image.topics_by_name.get(topic) if self.image is not None else None
        return found.id if found is not None else None

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        return self.image.partition(topic, index) if self.image is not None else None

    def compacts(self, topic: str) -> bool | None:
        """Whether the topic is compacted by a config of its own; None when that is not known."""
        if topic == METADATA_TOPIC:
            return False
        if self.image is None or topic not in self.image.topics_by_name:
            return None
        policy = self.image.configs.get((TOPIC_RESOURCE, topic), {}).get("cleanup.policy")
        return None if policy is None else "compact" in policy


def load(directory: Path) -> MetadataImage:
    """The image that the latest good snapshot in ``directory`` and the log after it make. Raises Unreadable."""
    try:
        image = _from_snapshot(directory)
        ready = list(_records_after(directory, image.offset))
        if ready:
            image, _ = image.apply([record for _, record in ready], offset=ready[-1][0], epoch=image.epoch)
    except (CorruptMessage, MalformedMessage, KafkaError, KeyError) as error:
        raise Unreadable(f"the metadata cannot be read: {error}") from error
    return image


def _from_snapshot(directory: Path) -> MetadataImage:
    """What the latest snapshot says that can be read; nothing when there is none, or the log goes back to the start."""
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
    """The records of the log behind that offset; those of a transaction when it ends (KIP-868)."""
    waiting: list[tuple[int, Any]] | None = None
    for path in sorted(directory.glob("*.log")):
        for batch, records in decode_batches(path.read_bytes()):
            for number, record in enumerate(records):
                at = batch.base_offset + number
                if at <= offset or isinstance(record, Control):
                    continue
                if isinstance(record, BeginTransactionRecord):
                    waiting = []
                elif isinstance(record, EndTransactionRecord):
                    yield from waiting or ()
                    waiting = None
                elif isinstance(record, AbortTransactionRecord):
                    waiting = None
                elif waiting is None:
                    yield at, record
                else:
                    waiting.append((at, record))
