"""Opening a log after a clean shutdown, after a crash, and after a run of Apache Kafka."""

from random import Random

import pytest

from barnabas.errors import OutOfOrderSequenceNumber
from barnabas.log.checking import SegmentCheck
from barnabas.log.files import DiskFiles
from barnabas.log.recovery import read_topic_id, write_topic_id
from barnabas.records.batch import batches
from barnabas.testing.faults import FaultyFiles
from tests.log.conftest import Place, Tool

NOW_MS = 1_700_000_000_000
LOG = "00000000000000000000.log"


def filled(tool, **config):
    """Creates a log of nine batches in several segments, with producers and epochs."""
    log = tool.create(**{"segment_bytes": 500, "index_interval_bytes": 150, **config})
    for number, count in enumerate((1, 4, 2, 6, 1, 3, 5, 1, 2)):
        tool.append(
            log,
            count,
            epoch=number // 3,
            timestamp=NOW_MS + number,
            producer_id=number % 2,
            producer_epoch=0,
            base_sequence=sum((1, 4, 2, 6, 1, 3, 5, 1, 2)[number % 2 : number : 2]),
        )
    assert len(log.segments) == 3
    return log


def content(tool):
    return {name: tool.files.read(tool.path(name)) for name in tool.names()}


def test_after_a_clean_shutdown(tool):
    log = filled(tool)
    log.close()
    before = content(tool)
    again = tool.open(clean=True, recovery_point=25, segment_bytes=500, index_interval_bytes=150)
    assert (again.log_start_offset, again.log_end_offset, again.recovery_point) == (0, 25, 25)
    assert again.topic_id == log.topic_id
    assert again.leader_epochs.entries == log.leader_epochs.entries
    assert [record.offset for record in tool.records(again)] == list(range(25))
    again.close()
    assert content(tool) == before


def test_a_clean_open_does_not_read_the_log(memory_tool, monkeypatch):
    log = memory_tool.create(index_interval_bytes=150)
    for _ in range(500):
        memory_tool.append(log, 3)
    log.close()
    read = []
    pread = type(log.segments.active.file).pread
    monkeypatch.setattr(
        type(log.segments.active.file),
        "pread",
        lambda file, size, at: read.append(size) or pread(file, size, at),
    )
    memory_tool.open(clean=True, recovery_point=1500)
    assert sum(read) < 5000


def test_after_a_kill(tool):
    log = filled(tool)
    again = tool.open(segment_bytes=500, index_interval_bytes=150)
    assert (again.log_start_offset, again.log_end_offset, again.recovery_point) == (0, 25, 0)
    assert again.leader_epochs.entries == log.leader_epochs.entries
    assert tool.records(again) == tool.records(log)
    for entry in log.active_producers():
        assert again.producers.entries[entry.producer_id].batches == entry.batches


def test_indexes_are_the_same_after_a_crash(tool):
    filled(tool).close()
    closed = content(tool)
    tool.open(index_interval_bytes=150).close()
    assert content(tool) == closed


def test_checked_segments_are_closed(tmp_path):
    files = DiskFiles()
    tool = Tool(Place(files, str(tmp_path)))
    log = filled(tool)
    assert len(log.segments) > 2
    log.release()
    again = tool.open(segment_bytes=500)
    assert files.open_count <= 1
    again.release()


@pytest.mark.parametrize("recovery_point", [0, 6, 25, 1000])
def test_only_segments_after_the_recovery_point_are_checked(memory_tool, monkeypatch, recovery_point):
    log = filled(memory_tool)
    log.flush()
    read, checked = set(), []
    pread, run = type(log.segments.active.file).pread, SegmentCheck.run

    def noting_pread(file, size, at):
        if size > 17:  # the first bytes of the first segment are always read: they show the message format
            read.add(file.path)
        return pread(file, size, at)

    monkeypatch.setattr(type(log.segments.active.file), "pread", noting_pread)
    monkeypatch.setattr(SegmentCheck, "run", lambda check: checked.append(check.segment.base_offset) or run(check))
    memory_tool.open(recovery_point=recovery_point)
    bases = [segment.base_offset for segment in log.segments]
    first = max(slot for slot, base in enumerate(bases) if base <= recovery_point)
    assert checked == bases[first:]
    # Only the end of the segment before is read, which may overlap after a truncation.
    files = {segment.path(".log") for segment in log.segments[max(first - 1, 0) :]}
    assert {path for path in read if path.endswith(".log")} == files


@pytest.mark.parametrize("is_next_empty", [True, False])
def test_a_truncation_that_a_power_cut_has_undone(memory_tool, batch, is_next_empty):
    """The next segment's name was on the disk, the truncation was not."""
    log = memory_tool.create()
    for _ in range(3):
        memory_tool.append(log, 1)
    content = memory_tool.files.read(memory_tool.path(LOG))
    log.flush()
    log.truncate_to(1)
    log.roll(NOW_MS)
    if not is_next_empty:
        memory_tool.append(log, 1)
    memory_tool.overwrite(LOG, content)
    again = memory_tool.open(recovery_point=1)
    assert [segment.base_offset for segment in again.segments] == [0]
    assert [record.offset for record in memory_tool.records(again)] == [0, 1, 2]
    assert again.log_end_offset == 3


def on_a_faulty_disk(**config):
    """Creates a log of six batches on the disk, whose unsynced changes a power cut takes."""
    files = FaultyFiles()
    files.makedirs("/data")
    files.keep()
    tool = Tool(Place(files, "/data"))
    log = tool.create(**config)
    for _ in range(6):
        tool.append(log, 1)
    log.flush()
    return tool, log


def after_a_kill(tool, **arguments):
    """Returns the log as the next process opens it, and its tool."""
    tool = Tool(Place(tool.files.survivor(), "/data"))
    return tool, tool.open(**arguments)


def after_power_cuts(tool, **arguments):
    """Yields the log as it is found after power cuts that take all unsynced changes, or some of them."""
    for chance in (None, *map(Random, range(20))):
        again = Tool(Place(tool.files.survivor(power_cut=True, chance=chance), "/data"))
        yield again, again.open(**arguments)


def test_a_truncation_is_on_the_disk_after_a_flush():
    tool, log = on_a_faulty_disk(segment_bytes=200)
    log.truncate_to(1)
    log.roll(NOW_MS)
    log.flush()
    for _, again in after_power_cuts(tool, recovery_point=1):
        assert [segment.base_offset for segment in again.segments] == [0, 1]
        assert again.log_end_offset == 1


@pytest.mark.parametrize("is_rolled", [False, True])
def test_a_truncation_before_a_kill_is_on_the_disk_after_a_flush(is_rolled):
    tool, log = on_a_faulty_disk()
    log.truncate_to(3)
    if is_rolled:
        log.roll(NOW_MS)
        tool.append(log, 1)
    tool, log = after_a_kill(tool, recovery_point=3)
    log.roll(NOW_MS)
    tool.append(log, 2)
    log.flush()
    records = tool.records(log)
    for again_tool, again in after_power_cuts(tool, recovery_point=log.recovery_point):
        assert again_tool.records(again) == records


def test_a_new_log_is_on_the_disk_after_a_kill_and_a_flush():
    files = FaultyFiles()
    files.makedirs("/data")
    files.keep()
    tool = Tool(Place(files, "/data"))
    topic_id = tool.create().topic_id
    tool, log = after_a_kill(tool)
    tool.append(log, 1)
    log.flush()
    for _, again in after_power_cuts(tool, recovery_point=1):
        assert (again.topic_id, again.log_end_offset) == (topic_id, 1)


def test_a_power_cut_leaves_no_gap_between_segments_of_a_compacted_log():
    tool, log = on_a_faulty_disk(cleanup_policy=frozenset({"compact"}))
    tool.append(log, 1)
    log.roll(NOW_MS)
    tool.append(log, 1)
    for again_tool, again in after_power_cuts(tool, recovery_point=6, cleanup_policy=frozenset({"compact"})):
        assert [record.offset for record in again_tool.records(again)] == list(range(again.log_end_offset))


def test_what_recovery_cuts_stays_away_after_a_flush():
    tool, log = on_a_faulty_disk()
    tool.files.open(tool.path(LOG)).write(b"half a batch")
    tool, log = after_a_kill(tool, recovery_point=6)
    log.roll(NOW_MS)
    tool.append(log, 2)
    log.flush()
    for again_tool, again in after_power_cuts(tool, recovery_point=8):
        assert [record.offset for record in again_tool.records(again)] == list(range(8))


def test_a_tail_torn_at_any_byte_is_cut(memory_tool, caplog):
    tool = memory_tool
    log = tool.create(index_interval_bytes=100)
    ends = [0]
    for count in (2, 1, 3):
        tool.append(log, count)
        ends.append(log.size)
    whole = tool.files.read(tool.path(LOG))
    for size in range(len(whole) + 1):
        tool.overwrite(LOG, whole[:size])
        caplog.clear()
        again = tool.open(index_interval_bytes=100)
        good = max(end for end in ends if end <= size)
        assert again.log_end_offset == [0, 2, 3, 6][ends.index(good)]
        assert tool.files.read(tool.path(LOG)) == whole[:good]
        assert len(tool.records(again)) == again.log_end_offset
        assert (LOG in caplog.text) == (good != size)
        if good != size:
            assert f"offset {again.log_end_offset}, position {good} of {size}" in caplog.text


def test_every_flipped_bit_is_found(memory_tool, caplog):
    tool = memory_tool
    log = tool.create()
    for count in (2, 1, 3):
        tool.append(log, count)
    whole = tool.files.read(tool.path(LOG))
    second = log.segments.active.locate(2)
    third = log.segments.active.locate(3)
    for position in range(second, third):
        # No CRC covers the leader epoch.
        if second + 12 <= position < second + 16:
            continue
        tool.overwrite(LOG, whole)
        tool.flip(LOG, position)
        assert tool.open().log_end_offset == 2, f"position {position - second} of the batch"
    assert "CRC" in caplog.text


@pytest.mark.parametrize("bit", range(63))
@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_a_wrong_base_offset_is_found(memory_tool, bit, policy):
    """The CRC does not cover it."""
    config = {"cleanup_policy": frozenset({policy}), "segment_bytes": 500}
    log = filled(memory_tool, cleanup_policy=config["cleanup_policy"])
    for segment, batch in ((log.segments[0], 1), (log.segments[0], -1), (log.segments[2], 0)):
        place = list(segment.scan())[batch]
        name = f"{segment.base_offset:020d}.log"
        whole = content(memory_tool)
        data = bytearray(whole[name])
        flipped = place.base_offset ^ (1 << bit)
        data[place.position : place.position + 8] = flipped.to_bytes(8)
        memory_tool.overwrite(name, data)
        assert memory_tool.open(**config).log_end_offset == place.base_offset
        for name, data in whole.items():
            memory_tool.overwrite(name, data)


def test_gaps_of_compaction_are_no_damage(memory_tool, batch):
    config = {"cleanup_policy": frozenset({"compact"}), "segment_bytes": 200}
    log = memory_tool.create(**config)
    for offset in (0, 7, 8, 30, 60):
        log.append_as_follower(batch(1, base_offset=offset).buffer, now_ms=NOW_MS)
    assert len(log.segments) > 1
    assert memory_tool.open(**config).log_end_offset == 61


def test_garbage_after_the_end_is_cut(tool):
    log = filled(tool)
    name = f"{log.segments.active.base_offset:020d}.log"
    whole = tool.files.read(tool.path(name))
    for garbage in (bytes(1000), b"\xff" * 1000, whole):
        tool.overwrite(name, whole + garbage)
        assert tool.open().log_end_offset == 25
        assert tool.files.read(tool.path(name)) == whole


def test_segments_after_damage_are_deleted(tool, caplog):
    log = filled(tool)
    second = log.segments[1].base_offset
    tool.flip(LOG, log.segments[0].size - 1)
    again = tool.open(segment_bytes=500)
    assert again.log_end_offset < second
    assert len(again.segments) == 1
    assert [name for name in tool.names() if name.endswith(".log")] == [LOG]
    assert "follows a damaged segment" in caplog.text
    last = again.log_end_offset
    assert tool.append(again, 1).base_offset == last
    assert all(start <= last for _, start in again.leader_epochs.entries)


def test_records_appended_after_a_recovery(tool):
    filled(tool)
    for number in range(5):
        log = tool.open(segment_bytes=500, index_interval_bytes=150)
        assert log.log_end_offset == 25 + number
        tool.append(log, 1)


@pytest.mark.parametrize("suffix", [".index", ".timeindex", ".snapshot", "leader-epoch-checkpoint"])
@pytest.mark.parametrize("how", ["missing", "empty", "garbage", "short", "zeros"])
@pytest.mark.parametrize("clean", [True, False])
def test_every_file_but_the_log_is_rebuilt(memory_tool, suffix, how, clean):
    tool = memory_tool
    log = filled(tool)
    log.close()
    for name in tool.names():
        if not name.endswith(suffix):
            continue
        data = tool.files.read(tool.path(name))
        damaged = {"empty": b"", "garbage": b"\xa5" * len(data), "short": data[:-1], "zeros": bytes(len(data))}
        if how == "missing":
            tool.files.delete(tool.path(name))
        else:
            tool.overwrite(name, damaged[how])
    again = tool.open(clean=clean, segment_bytes=500, index_interval_bytes=150)
    assert again.log_end_offset == 25
    assert [record.offset for record in tool.records(again, max_bytes=300)] == list(range(25))
    assert again.offset_for_timestamp(NOW_MS + 5, up_to=25)[0] == NOW_MS + 5
    assert again.leader_epochs.entries == log.leader_epochs.entries
    with pytest.raises(OutOfOrderSequenceNumber):
        tool.append(again, 1, producer_id=0, producer_epoch=0, base_sequence=100)
    last = again.active_producers()
    assert sorted(entry.last_sequence for entry in last) == [10, 13]


@pytest.mark.parametrize("clean", [True, False])
def test_damage_below_the_recovery_point(memory_tool, caplog, clean):
    """Without snapshots the producers are loaded from flushed batches, one of which is corrupt."""
    tool = memory_tool
    log = filled(tool)
    log.close()
    for name in tool.names():
        if name.endswith(".snapshot"):
            tool.files.delete(tool.path(name))
    second = list(log.segments[0].scan())[1]
    tool.flip(LOG, second.position + 16)
    again = tool.open(clean=clean, recovery_point=25, segment_bytes=500, index_interval_bytes=150)
    assert again.log_end_offset == second.base_offset
    assert "after a clean shutdown" in caplog.text if clean else "from its first segment on" in caplog.text
    assert again.recovery_point <= again.log_end_offset


def test_an_index_of_other_batches_is_rebuilt(tool):
    """Its entries are in order and within the file, but of other batches."""
    log = tool.create(index_interval_bytes=100)
    for _ in range(20):
        tool.append(log, 5)
    log.close()
    index = tool.files.read(tool.path("00000000000000000000.index"))
    tool.files.delete_tree(tool.directory)
    log = tool.create(index_interval_bytes=100)
    for _ in range(35):
        tool.append(log, 1, size=150)
    log.close()
    tool.overwrite("00000000000000000000.index", index)
    again = tool.open(clean=True)
    assert again.log_end_offset == 35
    assert [record.offset for record in tool.records(again, max_bytes=300)] == list(range(35))


def test_an_index_without_a_log_is_deleted(tool, caplog):
    filled(tool).close()
    tool.overwrite("00000000000000009999.index", b"12345678")
    tool.overwrite("00000000000000009999.timeindex", b"")
    assert tool.open(clean=True).log_end_offset == 25
    assert not any(name.startswith("00000000000000009999") for name in tool.names())
    assert "belongs to no segment" in caplog.text


def test_leftovers_of_deletions_are_deleted(tool):
    filled(tool).close()
    for name in (
        f"{5:020d}.log.deleted",
        f"{5:020d}.index.deleted",
        "leader-epoch-checkpoint.tmp",
        f"{0:020d}.log.cleaned",
    ):
        tool.overwrite(name, b"whatever")
    assert tool.open(clean=True).log_end_offset == 25
    assert not any(name.endswith((".deleted", ".tmp", ".cleaned")) for name in tool.names())


def swapped(tool):
    """Creates a log with a cleaned segment that has not replaced the first two segments yet."""
    log = filled(tool)
    log.close()
    first, second = (tool.files.read(segment.path(".log")) for segment in log.segments[:2])
    tool.overwrite(LOG + ".swap", first + second)
    for suffix in (".index", ".timeindex"):
        tool.overwrite(f"{0:020d}{suffix}.swap", b"")
    return log


def test_a_staged_swap_is_completed(tool):
    log = swapped(tool)
    again = tool.open()
    assert [segment.base_offset for segment in again.segments] == [0, log.segments[2].base_offset]
    assert [record.offset for record in tool.records(again)] == list(range(25))
    assert not any(name.endswith(".swap") for name in tool.names())


def test_a_half_completed_swap_is_completed(tool):
    log = swapped(tool)
    tool.files.delete(log.segments[1].path(".log"))
    tool.files.rename(tool.path(f"{0:020d}.index.swap"), tool.path(f"{0:020d}.index"))
    assert [record.offset for record in tool.records(tool.open())] == list(range(25))


def test_a_swap_with_cleaned_siblings_is_undone(tool):
    log = swapped(tool)
    tool.overwrite(LOG + ".cleaned", b"unfinished")
    again = tool.open()
    assert [segment.base_offset for segment in again.segments] == [segment.base_offset for segment in log.segments]
    assert [record.offset for record in tool.records(again)] == list(range(25))


def test_a_log_start_offset(tool):
    filled(tool).close()
    again = tool.open(clean=True, log_start_offset=7)
    assert again.log_start_offset == 7
    assert tool.records(again)[0].offset == 7
    assert again.leader_epochs.entries[0] == (1, 7)


def test_a_log_start_offset_above_the_end(tool, caplog):
    filled(tool).close()
    again = tool.open(clean=True, log_start_offset=1000)
    assert (again.log_start_offset, again.log_end_offset) == (1000, 1000)
    assert tool.append(again, 1).base_offset == 1000
    assert "below its log start offset" in caplog.text
    assert tool.open().log_end_offset == 1001


@pytest.mark.parametrize("recovery_point", [0, 25], ids=["all", "nothing"])
def test_a_log_start_offset_at_the_end_that_a_kill_has_lost(tool, recovery_point):
    """Its epoch is in the file, and the log has its records again: a follower must not truncate them all."""
    log = filled(tool)
    before = log.leader_epochs.entries
    log.delete_records_before(25)
    assert log.leader_epochs.entries == [(2, 25)]
    again = tool.open(recovery_point=recovery_point, segment_bytes=500)
    assert (again.log_start_offset, again.log_end_offset) == (0, 25)
    assert again.leader_epochs.entries == before
    assert tool.open(recovery_point=25, segment_bytes=500).leader_epochs.entries == before


def test_an_epoch_without_records_after_older_ones_without_epochs(tool):
    log = tool.create()
    tool.append(log, 5, epoch=-1)
    log.leader_epochs.assign(3, 5)
    again = tool.open(recovery_point=5)
    assert (again.log_end_offset, again.leader_epochs.entries) == (5, [])


def test_an_empty_directory(tool):
    tool.files.makedirs(tool.directory)
    log = tool.open()
    assert (log.log_start_offset, log.log_end_offset, log.topic_id) == (0, 0, bytes(16))
    tool.append(log, 1)


def test_the_topic_id(tool):
    tool.files.makedirs(tool.directory)
    write_topic_id(tool.files, tool.directory, bytes(range(16)))
    assert tool.files.read(tool.path("partition.metadata")) == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert read_topic_id(tool.files, tool.directory) == bytes(range(16))
    tool.overwrite("partition.metadata", b"\xff\xff")
    assert read_topic_id(tool.files, tool.directory) == bytes(16)


# ------------------------------------------------------------ Apache Kafka's directory


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    "without", [(), (".index", ".timeindex"), (".snapshot",), ("checkpoint", ".index", ".snapshot")]
)
def test_a_directory_of_apache_kafka_is_unchanged_by_open_and_close(golden, clean, without):
    before = content(golden)
    for name in golden.names():
        if without and name.endswith(without):
            golden.files.delete(golden.path(name))
    log = golden.open(clean=clean, index_interval_bytes=500, segment_bytes=6000)
    assert (log.log_start_offset, log.log_end_offset, log.leader_epochs.entries) == (0, 205, [(0, 0)])
    assert [record.offset for record in golden.records(log)] == list(range(205))
    for timestamp in range(1_700_000_000_000, 1_700_000_000_800, 50):
        assert log.offset_for_timestamp(timestamp, up_to=205)[0] >= timestamp
    log.close()
    after = content(golden)
    if clean and without:
        # The indexes of closed segments are rebuilt on first use.
        after = {name: data for name, data in after.items() if not name.endswith(".snapshot")}
    assert after == {name: before[name] for name in after}


def test_appending_to_a_directory_of_apache_kafka(golden):
    log = golden.open(clean=True, index_interval_bytes=500, segment_bytes=6000)
    entry = next(entry for entry in log.active_producers() if entry.producer_id == 1)
    known = entry.batches[-1]
    again = golden.append(
        log,
        known.offset_delta + 1,
        producer_id=1,
        producer_epoch=entry.producer_epoch,
        base_sequence=known.first_sequence,
    )
    assert again.is_duplicate
    assert again.base_offset == known.first_offset
    fresh = golden.append(
        log, 2, producer_id=1, producer_epoch=entry.producer_epoch, base_sequence=known.last_sequence + 1
    )
    assert fresh.base_offset == 205
    assert [batch.base_offset for batch in batches(log.read(205, 1000, up_to=207, minimum_one=True))] == [205]


def test_an_undone_truncation_does_not_keep_the_epochs_after_it(memory_tool):
    """The epochs were written after it: they must not say that the old records are those of the new leader."""
    tool = memory_tool
    log = tool.create()
    tool.append(log, 5)
    tool.append(log, 1)  # only this broker has it, and another one leads
    before = tool.files.read(tool.path(LOG))
    log.truncate_to(5)
    tool.append(log, 3, epoch=1)
    tool.append(log, 1, epoch=2)
    assert log.leader_epochs.entries == [(0, 0), (1, 5), (2, 8)]
    tool.overwrite(LOG, before)
    again = tool.open()
    assert (again.log_end_offset, again.leader_epochs.entries, again.latest_epoch) == (6, [(0, 0)], 0)
    assert tool.open().leader_epochs.entries == [(0, 0)]


def test_an_undone_truncation_to_an_epoch_between_the_others(memory_tool):
    tool = memory_tool
    log = tool.create()
    tool.append(log, 5)
    tool.append(log, 2, epoch=1)
    before = tool.files.read(tool.path(LOG))
    log.truncate_to(5)
    tool.append(log, 2, epoch=2)
    assert log.leader_epochs.entries == [(0, 0), (2, 5)]
    tool.overwrite(LOG, before)
    assert tool.open().leader_epochs.entries == [(0, 0), (1, 5)]


def test_epochs_whose_batches_were_compacted_away_stay(memory_tool):
    """The last batch of a cleaned segment may be gone, and the active segment empty: nothing was undone."""
    config = {"cleanup_policy": frozenset({"compact"})}
    tool = memory_tool
    log = tool.create(**config)
    tool.append(log, 5)
    rest = tool.files.read(tool.path(LOG))
    tool.append(log, 2, epoch=1)
    log.roll(NOW_MS)
    log.close()
    tool.overwrite(LOG, rest)
    again = tool.open(**config)
    assert (again.log_end_offset, again.leader_epochs.entries) == (7, [(0, 0), (1, 5)])
