"""Logs over real files and over files in memory: most tests run on both."""

import pathlib
import struct
from collections.abc import Callable
from typing import NamedTuple

import pytest

from barnabas.config.topic import TopicConfig
from barnabas.log.files import DiskFiles, Files, MemoryFiles
from barnabas.log.log_directory import LogDirectory
from barnabas.log.partition_log import Appended, LogServices, PartitionLog
from barnabas.log.recovery import create_log, open_log
from barnabas.records.batch import RecordBatch, batches
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlRecordType, control_key
from barnabas.records.record import Record, records_of

NOW_MS = 1_700_000_000_000
TOPIC_ID = bytes(range(16))


class Place(NamedTuple):
    """Files, and an existing directory."""

    files: Files
    path: str


@pytest.fixture(params=["disk", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Place:
    """Returns both kinds of files."""
    if request.param == "disk":
        return Place(DiskFiles(), str(tmp_path))
    return memory_place()


@pytest.fixture
def memory() -> Place:
    """Files in memory, for tests that do not depend on the kind."""
    return memory_place()


def memory_place(files: Files | None = None) -> Place:
    files = files if files is not None else MemoryFiles()
    files.makedirs("/data")
    return Place(files, "/data")


def make_batch(
    values: list[bytes | None] | int = 1, *, timestamp: int | list[int] = NOW_MS, size: int = 20, **keywords: int
) -> RecordBatch:
    """Returns a batch of these values, or of a number of values of ``size`` bytes."""
    if isinstance(values, int):
        values = [b"%d" % number * size for number in range(values)]
        values = [value[:size] for value in values if value is not None]
    timestamps = timestamp if isinstance(timestamp, list) else [timestamp] * len(values)
    records = [(None, value, at) for value, at in zip(values, timestamps, strict=True)]
    return RecordBatch.parse(build_batch(records, **keywords))


def make_marker(producer_id: int, *, abort: bool, coordinator_epoch: int = 0, timestamp: int = NOW_MS) -> RecordBatch:
    """Returns a transaction marker as a transaction coordinator writes it."""
    key = control_key(ControlRecordType.ABORT if abort else ControlRecordType.COMMIT)
    record = (key, struct.pack(">hi", 0, coordinator_epoch), timestamp)
    batch = build_batch([record], producer_id=producer_id, producer_epoch=0, is_control=True, is_transactional=True)
    return RecordBatch.parse(batch)


class Tool:
    """Creates a log, fills it and reads it."""

    def __init__(self, place: Place) -> None:
        self.files, self.root = place
        self.directory = f"{self.root}/orders-3"
        self.services = LogServices(LogDirectory(self.files, self.root))

    def create(self, **config: object) -> PartitionLog:
        settings = TopicConfig(**config)  # type: ignore[arg-type]
        return create_log(self.services, self.directory, "orders", 3, TOPIC_ID, settings, now_ms=NOW_MS)

    def open(
        self, *, clean: bool = False, recovery_point: int = 0, log_start_offset: int = 0, **config: object
    ) -> PartitionLog:
        return open_log(
            self.services,
            self.directory,
            "orders",
            3,
            TopicConfig(**config),  # type: ignore[arg-type]
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            now_ms=NOW_MS,
        )

    def append(
        self, log: PartitionLog, *arguments: object, epoch: int = 0, now_ms: int = NOW_MS, **keywords: object
    ) -> Appended:
        """Appends a batch of :func:`make_batch`, and commits it."""
        batch = make_batch(*arguments, **keywords)  # type: ignore[arg-type]
        appended = log.append_as_leader(batch, leader_epoch=epoch, now_ms=now_ms)
        log.maybe_set_high_watermark(log.log_end_offset)
        return appended

    def records(self, log: PartitionLog, max_bytes: int = 1 << 20) -> list[Record]:
        """Returns all records, read from the start as by a consumer."""
        found: list[Record] = []
        offset = log.log_start_offset
        while data := log.read(offset, max_bytes, up_to=log.log_end_offset, minimum_one=True):
            for batch in batches(data):
                batch.check_crc()
                found += (record for record in records_of(batch) if record.offset >= offset)
                next_offset = batch.next_offset
            assert next_offset > offset
            offset = next_offset
        assert offset == log.log_end_offset
        return found

    def path(self, name: str) -> str:
        return f"{self.directory}/{name}"

    def names(self) -> list[str]:
        return sorted(self.files.sizes(self.directory))

    def overwrite(self, name: str, data: bytes) -> None:
        self.files.create(self.path(name)).write(data)

    def flip(self, name: str, position: int) -> None:
        """Flips one bit."""
        data = bytearray(self.files.read(self.path(name)))
        data[position] ^= 1
        self.overwrite(name, bytes(data))


@pytest.fixture
def tool(place: Place) -> Tool:
    return Tool(place)


@pytest.fixture
def memory_tool(memory: Place) -> Tool:
    return Tool(memory)


@pytest.fixture
def batch() -> Callable[..., RecordBatch]:
    return make_batch


@pytest.fixture
def marker() -> Callable[..., RecordBatch]:
    return make_marker


@pytest.fixture
def tool_over() -> Callable[[Files], Tool]:
    """Returns a tool over given files."""
    return lambda files: Tool(memory_place(files))


@pytest.fixture
def golden(memory_tool: Tool) -> Tool:
    """A partition's directory that Apache Kafka 4.3.1 has closed, in memory; index.interval.bytes was 500."""
    source = pathlib.Path(__file__).parent / "golden/apache-4.3.1"
    memory_tool.files.makedirs(memory_tool.directory)
    for path in source.iterdir():
        memory_tool.overwrite(path.name, path.read_bytes())
    return memory_tool
