"""Computes the producer states of a partition from its batches, and compares them with producer snapshots.

Knows nothing of files but the layout of a snapshot.
"""

from struct import Struct
from typing import Final

from barnabas.cli.checking.indexes import Aborted
from barnabas.records.batch import RecordBatch
from barnabas.records.checksum import crc32c
from barnabas.records.control import ControlRecordType, control_record_type
from barnabas.records.record import records_of

HEADER: Final = Struct(">hIi")
ENTRY: Final = Struct(">qhiqiqiq")
CHECKED_FROM: Final = 6
VERSION: Final = 1

TRANSACTIONAL, CONTROL = 0x10, 0x20
_MARKER: Final = Struct(">hi")

_NAMES = ("epoch", "last sequence", "last offset", "offset delta", "timestamp", "coordinator epoch", "open transaction")


class Producer:
    """The state of a producer, with the fields of a snapshot's entry."""

    __slots__ = (
        "coordinator_epoch",
        "epoch",
        "first_open",
        "last_offset",
        "last_sequence",
        "offset_delta",
        "timestamp",
    )

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.timestamp = self.coordinator_epoch = self.first_open = -1
        self.reset_batches()

    def reset_batches(self) -> None:
        self.last_sequence, self.last_offset, self.offset_delta = -1, -1, 0

    def fields(self) -> tuple[int, ...]:
        return (
            self.epoch,
            self.last_sequence,
            self.last_offset,
            self.offset_delta,
            self.timestamp,
            self.coordinator_epoch,
            self.first_open,
        )


class Replay:
    """The producer states after the batches so far.

    :param is_whole: whether all batches since offset 0 exist
    :param is_compacted: whether any batch may be missing
    """

    def __init__(self, *, is_whole: bool, is_compacted: bool) -> None:
        self.is_whole, self.is_compacted = is_whole and not is_compacted, is_compacted
        self.producers: dict[int, Producer] = {}

    def load_snapshot(self, entries: dict[int, tuple[int, ...]]) -> None:
        """Takes over the entries of a snapshot; the batches before it have been deleted."""
        for producer_id, fields in entries.items():
            producer = self.producers[producer_id] = Producer(fields[0])
            (
                _,
                producer.last_sequence,
                producer.last_offset,
                producer.offset_delta,
                producer.timestamp,
                producer.coordinator_epoch,
                producer.first_open,
            ) = fields
        self.is_whole = not self.is_compacted

    def add(self, header: tuple[int, ...], data: memoryview) -> Aborted | None:
        """Applies a batch with a producer id; returns the transaction that it aborts, if any.

        :raises KafkaError: it is a control batch that cannot be decoded
        """
        base, _, _, _, _, attributes, delta, _, timestamp, producer_id, epoch, sequence, _ = header
        producer = self.producers.get(producer_id)
        if producer is None:
            producer = self.producers[producer_id] = Producer(epoch)
        if attributes & CONTROL:
            return self._end(producer_id, producer, epoch, base, data)
        if producer.epoch != epoch:
            producer.epoch = epoch
            producer.reset_batches()
        producer.last_sequence = -1 if sequence < 0 else sequence + delta & 0x7FFFFFFF
        producer.last_offset, producer.offset_delta, producer.timestamp = base + delta, delta, timestamp
        if attributes & TRANSACTIONAL and producer.first_open < 0:
            producer.first_open = base
        return None

    def _end(self, producer_id: int, producer: Producer, epoch: int, base: int, data: memoryview) -> Aborted | None:
        marker = next(records_of(RecordBatch.parse(data)), None)
        if marker is None:
            return None  # an empty batch, left by compaction
        if producer.epoch != epoch:
            producer.epoch = epoch
            producer.reset_batches()
        if marker.value is not None and len(marker.value) >= _MARKER.size:
            producer.coordinator_epoch = max(producer.coordinator_epoch, _MARKER.unpack_from(marker.value)[1])
        first, producer.first_open, producer.timestamp = producer.first_open, -1, marker.timestamp
        if control_record_type(marker.key) is not ControlRecordType.ABORT:
            return None
        if first < 0 and self.is_whole:
            return None  # there was no open transaction
        others = [each.first_open for each in self.producers.values() if each.first_open >= 0]
        return producer_id, first, base, min(others, default=base + 1)

    def differences(self, entries: dict[int, tuple[int, ...]], log_start: int) -> list[str]:
        """Returns the differences of a snapshot at this offset. Expired producers may be missing in it."""
        found = []
        for producer_id, fields in entries.items():
            producer = self.producers.get(producer_id)
            if producer is None:
                if self.is_whole:
                    found.append(f"producer {producer_id} has no records below this offset")
                continue
            if self.is_compacted and producer.last_offset <= fields[2]:
                continue  # its batch may have been compacted away
            for name, one, other in zip(_NAMES, fields, producer.fields(), strict=True):
                if one != other and (self.is_whole or (other >= 0 and fields[2] >= log_start)):
                    found.append(f"{name} of producer {producer_id} is {one}, but in the log {other}")
        for producer_id, producer in self.producers.items():
            if producer.first_open >= 0 and producer_id not in entries and not self.is_compacted:
                found.append(f"producer {producer_id} is missing, whose transaction is open from {producer.first_open}")
        return found


class BadSnapshot(Exception):
    """The file is not a complete producer snapshot."""


def read_snapshot(data: bytes) -> dict[int, tuple[int, ...]]:
    """Returns the entries of a producer snapshot by producer id. :raises BadSnapshot: it cannot be decoded"""
    if len(data) < HEADER.size:
        raise BadSnapshot(f"{len(data)} bytes are too few")
    version, crc, count = HEADER.unpack_from(data)
    if version != VERSION:
        raise BadSnapshot(f"the version is {version}, not {VERSION}")
    actual = crc32c(memoryview(data)[CHECKED_FROM:])
    if actual != crc:
        raise BadSnapshot(f"the CRC is {crc}, but that of its bytes is {actual}")
    if count * ENTRY.size != len(data) - HEADER.size:
        raise BadSnapshot(f"{count} producers do not take {len(data) - HEADER.size} bytes")
    return {producer_id: tuple(fields) for producer_id, *fields in ENTRY.iter_unpack(data[HEADER.size :])}
