"""Message sets: what stood in a partition before record batches, formats v0 (until 0.9) and v1 (until 0.10.2).

Knows nothing of record batches, logs and requests: it reads messages out of bytes, and writes them.

A set is messages one behind the other, each with its offset. Big-endian (Apache Kafka's ``LegacyRecord``; KIP-31,
KIP-32):

======  ====  ===============  =====================================================================================
offset  size  field            meaning
======  ====  ===============  =====================================================================================
0       8     offset
8       4     length           bytes that follow this field: the whole entry has 12 more
12      4     crc              CRC-32 (zlib's) of everything behind it
16      1     magic            0 or 1
17      1     attributes       bits 0-2 codec; in v1 bit 3: the timestamp is the broker's (LogAppendTime)
18      8     timestamp        ms; only in v1
                key              int32 length, -1 for null, and the bytes
                value            likewise
======  ====  ===============  =====================================================================================

A message with a codec is a wrapper: its value unpacks to a set of messages. Its own offset is that of the last of
them. In v0 those have their offsets as they are. In v1 they have 0, 1, 2 ..., which leaves a broker nothing to change
but the wrapper's; the wrapper's timestamp is the latest of them, or, with LogAppendTime, that of them all.
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
MESSAGE_MIN: Final = 14  # what the length says of a v0 message with null key and value; nothing is shorter
MESSAGE_MIN_V1: Final = 22

_ENTRY = Struct(">qi")
_HEAD = Struct(">IBB")
_INT64 = Struct(">q")
_INT32 = Struct(">i")
_FRAME = Struct(">qiI")
_V0 = Struct(">BBi")
_V1 = Struct(">BBqi")
_KEY_AT = (2, 10)  # in what the CRC covers, by magic


class Unreadable(CorruptMessage):
    """A message whose CRC may be right and whose content makes no sense all the same."""


class Message(NamedTuple):
    """One entry of a set; its content stays where it lies."""

    offset: int
    crc: int
    magic: int
    attributes: int
    content: memoryview  #: what the CRC covers: magic, attributes, timestamp, key and value

    @property
    def size_in_bytes(self) -> int:
        """Bytes of the whole entry."""
        return len(self.content) + 4 + LOG_OVERHEAD

    @property
    def is_intact(self) -> bool:
        return zlib.crc32(self.content) == self.crc

    @property
    def codec(self) -> int:
        """What its value is packed with, by number; 0: it is no wrapper."""
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        return self.magic == MAGIC_V1 and self.attributes & LOG_APPEND_TIME_BIT != 0

    @property
    def timestamp(self) -> int:
        """In ms; -1 in v0, which has none. Raises Unreadable where the message is too short for one."""
        if self.magic == MAGIC_V0:
            return NO_TIMESTAMP
        self._check_length()
        timestamp: int = _INT64.unpack_from(self.content, 2)[0]
        return timestamp

    def key_and_value(self) -> tuple[bytes | None, bytes | None]:
        """Raises Unreadable where their lengths do not fit the message."""
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
    """The messages in ``data``, wrappers as they are; one that is cut off at the end is left out.

    Neither magic nor CRC are looked at. Raises CorruptMessage at a length that no message has.
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
    """The messages in a wrapper, with the offsets that they have in there.

    Raises Unreadable where the value does not unpack, MessageTooLarge where it unpacks to more than ``limit`` bytes,
    CorruptMessage at a length that no message has, InvalidRecord for zstd, which these formats never had, where nothing
    is inside, and where a v1 wrapper's offset is below those inside.
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
    """What a message says, or those in it, with offsets and timestamps worked out.

    A v1 wrapper at offset 0 starts at 0: so some versions of librdkafka wrote them. Raises as :func:`unwrapped`.
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


# ---------------------------------------------------------------- writing


def build_message(
    magic: int, offset: int, timestamp: int, key: bytes | None, value: bytes | None, attributes: int = 0
) -> bytes:
    """One message with its offset and length; ``timestamp`` (ms) is left out in v0."""
    size = -1 if key is None else len(key)
    head = _V1.pack(MAGIC_V1, attributes, timestamp, size) if magic else _V0.pack(MAGIC_V0, attributes, size)
    content = b"".join((head, key or b"", _INT32.pack(-1 if value is None else len(value)), value or b""))
    return _FRAME.pack(offset, len(content) + 4, zlib.crc32(content)) + content


def build_messages(records: Iterable[Record], magic: int, *, log_append_time: bool = False) -> list[bytes]:
    """A message for each record; headers have no place in them."""
    attributes = LOG_APPEND_TIME_BIT if log_append_time and magic == MAGIC_V1 else 0
    return [build_message(magic, each.offset, each.timestamp, each.key, each.value, attributes) for each in records]


def build_wrapper(
    records: list[Record], magic: int, compression: Compression, *, log_append_time: bool = False
) -> bytes:
    """One message that holds all of ``records``, one or more, packed.

    Raises UnsupportedCompressionType for zstd.
    """
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
