"""Apache Kafka's log cleaner and ours over the same segment files: the results are compared byte for byte.

The test writes logs to the directories of Apache Kafka's topics, and starts Apache Kafka on them.
"""

import random
import shutil
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas.log.checkpoints import CLEANER_OFFSETS, read_offsets, write_offsets
from barnabas.log.cleaning.job import CleanedGroup
from barnabas.log.files import DiskFiles
from barnabas.records.batch import Compression, RecordBatch, batches
from barnabas.records.builder import NewRecord
from barnabas.records.record import body_of
from tests.log.cleaning.building import DAY_MS, LogBuilder, run

from .apache import CURRENT, ApacheKafka, run_java
from .play import Play
from .steps import create

SETTINGS = {
    "log.cleaner.backoff.ms": "100",
    "log.retention.check.interval.ms": "300000",
    "log.initial.task.delay.ms": "600000",
    "log.cleaner.dedupe.buffer.size": "16777216",
}
CONFIGS = {
    "cleanup_policy": "compact",
    "min_cleanable_dirty_ratio": "0",
    "delete_retention_ms": str(DAY_MS),
    "segment_bytes": str(1 << 20),
    "index_interval_bytes": "300",
}
INTERVAL = 300
HOUR_MS = 3_600_000  # less than the expiration of producer ids, which counts from the last batch
WAIT_SECONDS = 60
"""The timeout of the cleaner for all topics; it takes a second or two."""


class Case(NamedTuple):
    """A log, and the cleaner's starting point."""

    log: LogBuilder
    first_dirty: int = 0


class Author:
    """Writes random logs: all kinds of batches, in all states of transactions, tombstones and producers."""

    def __init__(self, directory: Path, seed: int, now_ms: int, codecs: list[Compression]) -> None:
        self.chance, self.now_ms, self.codecs = random.Random(seed), now_ms, codecs
        self.log = LogBuilder(DiskFiles(), str(directory), leader_epoch=0)

    def records(self, keys: int = 40, size: int = 60) -> list[NewRecord]:
        chance = self.chance
        return [
            (
                None if chance.random() < 0.03 else b"key-%d" % chance.randrange(keys) * chance.choice([1, 1, 1, 9]),
                None if chance.random() < 0.15 else chance.randbytes(chance.randrange(size)),
                self.now_ms + chance.randrange(-100_000, 100),
                [("name", chance.randbytes(5)), ("no", None)] if chance.random() < 0.2 else [],
            )
            for _ in range(chance.choice([1, 1, 2, 3, 5, 30]))
        ]

    def write(self, batches: int, per_segment: int) -> LogBuilder:
        log, chance = self.log, self.chance
        for number in range(batches):
            if number % per_segment == per_segment - 1:
                log.roll()
            getattr(self, chance.choice(["plain", "plain", "dated", "idempotent", "transactional", "end"]))()
        for producer in list(log.open):
            log.marker(producer, commits=chance.random() < 0.5, timestamp=self.now_ms)
        log.roll()
        log.data((b"active", b"", self.now_ms))
        return log

    def plain(self) -> None:
        append_time = self.now_ms - 7 if self.chance.random() < 0.2 else None
        self.log.data(*self.records(), compression=self.chance.choice(self.codecs), log_append_time_ms=append_time)

    def dated(self) -> None:
        """Sets a delete horizon in the past, or in the future."""
        horizon = self.now_ms + self.chance.choice([-HOUR_MS, HOUR_MS])
        self.log.data(*self.records(), horizon=horizon)

    def idempotent(self) -> None:
        producer = self.chance.randrange(100, 115)
        self.log.data(*self.records(keys=10), producer=producer, compression=self.chance.choice(self.codecs))

    def transactional(self) -> None:
        producer = self.chance.randrange(200, 204)
        self.log.data(*self.records(), producer=producer, is_transactional=True)

    def end(self) -> None:
        """Ends a transaction, or writes a marker whose data an earlier pass removed, with a horizon or without."""
        chance = self.chance
        producer = chance.choice([*self.log.open, chance.randrange(300, 303)])
        horizon = chance.choice([None, None, -HOUR_MS, HOUR_MS])
        self.log.marker(
            producer,
            commits=chance.random() < 0.5,
            timestamp=self.now_ms,
            epoch=chance.randrange(2) if producer >= 300 else 0,
            horizon=None if horizon is None or producer < 300 else self.now_ms + horizon,
        )


def cases(root: Path, now_ms: int) -> dict[str, Case]:
    """Makes all logs, by the names of their topics."""
    every, plain = list(Compression), [Compression.NONE]
    logs = {
        f"{kind}-{seed}": Case(Author(root / f"{kind}-{seed}-0", seed, now_ms, codecs).write(120, 25))
        for kind, codecs in (("plain", plain), ("packed", every))
        for seed in range(4)
    }
    half = Author(root / "half-0", 11, now_ms, plain).write(120, 25)
    logs["half"] = Case(half, half.bases[3])
    inside = Author(root / "inside-0", 12, now_ms, plain).write(100, 25)
    logs["inside"] = Case(inside, inside.bases[2] + 7)
    grouped = Author(root / "grouped-0", 13, now_ms, plain)
    grouped.records = lambda keys=0, size=0: [(b"%d" % n, bytes(20_000), now_ms + n) for n in range(3)]  # type: ignore[method-assign]
    logs["grouped"] = Case(grouped.write(90, 6))
    return logs


class Cleaned(NamedTuple):
    """The logs cleaned by Apache Kafka, and the originals."""

    theirs: Path
    originals: Path
    cases: dict[str, Case]


@pytest.fixture(scope="module")
def both(kafka_jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Cleaned:
    """Starts Apache Kafka to make the topics, kills it, puts the logs into its directories, and has it clean them."""
    home, originals = tmp_path_factory.mktemp("cleaning"), tmp_path_factory.mktemp("originals")
    data = home / "data"
    logs = cases(originals, int(time.time() * 1000))
    broker = ApacheKafka(home, SETTINGS)
    with broker:
        play = Play(("127.0.0.1", broker.port), "", {})
        play.run([step for name in logs for step in create(name, **CONFIGS)])
        assert not play.transcript, play.transcript
    dirty = {}
    for name, case in logs.items():
        case.log.save()
        for path in (data / f"{name}-0").glob("0*"):
            path.unlink()
        for path in (originals / f"{name}-0").glob("*.log"):
            shutil.copy2(path, data / f"{name}-0")
        if case.first_dirty:
            dirty[name, 0] = case.first_dirty
    files, checkpoint = DiskFiles(), str(data / CLEANER_OFFSETS)
    write_offsets(files, checkpoint, dirty, sync=False)
    with broker:
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            done = read_offsets(files, checkpoint)
            if all(done.get((name, 0), 0) >= case.log.bases[-1] for name, case in logs.items()):
                break
            assert time.monotonic() < deadline, f"cleaned up to {done}"
            time.sleep(0.1)
    return Cleaned(data, originals, logs)


def ours(case: Case, their_batches: list[RecordBatch]) -> list[CleanedGroup]:
    """Cleans the original with our cleaner, at the time of theirs."""
    log = case.log
    had_horizon = {batch.base_offset for segment in log.segments for batch in segment if batch.has_delete_horizon}
    horizons = {each.base_timestamp for each in their_batches if each.has_delete_horizon} - {
        each.base_timestamp for each in their_batches if each.base_offset in had_horizon
    }
    (fresh,) = horizons
    job = log.job(
        [segment for segment in log.save() if segment.base_offset < log.bases[-1]],
        first_dirty_offset=case.first_dirty,
        end_offset=log.bases[-1],
        now_ms=fresh - DAY_MS,
        segment_bytes=1 << 20,
        index_interval_bytes=INTERVAL,
        producers=log.producers,
    )
    groups, result = run(log.files, job)
    assert result.next_dirty_offset == log.bases[-1]
    return groups


UNLIKE = ("buffer", "batch_length", "crc")


def described(batch: RecordBatch) -> dict[str, int]:
    """Returns a batch's header fields, except those that depend on the compressor."""
    return {name: getattr(batch, name) for name in RecordBatch.__slots__ if name not in UNLIKE}


NAMES = [*(f"{kind}-{seed}" for kind in ("plain", "packed") for seed in range(4)), "half", "inside", "grouped"]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_the_same(both: Cleaned, name: str) -> None:
    case = both.cases[name]
    theirs, mine = both.theirs / f"{name}-0", both.originals / f"{name}-0"
    bases = sorted(int(path.stem) for path in theirs.glob("*.log"))
    assert bases.pop() == case.log.bases[-1], "the active segment is not cleaned"
    logs = [(theirs / f"{base:020d}.log").read_bytes() for base in bases]
    groups = ours(case, [batch for data in logs for batch in batches(data)])
    assert [group.base_offset for group in groups] == bases
    for group, their_log in zip(groups, logs, strict=True):
        path = mine / f"{group.base_offset:020d}"
        my_log = path.with_suffix(".log.cleaned").read_bytes()
        same(list(batches(my_log)), list(batches(their_log)))
        suffixes = [".txnindex"]
        if not name.startswith("packed"):
            assert my_log == their_log
            suffixes += [".index", ".timeindex"]  # the positions of entries depend on sizes
        for suffix in suffixes:
            assert content(path.with_suffix(suffix + ".cleaned")) == content(theirs / path.with_suffix(suffix).name), (
                suffix
            )
        for suffix in (".log", ".index", ".timeindex"):
            their_time = (theirs / path.with_suffix(suffix).name).stat().st_mtime_ns
            assert path.with_suffix(suffix + ".cleaned").stat().st_mtime_ns // 1_000_000 == their_time // 1_000_000


def same(mine: list[RecordBatch], theirs: list[RecordBatch]) -> None:
    assert [described(batch) for batch in mine] == [described(batch) for batch in theirs]
    for our, their in zip(mine, theirs, strict=True):
        if bytes(our.buffer) != bytes(their.buffer):  # each has its own compressors
            assert our.compression, our
            assert body_of(our) == body_of(their), our


def content(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def test_apache_kafka_reads_what_our_compressors_make(both: Cleaned, tmp_path: Path) -> None:
    case = both.cases["packed-0"]
    job = case.log.job([each for each in case.log.save() if each.base_offset < case.log.bases[-1]])
    groups, result = run(case.log.files, job)
    paths = [tmp_path / f"{group.base_offset:020d}.log" for group in groups]
    for path in paths:
        shutil.copy(both.originals / "packed-0-0" / f"{path.name}.cleaned", path)
    tool = run_java(
        CURRENT, "org.apache.kafka.tools.DumpLogSegments", "--deep-iteration", "--files", ",".join(map(str, paths))
    )
    assert tool.returncode == 0, tool.stderr
    assert "xception" not in tool.stdout + tool.stderr
    assert "isvalid: false" not in tool.stdout
    assert tool.stdout.count("| offset: ") == result.statistics.records_kept
    assert {f"compresscodec: {codec.name.lower()}" in tool.stdout.lower() for codec in Compression} == {True}
