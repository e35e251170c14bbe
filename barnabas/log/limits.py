"""The largest offsets and positions that Kafka's files can hold.

Knows nothing of the files.
"""

from typing import Final

from barnabas.integers import MAX_INT, MAX_LONG

MAX_OFFSET: Final = MAX_LONG

MAX_RELATIVE_OFFSET: Final = MAX_INT
"""Above a segment's base offset: the indexes hold int32."""

MAX_SEGMENT_BYTES: Final = MAX_INT
"""Positions in a segment are int32 too."""
