"""Moving logs between directories while they are in use: no record is lost or duplicated."""

import itertools

import pytest

from barnabas.clock import ManualClock
from barnabas.log.checkpoints import LOG_START_OFFSETS, read_offsets
from barnabas.records.batch import RecordBatch
from barnabas.records.builder import build_batch
from barnabas.testing.faults import FaultyFiles
from tests.log.moving.node import ID, KEY, Node, filled

# ------------------------------------------------------------ moving


def test_everything_moves(node, batch):
    before = filled(node, batch)
    node.move()
    node.finish()
    assert node.directory == "/b"
    assert node.values() == before
    assert node.names("/b") == ["t-0"]
    (aside,) = node.names("/a")
    assert aside.endswith("-delete")
    node.clock.advance(node.config.file_delete_delay_ms / 1000)
    assert node.names("/a") == []
    assert KEY in node.manager.registry.logs_in(node.manager.directories[1])
    assert KEY not in node.manager.registry.logs_in(node.manager.directories[0])


def test_an_empty_log_moves(node, batch):
    node.move()
    node.finish()
    assert node.directory == "/b"
    assert node.append(batch, 1).base_offset == 0


@pytest.mark.usefixtures("small_steps")
def test_appends_during_a_move(node, batch):
    filled(node, batch)
    node.move()
    for number in itertools.count():
        node.append(batch, [b"meanwhile %d" % number])
        before, log = node.values(), node.log
        node.turn()
        node.turn()
        if node.log is not log:
            break
    assert node.values() == before
    assert node.append(batch, 1).base_offset == before[-1][0] + 1


@pytest.mark.usefixtures("small_steps")
def test_the_offset_lag(node, batch):
    filled(node, batch)
    node.move()
    move = node.manager.moves.under_way[KEY]
    assert (move.offset_lag, move.future.size) == (20, 0)
    assert node.names("/b")[0].startswith("t-0.")
    assert node.names("/b")[0].endswith("-future")
    node.turn()
    assert 0 < move.offset_lag < 20
    assert move.future.size > 0


def test_several_segments(batch):
    node = Node(segment_bytes=300)
    node.create()
    before = filled(node, batch)
    assert len(node.log.segments) > 3
    node.move()
    node.finish()
    assert node.values() == before
    assert len(node.log.segments) > 3


def test_the_future_log_is_fsynced_before_its_promotion(batch):
    files = FaultyFiles(clock=ManualClock())
    node = Node(files)
    node.create()
    before = filled(node, batch)
    node.log.flush()
    node.move()
    node.finish()
    survivor = Node(files.survivor(power_cut=True))
    assert survivor.directory == "/b"
    survivor.log.maybe_set_high_watermark(survivor.log.log_end_offset)
    assert survivor.values() == before


# ------------------------------------------------------------ the state of a log


def test_a_log_start_offset_within_a_batch(node, batch):
    node.append(batch, 10)
    node.append(batch, 10)
    node.log.delete_records_before(4)
    node.move()
    node.finish()
    assert node.log.log_start_offset == 4
    assert node.values()[0][0] == 4
    assert read_offsets(node.files, f"/b/{LOG_START_OFFSETS}") == {KEY: 4}
    node.restart(clean=False)
    assert node.log.log_start_offset == 4


@pytest.mark.usefixtures("small_steps")
def test_records_are_deleted_during_a_move(node, batch):
    filled(node, batch)
    node.move()
    node.turn()
    node.log.delete_records_before(17)
    node.finish()
    assert [offset for offset, _ in node.values()] == [17, 18, 19]


@pytest.mark.usefixtures("small_steps")
def test_all_records_are_deleted_during_a_move(node, batch):
    filled(node, batch)
    node.move()
    node.turn()
    node.log.delete_records_before(20)
    node.finish()
    assert (node.log.log_start_offset, node.log.log_end_offset) == (20, 20)
    node.restart(clean=False)
    assert (node.log.log_start_offset, node.log.log_end_offset) == (20, 20)


def test_gaps_of_compaction(node, batch):
    log = node.log
    for base_offset in (3, 10, 11, 40):
        log.append_as_follower(batch([b"x"], base_offset=base_offset).buffer, now_ms=0)
    log.maybe_set_high_watermark(log.log_end_offset)
    before = node.values()
    node.move()
    node.finish()
    assert node.values() == before
    assert node.log.log_end_offset == 41


def test_idempotent_producers(node, batch):
    sent = [batch([b"%d" % number], producer_id=7, producer_epoch=0, base_sequence=number) for number in range(4)]
    for each in sent:
        node.log.append_as_leader(each, leader_epoch=0, now_ms=0)
    node.move()
    node.finish()
    again = batch([b"1"], producer_id=7, producer_epoch=0, base_sequence=1)
    appended = node.log.append_as_leader(again, leader_epoch=0, now_ms=0)
    assert (appended.base_offset, appended.is_duplicate) == (1, True)
    following = batch([b"4"], producer_id=7, producer_epoch=0, base_sequence=4)
    assert node.log.append_as_leader(following, leader_epoch=0, now_ms=0).base_offset == 4


def test_transactions(node, batch, marker):
    """Open transactions still hold back the last stable offset, and aborted ones are still returned to readers."""
    for producer_id in (1, 2, 3):
        keywords = {"producer_id": producer_id, "producer_epoch": 0, "base_sequence": 0}
        node.append(batch, 2, is_transactional=True, **keywords)
    node.append(lambda _: marker(1, abort=True), None)
    node.log.delete_records_before(3)  # within the transaction of 2, and after that of 1
    node.append(lambda _: marker(3, abort=True), None)
    log = node.log

    def seen():
        data = node.log.read(3, 1 << 20, up_to=8, minimum_one=True)
        return node.log.last_stable_offset, node.log.aborted_transactions(3, data)

    before = seen()
    node.move()
    node.finish()
    assert node.log is not log
    stable, aborted = seen()
    assert stable == before[0] == 3
    assert aborted == before[1][1:], "but for the one that has no records any more"
    assert [each.producer_id for each in aborted] == [3]
    node.append(lambda _: marker(2, abort=False), None)
    assert node.log.last_stable_offset == 9


def test_leader_epochs(node, batch):
    node.append(batch, 3, epoch=2)
    node.append(batch, 3, epoch=5)
    known = [node.log.end_offset_for_epoch(epoch) for epoch in range(7)]
    node.move()
    node.finish()
    assert [node.log.end_offset_for_epoch(epoch) for epoch in range(7)] == known


def test_flush_waiters_are_called_after_the_promotion(batch):
    node = Node(flush_messages=1_000)
    node.create()
    node.append(batch, 1)
    old, seen = node.log, []
    old.when_flushed(1, lambda: seen.append(old.is_offline))
    node.move()
    node.finish()
    assert seen == [False]
    assert old.is_offline


def test_the_callbacks(node, batch):
    heard = []
    node.manager.moves.before_promotion = lambda log, directory: heard.append((log.directory, directory.path)) or True
    node.manager.moves.on_promotion = lambda log: heard.append(log.directory)
    filled(node, batch)
    node.move()
    node.finish()
    assert heard == [("/a/t-0", "/b"), "/b/t-0"]


def test_the_preferred_directory_comes_first(node):
    b = node.manager.directories[1]
    node.manager.preferred_directories[("u", 0)] = b
    first = node.manager.directories[0].directory_id
    log = node.manager.create("u", 0, ID, node.config, directory_id=first)
    assert log.log_directory is b
    assert node.manager.preferred_directories == {}


def test_placement_counts_future_logs(node):
    node.move()
    node.manager.create("u", 0, ID, node.config)  # one each: the first directory
    assert node.manager.logs["u", 0].log_directory.path == "/a"
    node.manager.create("v", 0, ID, node.config)
    assert node.manager.logs["v", 0].log_directory.path == "/b"


def test_placement_does_not_count_moved_logs(node):
    """The log of the fixture is in /a."""
    made = [node.manager.create(name, 0, ID, node.config) for name in "uvw"]
    assert [log.log_directory.path for log in made] == ["/b", "/a", "/b"]
    node.manager.delete_async(made[0])
    node.manager.delete_async(made[2])
    assert [name for name in node.files.list("/b") if name.endswith("-delete")] != []
    made = [node.manager.create(name, 0, ID, node.config) for name in "xyz"]
    assert [log.log_directory.path for log in made] == ["/b", "/b", "/a"]


def test_a_moving_log_is_not_cleaned(batch):
    """Otherwise the copy would be less clean than its checkpoint says."""
    node = Node(cleanup_policy=frozenset({"compact"}), segment_bytes=300, min_cleanable_dirty_ratio=0.0)
    node.create()
    for number in range(20):
        keyed = RecordBatch.parse(build_batch([(b"same", b"%d" % number, 0)]))
        node.append(lambda _, keyed=keyed: keyed, None)
    cleaner = node.manager.cleaner
    node.move()
    cleaner.check_logs()
    assert not cleaner.passes
    node.finish()
    cleaner.check_logs()
    node.clock.advance(60)
    assert cleaner.checkpoints[node.manager.directories[1]][KEY] > 0
    assert len(node.values()) < 20
    cleaned = cleaner.checkpoints[node.manager.directories[1]][KEY]
    node.move("/a")
    node.finish()
    assert cleaner.checkpoints[node.manager.directories[0]][KEY] == cleaned
    assert KEY not in cleaner.checkpoints[node.manager.directories[1]]


# ------------------------------------------------------------ the limit of bytes per second


def test_the_limit_is_kept(node, batch):
    for _ in range(8):
        node.append(batch, [bytes(100_000)])
    node.manager.moves.bytes_per_second = lambda: 100_000
    node.move()
    node.clock.advance(3)
    assert 200_000 <= node.future.size <= 600_000
    node.clock.advance(10)
    assert node.directory == "/b"


def test_a_limit_of_0_stops_moves(node, batch):
    rate = [0]
    filled(node, batch)
    node.manager.moves.bytes_per_second = lambda: rate[0]
    node.move()
    node.clock.advance(100)
    assert node.future.size == 0
    rate[0] = 1_000_000
    node.clock.advance(2)
    assert node.directory == "/b"


# ------------------------------------------------------------ cancelling


@pytest.mark.usefixtures("small_steps")
def test_a_move_back_cancels(node, batch):
    before = filled(node, batch)
    node.move()
    node.turn()
    node.move("/a")
    node.finish()
    assert node.directory == "/a"
    assert [name.rpartition("-")[2] for name in node.names("/b")] == ["delete"]
    assert node.values() == before
    node.clock.advance(60)
    assert node.names("/b") == []


def test_the_same_move_again(node, batch):
    filled(node, batch)
    node.move()
    future = node.future
    node.move()
    assert node.future is future


@pytest.mark.usefixtures("small_steps")
def test_a_deleted_partition_deletes_its_future_log(node, batch):
    filled(node, batch)
    node.move()
    node.turn()
    node.manager.delete_async(node.log)
    node.clock.advance(100)
    assert node.names("/a") == node.names("/b") == []
    assert not node.manager.moves.under_way


def test_there_and_back(node, batch):
    before = filled(node, batch)
    for name in ("/b", "/a", "/b"):
        node.move(name)
        node.finish()
        assert node.directory == name
    assert node.values() == before
    node.clock.advance(60)
    assert node.names("/a") == []
    assert node.names("/b") == ["t-0"]
