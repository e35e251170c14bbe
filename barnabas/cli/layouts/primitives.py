"""The primitive layouts: variable-length integers, strings, arrays and tagged fields.

Knows nothing of any record or file.
"""

import base64
from typing import Any

from construct import (
    Adapter,
    Bytes,
    BytesInteger,
    Construct,
    ExprValidator,
    FocusedSeq,
    GreedyBytes,
    If,
    Int16sb,
    Int32sb,
    Prefixed,
    PrefixedArray,
    Struct,
    Switch,
    VarInt,
    ZigZag,
    this,
)


def _within(layout: Construct, first: int, last: int) -> Construct:
    return ExprValidator(layout, lambda value, context: first <= value <= last)


INT32_MAX = 2**31 - 1

VARINT = _within(ZigZag, -(2**31), INT32_MAX)
VARLONG = _within(ZigZag, -(2**63), 2**63 - 1)
UVARINT = _within(VarInt, 0, 2**32 - 1)

UINT32 = BytesInteger(4)


def _sized(length: Construct, content: Any, nullable: bool) -> Construct:
    """Returns the layout of a length and of content with that length; -1 is null if null is allowed."""
    return FocusedSeq(
        "content",
        "length" / _within(length, -1 if nullable else 0, INT32_MAX),
        "content" / If(this.length >= 0, content),
    )


class _LessOne(Adapter):  # type: ignore[misc]
    """A compact length: the length plus one, with 0 for null."""

    def _decode(self, value: int, context: Any, path: str) -> int:
        return value - 1

    def _encode(self, value: int, context: Any, path: str) -> int:
        return value + 1


COMPACT_LENGTH = _LessOne(UVARINT)


class Text(Adapter):  # type: ignore[misc]
    """UTF-8 text; invalid bytes become the replacement character."""

    def _decode(self, value: bytes | None, context: Any, path: str) -> str | None:
        return None if value is None else value.decode("utf-8", "replace")

    def _encode(self, value: str | None, context: Any, path: str) -> bytes | None:
        return None if value is None else value.encode()


class Uuid(Adapter):  # type: ignore[misc]
    """A UUID of 16 bytes, as text in URL-safe base64 without padding."""

    def _decode(self, value: bytes, context: Any, path: str) -> str:
        return base64.urlsafe_b64encode(value).decode().rstrip("=")

    def _encode(self, value: str, context: Any, path: str) -> bytes:
        return base64.urlsafe_b64decode(value + "==")


UUID = Uuid(Bytes(16))
VAR_BYTES = _sized(VARINT, Bytes(this.length), nullable=True)
INT_BYTES = _sized(Int32sb, Bytes(this.length), nullable=True)


def text(*, compact: bool, nullable: bool = False) -> Construct:
    """Returns the layout of a string."""
    return Text(_sized(COMPACT_LENGTH if compact else Int16sb, Bytes(this.length), nullable))


def data(*, compact: bool, nullable: bool = False) -> Construct:
    """Returns the layout of bytes."""
    return _sized(COMPACT_LENGTH if compact else Int32sb, Bytes(this.length), nullable)


def array(item: Construct, *, compact: bool, nullable: bool = False) -> Construct:
    """Returns the layout of an array: a count and its items."""
    length = COMPACT_LENGTH if compact else Int32sb
    if not nullable:
        return PrefixedArray(_within(length, 0, INT32_MAX), item)
    return FocusedSeq(
        "items", "count" / _within(length, -1, INT32_MAX), "items" / If(this.count >= 0, item[this.count])
    )


def tagged(known: dict[int, Construct]) -> Construct:
    """Returns the layout of the tagged fields at the end of a structure; undeclared ones are bytes."""
    field = Struct(
        "tag" / UVARINT,
        "value" / Prefixed(UVARINT, Switch(this.tag, known, default=GreedyBytes)),
    )
    return PrefixedArray(UVARINT, field)


NO_TAGS = tagged({})
