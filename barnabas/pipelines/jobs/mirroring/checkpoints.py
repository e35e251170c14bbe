"""Encodes MirrorMaker 2's checkpoint records of translated offsets, which its ``RemoteClusterUtils`` reads.

The layout is that of ``org.apache.kafka.connect.mirror.Checkpoint`` (KIP-382): strings with a length of two bytes,
integers in big-endian order. Knows nothing of how offsets are translated.
"""

import struct
from typing import NamedTuple

_VERSION = 0


class Checkpoint(NamedTuple):
    """A group's committed offset in the source, and the translated one in the target."""

    group: str
    topic: str  #: its name in the target
    partition: int
    upstream: int  #: the committed offset in the source
    downstream: int  #: the translated offset in the target
    metadata: str = ""

    def encode(self) -> tuple[bytes, bytes]:
        """Returns key and value of the record."""
        key = _string(self.group) + _string(self.topic) + struct.pack(">i", self.partition)
        return key, struct.pack(">hqq", _VERSION, self.upstream, self.downstream) + _string(self.metadata)


def _string(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded
