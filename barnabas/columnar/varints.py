"""Zigzag varints of many records at once: an array of places in, an array of numbers out.

Knows nothing of records. ``barnabas.records.varint`` reads one at a time, and what it refuses is refused here.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from barnabas.errors import InvalidRecord

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int64]

_LOW: Final = np.uint64(0x7F)
_ONE: Final = np.uint64(1)


def read_varints(data: Bytes, at: Places, *, strict: bool = True) -> tuple[Numbers, Places]:
    """The 32-bit numbers that stand ``at`` those bytes, and where each of them ends.

    What lies beyond ``data`` is read as if its last byte stood there: the caller compares where things end.
    Raises InvalidRecord if a number has more than 5 bytes; without ``strict`` it is what its first 5 bytes say.
    """
    first = data.take(at, mode="clip")
    if not (longer := np.flatnonzero(first > 0x7F)).size:
        short = first.astype(np.int64)
        return (short >> 1) ^ -(short & 1), at + 1
    raw, ends = _read(data, at, first, longer, longest=5, strict=strict)
    numbers = (raw & np.uint64(0xFFFFFFFF)).view(np.int64)
    return (numbers >> 1) ^ -(numbers & 1), ends


def read_varlongs(data: Bytes, at: Places, *, strict: bool = True) -> tuple[Numbers, Places]:
    """As :func:`read_varints`, for numbers of 64 bits, which have up to 10 bytes."""
    first = data.take(at, mode="clip")
    if not (longer := np.flatnonzero(first > 0x7F)).size:
        short = first.astype(np.int64)
        return (short >> 1) ^ -(short & 1), at + 1
    raw, ends = _read(data, at, first, longer, longest=10, strict=strict)
    return (raw >> _ONE).view(np.int64) ^ -((raw & _ONE).view(np.int64)), ends


def _read(
    data: Bytes, at: Places, first: Bytes, longer: npt.NDArray[np.intp], *, longest: int, strict: bool
) -> tuple[npt.NDArray[np.uint64], Places]:
    """The numbers before zigzag, a pass for each byte that any of them has; ``longer`` have more than the ``first``."""
    raw = first.astype(np.uint64) & _LOW
    ends = at + 1
    for length in range(1, longest):
        places = ends[longer]
        byte = data.take(places, mode="clip")
        raw[longer] |= (byte.astype(np.uint64) & _LOW) << np.uint64(7 * length)
        ends[longer] = places + 1
        longer = longer[byte > 0x7F]
        if not longer.size:
            return raw, ends
    if not strict:
        return raw, ends
    raise InvalidRecord(f"A varint has more than {longest} bytes.")
