"""What the serializers of a schema registry put before a value: a zero, its schema's id, and which message it is.

Knows nothing of schemas, nor of the registry.
"""

from collections.abc import Sequence

from barnabas.errors import InvalidRecord
from barnabas.records.varint import read_varint, write_varint

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
    count, at = _index(value, at)
    if count == 0:
        return (0,), at
    if not 0 < count <= MOST_INDEXES:
        raise Undecodable(f"the message indexes after the header claim to be {count}")
    indexes = []
    for _ in range(count):
        index, at = _index(value, at)
        indexes.append(index)
    return tuple(indexes), at


def write_message_indexes(indexes: Sequence[int]) -> bytes:
    """The bytes that `message_indexes` reads."""
    if tuple(indexes) == (0,):
        return b"\0"
    written = bytearray()
    for number in (len(indexes), *indexes):
        write_varint(number, written)
    return bytes(written)


def hint_of_header(value: bytes, *, framed: bool) -> str:
    """What to add where a value, taken to be `framed` or not, is not of its format."""
    if framed or value[:1] != bytes([MAGIC]):
        return ""
    return ": it begins with a zero, so that it may have a schema registry's header (framed, registry)"


def _index(value: bytes, at: int) -> tuple[int, int]:
    try:
        return read_varint(value, at)
    except (IndexError, InvalidRecord):
        raise Undecodable("the message indexes after the header are cut off, or no numbers") from None
