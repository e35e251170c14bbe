"""Reads the zigzag varints of many records at once: takes an array of positions, returns an array of numbers.

Knows nothing of records. It refuses the same numbers as ``barnabas.records.varint``, which reads one number at a time.
"""

import numpy as np
import numpy.typing as npt

from barnabas.errors import InvalidRecord

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int64]


def read_varints(data: Bytes, at: Places, *, strict: bool = True) -> tuple[Numbers, Places]:
    """Returns the 32-bit numbers at these positions, and their ends.

    Beyond the end of `data` its last byte is repeated, so the caller has to check the ends.

    :param strict: without it, the value of a number of more than 5 bytes is that of its first 5 bytes.
    :raises InvalidRecord: a number has more than 5 bytes.
    """
    raw, ends = _read(data, at, longest=5, strict=strict)
    raw &= 0xFFFFFFFF
    return (raw >> 1) ^ -(raw & 1), ends


def read_varlongs(data: Bytes, at: Places, *, strict: bool = True) -> tuple[Numbers, Places]:
    """Does the same as :func:`read_varints` for 64-bit numbers, which have up to 10 bytes."""
    raw, ends = _read(data, at, longest=10, strict=strict)
    return (raw.view(np.uint64) >> np.uint64(1)).view(np.int64) ^ -(raw & 1), ends


def _read(data: Bytes, at: Places, *, longest: int, strict: bool) -> tuple[Numbers, Places]:
    """Returns the numbers before zigzag decoding. Reads the first two bytes of all numbers, then one more byte per
    pass.
    """
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
