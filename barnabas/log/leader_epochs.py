"""Where each leader epoch of a partition starts: what a follower or a consumer asks to find out where it strayed.

Knows nothing of who leads. The file ``leader-epoch-checkpoint`` keeps it (KIP-101, KIP-279; Apache Kafka's
``LeaderEpochFileCache``).
"""

from barnabas.log.checkpoints import read_entries, write_entries
from barnabas.log.files import Files

FILE_NAME = "leader-epoch-checkpoint"
UNDEFINED = -1


class LeaderEpochs:
    """Epochs and their start offsets, both ascending.

    An epoch that has records is in the file before they are in the log. One without is nowhere but in memory: the file
    would be thousands, one for each partition that a broker begins to lead when it starts.
    """

    __slots__ = ("_files", "_is_written", "entries", "path")

    def __init__(self, files: Files, path: str, entries: list[tuple[int, int]] | None = None) -> None:
        self._files = files
        self.path = path
        self.entries = entries if entries is not None else []
        self._is_written = True

    @classmethod
    def load(cls, files: Files, path: str) -> "LeaderEpochs":
        """The epochs in the file. Raises FileNotFoundError, or CorruptCheckpoint when it is not such a file."""
        return cls(files, path, [(int(epoch), int(start)) for epoch, start in read_entries(files, path, columns=2)])

    @property
    def latest(self) -> int:
        """The latest epoch, -1 when there is none."""
        return self.entries[-1][0] if self.entries else UNDEFINED

    def assign(self, epoch: int, start_offset: int) -> bool:
        """``epoch`` starts at ``start_offset``; entries that contradict it go. False when the file said so already."""
        if not self._admit(epoch, start_offset) and self._is_written:
            return False
        self.write()
        return True

    def begin(self, epoch: int, start_offset: int) -> None:
        """:meth:`assign` for an epoch that has no record yet: the file is written when there is one."""
        if self._admit(epoch, start_offset):
            self._is_written = False

    def forget_empty(self, log_end_offset: int) -> None:
        """Forget the epochs that the file has and the log, which was closed well, has no record of."""
        while self.entries and self.entries[-1][1] == log_end_offset:
            self.entries.pop()
            self._is_written = False

    def _admit(self, epoch: int, start_offset: int) -> bool:
        if self.entries and epoch == self.entries[-1][0] and start_offset >= self.entries[-1][1]:
            return False
        while self.entries and (self.entries[-1][0] >= epoch or self.entries[-1][1] >= start_offset):
            self.entries.pop()
        self.entries.append((epoch, start_offset))
        return True

    def replay(self, epoch: int, start_offset: int) -> None:
        """:meth:`assign` when a log is read anew: the caller writes the file once, at the end."""
        if epoch > self.latest:
            self._admit(epoch, start_offset)

    def epoch_of(self, offset: int) -> int:
        """The epoch in which ``offset`` was, or would be, written; -1 when it is before all that is known."""
        return next((epoch for epoch, start in reversed(self.entries) if start <= offset), UNDEFINED)

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest known epoch that is not above ``epoch``, and where it ends; (-1, -1) when nothing is known.

        The latest epoch ends at ``log_end_offset``. An epoch before all known ones ends where the first of them starts.
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
        raise AssertionError("the latest epoch is above the one asked for")

    def truncate_from_end(self, end_offset: int) -> bool:
        """Forget the epochs that start at ``end_offset`` or later; whether there were any."""
        keep = [entry for entry in self.entries if entry[1] < end_offset]
        return self._replace(keep)

    def truncate_from_start(self, start_offset: int) -> bool:
        """Forget the epochs that end at or before ``start_offset``; the one that holds it starts there now."""
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
        """Write the file anew. It reaches the disk with the log's next flush: only then does the log it tells of."""
        write_entries(self._files, self.path, self.entries, sync=False)
        self._is_written = True
