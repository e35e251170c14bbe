"""The cost of a start after a kill: every batch of a large log is read and checked before the broker answers.

Knows nothing of how a log is checked; beside it stands a bare loop that reads the same files and computes their CRC.
"""

import shutil
import statistics
import struct
import time
from collections.abc import Iterator
from pathlib import Path

from barnabas.config.topic import TopicConfig
from barnabas.log.files import DiskFiles
from barnabas.log.log_directory import LogDirectory
from barnabas.log.partition_log import LogServices
from barnabas.log.recovery import open_log
from barnabas.records.batch import HEADER_SIZE
from barnabas.records.builder import build_batch
from barnabas.records.checksum import crc32c
from benchmarks import load, servers
from benchmarks.measure import MIB, Row, first_answer, median_ratio

PARTITIONS = 4
BATCHES = {"170 bytes": 170, "1 KiB": 1024, "16 KiB": 16 << 10, "1 MiB": MIB}
BUDGET = {"1 KiB", "16 KiB", "1 MiB"}  #: batch sizes with a budget of 500 MB/s
NOW_MS = 1_700_000_000_000
RECORD_OVERHEAD = 12


def after_a_kill(folder: Path, rounds: int, gigabytes: float = 2) -> Iterator[Row]:
    """Measures process start to first ApiVersions response, with this amount of data after the recovery point."""
    for name, size in BATCHES.items():
        share = gigabytes if name in BUDGET else gigabytes / 10  # small batches take long to make and to check
        directory = folder / "recovery"
        with servers.barnabas(directory, keep=True) as running:
            load.create_topic(running.port, "big", PARTITIONS)
        paths = [path for index in range(PARTITIONS) for path in fill(directory / f"big-{index}", size, share)]
        total = sum(path.stat().st_size for path in paths) / 1e6
        pairs = []
        for _ in range(rounds):
            for marker in (".kafka_cleanshutdown", "recovery-point-offset-checkpoint"):
                (directory / marker).unlink()
            began = time.perf_counter()
            with servers.barnabas(directory, keep=True) as running:
                first_answer(running.port)
                ours = total / (time.perf_counter() - began)
            pairs.append((ours, total / bare_check(paths)))
        shutil.rmtree(directory)
        ours, theirs = (statistics.median(each) for each in zip(*pairs, strict=True))
        has_budget = name in BUDGET
        what = f"start after a kill: {total / 1e3:.1f} GB, batches of {name}, MB/s"
        budget, holds = (">= 500", ours >= 500) if has_budget else ("", None)
        yield Row(what, f"{ours:,.0f}", f"bare {theirs:,.0f}", median_ratio(pairs), budget, holds)


def fill(directory: Path, batch_bytes: int, gigabytes: float) -> list[Path]:
    """Writes a share of the data to an existing empty partition, by a current producer; returns the segment files."""
    arguments = ("big", int(directory.name.partition("-")[2]), TopicConfig())
    log = open_log(
        LogServices(LogDirectory(DiskFiles(), "/data")),
        str(directory),
        *arguments,
        clean=True,
        recovery_point=0,
        now_ms=NOW_MS,
    )
    value = bytes(range(256)) * (batch_bytes // 256 + 1)
    value = value[: batch_bytes - HEADER_SIZE - RECORD_OVERHEAD]
    batch = build_batch([(None, value, NOW_MS)], producer_id=7, producer_epoch=0, base_sequence=0)
    count = max(4 * MIB // len(batch), 1)
    many = bytearray(batch * count)
    while log.size < gigabytes * 1e9 / PARTITIONS:
        for number in range(count):
            at, offset = number * len(batch), log.log_end_offset + number
            struct.pack_into(">q", many, at, offset)
            struct.pack_into(">i", many, at + 53, offset & 0x7FFFFFFF)  # the sequence number
            struct.pack_into(">I", many, at + 17, crc32c(memoryview(many)[at + 21 : at + len(batch)]))
        log.append_as_follower(many, now_ms=NOW_MS)
    log.close()
    return sorted(directory.glob("*.log"))


def bare_check(paths: list[Path]) -> float:
    """Returns the seconds of reading the files and computing a CRC of each mebibyte."""
    began = time.perf_counter()
    for path in paths:
        with path.open("rb", buffering=0) as file:
            while piece := file.read(MIB):
                crc32c(piece)
    return time.perf_counter() - began
