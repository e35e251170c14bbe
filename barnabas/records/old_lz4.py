"""The lz4 frames of message format v0, whose header checksum is wrong in one way that everybody agreed on.

Knows nothing of messages. The first Kafka clients computed that checksum over the frame's magic number too, and the
others had to follow (KAFKA-3160): whoever reads v0 does not look at it, as in Apache Kafka's ``Lz4BlockInputStream``,
and whoever writes it makes the same mistake. From format v1 on frames are as lz4 has them.
"""

from struct import Struct
from typing import Final

Buffer = bytes | bytearray | memoryview

FRAME_MAGIC: Final = b"\x04\x22\x4d\x18"
CONTENT_SIZE_BIT: Final = 0x08  # of the first byte of the descriptor: eight bytes of size stand in it
_DESCRIPTOR_AT: Final = len(FRAME_MAGIC)
_SHORT, _LONG = 2, 10  # bytes of a descriptor: flags, block size, and the content's size where there is one

_UINT32: Final = 0xFFFFFFFF
_PRIMES: Final = (2654435761, 2246822519, 3266489917, 668265263, 374761393)
_WORD = Struct("<I")


def with_right_checksum(frame: Buffer) -> bytes:
    """A v0 message's frame as every lz4 library takes it; bytes that are no frame stay as they are."""
    return _with_checksum(frame, _DESCRIPTOR_AT)


def with_old_checksum(frame: Buffer) -> bytes:
    """A frame as the readers of v0 messages want it."""
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
    """The xxHash of fewer than 16 bytes, with seed 0: all that a frame's header needs."""
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
