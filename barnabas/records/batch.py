"""A record batch (format v2) in a buffer: reads, checks and stamps its header in place.

Knows nothing of the contents of the records, nor of files and the wire.

The layout, all of it big-endian (Apache Kafka's ``DefaultRecordBatch``; KIP-98):

======  ====  ======================  ==============================================================================
offset  size  field                   meaning
======  ====  ======================  ==============================================================================
0       8     base_offset             offset of the first record; assigned by the leader
8       4     batch_length            bytes that follow this field: the whole batch has 12 more
12      4     partition_leader_epoch  epoch of the leader that appended the batch; assigned by the leader
16      1     magic                   2
17      4     crc                     CRC-32C of everything from offset 21 to the end
21      2     attributes              bits 0-2 codec, 3 timestamp type, 4 transactional, 5 control, 6 delete horizon
23      4     last_offset_delta       last record's offset - base_offset; stays when compaction removes that record
27      8     base_timestamp          the records' timestamp deltas are added to it
35      8     max_timestamp           the latest timestamp; with LogAppendTime, that of every record
43      8     producer_id             -1 without idempotence
51      2     producer_epoch
53      4     base_sequence           sequence of the first record; the others' follow from their offsets
57      4     count                   records in the batch
61            records                 one after the other; all of them compressed as one when there is a codec
======  ====  ======================  ==============================================================================

The CRC does not cover base offset, length and leader epoch. So a leader assigns offset and epoch to a batch without
reading it again for a new CRC, and the producer's CRC stays valid in every replica and in the consumer.
"""

from collections.abc import Iterator
from enum import IntEnum
from struct import Struct
from typing import Final

from barnabas.errors import CorruptMessage, InvalidRecord
from barnabas.records.checksum import crc32c

Buffer = bytes | bytearray | memoryview

HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_SIZE: Final = HEADER.size  # 61
LOG_OVERHEAD: Final = 12  # base_offset and batch_length, which batch_length does not include
MAGIC: Final = 2
MAGIC_AT: Final = 16
CRC_AT: Final = 17
CHECKED_FROM: Final = 21  # the CRC covers everything from here on

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_TIMESTAMP: Final = -1
NO_LEADER_EPOCH: Final = -1

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40

_INT32 = Struct(">i")
_UINT32 = Struct(">I")
_INT64 = Struct(">q")
_SIZES = Struct(">qi")
_put_int64 = _INT64.pack_into
_put_int32 = _INT32.pack_into
_read_header = HEADER.unpack_from
_new = object.__new__


class Compression(IntEnum):
    """The codecs, with their numbers in the attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


_CODECS = tuple(Compression)


class RecordBatch:
    """The header of a batch. The records stay in :attr:`buffer`, which is a view, never a copy.

    :meth:`stamp` and :meth:`retime` write to the attributes and to the buffer.
    """

    __slots__ = (
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "batch_length",
        "buffer",
        "count",
        "crc",
        "last_offset_delta",
        "magic",
        "max_timestamp",
        "partition_leader_epoch",
        "producer_epoch",
        "producer_id",
    )

    buffer: memoryview  #: of exactly this batch
    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int

    @classmethod
    def parse(cls, buffer: Buffer, at: int = 0) -> "RecordBatch":
        """Parses the batch ``at`` a position of ``buffer``; bytes after it are ignored.

        Checks that the header is complete, that the length is within the buffer, and that the format is v2. Does not
        check anything else, not even the CRC.

        :raises CorruptMessage: the bytes are not a batch
        :raises InvalidRecord: they are of an older message format
        """
        batch = _new(cls)
        size = len(buffer) - at
        if size < HEADER_SIZE:
            raise _no_batch(buffer, at)
        (
            batch.base_offset,
            batch.batch_length,
            batch.partition_leader_epoch,
            batch.magic,
            batch.crc,
            batch.attributes,
            batch.last_offset_delta,
            batch.base_timestamp,
            batch.max_timestamp,
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            batch.count,
        ) = _read_header(buffer, at)
        length = batch.batch_length + LOG_OVERHEAD
        if batch.magic != MAGIC or not HEADER_SIZE <= length <= size:
            raise _no_batch(buffer, at)
        batch.buffer = memoryview(buffer)[at : at + length]
        return batch

    def __repr__(self) -> str:
        return (
            f"<RecordBatch {self.base_offset}..{self.last_offset} epoch {self.partition_leader_epoch}: "
            f"{self.count} records, {self.size_in_bytes} bytes>"
        )

    @property
    def size_in_bytes(self) -> int:
        """The size of the whole batch, with its header."""
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The offset after the last one of the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record, -1 if there are none; 0 follows 2**31 - 1."""
        if self.base_sequence < 0:
            return NO_SEQUENCE
        return self.base_sequence + self.last_offset_delta & 0x7FFFFFFF

    @property
    def compression(self) -> Compression:
        """The codec. :raises CorruptMessage: its number is unknown"""
        try:
            return _CODECS[self.attributes & CODEC_MASK]
        except IndexError:
            raise CorruptMessage(f"Unknown compression type {self.attributes & CODEC_MASK}.") from None

    @property
    def is_log_append_time(self) -> bool:
        """Whether all records have the timestamp max_timestamp, assigned by the leader."""
        return self.attributes & LOG_APPEND_TIME_BIT != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        """Whether the records are control records, which consumers do not return."""
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_delete_horizon(self) -> bool:
        """Whether base_timestamp is the time from which compaction may remove tombstones and markers (KIP-534)."""
        return self.attributes & DELETE_HORIZON_BIT != 0

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def body(self) -> memoryview:
        """The records, still compressed."""
        return self.buffer[HEADER_SIZE:]

    def is_intact(self) -> bool:
        """Returns whether the CRC is that of the bytes."""
        return crc32c(self.buffer[CHECKED_FROM:]) == self.crc

    def check_crc(self) -> None:
        """Checks the CRC. :raises CorruptMessage: it is not that of the bytes"""
        if crc32c(self.buffer[CHECKED_FROM:]) != self.crc:
            raise CorruptMessage(f"Record is corrupt (stored crc = {self.crc}).")

    def stamp(self, base_offset: int, leader_epoch: int) -> None:
        """Writes base offset and leader epoch, which the CRC does not cover, into the writable buffer."""
        self.base_offset = base_offset
        self.partition_leader_epoch = leader_epoch
        _put_int64(self.buffer, 0, base_offset)
        _put_int32(self.buffer, 12, leader_epoch)

    def retime(self, max_timestamp: int, *, log_append_time: bool) -> None:
        """Writes max timestamp (ms), timestamp type and the new CRC into the buffer.

        The base timestamp stays, as in Apache Kafka (``DefaultRecordBatch.setMaxTimestamp``): with LogAppendTime it is
        not used. Unused attribute bits are cleared.
        """
        known = CODEC_MASK | TRANSACTIONAL_BIT | CONTROL_BIT | DELETE_HORIZON_BIT
        self.attributes = self.attributes & known | (LOG_APPEND_TIME_BIT if log_append_time else 0)
        self.max_timestamp = max_timestamp
        buffer = self.buffer
        buffer[21:23] = self.attributes.to_bytes(2, "big")
        _put_int64(buffer, 35, max_timestamp)
        self.sign()

    def sign(self) -> None:
        """Computes the CRC and writes it into the buffer."""
        self.crc = crc32c(self.buffer[CHECKED_FROM:])
        _UINT32.pack_into(self.buffer, CRC_AT, self.crc)


def _no_batch(buffer: Buffer, at: int) -> CorruptMessage | InvalidRecord:
    """Returns the error for bytes that :meth:`RecordBatch.parse` refuses."""
    there = len(buffer) - at
    if there > MAGIC_AT:
        magic = buffer[at + MAGIC_AT]
        if magic < MAGIC:
            return InvalidRecord(f"Message format v{magic} is not taken here, only record batches (v2).")
        if magic > MAGIC:
            return CorruptMessage(f"Invalid magic found in record: {magic}.")
    if there < LOG_OVERHEAD:
        return CorruptMessage(f"{there} bytes are too few for a record batch.")
    length: int = _SIZES.unpack_from(buffer, at)[1]
    if length < HEADER_SIZE - LOG_OVERHEAD:
        return CorruptMessage(f"Record batch length {length} is less than a header has.")
    return CorruptMessage(f"A record batch of {length + LOG_OVERHEAD} bytes is cut off after {there}.")


def batches(buffer: Buffer) -> Iterator[RecordBatch]:
    """Yields the batches in ``buffer``, without a truncated one at the end.

    A fetch response may end within a batch because of its size limit, and a log because of a crash.

    :raises CorruptMessage, InvalidRecord: as :meth:`RecordBatch.parse`, at the first bytes that are not a batch
    """
    at, end = 0, len(buffer)
    while end - at >= HEADER_SIZE:
        length: int = _SIZES.unpack_from(buffer, at)[1]
        if length > end - at - LOG_OVERHEAD and buffer[at + MAGIC_AT] == MAGIC:
            return
        batch = RecordBatch.parse(buffer, at)
        yield batch
        at += batch.batch_length + LOG_OVERHEAD
