"""The start offset of each leader epoch of a partition, by which followers and consumers find where they diverge.

Knows nothing of leaders. The epochs are in the file ``leader-epoch-checkpoint`` (KIP-101, KIP-279; Apache Kafka's
``LeaderEpochFileCache``).
"""

from barnabas.log.checkpoints import read_entries, write_entries
from barnabas.log.files import Files

FILE_NAME = "leader-epoch-checkpoint"
UNDEFINED = -1


class LeaderEpochs:
    """Epochs and their start offsets, both ascending.

    An epoch is in the file before its first record is in the log. An epoch without records is only in memory: at its
    start a broker begins to lead thousands of partitions, and would write a file for each.
    """

    __slots__ = ("_files", "_is_written", "entries", "path")

    def __init__(self, files: Files, path: str, entries: list[tuple[int, int]] | None = None) -> None:
        self._files = files
        self.path = path
        self.entries = entries if entries is not None else []
        self._is_written = True

    @classmethod
    def load(cls, files: Files, path: str) -> "LeaderEpochs":
        """Returns the epochs in the file.

        :raises FileNotFoundError: there is no such file
        :raises CorruptCheckpoint: the file is not a valid checkpoint
        """
        return cls(files, path, [(int(epoch), int(start)) for epoch, start in read_entries(files, path, columns=2)])

    @property
    def latest(self) -> int:
        """The latest epoch; -1 when there is none."""
        return self.entries[-1][0] if self.entries else UNDEFINED

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Adds an epoch that gets its first record, and writes the file. Entries that contradict it are removed.

        Returns False when the file has the entry already.
        """
        if not self._add(epoch, start_offset) and self._is_written:
            return False
        self.write()
        return True

    def assign_without_records(self, epoch: int, start_offset: int) -> None:
        """Adds an epoch that has no record yet, without writing the file."""
        if self._add(epoch, start_offset):
            self._is_written = False

    def remove_without_records(self, log_end_offset: int) -> None:
        """Removes the epochs that start at the log's end. The log must have been shut down cleanly."""
        while self.entries and self.entries[-1][1] == log_end_offset:
            self.entries.pop()
            self._is_written = False

    def _add(self, epoch: int, start_offset: int) -> bool:
        if self.entries and epoch == self.entries[-1][0] and start_offset >= self.entries[-1][1]:
            return False
        while self.entries and (self.entries[-1][0] >= epoch or self.entries[-1][1] >= start_offset):
            self.entries.pop()
        self.entries.append((epoch, start_offset))
        return True

    def replay(self, epoch: int, start_offset: int) -> None:
        """Adds an epoch that recovery found in a batch. The caller writes the file once, at the end."""
        if epoch > self.latest:
            self._add(epoch, start_offset)

    def epoch_of(self, offset: int) -> int:
        """Returns the epoch of the record at ``offset``, or of the next record; -1 before the first known epoch."""
        return next((epoch for epoch, start in reversed(self.entries) if start <= offset), UNDEFINED)

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Returns the largest known epoch up to ``epoch``, and its end offset; (-1, -1) when that is undefined.

        The latest epoch ends at ``log_end_offset``. An epoch before all known ones ends where the first of them starts.
        An epoch above the latest one is undefined.
        """
        if epoch == UNDEFINED or epoch > self.latest:
            return UNDEFINED, UNDEFINED
        if epoch == self.latest:
            return epoch, log_end_offset
        floor = epoch
        for known, start in self.entries:
            if known > epoch:
                return floor, start
            floor = known
        raise AssertionError("unreachable: the latest epoch is above ``epoch``")

    def truncate_from_end(self, end_offset: int) -> bool:
        """Removes the epochs that start at ``end_offset`` or later. Returns whether there were any."""
        keep = [entry for entry in self.entries if entry[1] < end_offset]
        return self._replace(keep)

    def truncate_from_start(self, start_offset: int) -> bool:
        """Removes the epochs that end at ``start_offset`` or earlier; the epoch of ``start_offset`` then starts there.

        Returns whether anything changed.
        """
        keep = [entry for entry in self.entries if entry[1] > start_offset]
        gone = len(self.entries) - len(keep)
        if gone:
            keep.insert(0, (self.entries[gone - 1][0], start_offset))
        return self._replace(keep)

    def _replace(self, entries: list[tuple[int, int]]) -> bool:
        if entries == self.entries:
            return False
        self.entries = entries
        self.write()
        return True

    def write(self) -> None:
        """Replaces the file without fsync. The log's next flush fsyncs it together with the records of the epochs."""
        write_entries(self._files, self.path, self.entries, sync=False)
        self._is_written = True
