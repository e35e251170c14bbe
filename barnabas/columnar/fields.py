"""Reads the fields of many records at once, each as an array: deltas, and positions of keys, values and headers.

Knows nothing of batches: the caller passes the positions of the records.
"""

from typing import Final, NamedTuple

import numpy as np

from barnabas.columnar.varints import Bytes, Numbers, Places, read_varints, read_varlongs
from barnabas.errors import InvalidRecord
from barnabas.records.varint import read_varint

FEW: Final = 32  # records; the headers of so few are read one by one, which is faster than a step of numpy


class Pieces(NamedTuple):
    """Byte strings, by position and length; a negative length means null."""

    at: Places
    sizes: Numbers

    def keep(self, mask: np.ndarray) -> "Pieces":
        return Pieces(self.at[mask], self.sizes[mask])


class Headers(NamedTuple):
    """The headers of all records, one after the other; `counts` is the number of headers of each record."""

    counts: Numbers
    keys: Pieces
    values: Pieces

    def keep(self, mask: np.ndarray) -> "Headers":
        """Returns the headers of the records in `mask`."""
        of_kept = np.repeat(mask, self.counts)
        return Headers(self.counts[mask], self.keys.keep(of_kept), self.values.keep(of_kept))


class Fields(NamedTuple):
    """The fields of records, with unresolved deltas. `headers` is None if no record has headers."""

    timestamp_deltas: Numbers
    offset_deltas: Numbers
    keys: Pieces
    values: Pieces
    headers: Headers | None


def read_fields(data: bytes | memoryview, array: Bytes, starts: Places) -> Fields:
    """Returns the fields of the records that start at these positions.

    :param array: `data` as a numpy array.
    :raises InvalidRecord: the lengths in a record do not add up to the record's length.
    """
    size, at = read_varints(array, starts)
    ends = at + size
    timestamp_deltas, at = read_varlongs(array, at + 1)  # skips the attributes, which are unused
    offset_deltas, at = read_varints(array, at)
    key_sizes, key_at = read_varints(array, at)
    at = key_at + np.maximum(key_sizes, 0)
    value_sizes, value_at = read_varints(array, at)
    at = value_at + np.maximum(value_sizes, 0)
    if (at >= ends).any():
        raise InvalidRecord("A key or value does not fit into its record.")
    headers = None
    if not np.array_equal(at + 1, ends) or array.take(at).any():
        headers, at = _read_headers(data, array, at, ends)
        if not np.array_equal(at, ends):
            raise InvalidRecord("A record has another length than it says.")
    return Fields(timestamp_deltas, offset_deltas, Pieces(key_at, key_sizes), Pieces(value_at, value_sizes), headers)


def _read_headers(data: bytes | memoryview, array: Bytes, at: Places, ends: Places) -> tuple[Headers | None, Places]:
    """Returns the headers of the records whose header counts are at these positions, and the ends of the headers."""
    counts, ends_of_headers = read_varints(array, at)
    if ((counts < 0) | (counts > (ends - ends_of_headers) // 2)).any():  # a header has two lengths of at least one byte
        raise InvalidRecord("A record claims more headers than it has bytes.")
    total = int(counts.sum())
    if not total:
        return None, ends_of_headers
    table = np.empty((4, total), dtype=np.int64)  # position and length of keys, position and length of values
    begin = np.cumsum(counts) - counts
    going = np.flatnonzero(counts)
    done = 0
    while going.size > FEW:
        at = ends_of_headers[going]
        key_sizes, key_at = read_varints(array, at)
        if (key_sizes < 0).any():
            raise InvalidRecord("A header's key is null.")
        value_sizes, value_at = read_varints(array, key_at + key_sizes)
        table[:, begin[going] + done] = key_at, key_sizes, value_at, value_sizes
        ends_of_headers[going] = value_at + np.maximum(value_sizes, 0)
        done += 1
        going = going[counts[going] > done]
    for index in going.tolist():
        first, last = int(begin[index]) + done, int(begin[index] + counts[index])
        ends_of_headers[index] = _read_one_by_one(data, int(ends_of_headers[index]), table[:, first:last])
    return Headers(counts, Pieces(table[0], table[1]), Pieces(table[2], table[3])), ends_of_headers


def _read_one_by_one(data: bytes | memoryview, at: int, table: Numbers) -> int:
    """Fills the columns of `table` with the headers from `at` on; returns their end."""
    rows = []
    try:
        for _ in range(table.shape[1]):
            key_size, key_at = _varint(data, at)
            if key_size < 0:
                raise InvalidRecord("A header's key is null.")
            value_size, value_at = _varint(data, key_at + key_size)
            rows.append((key_at, key_size, value_at, value_size))
            at = value_at + max(value_size, 0)
    except IndexError:
        raise InvalidRecord("A record ends in the middle of a header.") from None
    table[:] = np.array(rows, dtype=np.int64).T
    return at


def _varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    return read_varint(data, at)  # type: ignore[arg-type]  # it only indexes bytes, which works with a view too
