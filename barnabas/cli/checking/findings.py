"""The findings of a check: what is wrong, and where.

Knows nothing of the checks.
"""

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

ERROR, WARNING = "error", "warning"

SHOWN_OF_A_KIND = 10
"""The number of findings of one kind that are reported for one file; further ones are counted."""


class Finding(NamedTuple):
    """A problem in a file.

    An error means that data is damaged, or that a file contradicts the data. A warning is about something that the next
    start corrects, or that may be intended.
    """

    severity: str
    kind: str  #: one word, for programs
    path: str
    position: int | None  #: of a byte in the file
    offset: int | None  #: of a record
    what: str


class Findings:
    """All findings; each is reported when it is added."""

    def __init__(self, report: Callable[[Finding], object] = lambda finding: None) -> None:
        self.all: list[Finding] = []
        self.counts = Counter({ERROR: 0, WARNING: 0})
        self._report = report
        self._of_a_kind: Counter[tuple[str, str, str]] = Counter()  # path, severity, kind

    def add(
        self, severity: str, kind: str, path: str, what: str, position: int | None = None, offset: int | None = None
    ) -> None:
        """Adds a finding."""
        self.counts[severity] += 1
        self._of_a_kind[path, severity, kind] += 1
        if self._of_a_kind[path, severity, kind] <= SHOWN_OF_A_KIND:
            self._keep(Finding(severity, kind, path, position, offset, what))

    def error(self, kind: str, path: str, what: str, position: int | None = None, offset: int | None = None) -> None:
        self.add(ERROR, kind, path, what, position, offset)

    def warning(self, kind: str, path: str, what: str, position: int | None = None, offset: int | None = None) -> None:
        self.add(WARNING, kind, path, what, position, offset)

    def finish(self) -> None:
        """Reports how many findings of each kind were left out."""
        for (path, severity, kind), count in self._of_a_kind.items():
            if count > SHOWN_OF_A_KIND:
                text = f"{count - SHOWN_OF_A_KIND} more of this kind"
                self._keep(Finding(severity, kind, path, None, None, text))
        self._of_a_kind.clear()

    def _keep(self, finding: Finding) -> None:
        self.all.append(finding)
        self._report(finding)
