"""What a check has found: what is wrong, where, and what would be right.

Knows nothing of what is looked at.
"""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

ERROR, WARNING = "error", "warning"

SHOWN_OF_A_KIND = 10
"""How many findings of a kind are told of one file; the others are counted."""


class Finding(NamedTuple):
    """One thing that is not as it should be.

    An error: data is damaged, or a file says what is not true. A warning: what the next start puts right by itself, or
    what needs a human to judge.
    """

    severity: str
    kind: str  #: one word, for programs
    path: str
    position: int | None  #: byte in the file, if it is about one
    offset: int | None  #: of a record, if it is about one
    what: str


class Findings:
    """All that was found; each is told as soon as it is."""

    def __init__(self, tell: Callable[[Finding], object] = lambda finding: None) -> None:
        self.all: list[Finding] = []
        self.counts = Counter({ERROR: 0, WARNING: 0})
        self._tell = tell
        self._of_a_kind: Counter[tuple[str, str, str]] = Counter()  # path, severity, kind

    def add(
        self, severity: str, kind: str, path: str, what: str, position: int | None = None, offset: int | None = None
    ) -> None:
        """Something was found."""
        self.counts[severity] += 1
        self._of_a_kind[path, severity, kind] += 1
        if self._of_a_kind[path, severity, kind] <= SHOWN_OF_A_KIND:
            self._keep(Finding(severity, kind, path, position, offset, what))

    def error(self, kind: str, path: str, what: str, position: int | None = None, offset: int | None = None) -> None:
        self.add(ERROR, kind, path, what, position, offset)

    def warning(self, kind: str, path: str, what: str, position: int | None = None, offset: int | None = None) -> None:
        self.add(WARNING, kind, path, what, position, offset)

    def finish(self) -> None:
        """Everything was looked at: tell how many of a kind were left out."""
        for (path, severity, kind), count in self._of_a_kind.items():
            if count > SHOWN_OF_A_KIND:
                words = f"{count - SHOWN_OF_A_KIND} more of this kind"
                self._keep(Finding(severity, kind, path, None, None, words))
        self._of_a_kind.clear()

    def _keep(self, finding: Finding) -> None:
        self.all.append(finding)
        self._tell(finding)
