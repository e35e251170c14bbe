"""MirrorMaker 2's record of a translated offset, so that its ``RemoteClusterUtils`` works on what is mirrored here.

Knows nothing of how it is translated, or of who writes it. Layout: ``org.apache.kafka.connect.mirror.Checkpoint``
(KIP-382): strings with two bytes of length before them, integers big-endian.
"""

import struct
from typing import NamedTuple

_VERSION = 0


class Checkpoint(NamedTuple):
    """A group of the source, and where it would go on at the target."""

    group: str
    topic: str  #: the target's
    partition: int
    upstream: int  #: the offset that it has committed at the source
    downstream: int  #: what that is at the target
    metadata: str = ""

    def encode(self) -> tuple[bytes, bytes]:
        """Key and value of the record."""
        key = _string(self.group) + _string(self.topic) + struct.pack(">i", self.partition)
        return key, struct.pack(">hqq", _VERSION, self.upstream, self.downstream) + _string(self.metadata)


def _string(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded
