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

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from hashlib import blake2b
from typing import Final

from barnabas.errors import InvalidRecord
from barnabas.records.varint import read_varint, read_varlong

DIGEST_SIZE: Final = 40

#: What a key in the map takes, in bytes, give or take a tenth: 80 for one of 39 bytes or a digest, 32 for the offset,
#: 33 to 61 of the dict, as full as it happens to be, and 16 while the offsets are sorted. Shorter keys take up to 40
#: less.
BYTES_PER_ENTRY: Final = 176


def entries_for(buffer_bytes: int, load_factor: float) -> int:
    """How many keys a cleaner with so much memory may remember, at least one."""
    return max(int(buffer_bytes * load_factor) // BYTES_PER_ENTRY, 1)


def digest(key: bytes) -> bytes:
    """What stands for a key of :data:`DIGEST_SIZE` bytes or more."""
    return blake2b(key, digest_size=DIGEST_SIZE).digest()


class OffsetMap:
    """At most ``max_entries`` keys; :attr:`latest_offset` is how far the log is known."""

    __slots__ = ("_survivors", "_with_tombstones", "latest", "latest_offset", "max_entries")

    def __init__(self, max_entries: int, latest_offset: int) -> None:
        self.max_entries = max_entries
        self.latest: dict[bytes, int] = {}  #: by the key, or by what stands for it
        #: All records up to this offset are in the map, but those that do not count.
        self.latest_offset = latest_offset
        self._with_tombstones: set[int] = set()
        self._survivors = array("q")

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
        at, total, has_tombstones = 0, len(body), False
        try:
            for _ in range(count):
                # Numbers of one and two bytes are read in line: a call costs as much as the rest.
                number = body[at]
                if number < 0x80:
                    at += 1
                    end = at + (number >> 1)
                elif (upper := body[at + 1]) < 0x80:
                    at += 2
                    end = at + ((upper << 7 | number & 0x7F) >> 1)
                else:
                    number, at = read_varint(body, at)
                    end = at + number
                at += 1  # attributes
                while body[at] >= 0x80:  # the timestamp
                    at += 1
                at += 1
                delta = body[at]
                if delta < 0x80:
                    at += 1
                    offset = base_offset + (delta >> 1)
                elif (upper := body[at + 1]) < 0x80:
                    at += 2
                    offset = base_offset + ((upper << 7 | delta & 0x7F) >> 1)
                else:
                    delta, at = read_varint(body, at)
                    offset = base_offset + delta
                number = body[at]
                if number < DIGEST_SIZE * 2:
                    at += 1
                    if number & 1:  # no key
                        at = end
                        continue
                    number = at + (number >> 1)
                    latest[body[at:number]] = offset
                else:
                    number, at = read_varint(body, at)
                    number += at
                    latest[digest(body[at:number])] = offset
                if body[number] == 1:  # a length of -1: no value
                    has_tombstones = True
                at = end
        except IndexError:
            raise InvalidRecord("A batch ends in the middle of a record.") from None
        if at != total:
            raise InvalidRecord(f"{count} records have {at} bytes, and their batch {total}.")
        if has_tombstones:
            self._with_tombstones.add(base_offset)
        return True

    def _add_some(self, body: bytes, count: int, base_offset: int, from_offset: int) -> bool:
        """:meth:`add`, looking at the room that is left, and at where to begin, for each record."""
        latest, max_entries = self.latest, self.max_entries
        self._with_tombstones.add(base_offset)  # there may be some
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

    def complete(self) -> None:
        """Nothing more will be added; now :meth:`survivors` can be asked."""
        self._survivors = array("q", sorted(self.latest.values()))

    def survivors(self, first_offset: int, last_offset: int) -> "array[int] | None":
        """The offsets of the records of this batch that are the latest of their keys, all of which was added.

        None if there may be tombstones among them, which takes a closer look. There need be no look at the keys for
        this, nor at the records at all if none of them stays, or all do.
        """
        if first_offset in self._with_tombstones or last_offset > self.latest_offset:
            return None
        survivors = self._survivors
        start = bisect_left(survivors, first_offset)
        return survivors[start : bisect_right(survivors, last_offset, start)]


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
