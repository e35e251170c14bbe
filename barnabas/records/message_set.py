"""Message sets, the formats before record batches: v0 (until Kafka 0.9) and v1 (until 0.10.2).

Knows nothing of record batches, logs and requests: it decodes and encodes messages.

A set is a sequence of messages with their offsets. Big-endian (Apache Kafka's ``LegacyRecord``; KIP-31, KIP-32):

======  ====  ===============  =====================================================================================
offset  size  field            meaning
======  ====  ===============  =====================================================================================
0       8     offset
8       4     length           bytes that follow this field: the whole entry has 12 more
12      4     crc              CRC-32 (zlib's) of everything after it
16      1     magic            0 or 1
17      1     attributes       bits 0-2 codec; in v1 bit 3: the timestamp is the broker's (LogAppendTime)
18      8     timestamp        ms; only in v1
                key              int32 length, -1 for null, and the bytes
                value            likewise
======  ====  ===============  =====================================================================================

A message with a codec is a wrapper: its value decompresses to a set of inner messages. The wrapper's offset is that of
the last inner message. In v0 the inner messages have absolute offsets. In v1 their offsets are 0, 1, 2 ..., so that a
broker changes the wrapper only; the wrapper's timestamp is the maximum of theirs, or, with LogAppendTime, that of all.
"""

import zlib
from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final, NamedTuple

from barnabas.errors import CorruptMessage, InvalidRecord, UnsupportedCompressionType
from barnabas.records.batch import CODEC_MASK, LOG_APPEND_TIME_BIT, LOG_OVERHEAD, NO_TIMESTAMP, Buffer, Compression
from barnabas.records.record import UNPACKED_LIMIT, Record

MAGIC_V0: Final = 0
MAGIC_V1: Final = 1
MESSAGE_MIN: Final = 14  # the length of a v0 message with null key and value, the shortest message
MESSAGE_MIN_V1: Final = 22

_ENTRY = Struct(">qi")
_HEAD = Struct(">IBB")
_INT64 = Struct(">q")
_INT32 = Struct(">i")
_FRAME = Struct(">qiI")
_V0 = Struct(">BBi")
_V1 = Struct(">BBqi")
_KEY_AT = (2, 10)  # of the key in the CRC's range, by magic


class Unreadable(CorruptMessage):
    """The content of a message cannot be decoded, whether or not its CRC is valid."""


class Message(NamedTuple):
    """An entry of a set; its content is a view."""

    offset: int
    crc: int
    magic: int
    attributes: int
    content: memoryview  #: what the CRC covers: magic, attributes, timestamp, key and value

    @property
    def size_in_bytes(self) -> int:
        """The size of the whole entry."""
        return len(self.content) + 4 + LOG_OVERHEAD

    @property
    def is_intact(self) -> bool:
        return zlib.crc32(self.content) == self.crc

    @property
    def codec(self) -> int:
        """The number of the codec of its value; 0 if it is not a wrapper."""
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        return self.magic == MAGIC_V1 and self.attributes & LOG_APPEND_TIME_BIT != 0

    @property
    def timestamp(self) -> int:
        """The timestamp in ms; -1 in v0, which has none. :raises Unreadable: the message is too short"""
        if self.magic == MAGIC_V0:
            return NO_TIMESTAMP
        self._check_length()
        timestamp: int = _INT64.unpack_from(self.content, 2)[0]
        return timestamp

    def key_and_value(self) -> tuple[bytes | None, bytes | None]:
        """Returns key and value. :raises Unreadable: their lengths do not fit into the message"""
        self._check_length()
        key, at = self._sized(_KEY_AT[self.magic])
        return key, self._sized(at)[0]

    def _check_length(self) -> None:
        if self.magic == MAGIC_V1 and len(self.content) + 4 < MESSAGE_MIN_V1:
            raise Unreadable(f"A message of format v1 has only {len(self.content) + 4} bytes.")

    def _sized(self, at: int) -> tuple[bytes | None, int]:
        content = self.content
        start = at + 4
        if start > len(content):
            raise Unreadable("A message ends before its value.")
        (size,) = _INT32.unpack_from(content, at)
        if size < 0:
            return None, start
        if size > len(content) - start:
            raise Unreadable(f"A key or value of {size} bytes does not fit into its message.")
        return bytes(content[start : start + size]), start + size


def messages_in(data: Buffer) -> Iterator[Message]:
    """Yields the messages in ``data``, with wrappers as they are, and without a truncated one at the end.

    Magic and CRC are not checked.

    :raises CorruptMessage: a length is too small for a message
    """
    data = memoryview(data)
    at, end = 0, len(data)
    while end - at >= LOG_OVERHEAD:
        offset, length = _ENTRY.unpack_from(data, at)
        if length < MESSAGE_MIN:
            raise CorruptMessage(f"A message's length is {length}, below {MESSAGE_MIN}.")
        at += LOG_OVERHEAD
        if length > end - at:
            return
        crc, magic, attributes = _HEAD.unpack_from(data, at)
        yield Message(offset, crc, magic, attributes, data[at + 4 : at + length])
        at += length


def unwrapped(wrapper: Message, limit: int = UNPACKED_LIMIT) -> list[Message]:
    """Returns the inner messages of a wrapper, with their offsets in it.

    :raises Unreadable: the value cannot be decompressed
    :raises MessageTooLarge: it decompresses to more than ``limit`` bytes
    :raises CorruptMessage: a length is too small for a message
    :raises InvalidRecord: the codec is zstd, which these formats do not have, there are no inner messages, or the
        offset of a v1 wrapper is below theirs
    """
    _, value = wrapper.key_and_value()
    codec = wrapper.codec
    if codec > Compression.ZSTD:
        raise Unreadable(f"Unknown compression type {codec}.")
    if codec == Compression.ZSTD:
        raise InvalidRecord(f"Message format v{wrapper.magic} has no zstd.")
    if value is None:
        raise InvalidRecord("A compressed message has no value.")
    inside = list(messages_in(_unpacked(value, codec, wrapper.magic, limit)))
    if not inside:
        raise InvalidRecord("A compressed message has no messages in it.")
    if wrapper.magic == MAGIC_V1 and wrapper.offset and wrapper.offset < inside[-1].offset:
        raise InvalidRecord(f"A wrapper at offset {wrapper.offset} has messages up to {inside[-1].offset} in it.")
    return inside


def _unpacked(value: bytes, codec: int, magic: int, limit: int) -> bytes:
    from barnabas.records.compression import decompress

    if codec == Compression.LZ4 and magic == MAGIC_V0:
        from barnabas.records.old_lz4 import with_right_checksum

        value = with_right_checksum(value)
    try:
        return decompress(Compression(codec), value, limit)
    except CorruptMessage as error:
        raise Unreadable(str(error)) from error


def records_of_message(message: Message, limit: int = UNPACKED_LIMIT) -> list[Record]:
    """Returns the record of a message, or those of its inner messages, with absolute offsets and timestamps.

    The inner messages of a v1 wrapper at offset 0 start at 0: some versions of librdkafka write such wrappers.

    :raises KafkaError, Unreadable: as :func:`unwrapped`
    """
    if not message.codec:
        return [Record(message.offset, message.timestamp, *message.key_and_value())]
    inside = unwrapped(message, limit)
    base = message.offset - inside[-1].offset if message.magic == MAGIC_V1 and message.offset else 0
    append_time = message.timestamp if message.is_log_append_time else None
    return [
        Record(each.offset + base, each.timestamp if append_time is None else append_time, *each.key_and_value())
        for each in inside
    ]


# ---------------------------------------------------------------- encoding


def build_message(
    magic: int, offset: int, timestamp: int, key: bytes | None, value: bytes | None, attributes: int = 0
) -> bytes:
    """Encodes a message with its offset and length. :param timestamp: in ms; v0 has none"""
    size = -1 if key is None else len(key)
    head = _V1.pack(MAGIC_V1, attributes, timestamp, size) if magic else _V0.pack(MAGIC_V0, attributes, size)
    content = b"".join((head, key or b"", _INT32.pack(-1 if value is None else len(value)), value or b""))
    return _FRAME.pack(offset, len(content) + 4, zlib.crc32(content)) + content


def build_messages(records: Iterable[Record], magic: int, *, log_append_time: bool = False) -> list[bytes]:
    """Encodes a message for each record, without its headers."""
    attributes = LOG_APPEND_TIME_BIT if log_append_time and magic == MAGIC_V1 else 0
    return [build_message(magic, each.offset, each.timestamp, each.key, each.value, attributes) for each in records]


def build_wrapper(
    records: list[Record], magic: int, compression: Compression, *, log_append_time: bool = False
) -> bytes:
    """Encodes one or more records as a wrapper. :raises UnsupportedCompressionType: the codec is zstd"""
    if compression is Compression.ZSTD:
        raise UnsupportedCompressionType(f"Message format v{magic} has no zstd.")
    from barnabas.records.compression import compress

    first, last = records[0].offset, records[-1].offset
    inside = records if magic == MAGIC_V0 else [each._replace(offset=each.offset - first) for each in records]
    packed = compress(compression, b"".join(build_messages(inside, magic, log_append_time=log_append_time)))
    if compression is Compression.LZ4 and magic == MAGIC_V0:
        from barnabas.records.old_lz4 import with_old_checksum

        packed = with_old_checksum(packed)
    attributes = compression | (LOG_APPEND_TIME_BIT if log_append_time and magic == MAGIC_V1 else 0)
    latest = max(each.timestamp for each in records)
    return build_message(magic, last, latest, None, packed, attributes)
