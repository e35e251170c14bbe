"""The largest offsets and positions that Kafka's files can hold.

Knows nothing of the files.
"""

from typing import Final

MAX_OFFSET: Final = 2**63 - 1

MAX_RELATIVE_OFFSET: Final = 2**31 - 1
"""Above a segment's base offset: the indexes hold int32."""

MAX_SEGMENT_BYTES: Final = 2**31 - 1
"""Positions in a segment are int32 too."""
