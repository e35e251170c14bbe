"""What the segments of a log get from their owner: the log directory, its files, the index cache and deferred deletion.

Knows nothing of what a segment does with it.
"""

import logging

from barnabas.errors import CorruptMessage
from barnabas.log.index_cache import IndexCache
from barnabas.log.log_directory import LogDirectory

logger = logging.getLogger(__name__)

_MAX_REPORTS = 1000


class SegmentServices:
    """What all segments in one log directory share. The methods do the simplest thing; a broker overrides them."""

    def __init__(self, log_directory: LogDirectory, index_cache: IndexCache | None = None) -> None:
        self.log_directory = log_directory
        self.files = log_directory.files
        self.index_cache = index_cache if index_cache is not None else IndexCache()
        self.checks_reads = False  #: whether the CRCs of all batches that are read are checked
        self._reported: set[str] = set()

    def delete_later(self, paths: list[str], delay_ms: int) -> None:
        """Deletes files after ``delay_ms``. They have been renamed to ``.deleted``; readers may have them open."""
        for path in paths:
            self.files.delete(path)

    def report_corruption(self, error: CorruptMessage) -> None:
        """Logs that a read found a corrupt batch; each batch once, however often it is read."""
        if str(error) not in self._reported and len(self._reported) < _MAX_REPORTS:
            self._reported.add(str(error))
            logger.error("A log is corrupt: %s", error)
