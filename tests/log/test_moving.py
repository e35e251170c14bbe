"""Moving logs between directories while they are in use: no record is lost or duplicated after any failure."""

import itertools

import pytest

from barnabas.clock import ManualClock
from barnabas.config.topic import TopicConfig
from barnabas.errors import KafkaError, KafkaStorageError, NotController
from barnabas.log import moving
from barnabas.log.checkpoints import LOG_START_OFFSETS, read_offsets
from barnabas.log.files import MemoryFiles
from barnabas.log.log_directory import LogDirectoryError
from barnabas.log.log_manager import LogManager
from barnabas.records.batch import RecordBatch, batches
from barnabas.records.builder import build_batch
from barnabas.records.record import records_of
from barnabas.testing.faults import FaultyFiles

ID = bytes(range(16))
KEY = ("t", 0)


class Turns(ManualClock):
    """A clock on which each turn of the loop takes a millisecond."""

    def call_later(self, delay, callback, *args):
        return super().call_later(max(delay, 0.001), callback, *args)


class Node:
    """A log manager with the directories /a and /b, and a log in /a."""

    def __init__(self, files=None, **config):
        self.files = files if files is not None else MemoryFiles()
        self.config = TopicConfig(**config)
        self.start()

    def start(self, assigned=lambda log: None, is_stray=lambda log: False):
        self.clock = Turns()
        self.manager = LogManager(self.files, ["/a", "/b"], clock=self.clock, scheduler=self.clock)
        self.manager.start(1, "cluster")
        self.manager.open_all(lambda topic: self.config, is_stray, assigned)

    def kill(self):
        for directory in self.manager.directories:
            directory.release()

    def restart(self, *, clean=True, **options):
        if clean:
            self.manager.close()
        self.kill()
        self.start(**options)

    @property
    def log(self):
        return self.manager.logs[KEY]

    @property
    def future(self):
        return self.manager.moves.under_way[KEY].future

    @property
    def directory(self):
        return self.log.log_directory.path

    def create(self):
        self.manager.preferred_directories[KEY] = self.manager.directories[0]
        return self.manager.create(*KEY, ID, self.config)

    def append(self, batch, values, epoch=0, **options):
        log = self.log
        appended = log.append_as_leader(batch(values, **options), leader_epoch=epoch, now_ms=self.clock.time_ms())
        log.maybe_set_high_watermark(log.log_end_offset)
        return appended

    def move(self, name="/b"):
        self.manager.moves.start(self.log, next(each for each in self.manager.directories if each.path == name))

    def turn(self):
        """Runs one turn of the loop."""
        self.clock.advance(0.001)

    def finish(self):
        """Runs until no move is in progress."""
        for _ in range(10_000):
            if not self.manager.moves.under_way:
                return
            self.turn()
        raise AssertionError("the move does not end")

    def values(self, log=None):
        """Returns (offset, value) of all records that a consumer can read."""
        log = log or self.log
        found, offset = [], log.log_start_offset
        while data := log.read(offset, 1 << 20, up_to=log.high_watermark, minimum_one=True):
            for batch in batches(data):
                batch.check_crc()
                found += [
                    (each.offset, each.value) for each in records_of(batch) if each.offset >= log.log_start_offset
                ]
                offset = batch.next_offset
        return found

    def names(self, directory):
        return sorted(name for name in self.files.list(directory) if name.startswith("t-0"))


@pytest.fixture
def node():
    made = Node()
    made.create()
    return made


@pytest.fixture
def small_steps(monkeypatch):
    """Makes a few batches take several steps."""
    monkeypatch.setattr(moving, "STEP_BYTES", 150)
    monkeypatch.setattr(moving, "TAIL_BYTES", 150)


def filled(node, batch, count=20):
    for number in range(count):
        node.append(batch, [b"%d" % number])
    return node.values()


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


# ------------------------------------------------------------ restarts


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("clean", [True, False])
def test_a_restart_resumes_the_move(node, batch, clean):
    before = filled(node, batch)
    node.move()
    for _ in range(3):
        node.turn()
    copied = node.future.log_end_offset
    assert 0 < copied < 20
    node.restart(clean=clean)
    assert node.directory == "/a"
    assert node.future.log_end_offset == copied
    node.log.maybe_set_high_watermark(20)
    node.finish()
    assert node.directory == "/b"
    assert node.values() == before


@pytest.mark.usefixtures("small_steps")
def test_records_lost_in_a_crash_are_truncated_from_the_future_log(node, batch):
    """After a crash the log may be shorter than its copy."""
    filled(node, batch)
    node.move()
    for _ in range(5):
        node.turn()
    assert node.future.log_end_offset > 4
    node.restart()
    node.log.truncate_to(2)
    node.append(batch, [b"new"] * 9, epoch=1)
    before = node.values()
    node.finish()
    assert node.values() == before


@pytest.mark.parametrize("start", [0, 2, 5])
@pytest.mark.parametrize(
    ("of_log", "of_future"),
    [
        ([0, 0, 0, 2, 2, 2], [0, 0, 0, 1, 1]),
        ([0, 0, 0, 2, 2, 2], [0, 0, 0, 0, 0, 0, 0]),
        ([0, 0, 4, 4, 4, 4], [0, 0, 2, 2, 2]),
        ([0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 3, 3, 3]),
        ([5, 5, 5, 5, 5, 5], [1, 1, 1]),
        ([5, 5, 5, 5, 5, 5], []),
        ([1, 1, 2, 2, 5, 5], [1, 1, 2, 2, 2, 3, 3]),
    ],
)
def test_a_future_log_that_diverged(node, batch, of_log, of_future, start):
    """Wherever the epochs diverge, the future log becomes equal to the log. The value of a record is its epoch."""
    for offset, epoch in enumerate(of_log):
        node.append(batch, [b"%d in %d" % (offset, epoch)], epoch=epoch)
    node.move()
    for offset, epoch in enumerate(of_future):
        copied = batch([b"%d in %d" % (offset, epoch)], base_offset=offset, leader_epoch=epoch)
        node.future.append_as_follower(copied.buffer, now_ms=0)
    node.log.delete_records_before(start)
    before = node.values()
    node.finish()
    assert node.directory == "/b"
    assert node.values() == before
    assert node.log.leader_epochs.latest == of_log[-1]


def test_a_future_log_of_another_topic_becomes_a_stray(node, batch):
    filled(node, batch)
    node.move()
    node.restart(is_stray=lambda log: log.directory.endswith("-future"))
    assert not node.manager.moves.under_way
    assert [name.rpartition("-")[2] for name in node.names("/b")] == ["stray"]
    assert node.directory == "/a"


def crashed_between_the_renames(node, batch):
    before = filled(node, batch)
    node.move()
    future = node.future
    while future.log_end_offset < 20:
        node.turn()
    node.manager.close()
    node.files.rename("/a/t-0", "/a/t-0.1234-delete")
    return before


def test_a_crash_between_the_renames(node, batch):
    before = crashed_between_the_renames(node, batch)
    node.kill()
    node.start()
    assert node.directory == "/b"
    node.log.maybe_set_high_watermark(20)
    assert node.values() == before
    assert node.names("/a") == []
    assert not node.manager.moves.under_way


class OneGone(MemoryFiles):
    """Files with one failing directory."""

    gone = ""

    def makedirs(self, path):
        if path == self.gone:
            raise OSError(5, "gone", path)
        super().makedirs(path)


@pytest.mark.parametrize("is_assigned_here", [True, False])
def test_a_future_log_without_a_log_while_a_directory_is_offline(batch, is_assigned_here):
    node = Node(OneGone())
    node.create()
    filled(node, batch)
    node.move()
    node.turn()
    ids = [directory.directory_id for directory in node.manager.directories]
    node.manager.close()
    node.files.gone = "/a"
    node.start(assigned=lambda log: ids[1] if is_assigned_here else ids[0])
    assert (KEY in node.manager.logs) is is_assigned_here
    assert node.names("/b")[0].endswith("-future") is not is_assigned_here


# ------------------------------------------------------------ failures


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
