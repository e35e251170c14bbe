"""The check of reads: every flipped bit is found, and logged once with file, position and offset."""

import logging

import pytest

from barnabas.errors import CorruptMessage
from barnabas.records.batch import batches

STAMPED = {*range(8), *range(12, 16)}
"""The bytes of a batch that no CRC covers, because the leader writes them: base offset and leader epoch."""


@pytest.fixture
def log(memory_tool):
    log = memory_tool.create(segment_bytes=500, index_interval_bytes=100)
    for count in (2, 1, 3, 2, 4, 1):
        memory_tool.append(log, count)
    assert len(log.segments) > 1
    log._services.checks_reads = True
    return log


def read_all(log):
    offset, found = 0, []
    while data := log.read(offset, 400, up_to=log.log_end_offset, minimum_one=True):
        for batch in batches(data):
            found.append(batch.base_offset)
            offset = batch.next_offset
    return found


def test_intact_batches_are_read(log):
    assert read_all(log) == [0, 2, 3, 6, 8, 12]


def test_every_byte_of_every_segment(log, memory_tool):
    for segment in log.segments:
        file = memory_tool.files.open(segment.path(".log"))
        starts = [place.position for place in segment.scan()]
        for position in range(len(file.content)):
            within = position - max(start for start in starts if start <= position)
            if within in STAMPED:
                continue
            for bit in (1, 128):
                file.content[position] ^= bit
                for each in log.segments:
                    each._remembered = None
                with pytest.raises(CorruptMessage) as caught:
                    read_all(log)
                assert segment.path(".log") in str(caught.value)
                file.content[position] ^= bit
    assert read_all(log) == [0, 2, 3, 6, 8, 12]


def test_an_offset_that_breaks_the_order(log, memory_tool):
    file = memory_tool.files.open(log.segments[0].path(".log"))
    file.content[7] ^= 16
    with pytest.raises(CorruptMessage, match=r"cannot follow|no batch"):
        read_all(log)


def test_corruption_is_logged_once(log, memory_tool, caplog):
    file = memory_tool.files.open(log.segments[0].path(".log"))
    second = [place.position for place in log.segments[0].scan()][1]
    file.content[second + 70] ^= 4
    for _ in range(3):
        with pytest.raises(CorruptMessage):
            log.read(2, 400, up_to=log.log_end_offset, minimum_one=True)
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert f"{log.segments[0].path('.log')} at position {second}" in line
    assert "offset 2" in line


def test_a_follower_does_not_append_corrupt_batches(memory_tool, batch):
    """Base offset and leader epoch, which no CRC covers, may be changed to a gap or another epoch.

    A batch with a larger size seems to be cut off: it is left out, and the next fetch begins with it.
    """
    log = memory_tool.create()
    offset_of_size = range(8, 12)
    parts = [bytes(batch(count, base_offset=offset).buffer) for offset, count in ((0, 2), (2, 1), (3, 3))]
    good, start = b"".join(parts), 0
    for part in parts:
        for within in range(len(part)):
            if within in STAMPED:
                continue
            for bit in (1, 128):
                data = bytearray(good)
                data[start + within] ^= bit
                end = start + 12 + int.from_bytes(data[start + 8 : start + 12], signed=True)
                if start and within in offset_of_size and end > len(data):
                    log.append_as_follower(data, now_ms=0)
                    assert log.size == start
                    log.truncate_to(0, 0)
                else:
                    with pytest.raises(CorruptMessage):
                        log.append_as_follower(data, now_ms=0)
                assert (log.log_end_offset, log.size) == (0, 0)
        start += len(part)
    log.append_as_follower(good, now_ms=0)
    assert log.log_end_offset == 6
