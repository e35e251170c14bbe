"""Moves that fail: no record is lost or duplicated after any failure."""

import itertools

import pytest

from barnabas.clock import ManualClock
from barnabas.errors import KafkaError, KafkaStorageError, NotController
from barnabas.log.log_directory import LogDirectoryError
from barnabas.testing.faults import FaultyFiles
from tests.log.moving.node import KEY, Node, filled


def test_no_move_while_a_directory_is_offline(node, batch):
    node.manager.directory_failed(node.manager.directories[1], OSError(5, "broken"))
    with pytest.raises(KafkaStorageError):
        node.move()
    assert node.directory == "/a"


@pytest.mark.usefixtures("small_steps")
def test_the_target_fails(node, batch):
    before = filled(node, batch)
    node.move()
    node.turn()
    node.manager.directory_failed(node.manager.directories[1], OSError(5, "broken"))
    node.finish()
    assert node.values() == before
    node.append(batch, 1)


@pytest.mark.usefixtures("small_steps")
def test_the_source_fails(node, batch):
    filled(node, batch)
    node.move()
    node.turn()
    node.manager.directory_failed(node.manager.directories[0], OSError(5, "broken"))
    node.finish()
    assert node.log.is_offline
    assert node.names("/b")[0].endswith("-future")


def test_a_corrupt_batch_is_not_copied(node, batch):
    filled(node, batch)
    node.files.open("/a/t-0/00000000000000000000.log").content[-1] ^= 1
    node.move()
    node.finish()
    assert node.directory == "/a"
    assert not node.log.is_offline
    assert [name.rpartition("-")[2] for name in node.names("/b")] == ["delete"]


def test_the_metadata_change_is_refused(node, batch):
    before = filled(node, batch)

    def refuse(log, directory):
        raise NotController

    node.manager.moves.before_promotion = refuse
    node.move()
    node.finish()
    assert node.directory == "/a"
    assert node.values() == before


def fail_target(node):
    node.manager.directory_failed(node.manager.directories[1], OSError(5, "broken"))


@pytest.mark.parametrize(
    "end", [lambda node: node.manager.moves.cancel(KEY), fail_target, lambda node: node.move("/a")]
)
@pytest.mark.usefixtures("small_steps")
def test_a_move_that_ends_otherwise_is_reported(node, batch, end):
    """The metadata may already have the target, since the promotion waits for that."""
    reported = []
    node.manager.moves.before_promotion = lambda log, directory: False
    node.manager.moves.on_cancelled = lambda log: reported.append((log.directory, KEY in node.manager.moves.under_way))
    filled(node, batch)
    node.move()
    while not node.manager.moves.under_way[KEY].is_announced:
        node.turn()
    assert reported == []
    end(node)
    node.clock.advance(200)
    assert reported == [("/a/t-0", False)]
    assert not node.manager.moves.under_way


def run_with_faults(files, batch):
    """Appends, moves, appends. Returns the acknowledged records, the flushed ones, and the node."""
    node, acknowledged, flushed = None, [], 0
    try:
        node = Node(files, segment_bytes=400)
        node.create()
        for number in range(12):
            node.append(batch, [b"%d" % number])
            acknowledged.append((number, b"%d" % number))
        node.log.flush()
        flushed = 12
        node.move()
        number = 12
        while node.manager.moves.under_way:
            node.turn()
            if number < 30:
                node.append(batch, [b"%d" % number])
                acknowledged.append((number, b"%d" % number))
                number += 1
        node.append(batch, [b"%d" % number])
        acknowledged.append((number, b"%d" % number))
        node.log.flush()
        flushed = len(acknowledged)
        node.clock.advance(100)
        node.manager.close()
    except (OSError, KafkaError, LogDirectoryError):
        pass
    return node, acknowledged, flushed


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("torn", [0, 40])
@pytest.mark.parametrize("power_cut", [False, True])
def test_a_kill_at_any_operation(batch, power_cut, torn):
    for fail_at in itertools.count(1):
        files = FaultyFiles(fail_at, torn=torn, clock=ManualClock())
        _, acknowledged, flushed = run_with_faults(files, batch)
        survivor = Node(files.survivor(power_cut=power_cut), segment_bytes=400)
        promised = acknowledged[:flushed] if power_cut else acknowledged
        if KEY not in survivor.manager.logs:
            assert not promised
            continue
        for _ in range(2):
            log = survivor.log
            log.maybe_set_high_watermark(log.log_end_offset)
            found = survivor.values()
            assert found[: len(promised)] == promised, f"operation {fail_at}: {files.changes[fail_at - 1]}"
            assert [offset for offset, _ in found] == list(range(len(found)))
            survivor.finish()
        assert survivor.append(batch, [b"more"]).base_offset == len(found)
        if not files.has_failed:
            assert survivor.directory == "/b"
            break
    assert fail_at > 100


@pytest.mark.usefixtures("small_steps")
def test_any_operation_may_fail_once(batch):
    """The broker keeps running. The log is offline, or has all acknowledged records."""
    outcomes = set()
    for fail_at in itertools.count(1):
        files = FaultyFiles(fail_at, lasting="once", clock=ManualClock())
        node, acknowledged, _ = run_with_faults(files, batch)
        if not files.has_failed:
            break
        if node is None or KEY not in node.manager.logs:
            continue
        outcomes.add((node.directory, node.log.is_offline))
        if not node.log.is_offline:
            assert node.values()[: len(acknowledged)] == acknowledged
        node.kill()
        survivor = Node(files.survivor(), segment_bytes=400)
        survivor.log.maybe_set_high_watermark(survivor.log.log_end_offset)
        assert survivor.values()[: len(acknowledged)] == acknowledged, files.changes[fail_at - 1]
        survivor.finish()
        assert survivor.values()[: len(acknowledged)] == acknowledged
    assert {("/a", False), ("/a", True), ("/b", True)} <= outcomes
