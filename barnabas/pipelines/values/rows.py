"""Converts bytes to a column value by value, so that a bad value makes its row null instead of failing the column.

Knows nothing of the formats.
"""

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa

from barnabas.pipelines.values.framing import Undecodable, Unencodable


class Decoded(NamedTuple):
    """A column, and for each row an error or null. Rows that were null are null in both."""

    values: pa.Array
    errors: pa.Array


def decode_rows(column: pa.Array, read: Callable[[bytes], Any], type: pa.DataType) -> Decoded:
    """Decodes each value with `read`, whose errors belong to the row; returns a column of this Arrow type.

    The message of Undecodable is used as it is, that of another error with its class. Errors that are not about the
    value (RegistryFailed, OSError, MemoryError) are raised.
    """
    rows: list[Any] = []
    errors: list[str | None] = []
    for value in column.to_pylist():
        row, error = None, None
        if value is not None:
            try:
                row = read(value)
            except VALUE_ERRORS as problem:
                error = error_text(problem)
        rows.append(row)
        errors.append(error)
    return Decoded(as_column(rows, errors, type), pa.array(errors, pa.string()))


VALUE_ERRORS = (
    ValueError,
    TypeError,
    LookupError,
    EOFError,
    ArithmeticError,
    AttributeError,
    RecursionError,
    struct.error,
)
"""What decoding a bad value may raise; UnicodeDecodeError is a ValueError."""


def as_column(rows: list[Any], errors: list[str | None], type: pa.DataType) -> pa.Array:
    """Returns the rows as a column. A row that does not fit the type becomes null, and has an entry in `errors`."""
    try:
        return pa.array(rows, type)
    except (pa.ArrowException, *VALUE_ERRORS):
        for at, row in enumerate(rows):
            try:
                pa.array([row], type)
            except (pa.ArrowException, *VALUE_ERRORS) as problem:
                rows[at] = None
                errors[at] = error_text(problem)
        return pa.array(rows, type)


def encode_rows(column: pa.Array, write: Callable[[Any], bytes]) -> pa.Array:
    """Encodes each row that is not null with `write`.

    :raises Unencodable: a row cannot be written; the message shows it.
    """
    return pa.array([None if row is None else written(row, write) for row in python_rows(column)], pa.binary())


def written(row: Any, write: Callable[[Any], bytes]) -> bytes:
    try:
        return write(row)
    except VALUE_ERRORS as problem:
        shown = repr(row)
        raise Unencodable(
            f"{error_text(problem)}, in the row {shown if len(shown) <= 200 else shown[:200] + ' ...'}"
        ) from problem


def python_rows(column: pa.Array) -> list[Any]:
    """Returns the column as Python values: structs and maps as dicts, times as datetime objects with microseconds."""
    type = coarser(column.type)
    rows: list[Any] = (column if type == column.type else column.cast(type)).to_pylist()
    return [plain(row, type) for row in rows] if _holds_maps(type) else rows


def plain(value: Any, type: pa.DataType) -> Any:
    """Returns maps as dicts at any depth; `to_pylist` returns lists of pairs."""
    if value is None or not pa.types.is_nested(type):
        return value
    if pa.types.is_map(type):
        return {key: plain(each, type.item_type) for key, each in value}
    if pa.types.is_struct(type):
        return {field.name: plain(value[field.name], field.type) for field in type}
    return [plain(each, type.value_type) for each in value]


def _holds_maps(type: pa.DataType) -> bool:
    if pa.types.is_map(type):
        return True
    if pa.types.is_struct(type):
        return any(_holds_maps(field.type) for field in type)
    return pa.types.is_list(type) and _holds_maps(type.value_type)


def coarser(type: pa.DataType) -> pa.DataType:
    """Returns this type with times of day in microseconds: Spark's have nanoseconds, Python's do not."""
    if pa.types.is_time64(type):
        return pa.time64("us")
    if pa.types.is_struct(type):
        return pa.struct([field.with_type(coarser(field.type)) for field in type])
    if pa.types.is_map(type):
        return pa.map_(
            type.key_field.with_type(coarser(type.key_type)), type.item_field.with_type(coarser(type.item_type))
        )
    if pa.types.is_list(type):
        return pa.list_(type.value_field.with_type(coarser(type.value_type)))
    return type


def error_text(problem: BaseException) -> str:
    """Returns an error as a line: ours as they are, others with their class, as their messages alone often say
    little.
    """
    text = " ".join(str(problem).split())
    if isinstance(problem, Undecodable | Unencodable):
        return text
    return f"{type(problem).__name__}: {text}" if text else type(problem).__name__
