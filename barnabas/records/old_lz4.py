"""The lz4 frames of message format v0, whose header checksum covers the wrong bytes.

Knows nothing of messages. The first Kafka clients computed the checksum over the frame's magic number, too, and others
had to follow (KAFKA-3160). Readers of v0 ignore it, as Apache Kafka's ``Lz4BlockInputStream`` does; writers repeat the
error. From format v1 on, frames are those of the lz4 specification.
"""

from struct import Struct
from typing import Final

Buffer = bytes | bytearray | memoryview

FRAME_MAGIC: Final = b"\x04\x22\x4d\x18"
CONTENT_SIZE_BIT: Final = 0x08  # a bit in the first byte of the descriptor: the content's size, eight bytes, follows
_DESCRIPTOR_AT: Final = len(FRAME_MAGIC)
_SHORT, _LONG = 2, 10  # the size of a descriptor without and with the content's size

_UINT32: Final = 0xFFFFFFFF
_PRIMES: Final = (2654435761, 2246822519, 3266489917, 668265263, 374761393)
_WORD = Struct("<I")


def with_right_checksum(frame: Buffer) -> bytes:
    """Returns the frame of a v0 message with the specified checksum; other bytes are returned unchanged."""
    return _with_checksum(frame, _DESCRIPTOR_AT)


def with_old_checksum(frame: Buffer) -> bytes:
    """Returns a frame with the checksum of v0 messages."""
    return _with_checksum(frame, 0)


def _with_checksum(frame: Buffer, covered_from: int) -> bytes:
    data = bytes(frame)
    if len(data) <= _DESCRIPTOR_AT or data[:_DESCRIPTOR_AT] != FRAME_MAGIC:
        return data
    at = _DESCRIPTOR_AT + (_LONG if data[_DESCRIPTOR_AT] & CONTENT_SIZE_BIT else _SHORT)
    if len(data) <= at:
        return data
    checksum = xxh32(data[covered_from:at]) >> 8 & 0xFF
    return data[:at] + bytes([checksum]) + data[at + 1 :]


def xxh32(data: bytes) -> int:
    """Returns the xxHash, with seed 0, of fewer than 16 bytes, which is enough for the header of a frame."""
    assert len(data) < 16, "longer input is hashed in stripes, which this does not do"
    prime1, prime2, prime3, prime4, prime5 = _PRIMES
    value = prime5 + len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        value = _rotated(value + _WORD.unpack_from(data, at)[0] * prime3, 17) * prime4
    for byte in data[whole:]:
        value = _rotated(value + byte * prime5, 11) * prime1
    value &= _UINT32
    value = (value ^ value >> 15) * prime2 & _UINT32
    value = (value ^ value >> 13) * prime3 & _UINT32
    return value ^ value >> 16


def _rotated(value: int, bits: int) -> int:
    value &= _UINT32
    return (value << bits | value >> 32 - bits) & _UINT32
