"""A row of a dump, and the file that it comes from.

Knows nothing of what is in any file.
"""

import os
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self


class Row(NamedTuple):
    """What is said in one line: a word for what it is, and names with values. ``depth``: it belongs to one above."""

    kind: str
    fields: dict[str, Any]
    depth: int = 0

    @property
    def is_damage(self) -> bool:
        return self.kind == DAMAGE


DAMAGE = "damage"


def damage(position: int | None, what: str, **more: Any) -> Row:
    """Something is wrong at that position of the file (None: with the file as a whole)."""
    where = {} if position is None else {"position": position}
    return Row(DAMAGE, {**where, **more, "what": what})


class Source:
    """A file that is read anywhere; its size is what it was when it was opened. Raises OSError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("rb", buffering=0)
        self.size = os.fstat(self._file.fileno()).st_size

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()

    def read(self, size: int, at: int) -> bytes:
        """Up to ``size`` bytes from position ``at``; fewer at the end of the file."""
        return os.pread(self._file.fileno(), min(size, max(self.size - at, 0)), at)

    def all(self) -> bytes:
        """The whole content."""
        return self.read(self.size, 0)
