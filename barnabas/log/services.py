"""What a log needs from whoever keeps it: files, chance, and somebody to do things later.

Knows nothing of what a log does with it.
"""

import logging
from typing import TYPE_CHECKING

from barnabas.errors import CorruptMessage
from barnabas.log.files import Files
from barnabas.log.index_cache import IndexCache

if TYPE_CHECKING:
    from barnabas.log.partition_log import PartitionLog

logger = logging.getLogger(__name__)

_MOST_DAMAGES = 1000


class LogServices:
    """What the logs of one log directory share; on its own it does the simplest that works."""

    def __init__(self, files: Files, index_cache: IndexCache | None = None) -> None:
        self.files = files
        self.index_cache = index_cache if index_cache is not None else IndexCache()
        self.checks_reads = False  #: whether CRCs are checked of whatever is read
        self._damages: set[str] = set()

    def jitter_ms(self, upper: int) -> int:
        """A random time below ``upper``, by which a segment rolls sooner than ``segment.ms``."""
        return 0

    def delete_later(self, paths: list[str], delay_ms: int) -> None:
        """Delete files that are out of use and have their name for it already; readers may still have them open."""
        for path in paths:
            self.files.delete(path)

    def flush_due(self, log: "PartitionLog", up_to: int) -> None:
        """It is time to flush the log below ``up_to``: a segment was closed, or ``flush.messages`` says so."""

    def truncated(self, log: "PartitionLog", end: int) -> None:
        """The log ends at ``end`` now: what is known of later offsets is not true any more."""

    def damaged(self, error: CorruptMessage) -> None:
        """Somebody wanted to read what is no longer what was written. Who tries again is not told of again."""
        if str(error) not in self._damages and len(self._damages) < _MOST_DAMAGES:
            self._damages.add(str(error))
            logger.error("A log is damaged: %s", error)

    def failed(self, log: "PartitionLog", error: OSError) -> None:
        """The disk failed under this log, which is offline now."""
        logger.error("%s is offline: %s", log, error)
