"""Clocks of processes that can be set while they run, by libfaketime where this machine has it.

Knows nothing of what the processes are. ``BARNABAS_FAKETIME`` names the library, where it is elsewhere.
"""

import importlib.util
import os
from pathlib import Path

USUAL = (
    "/usr/lib/*/faketime/libfaketime.so.1",
    "/usr/lib*/faketime/libfaketime.so.1",
    "/usr/local/lib/faketime/*.so.1",
)


def library() -> Path | None:
    """Returns the library; None if there is none."""
    if named := os.environ.get("BARNABAS_FAKETIME"):
        return Path(named)
    found = [path for pattern in USUAL for path in sorted(Path("/").glob(pattern[1:]))]
    package = importlib.util.find_spec("libfaketime")
    if package is not None and package.origin is not None:
        found += Path(package.origin).parent.rglob("libfaketime.so.1")
    return found[0] if found else None


class Clock:
    """The wall clock of one process; its monotonic clock stays as it is."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.set(0)

    @property
    def prefix(self) -> tuple[str, ...]:
        """What comes before the command of the process."""
        return (
            "env", f"LD_PRELOAD={library()}", f"FAKETIME_TIMESTAMP_FILE={self._file}", "FAKETIME_NO_CACHE=1",
            "FAKETIME_DONT_FAKE_MONOTONIC=1",
        )  # fmt: skip

    def set(self, seconds: float) -> None:
        """Sets the clock to so many seconds after the machine's."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        written = self._file.with_suffix(".new")
        written.write_text(f"{seconds:+.1f}\n")
        written.replace(self._file)
