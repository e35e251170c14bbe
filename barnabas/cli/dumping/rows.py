"""A row of a dump, and the file that it comes from.

Knows nothing of the contents of any file.
"""

import os
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from barnabas.log.systems import pread


class Row(NamedTuple):
    """A line of a dump: its kind, and fields with their values. ``depth`` is above 0 for parts of a row above."""

    kind: str
    fields: dict[str, Any]
    depth: int = 0

    @property
    def is_damage(self) -> bool:
        return self.kind == DAMAGE


DAMAGE = "damage"


def damage(position: int | None, what: str, **more: Any) -> Row:
    """Returns a row about damage at a position of the file, or of the whole file if the position is None."""
    where = {} if position is None else {"position": position}
    return Row(DAMAGE, {**where, **more, "what": what})


class Source:
    """A file with random access. Its size is that at opening. :raises OSError: it cannot be read"""

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
        """Reads up to ``size`` bytes from position ``at``; fewer at the end of the file."""
        return pread(self._file.fileno(), min(size, max(self.size - at, 0)), at)

    def all(self) -> bytes:
        """Reads the whole file."""
        return self.read(self.size, 0)
