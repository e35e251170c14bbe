"""The producers of a partition as its batches make them, and the snapshots of them that are on the disk.

Knows nothing of files but the layout of a snapshot.
"""

from struct import Struct
from typing import Final

from barnabas.cli.checking.indexes import Aborted
from barnabas.records.batch import RecordBatch
from barnabas.records.checksum import crc32c
from barnabas.records.control import ControlType, control_type
from barnabas.records.record import records_of

HEADER: Final = Struct(">hIi")
ENTRY: Final = Struct(">qhiqiqiq")
CHECKED_FROM: Final = 6
VERSION: Final = 1

TRANSACTIONAL, CONTROL = 0x10, 0x20
_MARKER: Final = Struct(">hi")

_NAMES = ("epoch", "last sequence", "last offset", "offset delta", "timestamp", "coordinator epoch", "open transaction")


class Producer:
    """One producer, in the fields of a snapshot's entry."""

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
        self.forget_batches()

    def forget_batches(self) -> None:
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
    """What the batches so far make of the producers.

    ``is_whole``: nothing that came before is missing. ``is_compacted``: anything may be missing, also in between.
    """

    def __init__(self, *, is_whole: bool, is_compacted: bool) -> None:
        self.is_whole, self.is_compacted = is_whole and not is_compacted, is_compacted
        self.producers: dict[int, Producer] = {}

    def seed(self, entries: dict[int, tuple[int, ...]]) -> None:
        """Begin with what a snapshot says; the batches before it are gone."""
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

    def take(self, header: tuple[int, ...], data: memoryview) -> Aborted | None:
        """A batch with a producer id; gives the transaction that it aborts, if it does.

        Raises KafkaError when it is a control batch that cannot be read.
        """
        base, _, _, _, _, attributes, delta, _, timestamp, producer_id, epoch, sequence, _ = header
        producer = self.producers.get(producer_id)
        if producer is None:
            producer = self.producers[producer_id] = Producer(epoch)
        if attributes & CONTROL:
            return self._end(producer_id, producer, epoch, base, data)
        if producer.epoch != epoch:
            producer.epoch = epoch
            producer.forget_batches()
        producer.last_sequence = -1 if sequence < 0 else sequence + delta & 0x7FFFFFFF
        producer.last_offset, producer.offset_delta, producer.timestamp = base + delta, delta, timestamp
        if attributes & TRANSACTIONAL and producer.first_open < 0:
            producer.first_open = base
        return None

    def _end(self, producer_id: int, producer: Producer, epoch: int, base: int, data: memoryview) -> Aborted | None:
        marker = next(records_of(RecordBatch.parse(data)), None)
        if marker is None:
            return None  # compaction left an empty batch
        if producer.epoch != epoch:
            producer.epoch = epoch
            producer.forget_batches()
        if marker.value is not None and len(marker.value) >= _MARKER.size:
            producer.coordinator_epoch = max(producer.coordinator_epoch, _MARKER.unpack_from(marker.value)[1])
        first, producer.first_open, producer.timestamp = producer.first_open, -1, marker.timestamp
        if control_type(marker.key) is not ControlType.ABORT:
            return None
        if first < 0 and self.is_whole:
            return None  # it ended nothing
        others = [each.first_open for each in self.producers.values() if each.first_open >= 0]
        return producer_id, first, base, min(others, default=base + 1)

    def differences(self, entries: dict[int, tuple[int, ...]], log_start: int) -> list[str]:
        """What a snapshot that is taken here says otherwise. Producers that were idle for long may be gone from it."""
        found = []
        for producer_id, told in entries.items():
            producer = self.producers.get(producer_id)
            if producer is None:
                if self.is_whole:
                    found.append(f"producer {producer_id} wrote nothing below it")
                continue
            if self.is_compacted and producer.last_offset <= told[2]:
                continue  # what it says may have been compacted away
            for name, one, other in zip(_NAMES, told, producer.fields(), strict=True):
                if one != other and (self.is_whole or (other >= 0 and told[2] >= log_start)):
                    found.append(f"{name} of producer {producer_id} is {one}, and the log says {other}")
        for producer_id, producer in self.producers.items():
            if producer.first_open >= 0 and producer_id not in entries and not self.is_compacted:
                found.append(f"producer {producer_id} is missing, whose transaction is open from {producer.first_open}")
        return found


class BadSnapshot(Exception):
    """The file is no snapshot of producers, or not whole."""


def read_snapshot(data: bytes) -> dict[int, tuple[int, ...]]:
    """The producers in a snapshot, by their ids, and what it says of them. Raises BadSnapshot."""
    if len(data) < HEADER.size:
        raise BadSnapshot(f"{len(data)} bytes are too few")
    version, crc, count = HEADER.unpack_from(data)
    if version != VERSION:
        raise BadSnapshot(f"the version is {version}, not {VERSION}")
    actual = crc32c(memoryview(data)[CHECKED_FROM:])
    if actual != crc:
        raise BadSnapshot(f"the CRC is {crc}, and that of its bytes is {actual}")
    if count * ENTRY.size != len(data) - HEADER.size:
        raise BadSnapshot(f"{count} producers do not take {len(data) - HEADER.size} bytes")
    return {producer_id: tuple(fields) for producer_id, *fields in ENTRY.iter_unpack(data[HEADER.size :])}
