"""Zigzag varints, which encode small numbers of either sign in few bytes; records consist of them.

Knows nothing of records. Flexible versions of messages use unsigned varints, which are different.
"""

from typing import Final

from barnabas.errors import InvalidRecord

#: The value of a varint by its first byte; None if more bytes follow.
SHORT_VARINTS: Final[tuple[int | None, ...]] = (*(byte >> 1 ^ -(byte & 1) for byte in range(128)), *[None] * 128)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Decodes the 32-bit number ``at`` a position, and returns it with its end.

    :raises IndexError: ``data`` ends within the number
    :raises InvalidRecord: it has too many bytes
    """
    byte = data[at]
    if byte < 0x80:
        return byte >> 1 ^ -(byte & 1), at + 1
    value = byte & 0x7F | (data[at + 1] & 0x7F) << 7
    if data[at + 1] < 0x80:
        return value >> 1 ^ -(value & 1), at + 2
    at, shift = at + 1, 14
    while True:
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= 0xFFFFFFFF
            return value >> 1 ^ -(value & 1), at + 1
        shift += 7
        if shift > 28:
            raise InvalidRecord("A varint has more than 5 bytes.")


def read_varlong(data: bytes, at: int) -> tuple[int, int]:
    """Decodes the 64-bit number ``at`` a position, and returns it with its end.

    :raises IndexError: ``data`` ends within the number
    :raises InvalidRecord: it has too many bytes
    """
    byte = data[at]
    if byte < 0x80:
        return byte >> 1 ^ -(byte & 1), at + 1
    value = byte & 0x7F | (data[at + 1] & 0x7F) << 7
    if data[at + 1] < 0x80:
        return value >> 1 ^ -(value & 1), at + 2
    at, shift = at + 1, 14
    while True:
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            value &= 0xFFFFFFFFFFFFFFFF
            return value >> 1 ^ -(value & 1), at + 1
        shift += 7
        if shift > 63:
            raise InvalidRecord("A varlong has more than 10 bytes.")


def write_varint(value: int, out: bytearray) -> None:
    """Encodes ``value``, of at most 64 bits, and appends it to ``out``."""
    value = value << 1 if value >= 0 else ~(value << 1)
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
