"""The offset map: the latest offset of each key in the dirty part of a log.

Knows nothing of segments, batch headers or transactions: callers pass in the uncompressed records that count.

Apache Kafka's ``SkimpyOffsetMap`` is a table of MD5 digests and offsets with 24 bytes per entry. In Python a look-up in
such a table takes several microseconds. A dict takes a tenth of that, and six times the memory. So this is a dict, and
fewer keys fit into ``log.cleaner.dedupe.buffer.size``: a pass over a log with very many keys ends earlier, and the next
pass continues there.

Keys shorter than :data:`DIGEST_SIZE` are stored as they are: numbers, names, UUIDs as text. Hashing them would take
longer than everything else, and would save no memory, since an empty bytes object has 33 bytes. A longer key is stored
as a digest of :data:`DIGEST_SIZE` bytes. No shorter key is equal to a digest, and two equal digests are far less likely
than with MD5.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from hashlib import blake2b
from typing import Final

from barnabas.errors import InvalidRecord
from barnabas.records.varint import read_varint, read_varlong

DIGEST_SIZE: Final = 40

#: Memory per key, within a tenth: 80 bytes for a key of 39 bytes or a digest, 32 for the offset, 33 to 61 for the dict,
#: and 16 while the offsets are sorted. Shorter keys take up to 40 bytes less.
BYTES_PER_ENTRY: Final = 176


def entries_for(buffer_bytes: int, load_factor: float) -> int:
    """Returns the number of keys that fit into ``buffer_bytes``, at least one."""
    return max(int(buffer_bytes * load_factor) // BYTES_PER_ENTRY, 1)


def digest(key: bytes) -> bytes:
    """Returns the digest that stands for a key of :data:`DIGEST_SIZE` bytes or more."""
    return blake2b(key, digest_size=DIGEST_SIZE).digest()


class OffsetMap:
    """The latest offsets of at most ``max_entries`` keys. :attr:`latest_offset` is the end of the mapped range."""

    __slots__ = ("_survivors", "_with_tombstones", "latest", "latest_offset", "max_entries")

    def __init__(self, max_entries: int, latest_offset: int) -> None:
        self.max_entries = max_entries
        self.latest: dict[bytes, int] = {}  #: by the key or its digest
        #: All records up to this offset that count are in the map.
        self.latest_offset = latest_offset
        self._with_tombstones: set[int] = set()
        self._survivors = array("q")

    def __len__(self) -> int:
        return len(self.latest)

    def add(self, body: bytes, count: int, base_offset: int, from_offset: int) -> bool:
        """Adds the records of a batch from ``from_offset`` on. The caller then sets :attr:`latest_offset`.

        Returns False when the map is full; :attr:`latest_offset` is then the offset of the last record that was added.
        It may be in the middle of a batch: otherwise a batch with more keys than fit into the map could never be
        cleaned (``Cleaner.buildOffsetMapForSegment``).

        :param body: the uncompressed records
        :raises InvalidRecord: the records do not fill the body
        """
        latest = self.latest
        room = self.max_entries - len(latest)
        if count > room or base_offset < from_offset:
            return self._add_some(body, count, base_offset, from_offset)
        at, total, has_tombstones = 0, len(body), False
        try:
            for _ in range(count):
                # Varints of one and two bytes are read inline: a call costs as much as the rest of the loop.
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
        """Does what :meth:`add` does, and checks the remaining room and ``from_offset`` for each record."""
        latest, max_entries = self.latest, self.max_entries
        self._with_tombstones.add(base_offset)  # there may be tombstones
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
        """Prepares :meth:`survivors`. Nothing may be added after that."""
        self._survivors = array("q", sorted(self.latest.values()))

    def survivors(self, first_offset: int, last_offset: int) -> "array[int] | None":
        """Returns the offsets of those records of a batch that are the latest of their keys.

        The whole batch must have been added. Returns None if there may be tombstones among them. This needs no look at
        the keys. If no record survives, or all do, the caller does not even have to uncompress the batch.
        """
        if first_offset in self._with_tombstones or last_offset > self.latest_offset:
            return None
        survivors = self._survivors
        start = bisect_left(survivors, first_offset)
        return survivors[start : bisect_right(survivors, last_offset, start)]


def keys_in(body: bytes, count: int, base_offset: int) -> Iterator[tuple[bytes | None, int]]:
    """Yields key and offset of each record.

    :raises IndexError: the bytes end in the middle of a record
    :raises InvalidRecord: a number is invalid
    """
    at = 0
    for _ in range(count):
        size, at = read_varint(body, at)
        end = at + size
        _, at = read_varlong(body, at + 1)
        delta, at = read_varint(body, at)
        size, at = read_varint(body, at)
        yield body[at : at + size] if size >= 0 else None, base_offset + delta
        at = end
