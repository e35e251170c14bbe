"""An immutable mapping, sorted by its keys, whose changed copies share most entries with the original.

Knows nothing of its entries. Copying a dict of 10,000 topics for the new leader of one partition would take half a
millisecond. A change of a sorted map copies one chunk of a hundred entries, and the list of chunks.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast, overload

if TYPE_CHECKING:
    from _typeshed import SupportsRichComparison

K = TypeVar("K", bound="SupportsRichComparison")
V = TypeVar("V")
D = TypeVar("D")

CHUNK: Final = 64
"""The number of entries of a new chunk; a chunk with twice as many is split."""

_REMOVED: Final = object()


class SortedMap(Mapping[K, V]):
    """A mapping with comparable keys.

    >>> one = SortedMap({"b": 2, "a": 1})
    >>> list(one.items())
    [('a', 1), ('b', 2)]
    >>> changes = one.changes()
    >>> changes["c"] = 3
    >>> del changes["a"]
    >>> dict(changes.finish()), dict(one)
    ({'b': 2, 'c': 3}, {'a': 1, 'b': 2})
    """

    __slots__ = ("_chunks", "_firsts", "_length")

    def __init__(self, entries: Mapping[K, V] | None = None) -> None:
        self._firsts: list[K] = []  # the smallest key of each chunk
        self._chunks: list[dict[K, V]] = []
        self._length = 0
        if entries:
            self._add_chunks(entries)

    def _add_chunks(self, entries: Mapping[K, V]) -> None:
        """Appends entries with greater keys than all others, in chunks of their own."""
        keys = sorted(entries)
        for at in range(0, len(keys), CHUNK):
            self._add_chunk({key: entries[key] for key in keys[at : at + CHUNK]})

    def _add_chunk(self, chunk: dict[K, V]) -> None:
        self._firsts.append(next(iter(chunk)))
        self._chunks.append(chunk)
        self._length += len(chunk)

    # ------------------------------------------------------------ reading

    def __getitem__(self, key: K) -> V:
        at = bisect_right(self._firsts, key) - 1
        if at < 0:
            raise KeyError(key)
        return self._chunks[at][key]

    @overload
    def get(self, key: K, /) -> V | None: ...

    @overload
    def get(self, key: K, default: V | D, /) -> V | D: ...

    def get(self, key: K, default: Any = None, /) -> Any:
        at = bisect_right(self._firsts, key) - 1
        return default if at < 0 else self._chunks[at].get(key, default)

    def __contains__(self, key: object) -> bool:
        at = bisect_right(self._firsts, cast(K, key)) - 1
        return at >= 0 and key in self._chunks[at]

    def __iter__(self) -> Iterator[K]:
        for chunk in self._chunks:
            yield from chunk

    def __len__(self) -> int:
        return self._length

    def __repr__(self) -> str:
        return f"SortedMap({dict(self)!r})"

    # ------------------------------------------------------------ changing

    def changes(self) -> "Changes[K, V]":
        """Returns an empty set of changes to this mapping."""
        return Changes(self)

    def updated(self, changed: Mapping[K, Any]) -> "SortedMap[K, V]":
        """Returns a copy with these entries set, or removed if the value is :data:`_REMOVED`."""
        by_chunk: dict[int, dict[K, Any]] = {}
        for key, value in changed.items():
            at = bisect_right(self._firsts, key) - 1
            by_chunk.setdefault(max(at, 0), {})[key] = value
        copy: SortedMap[K, V] = SortedMap()
        done = 0
        for at in sorted(by_chunk):
            copy._share(self, done, at)
            mine = by_chunk[at]
            merged = {**self._chunks[at], **mine} if self._chunks else mine
            removes = any(value is _REMOVED for value in mine.values())
            left = {key: value for key, value in merged.items() if value is not _REMOVED} if removes else merged
            if self._chunks and len(left) <= 2 * CHUNK:
                if left:
                    has_new = len(merged) > len(self._chunks[at])
                    copy._add_chunk({key: left[key] for key in sorted(left)} if has_new else left)
            else:
                copy._add_chunks(left)
            done = at + 1
        copy._share(self, done, len(self._chunks))
        return copy

    def _share(self, other: "SortedMap[K, V]", start: int, end: int) -> None:
        self._firsts += other._firsts[start:end]
        self._chunks += other._chunks[start:end]
        self._length += sum(map(len, other._chunks[start:end]))


class Changes(MutableMapping[K, V]):
    """Changes to a :class:`SortedMap`. Reads return the changed state; :meth:`finish` returns a new mapping."""

    __slots__ = ("_base", "_changed")

    def __init__(self, base: SortedMap[K, V]) -> None:
        self._base = base
        self._changed: dict[K, Any] = {}

    def __getitem__(self, key: K) -> V:
        if key not in self._changed:
            return self._base[key]
        value: V = self._changed[key]
        if value is _REMOVED:
            raise KeyError(key)
        return value

    def __setitem__(self, key: K, value: V) -> None:
        self._changed[key] = value

    def __delitem__(self, key: K) -> None:
        if key not in self:
            raise KeyError(key)
        self._changed[key] = _REMOVED

    def __contains__(self, key: object) -> bool:
        value = self._changed.get(cast(K, key), self)
        return key in self._base if value is self else value is not _REMOVED

    def __iter__(self) -> Iterator[K]:
        return iter(self.finish())

    def __len__(self) -> int:
        return len(self.finish())

    def finish(self) -> SortedMap[K, V]:
        """Returns the changed mapping; the original one if nothing has changed."""
        return self._base.updated(self._changed) if self._changed else self._base
