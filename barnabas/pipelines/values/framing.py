"""The header that a schema registry's serializers write before a value: a zero, the schema's id, and message indexes.

Knows nothing of schemas, nor of the registry.
"""

from collections.abc import Sequence

from barnabas.errors import InvalidRecord
from barnabas.records.varint import read_varint, write_varint

MAGIC = 0
HEADER_BYTES = 5
MOST_INDEXES = 64
"""The most message indexes of a value. A longer path is taken for other bytes."""


class Undecodable(ValueError):
    """A value does not have its format; the message says why."""


class Unencodable(ValueError):
    """A row cannot be written in its format; the message says why."""


def header(schema_id: int) -> bytes:
    """Returns the five bytes before a value of this schema."""
    return bytes([MAGIC]) + schema_id.to_bytes(4, "big")


def schema_id_of(value: bytes) -> int:
    """Returns the schema's id in the first five bytes.

    :raises Undecodable: they are not a header.
    """
    if len(value) < HEADER_BYTES:
        raise Undecodable(f"{len(value)} bytes are too few for the five-byte header of a schema registry")
    if value[0] != MAGIC:
        raise Undecodable(f"the first byte is {value[0]:#04x}, not the 0x00 of a schema registry's header")
    return int.from_bytes(value[1:HEADER_BYTES], "big")


def message_indexes(value: bytes, at: int = HEADER_BYTES) -> tuple[tuple[int, ...], int]:
    """Returns the indexes of the Protobuf message, and the position where it begins.

    ``(1, 0)`` is the first message within the second message of the file. ``(0,)`` has a short form: a single zero.
    """
    count, at = _index(value, at)
    if count == 0:
        return (0,), at
    if not 0 < count <= MOST_INDEXES:
        raise Undecodable(f"the header has an invalid number of message indexes: {count}")
    indexes = []
    for _ in range(count):
        index, at = _index(value, at)
        indexes.append(index)
    return tuple(indexes), at


def write_message_indexes(indexes: Sequence[int]) -> bytes:
    """Returns the bytes that `message_indexes` reads."""
    if tuple(indexes) == (0,):
        return b"\0"
    written = bytearray()
    for number in (len(indexes), *indexes):
        write_varint(number, written)
    return bytes(written)


def hint_of_header(value: bytes, *, framed: bool) -> str:
    """Returns a hint for the error if a value's header is unexpected, or missing."""
    if framed or value[:1] != bytes([MAGIC]):
        return ""
    return ": it begins with a zero, so that it may have a schema registry's header (framed, registry)"


def _index(value: bytes, at: int) -> tuple[int, int]:
    try:
        return read_varint(value, at)
    except (IndexError, InvalidRecord):
        raise Undecodable("the message indexes after the header are incomplete or invalid") from None
