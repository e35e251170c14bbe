"""Invalid index files of any kind: reads and searches by time still return the records of the log."""

import itertools

import hypothesis
import pytest
from hypothesis import strategies as st

from barnabas.config.topic import TopicConfig
from barnabas.log.log_directory import LogDirectory
from barnabas.log.partition_log import LogServices
from barnabas.log.recovery import create_log, open_log
from barnabas.records.batch import RecordBatch, batches
from barnabas.records.builder import build_batch
from barnabas.records.record import records_of
from barnabas.testing.faults import FaultyFiles
from tests.log.conftest import make_marker

DIRECTORY = "/data/orders-0"
CONFIG = TopicConfig(segment_bytes=1500, index_interval_bytes=150, retention_ms=-1)
ID = bytes(range(16))


def made(timestamps):
    """Creates a closed log with a batch for each list of timestamps. Returns its records: offset, timestamp."""
    files, offsets, records = FaultyFiles(), itertools.count(), []
    files.makedirs(DIRECTORY)
    log = create_log(LogServices(LogDirectory(files, "/data")), DIRECTORY, "orders", 0, ID, CONFIG, now_ms=0)
    for of_batch in timestamps:
        data = build_batch([(None, b"value", timestamp) for timestamp in of_batch])
        log.append_as_leader(RecordBatch.parse(data), leader_epoch=0, now_ms=0)
        records += [(next(offsets), timestamp) for timestamp in of_batch]
    log.maybe_set_high_watermark(log.log_end_offset)
    log.close()
    return files, records


def opened(files):
    log = open_log(
        LogServices(LogDirectory(files, "/data")),
        DIRECTORY,
        "orders",
        0,
        CONFIG,
        clean=True,
        recovery_point=1 << 40,
        now_ms=0,
    )
    log.maybe_set_high_watermark(log.log_end_offset)
    return log


def check(files, records, sample=1):
    """Checks reads of each offset and searches of each timestamp, in a reopened log and in another order too."""
    end = len(records)
    log = opened(files)
    assert log.log_end_offset == end
    for timestamp in range(-1, 50, sample):
        expected = next(((at, offset) for offset, at in records if at >= timestamp), None)
        found = log.offset_for_timestamp(timestamp, end)
        assert (found[:2] if found else None) == expected, timestamp
    log = opened(files)
    latest = max(timestamp for _, timestamp in records)
    found = log.max_timestamp_offset(end)
    assert found[:2] == next((at, offset) for offset, at in records if at == latest)
    log = opened(files)
    for offset in range(0, end, sample):
        data = log.read(offset, 200, up_to=end, minimum_one=True)
        read = [(record.offset, record.timestamp) for batch in batches(data) for record in records_of(batch)]
        assert read[0][0] <= offset
        assert read == records[read[0][0] : read[0][0] + len(read)]
        assert read[-1][0] >= offset


def indexes(files):
    return [f"{DIRECTORY}/{name}" for name in sorted(files.sizes(DIRECTORY)) if name.endswith("index")]


ORDERED = [[n, n] for n in range(40)]
SHUFFLED = [[n * 17 % 40, n * 23 % 40] for n in range(40)]
ALIKE = [[7, 7]] * 40


@pytest.mark.parametrize("timestamps", [ORDERED, SHUFFLED, ALIKE], ids=["ordered", "shuffled", "alike"])
def test_every_byte_of_every_index(timestamps):
    files, records = made(timestamps)
    for path in indexes(files):
        original = files.read(path)
        for position in range(len(original)):
            for flip in (1, 64, 255):
                data = bytearray(original)
                data[position] ^= flip
                copy = files.survivor()
                copy.open(path).content[:] = data
                check(copy, records, sample=3)


@pytest.mark.parametrize("timestamps", [ORDERED, ALIKE], ids=["ordered", "alike"])
def test_an_index_without_its_last_entries(timestamps):
    files, records = made(timestamps)
    for path in indexes(files):
        for size in range(files.open(path).size()):
            copy = files.survivor()
            del copy.open(path).content[size:]
            check(copy, records, sample=3)


def test_the_index_of_another_segment():
    files, records = made(ORDERED)
    for path, other in itertools.permutations(indexes(files), 2):
        copy = files.survivor()
        copy.open(path).content[:] = files.read(other)
        check(copy, records, sample=3)


@hypothesis.settings(max_examples=150, deadline=None, derandomize=True)
@hypothesis.given(
    timestamps=st.lists(st.lists(st.integers(0, 45), min_size=1, max_size=4), min_size=20, max_size=40),
    which=st.integers(0, 100),
    start=st.floats(0, 1),
    junk=st.binary(min_size=1, max_size=30),
)
def test_any_bytes_over_any_others(timestamps, which, start, junk):
    files, records = made(timestamps)
    paths = indexes(files)
    content = files.open(paths[which % len(paths)]).content
    at = round(start * len(content))
    content[at : at + len(junk)] = junk
    check(files, records)


@pytest.mark.parametrize(
    "flip", [64, pytest.param(1, marks=pytest.mark.long), pytest.param(255, marks=pytest.mark.long)]
)
def test_every_byte_of_a_transaction_index(batch, flip):
    """Only a last stable offset that is too low is not found. A reader then reads more entries than necessary."""
    files, log = FaultyFiles(), None
    files.makedirs(DIRECTORY)
    log = create_log(LogServices(LogDirectory(files, "/data")), DIRECTORY, "orders", 0, ID, CONFIG, now_ms=0)
    sequences = {7: 0, 8: 0}
    for number in range(30):
        producer_id = 7 + number % 2
        keywords = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": sequences[producer_id]}
        log.append_as_leader(batch(2, is_transactional=True, **keywords), leader_epoch=0, now_ms=0)
        sequences[producer_id] += 2
        log.append_as_leader(make_marker(producer_id, abort=number % 3 > 0), leader_epoch=0, now_ms=0)
    log.maybe_set_high_watermark(log.log_end_offset)
    log.close()

    def aborted(files):
        log = opened(files)
        data = log.read(0, 1 << 20, up_to=log.log_end_offset, minimum_one=True)
        of_log = [entry for segment in log.segments for entry in segment.transactions.entries]
        found = log.aborted_transactions(0, data)
        return [[(each.producer_id, each.first_offset, each.last_offset) for each in some] for some in (of_log, found)]

    expected = aborted(files.survivor())
    assert len(expected[0]) == 20
    for name in sorted(files.sizes(DIRECTORY)):
        for position in range(files.open(f"{DIRECTORY}/{name}").size() if name.endswith(".txnindex") else 0):
            copy = files.survivor()
            copy.open(f"{DIRECTORY}/{name}").content[position] ^= flip
            assert aborted(copy) == expected, (name, position)
