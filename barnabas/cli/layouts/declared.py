"""Builds layouts from the declarations in ``barnabas.wire``; construct decodes the bytes.

Knows nothing of any particular message, nor of the functions that the compiler of ``barnabas.wire`` generates.
"""

from typing import Any

from construct import (
    Byte,
    Construct,
    ExprValidator,
    Flag,
    Float64b,
    FocusedSeq,
    If,
    Int8sb,
    Int16sb,
    Int16ub,
    Int32sb,
    Int32ub,
    Int64sb,
    Struct,
    this,
)

from barnabas.cli.layouts.control import plain
from barnabas.cli.layouts.primitives import UUID, array, data, tagged, text
from barnabas.wire import schema
from barnabas.wire.types import Fixed, Sized

_FIXED = {
    "b": Int8sb,
    "h": Int16sb,
    "i": Int32sb,
    "q": Int64sb,
    "H": Int16ub,
    "I": Int32ub,
    "d": Float64b,
    "?": Flag,
    "16s": UUID,
}


def read(declared: type[schema.Struct], content: bytes, version: int) -> dict[str, Any]:
    """Decodes a structure in a version, and returns its fields.

    Tagged fields that are absent have their defaults.

    :raises construct.ConstructError: the bytes cannot be decoded
    """
    parsed = layout(declared, version, version in declared.flexible).parse(content)
    return _complete(declared, parsed, version)


def layout(declared: type[schema.Struct], version: int, flexible: bool) -> Construct:
    """Returns the layout of a structure in a version."""
    key = declared, version, flexible
    if key not in _LAYOUTS:
        _LAYOUTS[key] = _layout(*key)
    return _LAYOUTS[key]


_LAYOUTS: dict[tuple[type[schema.Struct], int, bool], Construct] = {}


def _layout(declared: type[schema.Struct], version: int, flexible: bool) -> Construct:
    fields = [each for each in declared.wire_fields() if version in each.versions]
    parts = [each.name / _of_field(each, version, flexible) for each in fields if not (flexible and _has_tag(each))]
    if flexible:
        known = {each.tag: _of_field(each, version, flexible) for each in fields if _has_tag(each)}
        parts.append("tags" / tagged({tag: part for tag, part in known.items() if tag is not None}))
    return Struct(*parts)


def _has_tag(field: schema.Field) -> bool:
    return field.tag is not None


def _of_field(field: schema.Field, version: int, flexible: bool) -> Construct:
    nullable = version in field.nullable
    if field.is_array:
        return array(_of_kind(field.kind, version, flexible, False), compact=flexible, nullable=nullable)
    return _of_kind(field.kind, version, flexible, nullable)


def _of_kind(kind: Any, version: int, flexible: bool, nullable: bool) -> Construct:
    if isinstance(kind, Fixed):
        return _FIXED[kind.format]
    if isinstance(kind, Sized):
        compact = flexible and kind.may_be_compact
        return (text if kind.shape == "text" else data)(compact=compact, nullable=nullable)
    inner = layout(kind, version, flexible)
    if not nullable:
        return inner
    there = ExprValidator(Byte, lambda value, context: value in (0, 1, 255))  # null is -1, or 0 in a tagged field
    return FocusedSeq("inner", "there" / there, "inner" / If(this.there == 1, inner))


def _complete(declared: type[schema.Struct], parsed: Any, version: int) -> dict[str, Any]:
    """Returns the values of all fields of the version by name, in the order of their declaration."""
    tags = {each.tag: each.value for each in parsed.get("tags") or ()}
    found: dict[str, Any] = {}
    for field in declared.wire_fields():
        if version not in field.versions:
            continue
        if field.name in parsed:
            value = parsed[field.name]
        elif field.tag in tags:
            value = tags.pop(field.tag)
        else:
            found[field.name] = _default(field)
            continue
        if isinstance(field.kind, type) and value is not None:
            inner = field.kind
            if field.is_array:
                value = [_complete(inner, each, version) for each in value]
            else:
                value = _complete(inner, value, version)
        found[field.name] = plain(value)
    if tags:
        found["unknown_tags"] = dict(tags)
    return found


def _default(field: schema.Field) -> Any:
    value = field.default
    if isinstance(value, schema.Struct):
        return {each.name: _default(each) for each in value.wire_fields()}
    if isinstance(value, tuple):
        return list(value)
    if isinstance(field.kind, Fixed) and field.kind.format == "16s" and isinstance(value, bytes):
        return UUID.parse(value)
    return value
