"""Apache Kafka's own DumpLogSegments over the files of a log: batch by batch, record by record, index by index."""

import random
from pathlib import Path

import pytest

from barnabas.clock import ManualClock
from barnabas.config.topic import TopicConfig
from barnabas.log.files import DiskFiles
from barnabas.log.log_manager import LogManager
from barnabas.records.batch import Compression, RecordBatch, batches
from barnabas.records.builder import build_batch
from barnabas.records.record import records_of

from .apache import CURRENT, run_java

TOOL = "org.apache.kafka.tools.DumpLogSegments"
CONFIG = TopicConfig(segment_bytes=20_000, index_interval_bytes=500)


def fill(manager: LogManager, seed: int) -> None:
    """Writes four hundred batches of every codec, half of them an idempotent producer's, in three leader epochs."""
    chance = random.Random(seed)
    log = manager.create("orders", 0, bytes(range(16)), CONFIG)
    sequence, timestamp = 0, 1_700_000_000_000
    for number in range(400):
        count = chance.randrange(1, 8)
        timestamp += chance.randrange(-50, 80)
        records = [(None, chance.randbytes(chance.randrange(200)), timestamp) for _ in range(count)]
        producer = {}
        if number % 2:
            producer = {"producer_id": 5, "producer_epoch": 0, "base_sequence": sequence}
            sequence += count
        batch = build_batch(records, compression=chance.choice(list(Compression)), **producer)
        log.append_as_leader(RecordBatch.parse(batch), leader_epoch=number // 150, now_ms=timestamp)
    log.maybe_set_high_watermark(log.log_end_offset)
    assert len(log.segments) > 3


@pytest.fixture(scope="module", params=["closed", "killed and recovered"])
def directory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a partition's directory: closed, or closed after a kill and a recovery."""
    root = tmp_path_factory.mktemp("logs")
    clock = ManualClock()
    for turn in range(2 if request.param == "killed and recovered" else 1):
        manager = LogManager(DiskFiles(), [str(root)], clock=clock, scheduler=clock)
        manager.start(1)
        manager.open_all(lambda topic: CONFIG)
        if turn == 0:
            fill(manager, seed=3)
        if turn == 0 and request.param == "killed and recovered":
            for locked in manager.directories:
                locked.release()
        else:
            manager.close()
    return root / "orders-0"


def dump(directory: Path, suffixes: tuple[str, ...], *options: str) -> str:
    files = sorted(str(path) for path in directory.iterdir() if path.suffix in suffixes)
    assert files
    run = run_java(CURRENT, TOOL, "--files", ",".join(files), *options)
    assert run.returncode == 0, run.stderr
    assert "xception" not in run.stdout + run.stderr
    return run.stdout


def test_segments_and_snapshots(kafka_jars: Path, directory: Path) -> None:
    out = dump(directory, (".log", ".snapshot"), "--deep-iteration", "--print-data-log")
    batches = [line for line in out.splitlines() if line.startswith("baseOffset:")]
    assert len(batches) == 400
    assert all("isvalid: true" in line for line in batches)
    offsets = [int(line.split()[2]) for line in out.splitlines() if line.startswith("| offset:")]
    assert offsets == list(range(len(offsets)))
    assert "producerId: 5 producerEpoch: 0" in out


def test_indexes(kafka_jars: Path, directory: Path) -> None:
    out = dump(directory, (".index", ".timeindex"), "--index-sanity-check")
    assert out.count("passed sanity check") + out.count("is empty") == len(list(directory.glob("*index")))
    complaints = dump(directory, (".index", ".timeindex"), "--verify-index-only")
    assert not [line for line in complaints.splitlines() if "ismatch" in line or "out of order" in line.lower()]


def compacted(root: Path) -> set[int]:
    """Compacts a log of every codec twice, with tombstones and an idempotent producer; returns the offsets left."""
    clock, chance = ManualClock(), random.Random(4)
    config = CONFIG._replace(cleanup_policy=frozenset({"compact"}), min_cleanable_dirty_ratio=0.01)
    manager = LogManager(DiskFiles(), [str(root)], clock=clock, scheduler=clock)
    manager.start(1)
    manager.open_all(lambda topic: config)
    log = manager.create("orders", 0, bytes(range(16)), config)
    sequence = 0
    for number in range(600):
        records = [
            (b"%d" % chance.randrange(40), chance.choice([None, chance.randbytes(100)]), clock.time_ms())
            for _ in range(chance.randrange(1, 8))
        ]
        producer = {}
        if number % 2:
            producer = {"producer_id": 5, "producer_epoch": 0, "base_sequence": sequence}
            sequence += len(records)
        batch = build_batch(records, compression=chance.choice(list(Compression)), **producer)
        log.append_as_leader(RecordBatch.parse(batch), leader_epoch=0, now_ms=clock.time_ms())
        log.maybe_set_high_watermark(log.log_end_offset)
        if number in (300, 599):
            clock.advance(100)  # the cleaner runs, and replaced files are deleted
    offsets, offset = set(), 0
    while data := log.read(offset, 1 << 20, up_to=log.log_end_offset, minimum_one=True):
        for found in batches(data):
            offsets |= {record.offset for record in records_of(found)}
            offset = found.next_offset
    assert len(offsets) < log.log_end_offset / 3
    manager.close()
    return offsets


def test_compacted_logs(kafka_jars: Path, tmp_path: Path) -> None:
    """The tool accepts holes, and reads deletion horizons."""
    left = compacted(tmp_path)
    out = dump(tmp_path / "orders-0", (".log", ".snapshot"), "--deep-iteration", "--print-data-log")
    lines = [line for line in out.splitlines() if line.startswith("baseOffset:")]
    assert lines and all("isvalid: true" in line for line in lines)
    assert any("deleteHorizonMs: OptionalLong[" in line for line in lines)
    offsets = [int(line.split()[2]) for line in out.splitlines() if line.startswith("| offset:")]
    assert offsets == sorted(left)
    test_indexes(kafka_jars, tmp_path / "orders-0")
