"""Saves and restores the state of a running broker: topics, records, groups, transactions, configs, ACLs and users.

Knows nothing of threads: it runs in the broker's own. A :class:`State` is metadata records and record batches, as
Apache Kafka's logs have them; features, connections and the clock are not part of it.
"""

import asyncio
import io
import json
import zipfile
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from barnabas.broker import Broker
from barnabas.cluster.controller.commands.nodes import WriteRecords
from barnabas.cluster.image.image import MetadataImage
from barnabas.cluster.image.records import records_of_image
from barnabas.cluster.quorum.record_batches import encode_batches
from barnabas.config.dynamic import TOPIC_RESOURCE
from barnabas.errors import KafkaError
from barnabas.log.partition_log import PartitionLog
from barnabas.records.batch import batches
from barnabas.records.record import records_of
from barnabas.testing.resetting import AtStart, reset
from barnabas.wire.messages.metadata_records import (
    FeatureLevelRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
    decode_metadata_record,
)

READ_BYTES: Final = 1 << 20

NODES_OWN: Final = (FeatureLevelRecord, RegisterBrokerRecord, RegisterControllerRecord, ProducerIdsRecord)
"""Types of records that describe nodes. They are not restored."""


class SavedLog(NamedTuple):
    """The batches of one partition."""

    start_offset: int
    high_watermark: int
    data: bytes


class State(NamedTuple):
    """The state of a broker when it was saved. It can be restored any number of times, and in other brokers, too."""

    records: tuple[Any, ...]  #: of the metadata log
    logs: Mapping[tuple[str, int], SavedLog]
    next_producer_id: int
    metadata_version: int

    def __repr__(self) -> str:
        size = sum(len(each.data) for each in self.logs.values())
        return f"<the state of a broker: {len(self.logs)} partitions, {size} bytes>"

    # ------------------------------------------------------------ as a file

    def write(self, path: str | Path) -> None:
        """Writes a file, which :meth:`read` reads. :raises OSError: it cannot be written"""
        Path(path).write_bytes(self.to_bytes())

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Returns the state in a file. :raises ValueError: it is none :raises OSError: it cannot be read"""
        return cls.from_bytes(Path(path).read_bytes())

    def to_bytes(self) -> bytes:
        """Returns a ZIP archive: the metadata log, and the log of each partition with its log start offset."""
        metadata = encode_batches(self.records, metadata_version=self.metadata_version, timestamp=0, epoch=0)
        index = {
            "next_producer_id": self.next_producer_id,
            "metadata_version": self.metadata_version,
            "logs": [[*key, log.start_offset, log.high_watermark] for key, log in self.logs.items()],
        }
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("state.json", json.dumps(index))
            archive.writestr("metadata.log", b"".join(bytes(each.data) for each in metadata))
            for (topic, partition), log in self.logs.items():
                archive.writestr(f"{topic}-{partition}.log", log.data)
        return stream.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Returns the state of :meth:`to_bytes`. :raises ValueError: it is none"""
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                index = json.loads(archive.read("state.json"))
                metadata = bytearray(archive.read("metadata.log"))
                logs = {
                    (topic, partition): SavedLog(start, high, archive.read(f"{topic}-{partition}.log"))
                    for topic, partition, start, high in index["logs"]
                }
        except (zipfile.BadZipFile, KeyError) as error:
            raise ValueError(f"this is not the saved state of a broker: {error}") from None
        records = tuple(
            decode_metadata_record(each.value)
            for batch in batches(memoryview(metadata))
            for each in records_of(batch)
            if each.value is not None
        )
        return cls(records, logs, index["next_producer_id"], index["metadata_version"])


def save(broker: Broker) -> State:
    """Returns the state of the broker."""
    image = broker.image
    records = tuple(each for each in records_of_image(image) if not isinstance(each, NODES_OWN))
    logs = {key: _saved(partition.log) for key, partition in broker.partitions.items()}
    return State(records, logs, image.next_producer_id, image.metadata_version)


def _saved(log: PartitionLog) -> SavedLog:
    pieces, offset, end = [], log.log_start_offset, log.log_end_offset
    while offset < end:
        data = log.read(offset, READ_BYTES, up_to=end, minimum_one=True)
        pieces.append(data)
        for batch in batches(memoryview(data)):
            offset = batch.next_offset
    return SavedLog(log.log_start_offset, log.high_watermark, b"".join(pieces))


async def restore(broker: Broker, state: State, at_start: AtStart) -> None:
    """Replaces the state of the broker by a saved one. Returns when its coordinators have loaded their logs.

    Topics that still exist are kept; those of their logs that have changed are rewritten.

    :raises KafkaError: the metadata cannot be written
    """
    saved, _ = MetadataImage().apply([_of_this_node(broker, each) for each in state.records])
    kept = {
        topic.id
        for topic in saved.topics_by_id.values()
        if (mine := broker.image.topics_by_id.get(topic.id)) is not None
        and mine.partitions.keys() == topic.partitions.keys()
    }
    broker.coordinators.stop()
    try:
        emptied: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done = partial(emptied.set_result, None)
        reset(broker, at_start._replace(acls=()), done, kept_topics=kept)
        await emptied
        for (name, index), log in state.logs.items():
            _write_log(broker, saved, name, index, log)
        await _written(broker, list(_records(broker, state, kept)))
    finally:
        broker.coordinators.start()


def _records(broker: Broker, state: State, kept: Collection[bytes]) -> Iterator[Any]:
    """Yields the records to be written."""
    for record in state.records:
        if not isinstance(record, TopicRecord | PartitionRecord) or record.topic_id not in kept:
            yield _of_this_node(broker, record)
    if state.next_producer_id > broker.image.next_producer_id:
        # Producer ids that these logs use are not assigned again.
        yield ProducerIdsRecord(broker_id=-1, broker_epoch=-1, next_producer_id=state.next_producer_id)
        broker.producer_ids.forget()


def _of_this_node(broker: Broker, record: Any) -> Any:
    """Returns the record with this node as the leader, and the only replica."""
    if not isinstance(record, PartitionRecord):
        return record
    mine = [broker.node_id]
    directory = broker.log_manager.online_directories[0].directory_id
    return PartitionRecord(
        partition_id=record.partition_id,
        topic_id=record.topic_id,
        replicas=mine,
        isr=mine,
        removing_replicas=[],
        adding_replicas=[],
        leader=broker.node_id,
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
        directories=[directory],
    )


def _write_log(broker: Broker, image: MetadataImage, name: str, index: int, saved: SavedLog) -> None:
    """Writes the log of a partition. Where the partition does not exist yet, its leader finds the log."""
    topic = image.topics_by_name[name]
    config = broker.config.topic(image.configs_of(TOPIC_RESOURCE, name))
    now_ms = broker.clock.time_ms()
    log = broker.log_manager.create(name, index, topic.id, config)
    if log.log_end_offset and _saved(log) == saved:
        return
    first = int.from_bytes(saved.data[:8]) if saved.data else saved.start_offset
    if first or log.log_end_offset:
        log.truncate_fully_and_start_at(first, now_ms)
    if saved.data:
        log.append_as_follower(saved.data, now_ms=now_ms)
    log.maybe_set_high_watermark(saved.high_watermark)
    log.delete_records_before(saved.start_offset)


async def _written(broker: Broker, records: list[Any]) -> None:
    written: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def done(result: None, error: KafkaError | None) -> None:
        if error is None:
            written.set_result(None)
        else:
            written.set_exception(error)

    broker.controller.submit(WriteRecords(records), done)
    await written
