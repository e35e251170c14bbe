"""Checks the directory of one partition: the batches of its segments, and all other files in it.

Knows nothing of other partitions, nor of the checkpoints of the data directory.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from barnabas.cli.checking import texts
from barnabas.cli.checking.findings import ERROR, WARNING, Findings
from barnabas.cli.checking.indexes import NEVER, Aborted, OffsetIndexCheck, TimeIndexCheck, check_transactions
from barnabas.cli.checking.producers import BadSnapshot, Replay, read_snapshot
from barnabas.cli.checking.scanning import Batch, scan
from barnabas.errors import KafkaError

LOG: Final = ".log"
OF_A_SEGMENT: Final = (LOG, ".index", ".timeindex", ".txnindex")
LEFTOVERS: Final = (".deleted", ".cleaned", ".swap", ".tmp")
EPOCHS, METADATA = "leader-epoch-checkpoint", "partition.metadata"
OF_THE_QUORUM: Final = ("quorum-state",)
MAX_RELATIVE: Final = 2**31 - 1


class Known(NamedTuple):
    """What checkpoints and metadata contain about a partition; None means unknown."""

    topic_id: bytes | None = None
    compacts: bool | None = None
    cleaned_up_to: int = 0  #: in the cleaner's checkpoint; below it, offsets may be missing
    log_start_offset: int = 0  #: in its checkpoint
    leader_epoch: int | None = None
    is_clean: bool = False  #: whether the broker was shut down cleanly


class Extent(NamedTuple):
    """The offsets and leader epochs of a partition's log."""

    first_offset: int  #: base offset of the first segment
    end_offset: int
    epochs: list[tuple[int, int]]


class Partition:
    """The check of one partition directory; see :func:`check`."""

    def __init__(self, directory: Path, known: Known, findings: Findings, progress: Callable[[int], object]) -> None:
        self.directory, self.known, self.findings = directory, known, findings
        self._progress = progress
        self.names = sorted(path.name for path in directory.iterdir() if path.is_file())
        self.bases = [int(name[:20]) for name in self.names if _is_of_segment(name, (LOG,))]
        self.expected = self.bases[0] if self.bases else 0
        self.epochs: list[tuple[int, int]] = []
        self._epoch_slot, self._epoch, self._next_epoch = -1, -1, NEVER
        self._has_epochs = False
        self._replay = Replay(is_whole=False, is_compacted=known.compacts is not False)
        self._snapshots: list[int] = []
        self._next_snapshot = NEVER

    def path(self, name: str) -> Path:
        return self.directory / name

    # ------------------------------------------------------------ directory

    def check(self) -> Extent:
        self._look_over_names()
        self._read_epochs()
        self._check_topic_id()
        self._list_snapshots()
        for number, base in enumerate(self.bases):
            self._check_segment(base, number)
        self._finish_epochs()
        self._finish_snapshots()
        return Extent(self.bases[0] if self.bases else 0, self.expected, self.epochs)

    def _look_over_names(self) -> None:
        known = set(self.bases)
        for ending in LEFTOVERS:
            left = [name for name in self.names if name.endswith(ending)]
            if left:
                others = f", with {len(left) - 1} more" if len(left) > 1 else ""
                text = f"of an unfinished operation{others}; the next start completes or deletes it"
                self.findings.warning("leftover", str(self.path(left[0])), text)
        for name in self.names:
            path = str(self.path(name))
            if name.endswith(LEFTOVERS):
                continue
            if _is_of_segment(name, OF_A_SEGMENT[1:]):
                if int(name[:20]) not in known:
                    self.findings.warning("leftover", path, "an index without a log; the next start deletes it")
            elif not (
                name in (EPOCHS, METADATA, *OF_THE_QUORUM)
                or _is_of_segment(name, (LOG, ".snapshot"))
                or name.endswith(".checkpoint")
            ):
                self.findings.warning("unknown", path, "it does not belong in a partition directory")
        if not self.bases:
            self.findings.warning("empty", str(self.directory), "there is no segment; the next start creates one")

    def _check_topic_id(self) -> None:
        path = self.path(METADATA)
        if not path.exists():
            self.findings.warning("topic-id", str(path), "it is missing")
            return
        found = texts.read_properties(path, ": ", ("version", "topic_id"), self.findings)
        if found is None:
            return
        topic_id = texts.uuid_of(found["topic_id"])
        if topic_id is None or found["version"] != "0":
            self.findings.error("topic-id", str(path), f"version {found['version']!r}, topic id {found['topic_id']!r}")
        elif self.known.topic_id is not None and topic_id != self.known.topic_id:
            text = f"the topic id is {found['topic_id']}, but the metadata has another one for the topic"
            self.findings.error("topic-id", str(path), text)

    # ------------------------------------------------------------ segments

    def _check_segment(self, base: int, number: int) -> None:
        stem, is_last = f"{base:020d}", number + 1 == len(self.bases)
        path = str(self.path(stem + LOG))
        if number and base != self.expected:
            self._check_gap(path, None, base, is_last=False, is_start=True)
        self.expected = max(self.expected, base)
        index = OffsetIndexCheck(self.path(stem + ".index"), base, self._reporter(stem + ".index", "index"))
        times = TimeIndexCheck(self.path(stem + ".timeindex"), base, self._reporter(stem + ".timeindex", "timeindex"))

        def damaged(kind: str, position: int, offset: int | None, what: str) -> None:
            severity = WARNING if kind == "zeros" and is_last and not self.known.is_clean else ERROR
            self.findings.add(severity, kind, path, what, position, offset)

        latest, aborted = self._walk(
            path, base, is_last, index, times, scan(path, index.positions, damaged, self._progress)
        )
        index.finish()
        times.finish(latest, is_sealed=not is_last)
        for beside, suffix in ((index, ".index"), (times, ".timeindex")):
            if not beside.is_there and (self.path(stem + LOG).stat().st_size or self.known.is_clean):
                text = "it is missing; it is rebuilt from the log when it is needed"
                self.findings.warning("missing", str(self.path(stem + suffix)), text)
        transactions = self.path(stem + ".txnindex")
        end = self.expected if is_last else self.bases[number + 1]
        report = self._reporter(stem + ".txnindex", "txnindex")
        check_transactions(transactions, base, end, aborted, report, is_whole=self._replay.is_whole)

    def _walk(
        self,
        path: str,
        base: int,
        is_last: bool,
        index: OffsetIndexCheck,
        times: TimeIndexCheck,
        batches: Iterator[Batch],
    ) -> tuple[int, list[Aborted]]:
        """Checks the batches of a segment; returns its maximum timestamp and its aborted transactions."""
        latest, aborted = -1, []
        for batch in batches:
            position, _, first, last, epoch, timestamp, producer_id, header, data = batch
            if first != self.expected and first >= 0:
                self._check_gap(path, position, first, is_last=is_last)
            if last < max(first, self.expected) or last - base > MAX_RELATIVE:
                text = f"the batch has the offsets {first} to {last}, but the segment begins at {base}"
                self.findings.error("order", path, text, position, first)
                last = max(last, self.expected - 1)
            if last >= self._next_snapshot:
                self._at_snapshots(first)
            if first >= self._next_epoch or epoch != self._epoch:
                self._follow_epoch(path, batch)
            self.expected = last + 1
            if timestamp > latest:
                latest = timestamp
            if position >= index.next_position:
                index.visit(position, first, last)
            elif last >= index.awaited:
                index.reach(last)
            if last >= times.next_offset:
                times.visit(first, last, timestamp, latest)
            if producer_id >= 0 and header is not None:
                try:
                    transaction = self._replay.add(header, data)
                except KafkaError as error:
                    self.findings.error("marker", path, str(error), position, first)
                    continue
                if transaction is not None:
                    aborted.append(transaction)
        return latest, aborted

    def _check_gap(self, path: str, position: int | None, first: int, *, is_last: bool, is_start: bool = False) -> None:
        """Adds a finding about missing or repeated offsets before this one, unless compaction explains them."""
        expected = self.expected
        what = "the segment begins" if is_start else "the batch begins"
        if first < expected:
            self.findings.error(
                "order", path, f"{what} at offset {first}, but {expected} should follow", position, first
            )
            return
        compacts = self.known.compacts
        if first <= self.known.cleaned_up_to or (compacts and not is_last):
            return
        severity = WARNING if compacts is not False else ERROR
        self.findings.add(
            severity, "hole", path, f"{what} at offset {first}, but {expected} is missing", position, expected
        )

    def _reporter(self, name: str, kind: str) -> Callable[[str, int | None, int | None, str], None]:
        path = str(self.path(name))

        def report(severity: str, position: int | None, offset: int | None, what: str) -> None:
            self.findings.add(severity, kind, path, what, position, offset)

        return report

    # ------------------------------------------------------------ leader epochs

    def _read_epochs(self) -> None:
        path = self.path(EPOCHS)
        entries = texts.read_checkpoint(path, 2, self.findings)
        if entries is None:
            if not path.exists() and any(self.path(f"{base:020d}{LOG}").stat().st_size for base in self.bases):
                self.findings.warning(
                    "missing", str(path), "it is missing; the next start rebuilds it from the batches"
                )
            return
        self._has_epochs = True
        self.epochs = [(int(epoch), int(start)) for epoch, start in entries]
        for before, after in zip(self.epochs, self.epochs[1:], strict=False):
            if after[0] <= before[0] or after[1] <= before[1]:
                self._epochs_are_wrong(f"epoch {after[0]} from {after[1]} does not follow {before[0]} from {before[1]}")
                return
        if self.epochs and self.known.leader_epoch is not None and self.epochs[-1][0] > self.known.leader_epoch:
            text = f"epoch {self.epochs[-1][0]} is later than the metadata's {self.known.leader_epoch}"
            self._epochs_are_wrong(text)
        self._set_next_epoch()

    def _epochs_are_wrong(self, text: str, offset: int | None = None) -> None:
        self.findings.error("epochs", str(self.path(EPOCHS)), text, None, offset)

    def _set_next_epoch(self) -> None:
        following = self._epoch_slot + 1
        self._next_epoch = self.epochs[following][1] if following < len(self.epochs) else NEVER

    def _follow_epoch(self, path: str, batch: Batch) -> None:
        """Checks a batch whose leader epoch differs from that of the batch before it, or should."""
        while batch.base_offset >= self._next_epoch:
            self._epoch_slot += 1
            self._epoch, start = self.epochs[self._epoch_slot]
            self._set_next_epoch()
            if start < batch.base_offset and self._epoch_slot and not self._may_miss(start):
                self._epochs_are_wrong(f"epoch {self._epoch} starts at {start}, where no batch does", start)
        is_before_all = self._epoch_slot < 0 and not self.known.is_clean
        is_deleted = batch.base_offset < self.known.log_start_offset
        if batch.leader_epoch == self._epoch or batch.header is None or is_before_all or is_deleted:
            return
        if self._has_epochs:
            text = f"the batch's leader epoch is {batch.leader_epoch}, but that of its offset is {self._epoch}"
            self.findings.error("epoch", path, text, batch.position, batch.base_offset)
        elif batch.leader_epoch < self._epoch:
            text = f"the batch's leader epoch is {batch.leader_epoch}, after {self._epoch}"
            self.findings.error("epoch", path, text, batch.position, batch.base_offset)
        else:
            self._epoch = batch.leader_epoch
            self.epochs.append((batch.leader_epoch, batch.base_offset))
            self._epoch_slot += 1

    def _may_miss(self, offset: int) -> bool:
        return self.known.compacts is not False or offset <= max(self.known.cleaned_up_to, self.known.log_start_offset)

    def _finish_epochs(self) -> None:
        if not self._has_epochs or not self.epochs:
            return
        last, start = self.epochs[-1]
        is_passed = self._epoch_slot + 1 == len(self.epochs)
        may_begin_anywhere = len(self.epochs) == 1 and not self.known.is_clean  # records before it were deleted
        if start > self.expected:
            self._epochs_are_wrong(f"epoch {last} starts at {start}, but the log ends at {self.expected}", start)
        elif not (is_passed or start == self.expected or may_begin_anywhere or self._may_miss(start)):
            self._epochs_are_wrong(f"epoch {last} starts at {start}, where no batch does", start)
        first = max(self.bases[0] if self.bases else 0, self.known.log_start_offset)
        if self.epochs[0][1] < first and self.known.is_clean:
            text = f"epoch {self.epochs[0][0]} starts at {self.epochs[0][1]}, but the log starts at {first}"
            self._epochs_are_wrong(text)

    # ------------------------------------------------------------ producers

    def _list_snapshots(self) -> None:
        self._snapshots = [int(name[:20]) for name in self.names if _is_of_segment(name, (".snapshot",))]
        first = self.bases[0] if self.bases else 0
        self._replay.is_whole = first == 0 and not self._replay.is_compacted
        while self._snapshots and self._snapshots[0] <= first:
            offset = self._snapshots.pop(0)
            entries = self._snapshot(offset)
            if entries is not None and offset == first:
                self._replay.load_snapshot(entries)
        self._next_snapshot = self._snapshots[0] if self._snapshots else NEVER

    def _snapshot(self, offset: int) -> dict[int, tuple[int, ...]] | None:
        path = self.path(f"{offset:020d}.snapshot")
        try:
            return read_snapshot(path.read_bytes())
        except BadSnapshot as error:
            self.findings.error("snapshot", str(path), str(error))
            return None

    def _at_snapshots(self, reached: int) -> None:
        """Compares the producer snapshots up to the offset ``reached``, below which all records have been read."""
        while self._snapshots and self._snapshots[0] <= max(reached, self.expected):
            offset = self._snapshots.pop(0)
            path = str(self.path(f"{offset:020d}.snapshot"))
            entries = self._snapshot(offset)
            if offset != self.expected and self.known.compacts is False:
                self.findings.error("snapshot", path, f"no batch ends before offset {offset}", None, offset)
            elif entries is not None:
                start = max(self.bases[0], self.known.log_start_offset)
                for text in self._replay.differences(entries, start):
                    self.findings.error("snapshot", path, text)
        self._next_snapshot = self._snapshots[0] if self._snapshots else NEVER

    def _finish_snapshots(self) -> None:
        self._at_snapshots(self.expected)
        for offset in self._snapshots:
            path = str(self.path(f"{offset:020d}.snapshot"))
            severity = ERROR if self.known.is_clean else WARNING
            self.findings.add(severity, "snapshot", path, f"it is beyond the log's end, {self.expected}", None, offset)


def _is_of_segment(name: str, suffixes: tuple[str, ...]) -> bool:
    return name[:20].isdecimal() and name[20:] in suffixes


def check(directory: Path, known: Known, findings: Findings, progress: Callable[[int], object]) -> Extent:
    """Checks a partition directory.

    :param progress: called with the number of bytes of the log that have been read since the last call
    :raises OSError: a file cannot be read
    """
    return Partition(directory, known, findings, progress).check()
