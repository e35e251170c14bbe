"""The cost of cleaning a log: records and bytes for each CPU second of the cleaner's process.

Knows nothing of the broker: a worker cleans the segments of a log.
"""

import math
import random
import shutil
import statistics
from collections.abc import Iterator
from pathlib import Path

from barnabas.log.cleaning.job import CleanedGroup, CleaningJob, SegmentFile, Statistics
from barnabas.log.cleaning.process import ProcessCleaner
from barnabas.records.batch import Compression, RecordBatch
from barnabas.records.builder import build_batch, recompress
from barnabas.records.record import body_of
from benchmarks.measure import Row

MIB = 1 << 20
LOG_BYTES = 32 * MIB  #: bytes of records, before compression
BATCH_BYTES = 16_384  #: the default ``batch.size`` of Java's producer
SEGMENT_BYTES = 8 * MIB
NOW_MS = 1_700_000_000_000
WORDS = [b"castle ", b"village ", b"messenger ", b"letter ", b"office ", b"surveyor ", b"inn ", b"snow ", b"0123456789"]


def made_batches(record_bytes: int, each: int) -> list[RecordBatch]:
    """Makes records of about this size with text, in batches; each key occurs about twice."""
    chance = random.Random(record_bytes)
    count = LOG_BYTES // record_bytes
    text = b"".join(chance.choices(WORDS, k=100_000))
    value_bytes = record_bytes - 16 - 8  # less the key and the framing of a record
    found = []
    for at in range(0, count - each, each):
        records = []
        for number in range(at, at + each):
            start = chance.randrange(len(text) - value_bytes)
            key = b"customer-%07d" % chance.randrange(count // 2)
            records.append((key, text[start : start + value_bytes], NOW_MS + number))
        batch = RecordBatch.parse(build_batch(records))
        batch.stamp(at, 0)
        found.append(batch)
    return found


def written(directory: Path, batches: list[RecordBatch], codec: Compression) -> list[SegmentFile]:
    """Makes the segments of a log with these batches, each compressed with this codec."""
    directory.mkdir()
    segments: list[SegmentFile] = []
    content, base = bytearray(), 0
    for batch in batches:
        if len(content) > SEGMENT_BYTES:
            segments.append(saved(directory, base, content))
            content, base = bytearray(), batch.base_offset
        content += recompress(batch, body_of(batch), codec).buffer if codec else batch.buffer
    segments.append(saved(directory, base, content))
    return segments


def saved(directory: Path, base: int, content: bytearray) -> SegmentFile:
    (directory / f"{base:020d}.log").write_bytes(content)
    return SegmentFile(base, len(content), NOW_MS)


def cleaned(worker: ProcessCleaner, directory: Path, segments: list[SegmentFile], end_offset: int) -> Statistics:
    """Cleans a whole log that was never cleaned, in one pass."""
    job = CleaningJob(
        directory=str(directory),
        segments=segments,
        first_dirty_offset=0,
        end_offset=end_offset,
        now_ms=NOW_MS,
        delete_retention_ms=86_400_000,
        segment_bytes=SEGMENT_BYTES,
        segment_index_bytes=10 * MIB,
        index_interval_bytes=4096,
        map_entries=5_000_000,
        max_bytes_per_second=math.inf,
        producers={},
    )

    def drop(group: CleanedGroup) -> None:
        for path in directory.glob(f"{group.base_offset:020d}.*.cleaned"):
            path.unlink()

    return worker.run(job, drop).statistics


def throughput(folder: Path, rounds: int) -> Iterator[Row]:
    """Cleans a log that is all dirty: two reads and a write; a little more than half of its records are removed."""
    worker = ProcessCleaner()
    try:
        for size, each, codecs in (
            (100, 1, [Compression.NONE]),
            (100, BATCH_BYTES // 100, list(Compression)),
            (1024, BATCH_BYTES // 1024, list(Compression)),
        ):
            batches = made_batches(size, each)
            for codec in codecs:
                directory = folder / f"cleaning-{size}-{each}-{codec.name}"
                segments = written(directory, batches, codec)
                runs = [cleaned(worker, directory, segments, batches[-1].next_offset) for _ in range(rounds)]
                shutil.rmtree(directory)
                yield row(f"cleaning {size} B, {each} to a batch, {codec.name.lower()}, a CPU second", size, runs)
    finally:
        worker.close()


def row(what: str, size: int, runs: list[Statistics]) -> Row:
    records = statistics.median(run.records_read / run.cpu_seconds for run in runs)
    in_log = statistics.median(run.bytes_read / run.cpu_seconds / 1e6 for run in runs)
    measured = f"{records:,.0f} records, {records * size / 1e6:,.0f} MB ({in_log:,.0f} MB of log)"
    return Row(what, measured, "", None, "", None)
