"""Searches by timestamp: exact to the record, after any changes of the log, and with few reads."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.config.topic import TopicConfig
from barnabas.log.files import MemoryFiles
from barnabas.log.log_directory import LogDirectory
from barnabas.log.partition_log import LogServices
from barnabas.log.recovery import create_log, open_log
from barnabas.log.segment import Segment
from barnabas.records.batch import RecordBatch
from barnabas.records.builder import build_batch
from barnabas.records.compression import Compression
from barnabas.testing.faults import FaultyFile, FaultyFiles

ID = bytes(range(16))
DIRECTORY = "/data/t-0"
LATEST = 12
"""Timestamps are from 0 to this one, so that many are equal."""


class Model:
    """A log, and the list of its batches of (offset, timestamp), including those before the log start offset."""

    def __init__(self, compression):
        self.files = MemoryFiles()
        self.files.makedirs("/data")
        self.services = LogServices(LogDirectory(self.files, "/data"))
        self.config = TopicConfig(
            segment_bytes=600,
            index_interval_bytes=100,
            file_delete_delay_ms=0,
            cleanup_policy=frozenset({"compact"}),  # otherwise a gap is damage for recovery
        )
        self.log = create_log(self.services, DIRECTORY, "t", 0, ID, self.config, now_ms=0)
        self.compression = compression
        self.batches = []

    def append(self, times):
        records = [(b"k", b"v" * 7, time) for time in times]
        batch = RecordBatch.parse(build_batch(records, compression=self.compression))
        base_offset = self.log.append_as_leader(batch, leader_epoch=3, now_ms=0).base_offset
        self.log.maybe_set_high_watermark(self.log.log_end_offset)
        self.batches.append([(base_offset + delta, time) for delta, time in enumerate(times)])

    def follow(self, times):
        """Appends after a gap, as in a compacted log."""
        records = [(b"k", b"v", time) for time in times]
        base_offset = self.log.log_end_offset + 3
        data = build_batch(records, base_offset=base_offset, leader_epoch=3, compression=self.compression)
        self.log.append_as_follower(data, now_ms=0)
        self.log.maybe_set_high_watermark(self.log.log_end_offset)
        self.batches.append([(base_offset + delta, time) for delta, time in enumerate(times)])

    def roll(self, _):
        self.log.roll(0)

    def delete_records(self, part):
        start, end = self.log.log_start_offset, self.log.high_watermark
        self.log.delete_records_before(start + int((end - start) * part))

    def retain(self, _):
        """Deletes the segments before the log start offset."""
        self.log.enforce_retention(0)
        on_disk = self.log.segments[0].base_offset
        self.batches = [batch for batch in self.batches if batch[-1][0] >= on_disk]

    def truncate(self, part):
        start, end = self.log.log_start_offset, self.log.log_end_offset
        offset = start + int((end - start) * part)
        self.log.truncate_to(offset)
        self.batches = [batch for batch in self.batches if batch[-1][0] < offset]

    def reopen(self, clean):
        start = self.log.log_start_offset
        if clean:
            self.log.close()
        self.log = open_log(
            self.services,
            DIRECTORY,
            "t",
            0,
            self.config,
            clean=clean,
            recovery_point=0,
            log_start_offset=start,
            now_ms=0,
        )
        self.log.maybe_set_high_watermark(self.log.log_end_offset)

    def check(self):
        log = self.log
        records = [record for batch in self.batches for record in batch]
        readable = [record for record in records if record[0] >= log.log_start_offset]
        for up_to in (log.log_end_offset, (log.log_start_offset + log.log_end_offset) // 2):
            for time in range(LATEST + 2):
                first = next(((at, offset, 3) for offset, at in readable if at >= time), None)
                expected = first if first is not None and first[1] < up_to else None
                assert log.offset_for_timestamp(time, up_to) == expected, (time, up_to, self.batches)
        latest = max((at for _, at in records), default=None)
        first = next(((at, offset, 3) for offset, at in records if at == latest), None)
        assert log.max_timestamp_offset(log.log_end_offset) == first
        assert log.max_timestamp_offset(first[1] if first else 0) is None


TIMES = st.lists(st.integers(-1, LATEST), min_size=1, max_size=5).map(
    lambda times: times if min(times) >= 0 or max(times) < 0 else [max(time, 0) for time in times]
)
"""The timestamps of a batch: all of its records have one, or none."""

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), TIMES),
        st.tuples(st.just("append"), TIMES),
        st.tuples(st.just("append"), TIMES),
        st.tuples(st.just("follow"), TIMES),
        st.tuples(st.just("roll"), st.none()),
        st.tuples(st.just("delete_records"), st.floats(0, 1)),
        st.tuples(st.just("retain"), st.none()),
        st.tuples(st.just("truncate"), st.floats(0.3, 1)),
        st.tuples(st.just("reopen"), st.booleans()),
    ),
    max_size=40,
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS, compression=st.sampled_from([Compression.NONE, Compression.GZIP, Compression.LZ4]))
def test_searches_equal_those_of_a_list(steps, compression):
    model = Model(compression)
    for name, argument in steps:
        getattr(model, name)(argument)
    model.check()


# ------------------------------------------------------------ costs


class CountingFile(FaultyFile):
    """A file that counts the bytes that are read."""

    __slots__ = ()

    def pread(self, size, at):
        data = super().pread(size, at)
        if self.path.endswith(".log"):
            self._files.bytes_read += len(data)
        return data


class CountingFiles(FaultyFiles):
    """Files in memory, with ``bytes_read`` of all segments."""

    bytes_read = 0

    def create(self, path):
        super().create(path)
        directory, name = self._place(path)
        file = directory[name] = CountingFile(self, path)
        return file


INTERVAL, RECORD_BYTES = 4096, 200
"""Roughly the index and a batch."""

PATTERNS = {
    "in order": lambda number, count: number,
    "backwards": lambda number, count: count - number,
    "the same": lambda number, count: 5,
    "the last is late": lambda number, count: count if number == count - 1 else 1,
    "the first is late": lambda number, count: count if number == 0 else number // 2,
    "to and fro": lambda number, count: number + (37 * number) % 101,
    "steps": lambda number, count: number // 200 * 200,
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_cost_does_not_depend_on_the_size(pattern):
    """A few KiB around the record are read in few calls, in a segment of 200 KiB and of 3 MiB."""
    for count in (1000, 4000, 16_000):
        files = CountingFiles()
        files.makedirs("/data")
        config = TopicConfig(segment_bytes=1 << 30, index_interval_bytes=INTERVAL)
        log = create_log(LogServices(LogDirectory(files, "/data")), DIRECTORY, "t", 0, ID, config, now_ms=0)
        times = [PATTERNS[pattern](number, count) for number in range(count)]
        for time in times:
            batch = RecordBatch.parse(build_batch([(None, bytes(RECORD_BYTES - 70), time)]))
            log.append_as_leader(batch, leader_epoch=0, now_ms=0)
        assert len(log.segments) == 1
        assert log.size > 180 * count
        end, latest = log.log_end_offset, max(times)
        log.offset_for_timestamp(latest, end)  # loads the indexes
        for timestamp in {0, 1, latest // 3, latest // 2, latest - 1, latest, latest + 1}:
            files.reads = files.bytes_read = 0
            found = log.offset_for_timestamp(timestamp, end)
            expected = next(((time, offset, 0) for offset, time in enumerate(times) if time >= timestamp), None)
            assert found == expected
            assert files.bytes_read <= 2 * INTERVAL + 4 * 1024
            assert files.reads <= 12
        files.reads = files.bytes_read = 0
        assert log.max_timestamp_offset(end) == (latest, times.index(latest), 0)
        assert files.bytes_read <= 2 * INTERVAL + 4 * 1024
        assert files.reads <= 12


def test_other_segments_are_not_read():
    files = CountingFiles()
    files.makedirs("/data")
    config = TopicConfig(segment_bytes=20_000, index_interval_bytes=INTERVAL)
    log = create_log(LogServices(LogDirectory(files, "/data")), DIRECTORY, "t", 0, ID, config, now_ms=0)
    for number in range(3000):
        batch = RecordBatch.parse(build_batch([(None, bytes(130), number)]))
        log.append_as_leader(batch, leader_epoch=0, now_ms=0)
    assert len(log.segments) > 25
    files.bytes_read = 0
    assert log.offset_for_timestamp(1500, 3000) == (1500, 1500, 0)
    assert files.bytes_read <= 2 * INTERVAL + 4 * 1024


def test_most_segments_are_not_opened(monkeypatch):
    files = MemoryFiles()
    files.makedirs("/data")
    log = create_log(
        LogServices(LogDirectory(files, "/data")), DIRECTORY, "t", 0, ID, TopicConfig(segment_bytes=200), now_ms=0
    )
    for number in range(600):
        batch = RecordBatch.parse(build_batch([(None, bytes(50), number)]))
        log.append_as_leader(batch, leader_epoch=0, now_ms=0)
    assert len(log.segments) >= 300
    assert log.offset_for_timestamp(0, 600) == (0, 0, 0)
    looked, largest_timestamp = [], Segment.largest_timestamp
    monkeypatch.setattr(
        Segment, "largest_timestamp", lambda segment: looked.append(segment) or largest_timestamp(segment)
    )
    for timestamp in (1, 300, 599):
        assert log.offset_for_timestamp(timestamp, 600) == (timestamp, timestamp, 0)
        assert log.max_timestamp_offset(600) == (599, 599, 0)
    assert len(looked) <= 20
