"""Builds logs for cleaners, with segments of all kinds of batches, and reads the results."""

import math
import struct
from collections.abc import Iterable
from typing import Any

from barnabas.clock import Clock, ManualClock
from barnabas.log.cleaning.cleaning import clean
from barnabas.log.cleaning.job import CleanedGroup, CleaningJob, CleaningResult, Producer, SegmentFile
from barnabas.log.files import Files
from barnabas.log.transaction_index import AbortedTransaction, encode_transactions
from barnabas.records.batch import DELETE_HORIZON_BIT, HEADER, NO_SEQUENCE, RecordBatch, batches
from barnabas.records.builder import NewRecord, build_batch
from barnabas.records.control import ControlRecordType, control_key
from barnabas.records.record import Record, records_of

NOW_MS = 1_700_000_000_000
DAY_MS = 86_400_000
DIRECTORY = "/data/orders-0"


class LogBuilder:
    """Batches with consecutive offsets in segments, and the producers that a broker would know."""

    def __init__(self, files: Files, directory: str = DIRECTORY, leader_epoch: int = 3) -> None:
        self.files, self.directory, self.leader_epoch = files, directory, leader_epoch
        self.segments: list[list[RecordBatch]] = [[]]
        self.bases = [0]
        self.offset = 0
        self.aborted: dict[int, list[AbortedTransaction]] = {}
        self.open: dict[int, int] = {}
        self.sequences: dict[tuple[int, int], int] = {}
        self.producers: dict[int, Producer] = {}
        files.makedirs(directory)

    def data(
        self, *records: NewRecord, producer: int = -1, epoch: int = 0, horizon: int | None = None, **options: Any
    ) -> RecordBatch:
        """Appends a batch of records. A horizon becomes the base timestamp."""
        if producer >= 0:
            options |= {"producer_id": producer, "producer_epoch": epoch}
            options["base_sequence"] = self.sequences.setdefault((producer, epoch), 0)
            self.sequences[producer, epoch] += len(records)
            self.producers[producer] = Producer(epoch, self.offset + len(records) - 1)
            if options.get("is_transactional"):
                self.open.setdefault(producer, self.offset)
        return self._append(build_batch(records, **options), horizon)

    def marker(
        self, producer: int, *, commits: bool, epoch: int = 0, horizon: int | None = None, timestamp: int = NOW_MS
    ) -> RecordBatch:
        """Appends a transaction marker."""
        kind = ControlRecordType.COMMIT if commits else ControlRecordType.ABORT
        record = (control_key(kind), struct.pack(">hi", 0, 7), timestamp)
        first = self.open.pop(producer, None)
        if not commits and first is not None:
            stable = min(self.open.values(), default=self.offset + 1)
            entry = AbortedTransaction(producer, first, self.offset, stable)
            self.aborted.setdefault(self.bases[-1], []).append(entry)
        known = self.producers.get(producer)
        self.producers[producer] = Producer(
            epoch, known.last_data_offset if known and known.producer_epoch == epoch else -1
        )
        batch = build_batch(
            [record],
            is_control=True,
            is_transactional=True,
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=NO_SEQUENCE,
        )
        return self._append(batch, horizon)

    def _append(self, data: bytearray, horizon: int | None) -> RecordBatch:
        batch = RecordBatch.parse(data)
        batch.stamp(self.offset, self.leader_epoch)
        if horizon is not None:
            fields = list(HEADER.unpack_from(data))
            fields[8] += horizon - fields[7]
            fields[7], fields[5] = horizon, fields[5] | DELETE_HORIZON_BIT
            HEADER.pack_into(data, 0, *fields)
            batch = RecordBatch.parse(data)
            batch.sign()
        self.offset = batch.next_offset
        self.segments[-1].append(batch)
        return batch

    def roll(self) -> None:
        if self.segments[-1]:
            self.segments.append([])
            self.bases.append(self.offset)

    def save(self) -> list[SegmentFile]:
        """Writes the files, without offset and time indexes."""
        found = []
        for number, (base, content) in enumerate(zip(self.bases, self.segments, strict=True)):
            if not content:
                continue
            path = f"{self.directory}/{base:020d}"
            log = self.files.create(path + ".log")
            log.write(b"".join(bytes(batch.buffer) for batch in content))
            modified_ms = NOW_MS + 1000 * number
            self.files.set_modified_ms(path + ".log", modified_ms)
            found.append(SegmentFile(base, log.size(), modified_ms))
            log.close()
            if base in self.aborted:
                index = self.files.create(path + ".txnindex")
                index.write(encode_transactions(self.aborted[base]))
                index.close()
        return found

    def job(self, segments: list[SegmentFile] | None = None, **changes: Any) -> CleaningJob:
        """Returns a job for all segments, with these fields changed."""
        job = CleaningJob(
            directory=self.directory,
            segments=self.save() if segments is None else segments,
            first_dirty_offset=0,
            end_offset=self.offset,
            now_ms=NOW_MS,
            delete_retention_ms=DAY_MS,
            segment_bytes=1 << 30,
            segment_index_bytes=10 << 20,
            index_interval_bytes=4096,
            map_entries=1_000_000,
            max_bytes_per_second=math.inf,
            producers={},
        )
        return job._replace(**changes)


def run(
    files: Files, job: CleaningJob, clock: Clock | None = None, **options: Any
) -> tuple[list[CleanedGroup], CleaningResult]:
    """Runs a pass without swapping anything in."""
    passing = clean(files, job, clock if clock is not None else ManualClock(), **options)
    groups = []
    while True:
        try:
            groups.append(next(passing))
        except StopIteration as end:
            return groups, end.value


def put_in_place(files: Files, directory: str, group: CleanedGroup) -> None:
    """Renames a group's files to their final names, and deletes those that it replaces."""
    for base in group.replaces:
        for suffix in (".log", ".index", ".timeindex", ".txnindex"):
            files.delete(f"{directory}/{base:020d}{suffix}")
    path = f"{directory}/{group.base_offset:020d}"
    for suffix in (".log", ".index", ".timeindex", *[".txnindex"] * group.has_txn_index):
        files.rename(f"{path}{suffix}.cleaned", path + suffix)


def clean_in_place(files: Files, job: CleaningJob) -> tuple[list[SegmentFile], CleaningResult]:
    """Runs a pass and swaps in its groups. Returns the new segments and the result."""
    groups, result = run(files, job)
    for group in groups:
        put_in_place(files, job.directory, group)
    replaced = {base for group in groups for base in group.replaces}
    kept = [segment for segment in job.segments if segment.base_offset not in replaced]
    return [SegmentFile(group.base_offset, group.size, group.modified_ms) for group in groups] + kept, result


def batches_in(files: Files, directory: str, segments: Iterable[int], suffix: str = ".log") -> list[RecordBatch]:
    """Returns all batches of these segments, with their CRCs checked."""
    found: list[RecordBatch] = []
    for base in segments:
        data = files.read(f"{directory}/{base:020d}{suffix}")
        found += batches(data)
        assert not found or sum(batch.size_in_bytes for batch in batches(data)) == len(data)
    for batch in found:
        batch.check_crc()
    return found


def cleaned(files: Files, job: CleaningJob, groups: list[CleanedGroup]) -> list[RecordBatch]:
    """Returns the batches that a pass wrote."""
    return batches_in(files, job.directory, [group.base_offset for group in groups], ".log.cleaned")


def records_in_all(found: Iterable[RecordBatch]) -> list[Record]:
    return [record for batch in found for record in records_of(batch)]
