"""The latest offset of each key in the part of a log that was not cleaned yet.

Knows nothing of segments, batches' headers or transactions: it is given the unpacked records that count.

Apache Kafka's ``SkimpyOffsetMap`` is a table of MD5 digests and offsets in one block of memory, 24 bytes an entry. In
Python such a table costs several microseconds a look-up, and a dict a tenth of that, for six times the memory. So it is
a dict, and fewer keys fit into ``log.cleaner.dedupe.buffer.size``: a pass over a log with very many keys ends sooner,
and the next one goes on there. Keys shorter than :data:`DIGEST_SIZE`, which numbers, names and UUIDs in text are, stand
for themselves: to hash them takes longer than all else that is done with them, and would save no memory, since a bytes
object has 33 bytes without its content. A longer key is stood for by a digest of that many bytes, which no key that
stands for itself can be; two keys with one digest are less likely than with MD5, by far.
"""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Final

from barnabas.errors import InvalidRecord
from barnabas.records.varint import read_varint, read_varlong

DIGEST_SIZE: Final = 40

#: What a key in the map takes, in bytes, give or take a tenth: 80 for one of 39 bytes or a digest, 32 for the offset,
#: and the dict's own 33 to 61, as full as it happens to be. Shorter keys take up to 40 less.
BYTES_PER_ENTRY: Final = 160


def entries_for(buffer_bytes: int, load_factor: float) -> int:
    """How many keys a cleaner with so much memory may remember, at least one."""
    return max(int(buffer_bytes * load_factor) // BYTES_PER_ENTRY, 1)


def digest(key: bytes) -> bytes:
    """What stands for a key of :data:`DIGEST_SIZE` bytes or more."""
    return blake2b(key, digest_size=DIGEST_SIZE).digest()


class OffsetMap:
    """At most ``max_entries`` keys; :attr:`latest_offset` is how far the log is known."""

    __slots__ = ("latest", "latest_offset", "max_entries")

    def __init__(self, max_entries: int, latest_offset: int) -> None:
        self.max_entries = max_entries
        self.latest: dict[bytes, int] = {}  #: by the key, or by what stands for it
        #: All records up to this offset are in the map, but those that do not count.
        self.latest_offset = latest_offset

    def __len__(self) -> int:
        return len(self.latest)

    def add(self, body: bytes, count: int, base_offset: int, from_offset: int) -> bool:
        """Take in the records of a batch, its body unpacked, from ``from_offset`` on.

        False when there was no room for all; :attr:`latest_offset` is then that of the last one taken, and else it is
        for the caller to set. That may be in the middle of a batch: a batch with more keys than the map has room for
        could never be passed otherwise (``Cleaner.buildOffsetMapForSegment``).

        Raises InvalidRecord when the records do not fill the body.
        """
        latest = self.latest
        room = self.max_entries - len(latest)
        if count > room or base_offset < from_offset:
            return self._add_some(body, count, base_offset, from_offset)
        at, total = 0, len(body)
        try:
            for _ in range(count):
                # Lengths of one and two bytes are read in line: a call costs as much as the rest.
                number = body[at]
                if number < 0x80:
                    end = at + 1 + (number >> 1)
                elif body[at + 1] < 0x80:
                    end = at + 2 + ((number & 0x7F | body[at + 1] << 7) >> 1)
                    at += 1
                else:
                    number, at = read_varint(body, at)
                    end = at + number
                    at -= 1
                at += 2  # the length's last byte, and the attributes
                while body[at] >= 0x80:  # the timestamp
                    at += 1
                number = body[at + 1]
                if number < 0x80:
                    delta = number >> 1 ^ -(number & 1)
                    at += 2
                else:
                    delta, at = read_varint(body, at + 1)
                number = body[at]
                if number < 0x80:
                    at += 1
                    if number & 1:  # no key
                        at = end
                        continue
                    number >>= 1
                else:
                    number, at = read_varint(body, at)
                key = body[at : at + number]
                latest[key if number < DIGEST_SIZE else digest(key)] = base_offset + delta
                at = end
        except IndexError:
            raise InvalidRecord("A batch ends in the middle of a record.") from None
        if at != total:
            raise InvalidRecord(f"{count} records have {at} bytes, and their batch {total}.")
        return True

    def _add_some(self, body: bytes, count: int, base_offset: int, from_offset: int) -> bool:
        """:meth:`add`, looking at the room that is left, and at where to begin, for each record."""
        latest, max_entries = self.latest, self.max_entries
        try:
            for key, offset in keys_in(body, count, base_offset):
                if key is None or offset < from_offset:
                    continue
                if len(latest) >= max_entries:
                    return False
                latest[key if len(key) < DIGEST_SIZE else digest(key)] = offset
                self.latest_offset = offset
        except IndexError:
            raise InvalidRecord("A batch ends in the middle of a record.") from None
        return True


def keys_in(body: bytes, count: int, base_offset: int) -> Iterator[tuple[bytes | None, int]]:
    """Key and offset of each record. Raises IndexError or InvalidRecord where the bytes lie."""
    at = 0
    for _ in range(count):
        size, at = read_varint(body, at)
        end = at + size
        _, at = read_varlong(body, at + 1)
        delta, at = read_varint(body, at)
        size, at = read_varint(body, at)
        yield body[at : at + size] if size >= 0 else None, base_offset + delta
        at = end
