"""Cleaned segments replace others, and the next start completes a swap that a crash has interrupted."""

import pytest

from barnabas.config.topic import TopicConfig
from barnabas.log import swapping
from barnabas.log.cleaning.job import CleanedGroup
from barnabas.records.batch import batches

COMPACTED = {"cleanup_policy": frozenset({"compact"}), "segment_bytes": 500}


def filled(tool):
    """Creates a log whose segments have one batch of five records each."""
    log = tool.create(**COMPACTED)
    for number in range(6):
        tool.append(log, 5, size=60, producer_id=1, producer_epoch=0, base_sequence=5 * number)
    assert [segment.base_offset for segment in log.segments] == [0, 5, 10, 15, 20, 25]
    return log


def cleaned(tool, log, *bases, keeps=()):
    """Writes the batches of the segments ``keeps`` as the cleaned form of the segments ``bases``."""
    content = b"".join(tool.files.read(tool.path(f"{base:020d}.log")) for base in keeps)
    name = f"{bases[0]:020d}"
    tool.overwrite(f"{name}.log.cleaned", content)
    tool.overwrite(f"{name}.index.cleaned", b"")
    last = [batch.last_offset for batch in batches(content)][-1:] or [bases[0]]
    time_index = (1_700_000_000_000).to_bytes(8) + (last[0] - bases[0]).to_bytes(4) if content else b""
    tool.overwrite(f"{name}.timeindex.cleaned", time_index)
    latest = 1_700_000_000_000 if content else -1
    return CleanedGroup(bases[0], list(bases), len(content), latest, last[0], 1_700_000_000_000, False)


def offsets(log):
    """Returns the offsets of all records, read as a consumer reads."""
    found, offset = [], log.log_start_offset
    while data := log.read(offset, 100, up_to=log.log_end_offset, minimum_one=True):
        for batch in batches(data):
            found += range(batch.base_offset, batch.next_offset)
            offset = batch.next_offset
    return found


def swap(tool, log, group):
    swapping.stage(tool.files, log.directory, group)
    return log.replace_segments(group)


@pytest.mark.parametrize(
    ("bases", "keeps", "bases_after"),
    [
        ((0,), (0,), [0, 5, 10, 15, 20, 25]),
        ((0, 5), (5,), [0, 10, 15, 20, 25]),
        ((5, 10, 15), (5, 15), [0, 5, 20, 25]),
        ((15, 20), (15,), [0, 5, 10, 15, 25]),
        ((0, 5, 10), (), [0, 15, 20, 25]),
    ],
)
def test_a_segment_replaces_others(tool, bases, keeps, bases_after):
    log = filled(tool)
    assert offsets(log) == list(range(30))
    assert swap(tool, log, cleaned(tool, log, *bases, keeps=keeps))
    left = [*(base for base in (0, 5, 10, 15, 20, 25) if base not in bases or base in keeps)]
    expected = [offset for base in left for offset in range(base, base + 5)]
    assert [segment.base_offset for segment in log.segments] == bases_after
    assert offsets(log) == expected
    assert log.size == sum(size for name, size in tool.files.sizes(log.directory).items() if name.endswith(".log"))
    assert log.offset_for_timestamp(0, 30)[1] == expected[0]
    assert not any(name.endswith((".cleaned", ".swap", ".deleted")) for name in tool.names())
    for clean in (True, False):
        again = tool.open(clean=clean, recovery_point=25, **COMPACTED)
        assert offsets(again) == expected
        assert again.log_end_offset == 30
        assert again.active_producers()[0].last_sequence == 29


def test_reads_from_every_offset_with_empty_segments(tool):
    log = filled(tool)
    swap(tool, log, cleaned(tool, log, 5, 10))
    for offset in range(5, 15):
        data = log.read(offset, 1000, up_to=30, minimum_one=True)
        assert next(batches(data)).base_offset == 15
    assert log.offset_for_timestamp(1_700_000_000_000, 30)[1] == 0
    assert log.max_timestamp_offset(30)[1] == 0
    log.enforce_retention(1_700_000_000_000)
    log.truncate_to(7)
    assert log.log_end_offset <= 7
    assert tool.append(log, 1).base_offset == log.log_end_offset - 1


def test_a_reader_that_was_in_a_replaced_segment(tool):
    log = filled(tool)
    data = log.read(5, 1000, up_to=30, minimum_one=True)
    assert [batch.base_offset for batch in batches(data)] == [5]
    log.read(0, 1000, up_to=30, minimum_one=True)
    swap(tool, log, cleaned(tool, log, 0, 5, 10, keeps=(10,)))
    assert next(batches(log.read(5, 1000, up_to=30, minimum_one=True))).base_offset == 10
    assert next(batches(log.read(10, 1000, up_to=30, minimum_one=True))).base_offset == 10


def test_segments_that_were_deleted_are_not_replaced(tool):
    """Retention may delete them first. The log is then unchanged."""
    log = filled(tool)
    group = cleaned(tool, log, 0, 5, keeps=(5,))
    log.delete_records_before(5)
    log.enforce_retention(1_700_000_000_000)
    swapping.stage(tool.files, log.directory, group)
    assert not log.replace_segments(group)
    swapping.discard(tool.files, log.directory, group)
    assert offsets(log) == list(range(5, 30))
    assert not any(name.endswith((".cleaned", ".swap")) for name in tool.names())


def test_the_active_segment_is_never_replaced(tool):
    log = filled(tool)
    group = cleaned(tool, log, 20, 25, keeps=(25,))
    swapping.stage(tool.files, log.directory, group)
    assert not log.replace_segments(group)


def test_old_files_are_deleted_later(memory_tool):
    tool, later = memory_tool, []
    tool.services.delete_later = lambda paths, delay_ms: later.append((paths, delay_ms))
    log = filled(tool)
    log.update_config(TopicConfig(**COMPACTED, file_delete_delay_ms=1234))
    swap(tool, log, cleaned(tool, log, 0, 5, keeps=(5,)))
    ((paths, delay_ms),) = later
    assert delay_ms == 1234
    assert sorted(path.rpartition("/")[2] for path in paths) == sorted(
        f"{base:020d}.{kind}.deleted" for base in (0, 5) for kind in ("log", "index", "timeindex")
    )
    assert {path.rpartition("/")[2] for path in paths} <= set(tool.names())
    assert offsets(tool.open(**COMPACTED)) == [*range(5, 30)]
    assert not any(name.endswith(".deleted") for name in tool.names())


# ---------------------------------------------------------------- after a crash


@pytest.mark.parametrize("keeps", [(5,), (0, 5), ()])
def test_a_swap_is_completed(memory_tool, keeps):
    """After a crash at each of its steps."""
    log = filled(memory_tool)
    swapping.stage(memory_tool.files, log.directory, cleaned(memory_tool, log, 0, 5, keeps=keeps))
    log.close()
    staged = {name: memory_tool.files.read(memory_tool.path(name)) for name in memory_tool.names()}
    old = [f"{base:020d}.{kind}" for base in (0, 5) for kind in ("log", "index", "timeindex")]
    new = [f"{0:020d}.{kind}.swap" for kind in ("log", "index", "timeindex")]
    for done in range(len(old) + len(new) + 1):
        for name in memory_tool.names():
            memory_tool.files.delete(memory_tool.path(name))
        for name, data in staged.items():
            memory_tool.overwrite(name, data)
        for name in old[:done]:
            memory_tool.files.rename(memory_tool.path(name), memory_tool.path(name + ".deleted"))
        for name in new[: max(done - len(old), 0)]:
            memory_tool.files.rename(memory_tool.path(name), memory_tool.path(name.removesuffix(".swap")))
        found = offsets(memory_tool.open(recovery_point=25, **COMPACTED))
        kept = [offset for base in keeps for offset in range(base, base + 5)]
        assert found[-20:] == list(range(10, 30))
        # An empty segment has no end, so the segments that it replaces may still be there.
        assert found[:-20] in (kept, [*kept, *range(5, 10)]), f"after {done} steps"
        assert not any(name.endswith((".swap", ".deleted")) for name in memory_tool.names())


def test_an_incomplete_segment_is_undone_with_all_later_ones(memory_tool):
    log = filled(memory_tool)
    swapping.stage(memory_tool.files, log.directory, cleaned(memory_tool, log, 15, 20, keeps=(20,)))
    cleaned(memory_tool, log, 5, 10, keeps=(10,))
    log.close()
    assert offsets(memory_tool.open(**COMPACTED)) == list(range(30))
    assert not any(name.endswith((".swap", ".cleaned")) for name in memory_tool.names())


def test_a_staged_segment_before_an_incomplete_one_is_swapped_in(memory_tool):
    log = filled(memory_tool)
    swapping.stage(memory_tool.files, log.directory, cleaned(memory_tool, log, 0, 5, keeps=(5,)))
    cleaned(memory_tool, log, 10, 15, keeps=(15,))
    log.close()
    assert offsets(memory_tool.open(**COMPACTED)) == list(range(5, 30))


def test_a_transaction_index_is_deleted_with_its_segment(memory_tool):
    log = filled(memory_tool)
    memory_tool.overwrite(f"{0:020d}.txnindex", b"of an old segment")
    swapping.stage(memory_tool.files, log.directory, cleaned(memory_tool, log, 0, keeps=(0,)))
    log.close()
    memory_tool.open(**COMPACTED)
    assert f"{0:020d}.txnindex" not in memory_tool.names()


def test_damage_in_a_staged_segment_is_found_by_recovery(memory_tool):
    log = filled(memory_tool)
    group = cleaned(memory_tool, log, 0, 5, keeps=(5,))
    memory_tool.overwrite(f"{0:020d}.log.cleaned", bytes(group.size))
    swapping.stage(memory_tool.files, log.directory, group)
    log.close()
    assert offsets(memory_tool.open(**COMPACTED)) == []
