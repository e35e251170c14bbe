"""Logs of message formats v0 and v1 are rewritten as record batches when they are opened."""

import pytest

from barnabas.log.files import MemoryFiles
from barnabas.log.old_segments import BATCH_RECORDS, STRIDE
from barnabas.log.recovery import write_topic_id
from barnabas.log.upgrading import upgrade
from barnabas.records.batch import Compression, batches
from barnabas.records.builder import build_batch
from barnabas.records.message_set import build_message, build_messages, build_wrapper
from barnabas.records.record import Record

T0 = 1_400_000_000_000
TOPIC_ID = bytes(range(16))


def old(tool, segments, **files):
    """Creates a directory of an old broker, with segments by their base offsets, and other files."""
    tool.files.makedirs(tool.directory)
    write_topic_id(tool.files, tool.directory, TOPIC_ID)
    for base, data in segments.items():
        tool.overwrite(f"{base:020d}.log", data)
        for suffix in (".index", ".timeindex"):
            tool.overwrite(f"{base:020d}{suffix}", b"stale")
    for name, data in files.items():
        tool.overwrite(name.replace("_", "-"), data)


def plain(first, count, magic=1, size=10):
    return [Record(n, T0 + n if magic else -1, b"k%d" % n, bytes(size)) for n in range(first, first + count)]


def data_of(records, magic=1, codec=None, **options):
    return (
        b"".join(build_messages(records, magic, **options))
        if codec is None
        else build_wrapper(records, magic, codec, **options)
    )


def stored(tool, base=0):
    return list(batches(tool.files.read(tool.path(f"{base:020d}.log"))))


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("magic", [0, 1])
def test_all_records_are_kept(tool, magic, clean):
    records = plain(0, 12, magic)
    codecs = (None, Compression.GZIP, Compression.SNAPPY, Compression.LZ4)
    data = b"".join(data_of(records[n * 3 : n * 3 + 3], magic, codec) for n, codec in enumerate(codecs))
    old(tool, {0: data})
    log = tool.open(clean=clean, recovery_point=12)
    assert tool.records(log) == records
    assert [batch.compression for batch in stored(tool)] == [0, 1, 2, 3]
    assert log.log_end_offset == 12
    tool.append(log, 2, timestamp=T0 + 50)
    log.close()
    again = tool.open(clean=True, recovery_point=14)
    assert tool.records(again)[:12] == records
    if magic:
        assert again.offset_for_timestamp(T0 + 7, 14)[:2] == (T0 + 7, 7)


def test_several_segments_of_old_and_new_formats(tool):
    records = plain(0, 30)
    modern = build_batch(
        [(each.key, each.value, each.timestamp) for each in records[25:]], base_offset=25, leader_epoch=3
    )
    old(
        tool,
        {
            0: data_of(records[:10], codec=Compression.GZIP),
            10: data_of(records[10:20]),
            20: data_of(records[20:25]) + bytes(modern),
        },
    )
    log = tool.open(clean=True, recovery_point=30)
    assert [segment.base_offset for segment in log.segments] == [0, 10, 20]
    assert tool.records(log) == records
    assert bytes(stored(tool, 20)[-1].buffer) == bytes(modern)
    assert tool.files.list(tool.directory).count("00000000000000000010.index") == 1


def test_log_append_time(tool):
    first = [Record(n, T0, None, b"a") for n in range(3)]
    second = [Record(n, T0 + 5, None, b"a") for n in range(3, 5)]
    third = [Record(n, T0 + 9, None, b"a") for n in range(5, 7)]
    old(
        tool,
        {
            0: data_of(first, log_append_time=True)
            + data_of(second, log_append_time=True)
            + data_of(third, codec=Compression.GZIP, log_append_time=True)
            + data_of(plain(7, 1))
        },
    )
    log = tool.open(clean=True, recovery_point=8)
    assert [(batch.is_log_append_time, batch.count) for batch in stored(tool)] == [
        (True, 3),
        (True, 2),
        (True, 2),
        (False, 1),
    ]
    assert tool.records(log) == first + second + third + plain(7, 1)


def test_gaps_of_compaction(tool):
    records = [Record(n, T0, b"k", b"v") for n in (0, 1, 5, 6, 9)]
    wrapped = [Record(n, T0, b"k", b"v") for n in (12, 15, 16)]
    old(tool, {0: data_of(records) + data_of(wrapped, codec=Compression.GZIP) + data_of(plain(20, 1))})
    log = tool.open(clean=True, recovery_point=21, cleanup_policy=frozenset({"compact"}))
    assert tool.records(log) == records + wrapped + plain(20, 1)


def test_the_size_of_batches(tool):
    small, large = plain(0, BATCH_RECORDS * 2 + 5), plain(BATCH_RECORDS * 2 + 5, 20, size=5000)
    huge = plain(BATCH_RECORDS * 2 + 25, 2, size=STRIDE * 2)
    old(tool, {0: data_of(small) + data_of(large) + data_of(huge)})
    log = tool.open(clean=True, recovery_point=0)
    found = stored(tool)
    assert max(batch.count for batch in found) == BATCH_RECORDS
    assert max(batch.size_in_bytes for batch in found[:-2]) < 40_000
    assert tool.records(log, 1 << 24) == small + large + huge


@pytest.mark.parametrize("cut", [1, 12, 20])
def test_a_torn_end_is_cut(tool, cut):
    old(tool, {0: data_of(plain(0, 5))[:-cut]})
    log = tool.open(clean=False, recovery_point=0)
    assert tool.records(log) == plain(0, 4)
    assert log.log_end_offset == 4


def test_damage_is_copied_for_recovery_to_find(tool):
    data = bytearray(data_of(plain(0, 5)))
    data[-3] ^= 1
    old(tool, {0: bytes(data) + data_of(plain(5, 5))})
    log = tool.open(clean=False, recovery_point=0)
    assert tool.records(log) == plain(0, 4)


def test_a_wrong_length(tool):
    data = data_of(plain(0, 3))
    for lie in (-1, 5, 2**31 - 1):
        old(tool, {0: data + build_message(1, 3, T0, None, b"x")[:8] + lie.to_bytes(4, "big", signed=True) + bytes(50)})
        assert tool.records(tool.open(clean=False, recovery_point=0)) == plain(0, 3)


def test_the_modification_time_is_kept(tool):
    old(tool, {0: data_of(plain(0, 3, 0), 0), 3: data_of(plain(3, 3, 0), 0)})
    path = tool.path(f"{0:020d}.log")
    tool.files.set_modified_ms(path, 12_345_000)
    log = tool.open(clean=True, recovery_point=6)
    assert tool.files.modified_ms(path) == 12_345_000
    assert next(iter(log.segments)).age_timestamp() == 12_345_000


def test_a_crash_at_any_operation(memory):
    """The newest segment is rewritten first, so that the oldest one shows whether any is left."""
    from tests.log.conftest import Tool

    class PowerCut(Exception):
        pass

    class Failing(MemoryFiles):
        left = 1 << 30

        def _step(self):
            self.left -= 1
            if self.left < 0:
                raise PowerCut

        def create(self, path):
            self._step()
            return super().create(path)

        def rename(self, old, new):
            self._step()
            super().rename(old, new)
            self._step()

        def delete(self, path):
            self._step()
            super().delete(path)

    records = plain(0, 9)
    for steps in range(100):
        files = Failing()
        files.makedirs("/data")
        tool = Tool(type(memory)(files, "/data"))
        old(tool, {n: data_of(records[n : n + 3]) for n in (0, 3, 6)})
        files.left = steps
        try:
            tool.open(clean=True, recovery_point=9)
        except PowerCut:
            files.left = 1 << 30
            assert tool.records(tool.open(clean=True, recovery_point=9)) == records
        else:
            break
    assert steps > 10


def test_a_flipped_bit_in_the_magic_byte(tool):
    """A batch whose magic byte has become 0 is corrupt. The segment is not rewritten."""
    log = tool.create()
    tool.append(log, 3)
    log.close()
    sizes = tool.files.sizes(tool.directory)
    data = tool.files.read(tool.path(f"{0:020d}.log"))
    damaged = data[:16] + b"\0" + data[17:]
    tool.overwrite(f"{0:020d}.log", damaged)
    assert upgrade(tool.files, tool.directory, sizes, 0) is sizes
    assert tool.files.read(tool.path(f"{0:020d}.log")) == damaged


def test_only_the_first_segment_is_read(memory_tool):
    tool = memory_tool
    modern = [build_batch([(None, b"v", T0)], base_offset=n) for n in (0, 1)]
    old(tool, {0: bytes(modern[0]), 1: bytes(modern[1]), 2: data_of(plain(2, 2)), 4: data_of(plain(4, 2))})
    sizes = tool.files.sizes(tool.directory)
    assert upgrade(tool.files, tool.directory, sizes, None) is sizes
    upgrade(tool.files, tool.directory, sizes, 5)
    assert [data_of(plain(2, 2)) == tool.files.read(tool.path(f"{2:020d}.log")), len(stored(tool, 4))] == [True, 1]
    upgrade(tool.files, tool.directory, sizes, 0)
    assert len(stored(tool, 2)) == 1
