"""What the serializers of a schema registry put before a value: a zero, its schema's id, and which message it is.

Knows nothing of schemas, nor of the registry.
"""

from collections.abc import Sequence

MAGIC = 0
HEADER_BYTES = 5
MOST_INDEXES = 64
"""Messages within messages that a value may name; more is not a path, but bytes of something else."""


class Undecodable(ValueError):
    """A value is not what its format says it is; the text says why."""


class Unencodable(ValueError):
    """A row cannot be written as its format says; the text says why."""


def header(schema_id: int) -> bytes:
    """The five bytes before a value of this schema."""
    return bytes([MAGIC]) + schema_id.to_bytes(4, "big")


def schema_id_of(value: bytes) -> int:
    """The schema's id from the five bytes; raises Undecodable where they cannot be such a header."""
    if len(value) < HEADER_BYTES:
        raise Undecodable(f"{len(value)} bytes are too few for the five-byte header of a schema registry")
    if value[0] != MAGIC:
        raise Undecodable(f"the first byte is {value[0]:#04x}, and not the 0x00 of a schema registry's header")
    return int.from_bytes(value[1:HEADER_BYTES], "big")


def message_indexes(value: bytes, at: int = HEADER_BYTES) -> tuple[tuple[int, ...], int]:
    """Which message of a Protobuf schema follows, and where it begins.

    ``(1, 0)`` is the first message within the second of the file. ``(0,)`` has a short form: a single zero.
    """
    count, at = _zigzag(value, at)
    if count == 0:
        return (0,), at
    if not 0 < count <= MOST_INDEXES:
        raise Undecodable(f"the message indexes after the header claim to be {count}")
    indexes = []
    for _ in range(count):
        index, at = _zigzag(value, at)
        indexes.append(index)
    return tuple(indexes), at


def write_message_indexes(indexes: Sequence[int]) -> bytes:
    """The bytes that `message_indexes` reads."""
    if tuple(indexes) == (0,):
        return b"\0"
    return b"".join(_write_zigzag(number) for number in (len(indexes), *indexes))


def _zigzag(value: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(value) or shift > 28:
            raise Undecodable("the message indexes after the header are cut off, or no numbers")
        byte = value[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
        shift += 7


def _write_zigzag(number: int) -> bytes:
    rest = (number << 1) ^ (number >> 31)
    written = bytearray()
    while rest > 0x7F:
        written.append(rest & 0x7F | 0x80)
        rest >>= 7
    written.append(rest)
    return bytes(written)
