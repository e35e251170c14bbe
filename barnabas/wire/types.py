"""The types of the protocol, with the names in Kafka's schemas, and variable-length integers.

Knows nothing of any message; the declarations and the compiler use it.
"""

import struct
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

from barnabas.errors import MalformedMessage

Buffer = bytes | bytearray | memoryview
ZERO_UUID = bytes(16)
MISSING: Any = object()  #: the default of a field that has none


class Fixed(NamedTuple):
    """A type of fixed size; adjacent fields are packed together."""

    format: str
    size: int
    default: Any


class Sized(NamedTuple):
    """A type with a length and that many bytes."""

    length_format: str  #: of a length that is not compact
    shape: str  #: "text", "bytes" or "records"
    default: Any
    may_be_compact: bool = True


int8 = Annotated[int, Fixed("b", 1, 0)]
int16 = Annotated[int, Fixed("h", 2, 0)]
int32 = Annotated[int, Fixed("i", 4, 0)]
int64 = Annotated[int, Fixed("q", 8, 0)]
uint16 = Annotated[int, Fixed("H", 2, 0)]
uint32 = Annotated[int, Fixed("I", 4, 0)]
float64 = Annotated[float, Fixed("d", 8, 0.0)]
uuid = Annotated[bytes, Fixed("16s", 16, ZERO_UUID)]
string = Annotated[str, Sized("h", "text", "")]
#: A string whose length is an int16 in flexible versions, too: the client id in the request header (KIP-482).
plain_string = Annotated[str, Sized("h", "text", "", may_be_compact=False)]
#: Record batches: decoded as a view of the frame, encoded without a copy.
record_batches = Annotated[Buffer, Sized("i", "records", b"")]

#: The types for the annotations ``bool`` and ``bytes``.
BUILTIN_KINDS: dict[type, Fixed | Sized] = {bool: Fixed("?", 1, False), bytes: Sized("i", "bytes", b"")}

#: All single bytes. The first half are the unsigned varints below 128.
BYTE = [bytes((value,)) for value in range(256)]


def uvarint(value: int) -> bytes:
    """Encodes ``value`` as an unsigned varint: seven bits per byte, the lowest first.

    >>> uvarint(300).hex()
    'ac02'
    """
    if value < 0x80:
        return BYTE[value]
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def read_uvarint(data: Buffer, at: int) -> tuple[int, int]:
    """Decodes the unsigned varint ``at`` a position, and returns it with its end.

    It has at most five bytes, and becomes a signed 32-bit number, as in Apache Kafka's
    ``ByteUtils.readUnsignedVarint``.

    >>> read_uvarint(bytes.fromhex("ac02"), 0)
    (300, 2)
    """
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            raise MalformedMessage("a varint of more than five bytes")
    value &= 0xFFFFFFFF
    return (value if value < 0x80000000 else value - 0x100000000), at


def read_length(data: Buffer, at: int) -> tuple[int, int]:
    """Decodes a compact length that must not be null; 1 is empty. See :func:`read_uvarint`."""
    value, at = read_uvarint(data, at)
    if value < 1:
        raise MalformedMessage("null where there must be a value")
    return value, at


def skip_tags(data: Buffer, at: int) -> int:
    """Returns the end of the tagged fields ``at`` a position, which are ignored."""
    count, at = read_uvarint(data, at)
    for _ in range(count):
        _tag, at = read_uvarint(data, at)
        at = skip_tagged(data, at)
    return at


def skip_tagged(data: Buffer, at: int) -> int:
    """Returns the end of the tagged field whose size is ``at`` a position."""
    size, at = read_uvarint(data, at)
    if not 0 <= size <= len(data) - at:
        raise MalformedMessage("a tagged field that is longer than its frame")
    return at + size


def negative() -> MalformedMessage:
    return MalformedMessage("null where there must be a value")


def beyond(count: int) -> MalformedMessage:
    return MalformedMessage(f"{count} elements announced, more than the frame can hold")


class Packers(dict[int, Any]):
    """Maps a count to a bound method of the ``struct.Struct`` with that many values; small ones are cached.

    >>> Packers("i", lambda made: made.unpack_from)[2](bytes.fromhex("0000000100000002"), 0)
    (1, 2)
    """

    def __init__(self, format: str, method: Callable[[struct.Struct], Any]) -> None:
        self.format, self.method = format, method

    def __missing__(self, count: int) -> Any:
        made = self.method(struct.Struct(f">{count}{self.format}"))
        if count <= 64:
            self[count] = made
        return made
