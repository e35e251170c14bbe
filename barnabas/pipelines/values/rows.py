"""From bytes to a column, one value at a time, where a value that is wrong costs its row and not the column.

Knows nothing of the formats.
"""

import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa

from barnabas.pipelines.values.framing import Undecodable, Unencodable


class Decoded(NamedTuple):
    """A column, and for each row null or why there is no value; rows that were null are null in both."""

    values: pa.Array
    errors: pa.Array


def decode_rows(column: pa.Array, read: Callable[[bytes], Any], type: pa.DataType) -> Decoded:
    """Each value by `read`, whose errors are the row's; then all as a column of this Arrow type.

    An Undecodable's text stands as it is, any other ValueError, TypeError ... with its class. What says that the
    world is wrong rather than the value (RegistryFailed, OSError, MemoryError) goes through.
    """
    rows: list[Any] = []
    errors: list[str | None] = []
    for value in column.to_pylist():
        row, error = None, None
        if value is not None:
            try:
                row = read(value)
            except VALUE_ERRORS as problem:
                error = told(problem)
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
"""What reading bytes that are no value of the schema may raise; UnicodeDecodeError is a ValueError."""


def as_column(rows: list[Any], errors: list[str | None], type: pa.DataType) -> pa.Array:
    """The rows as a column; one that does not fit the type becomes null, and `errors` says so at its place."""
    try:
        return pa.array(rows, type)
    except (pa.ArrowException, *VALUE_ERRORS):
        for at, row in enumerate(rows):
            try:
                pa.array([row], type)
            except (pa.ArrowException, *VALUE_ERRORS) as problem:
                rows[at] = None
                errors[at] = told(problem)
        return pa.array(rows, type)


def encode_rows(column: pa.Array, write: Callable[[Any], bytes]) -> pa.Array:
    """Each row that is not null by `write`; raises Unencodable naming the first that cannot be written."""
    return pa.array([None if row is None else written(row, write) for row in python_rows(column)], pa.binary())


def written(row: Any, write: Callable[[Any], bytes]) -> bytes:
    try:
        return write(row)
    except VALUE_ERRORS as problem:
        shown = repr(row)
        raise Unencodable(
            f"{told(problem)}, in the row {shown if len(shown) <= 200 else shown[:200] + ' ...'}"
        ) from problem


def python_rows(column: pa.Array) -> list[Any]:
    """The column in Python: structs and maps as dicts, times as datetime's, with microseconds and no finer."""
    type = coarser(column.type)
    rows: list[Any] = (column if type == column.type else column.cast(type)).to_pylist()
    return [plain(row, type) for row in rows] if _holds_maps(type) else rows


def plain(value: Any, type: pa.DataType) -> Any:
    """Maps as dicts, at any depth; `to_pylist` gives them as lists of pairs."""
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
    """This type with times of the day in microseconds: Spark's have nanoseconds, and Python's none."""
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


def told(problem: BaseException) -> str:
    """An error in a line: ours as they are, others with their class, as their texts alone often say little."""
    text = " ".join(str(problem).split())
    if isinstance(problem, Undecodable | Unencodable):
        return text
    return f"{type(problem).__name__}: {text}" if text else type(problem).__name__
