"""Zigzag varints of many records at once: an array of places in, an array of numbers out.

Knows nothing of records. ``barnabas.records.varint`` reads one at a time, and what it refuses is refused here.
"""

import numpy as np
import numpy.typing as npt

from barnabas.errors import InvalidRecord

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int64]


def read_varints(data: Bytes, at: Places, *, strict: bool = True) -> tuple[Numbers, Places]:
    """The 32-bit numbers that stand ``at`` those bytes, and where each of them ends.

    What lies beyond ``data`` is read as if its last byte stood there: the caller compares where things end.
    Raises InvalidRecord if a number has more than 5 bytes; without ``strict`` it is what its first 5 bytes say.
    """
    raw, ends = _read(data, at, longest=5, strict=strict)
    raw &= 0xFFFFFFFF
    return (raw >> 1) ^ -(raw & 1), ends


def read_varlongs(data: Bytes, at: Places, *, strict: bool = True) -> tuple[Numbers, Places]:
    """As :func:`read_varints`, for numbers of 64 bits, which have up to 10 bytes."""
    raw, ends = _read(data, at, longest=10, strict=strict)
    return (raw.view(np.uint64) >> np.uint64(1)).view(np.int64) ^ -(raw & 1), ends


def _read(data: Bytes, at: Places, *, longest: int, strict: bool) -> tuple[Numbers, Places]:
    """The numbers before zigzag: the first two bytes of all, then a pass for each byte that any of them has."""
    first = data.take(at, mode="clip")
    raw = first.astype(np.int64)
    ends = at + 1
    more = first > 0x7F
    if not more.any():
        return raw, ends
    second = data.take(ends, mode="clip")
    np.putmask(raw, more, (raw & 0x7F) | (second & np.uint8(0x7F)).astype(np.int64) << 7)
    ends += more
    longer = np.flatnonzero(more & (second > 0x7F))
    for length in range(2, longest):
        if not longer.size:
            return raw, ends
        byte = data.take(ends[longer], mode="clip")
        raw[longer] |= (byte & np.uint8(0x7F)).astype(np.int64) << 7 * length
        ends[longer] += 1
        longer = longer[byte > 0x7F]
    if longer.size and strict:
        raise InvalidRecord(f"A varint has more than {longest} bytes.")
    return raw, ends
