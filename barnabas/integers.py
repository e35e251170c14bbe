"""The bounds of signed integers of 32 and 64 bits, with Java's names.

Knows nothing of what the integers count: offsets, times and configs have the same bounds.
"""

from typing import Final

MAX_INT: Final = 2**31 - 1
MIN_LONG: Final = -(2**63)
MAX_LONG: Final = 2**63 - 1
