"""The log manager: identity of directories, start and shutdown, creation and deletion, failures."""

import errno
import json

import pytest

from barnabas.clock import ManualClock
from barnabas.config import BrokerConfig
from barnabas.config.topic import TopicConfig
from barnabas.errors import KafkaStorageError
from barnabas.log.background import Inline
from barnabas.log.files import MemoryFiles, NotCached
from barnabas.log.housekeeping import LogSettings
from barnabas.log.log_directory import LogDirectory, LogDirectoryError
from barnabas.log.log_manager import LogManager
from barnabas.testing.faults import FaultyFiles
from barnabas.uuids import uuid_text

ID = bytes(range(16))
OTHER_ID = bytes(range(1, 17))


class Managers:
    """Creates managers over the same directories, one after the other."""

    def __init__(self, place):
        self.files, self.root = place
        self.clock = ManualClock()
        self.paths = [f"{self.root}/a", f"{self.root}/b"]
        self.config = TopicConfig()

    def manager(self, node_id=1, cluster_id=None, start=True, paths=None, **keywords):
        manager = LogManager(self.files, paths or self.paths, clock=self.clock, scheduler=self.clock, **keywords)
        if start:
            manager.start(node_id, cluster_id)
            manager.open_all(lambda topic: self.config)
        return manager

    def kill(self, manager):
        """Releases the locks, as the operating system does when a process dies."""
        for directory in manager.directories:
            directory.release()

    def text(self, name, directory="a"):
        return self.files.read(f"{self.root}/{directory}/{name}").decode()

    def names(self, directory="a"):
        return sorted(self.files.list(f"{self.root}/{directory}"))


@pytest.fixture
def managers(place):
    return Managers(place)


def append(log, batch, count=1):
    log.append_as_leader(batch(count), leader_epoch=0, now_ms=0)
    log.maybe_set_high_watermark(log.log_end_offset)


# ------------------------------------------------------------ identity


def test_new_directories_get_the_identity_of_the_node(managers):
    manager = managers.manager(node_id=7, cluster_id="a-cluster")
    for directory, log_directory in zip("ab", manager.directories, strict=True):
        assert managers.text("meta.properties", directory) == (
            f"version=1\ncluster.id=a-cluster\nnode.id=7\ndirectory.id={uuid_text(log_directory.directory_id)}\n"
        )
    assert len({directory.directory_id for directory in manager.directories}) == 2
    manager.close()


def test_the_identity_is_kept(managers):
    first = managers.manager(start=False)
    cluster_id = first.start(1)
    ids = [directory.directory_id for directory in first.directories]
    first.close()
    second = managers.manager(start=False)
    assert second.start(1) == cluster_id
    assert [directory.directory_id for directory in second.directories] == ids
    second.close()


def test_an_added_directory_joins_the_cluster(managers):
    first = managers.manager(start=False, paths=[managers.paths[0]])
    cluster_id = first.start(1)
    first.close()
    second = managers.manager(start=False)
    assert second.start(1) == cluster_id
    assert f"cluster.id={cluster_id}\n" in managers.text("meta.properties", "b")
    second.close()


def test_a_directory_in_use_is_refused(managers):
    first = managers.manager()
    with pytest.raises(LogDirectoryError, match=rf"{managers.root}/a/\.lock"):
        managers.manager()
    first.close()
    managers.manager().close()


def test_a_directory_of_another_node_is_refused(managers):
    managers.manager(node_id=1).close()
    with pytest.raises(LogDirectoryError, match=r"a/meta.properties is of node 1, and this broker is 2"):
        managers.manager(node_id=2)
    managers.manager(node_id=1).close()


def test_a_directory_of_another_cluster_is_refused(managers):
    managers.manager(cluster_id="one", paths=[managers.paths[0]]).close()
    managers.manager(cluster_id="two", paths=[managers.paths[1]]).close()
    with pytest.raises(LogDirectoryError) as raised:
        managers.manager()
    assert str(raised.value) == (
        f"{managers.root}/b/meta.properties is of cluster two, and {managers.root}/a/meta.properties of one."
    )
    with pytest.raises(LogDirectoryError, match="this broker of three"):
        managers.manager(cluster_id="three", paths=[managers.paths[0]])


def test_a_refusal_keeps_the_clean_shutdown_file(managers):
    managers.manager(node_id=1).close()
    with pytest.raises(LogDirectoryError):
        managers.manager(node_id=2)
    assert managers.manager(node_id=1).directories[0].was_clean


# ------------------------------------------------------------ shutdown and start


def test_everything_is_there_after_a_clean_shutdown(managers, batch):
    manager = managers.manager()
    for partition in range(6):
        append(manager.create("orders", partition, ID, managers.config), batch, partition + 1)
    manager.close(broker_epoch=12)
    assert managers.text(".kafka_cleanshutdown") == '{"version":0,"brokerEpoch":12}'
    checkpoint = managers.text("recovery-point-offset-checkpoint") + managers.text(
        "recovery-point-offset-checkpoint", "b"
    )
    assert sorted(line for line in checkpoint.splitlines() if line.startswith("orders")) == [
        f"orders {partition} {partition + 1}" for partition in range(6)
    ]
    again = managers.manager()
    assert not managers.files.exists(f"{managers.root}/a/.kafka_cleanshutdown")
    for partition in range(6):
        log = again.get("orders", partition)
        assert (log.log_end_offset, log.high_watermark, log.recovery_point) == (partition + 1,) * 3
        assert log.topic_id == ID
    again.close()


def test_everything_is_there_after_a_kill(managers, batch):
    manager = managers.manager()
    for partition in range(6):
        append(manager.create("orders", partition, ID, managers.config), batch, partition + 1)
    managers.kill(manager)
    again = managers.manager()
    assert not any(directory.was_clean for directory in again.directories)
    assert [again.get("orders", partition).log_end_offset for partition in range(6)] == [1, 2, 3, 4, 5, 6]
    assert again.get("orders", 6) is None
    again.close()


def test_new_partitions_go_to_the_directory_with_the_fewest(managers):
    manager = managers.manager()
    for partition in range(5):
        manager.create("orders", partition, ID, managers.config)
    assert sorted(len(manager.registry.logs_in(directory)) for directory in manager.directories) == [2, 3]
    other = manager.directories[1]
    log = manager.create("there", 0, ID, managers.config, directory_id=other.directory_id)
    assert log.directory == f"{other.path}/there-0"
    manager.close()


def test_creating_again_returns_the_log(managers, batch):
    manager = managers.manager()
    log = manager.create("orders", 0, ID, managers.config)
    append(log, batch)
    assert manager.create("orders", 0, ID, managers.config) is log
    manager.close()


def test_a_recreated_topic_starts_at_0(managers, batch, caplog):
    manager = managers.manager()
    append(manager.create("orders", 0, ID, managers.config), batch)
    log = manager.create("orders", 0, OTHER_ID, managers.config)
    assert (log.log_end_offset, log.topic_id) == (0, OTHER_ID)
    assert "belongs to no partition" in caplog.text
    assert [name for name in managers.names("a") + managers.names("b") if name.endswith("-stray")]
    manager.close()


def test_strays_are_renamed_and_kept(managers, batch):
    manager = managers.manager()
    append(manager.create("orders", 0, ID, managers.config), batch)
    append(manager.create("orders", 1, OTHER_ID, managers.config), batch)
    manager.close()
    again = managers.manager(start=False)
    again.start(1)
    again.open_all(lambda topic: managers.config, lambda log: log.topic_id != ID)
    assert list(again.logs) == [("orders", 0)]
    again.close()
    strays = [name for name in managers.names("a") + managers.names("b") if name.endswith("-stray")]
    assert [name.partition(".")[0] for name in strays] == ["orders-1"]
    assert list(managers.manager().logs) == [("orders", 0)]


def test_files_are_deleted_after_a_delay(managers, batch):
    manager = managers.manager(paths=[managers.paths[0]])
    log = manager.create("orders", 0, ID, managers.config)
    append(log, batch)
    manager.delete_async(log)
    assert manager.get("orders", 0) is None
    with pytest.raises(KafkaStorageError):
        append(log, batch)
    doomed = [name for name in managers.names() if name.startswith("orders")]
    assert len(doomed) == 1
    assert doomed[0].startswith("orders-0.")
    assert doomed[0].endswith("-delete")
    append(manager.create("orders", 0, OTHER_ID, managers.config), batch)
    managers.clock.advance(59)
    assert doomed[0] in managers.names()
    managers.clock.advance(2)
    assert doomed[0] not in managers.names()
    assert manager.get("orders", 0).log_end_offset == 1
    manager.close()


def test_an_interrupted_deletion_is_completed(managers, batch):
    manager = managers.manager(paths=[managers.paths[0]])
    manager.delete_async(manager.create("orders", 0, ID, managers.config))
    managers.kill(manager)
    again = managers.manager(paths=[managers.paths[0]])
    assert not [name for name in managers.names() if name.startswith("orders")]
    assert again.logs == {}
    again.close()


def test_the_recovery_point_of_a_deleted_log_is_removed(managers, batch):
    manager = managers.manager(paths=[managers.paths[0]])
    log = manager.create("orders", 0, ID, managers.config)
    append(log, batch)
    log.flush()
    manager.housekeeping.checkpoint_recovery_points()
    assert "orders 0 1" in managers.text("recovery-point-offset-checkpoint")
    manager.delete_async(log)
    assert "orders" not in managers.text("recovery-point-offset-checkpoint")
    manager.close()


def test_long_names_are_cut():
    directory = LogDirectory(MemoryFiles(), "/data", bytes)
    name = directory.unique_path("t" * 249, 12, "-delete").removeprefix("/data/")
    assert len(name) == 255
    assert name.endswith(f".{'0' * 32}-delete")


def test_the_metadata_log_is_opened_first_and_not_checkpointed(managers, batch):
    manager = managers.manager()
    append(manager.create("__cluster_metadata", 0, ID, managers.config), batch)
    manager.close()
    assert "metadata" not in managers.text("recovery-point-offset-checkpoint")
    again = managers.manager(start=False)
    again.start(1)
    log = again.open("__cluster_metadata", 0, managers.config)
    assert log.log_end_offset == 1
    again.open_all(lambda topic: managers.config)
    assert again.get("__cluster_metadata", 0) is log
    assert again.open("__never", 0, managers.config) is None
    again.close()


def test_other_directories_are_left_alone(managers):
    manager = managers.manager(paths=[managers.paths[0]])
    for name in ("lost+found", "no-number-x", "-3"):
        managers.files.makedirs(f"{managers.root}/a/{name}")
    manager.close()
    again = managers.manager(paths=[managers.paths[0]])
    assert again.logs == {}
    assert {"lost+found", "no-number-x", "-3"} <= set(managers.names())
    again.close()


def test_of_two_logs_the_one_without_a_topic_id_is_renamed(managers):
    manager = managers.manager()
    manager.create("orders", 0, ID, managers.config, directory_id=manager.directories[0].directory_id)
    manager.close()
    managers.files.makedirs(f"{managers.root}/b/orders-0")
    again = managers.manager()
    assert only_log(again) == ("a", 0)
    again.close()
    assert [name.endswith("-stray") for name in managers.names("b") if name.startswith("orders-0")] == [True]


def test_a_corrupt_checkpoint_is_ignored(managers, batch, caplog):
    manager = managers.manager()
    append(manager.create("orders", 0, ID, managers.config), batch)
    managers.kill(manager)
    for directory in "ab":
        managers.files.create(f"{managers.root}/{directory}/recovery-point-offset-checkpoint").write(b"nonsense")
    again = managers.manager()
    assert again.get("orders", 0).log_end_offset == 1
    assert "Ignoring a corrupt checkpoint" in caplog.text
    again.close()


# ------------------------------------------------------------ reading


def test_loading_in_the_background(managers, monkeypatch):
    waiting, loaded, done = [], [], []
    reader = Inline()
    monkeypatch.setattr(reader, "run", lambda *work: waiting.append(work), raising=False)
    manager = managers.manager(reader=reader)
    monkeypatch.setattr(managers.files, "load", lambda *range: loaded.append(range), raising=False)
    manager.load([NotCached("/a", 10, 0), NotCached("/b", 20, 5)], lambda: done.append("done"))
    assert not loaded and not done
    ((work, finished),) = waiting
    work()
    finished(None)
    assert loaded == [("/a", 10, 0), ("/b", 20, 5)] and done == ["done"]
    manager.close()


def test_an_error_of_loading_is_left_to_the_read(managers):
    done = []
    manager = managers.manager()
    manager.load([NotCached(f"{managers.root}/a/missing", 10, 0)], lambda: done.append("done"))
    assert done == ["done"]
    manager.close()


# ------------------------------------------------------------ failures


@pytest.mark.parametrize("content", [b"", b"version: 0\n", b"\0" * 41])
def test_a_topic_id_lost_in_a_power_cut_is_restored(faulty, batch, content):
    """The name of ``partition.metadata`` was on the disk, its content was not. The records were."""
    manager = faulty.manager()
    append(manager.create("orders", 0, ID, faulty.config), batch)
    manager.close()
    (path,) = (
        f"{directory}/partition.metadata" for directory in faulty.files.directories if directory.endswith("/orders-0")
    )
    faulty.files.create(path).write(content)
    manager = faulty.manager()
    log = manager.get("orders", 0)
    assert (log.topic_id, log.log_end_offset) == (bytes(16), 1)
    assert manager.create("orders", 0, ID, faulty.config) is log
    log.flush()
    left = faulty.files.survivor(power_cut=True)
    assert left.read(path) == b"version: 0\ntopic_id: " + uuid_text(ID).encode()
    assert manager.create("orders", 0, ID, faulty.config) is log
    manager.close()


@pytest.fixture
def faulty(tmp_path):
    files = FaultyFiles(clock=ManualClock())
    files.makedirs("/data")
    files.keep()
    managers = Managers((files, "/data"))
    return managers


def fail(files, *, code=errno.EIO):
    """Makes only the next change fail."""
    files.fail_at, files.lasting, files.code = len(files.changes) + 1, "once", code


def test_a_failed_directory_goes_offline_and_the_others_stay_online(faulty, batch, caplog):
    results = []
    manager = faulty.manager(on_directory_failure=results.append)
    logs = [manager.create("orders", partition, ID, faulty.config) for partition in range(4)]
    for log in logs:
        append(log, batch)
    fail(faulty.files, code=errno.ENOSPC)
    with pytest.raises(KafkaStorageError):
        append(logs[0], batch)
    directory = logs[0].log_directory
    assert results == [directory]
    assert manager.online_directories == [other for other in manager.directories if other is not directory]
    for log in logs:
        if log.log_directory is directory:
            with pytest.raises(KafkaStorageError):
                append(log, batch)
        else:
            append(log, batch)
    assert len([record for record in caplog.records if record.levelname == "ERROR"]) == 1
    assert manager.create("more", 0, ID, faulty.config).directory.startswith(manager.online_directories[0].path)
    manager.close()
    again = faulty.manager()
    assert sorted(log.log_end_offset for log in again.logs.values()) == [0, 1, 1, 2, 2]
    assert not directory.path.endswith("a") or not again.directories[0].was_clean
    again.close()


def test_a_directory_that_fails_at_the_start(faulty):
    faulty.manager().close()
    fail(faulty.files)
    manager = faulty.manager()
    assert [directory.path for directory in manager.online_directories] == ["/data/b"]
    manager.close()


def test_all_directories_fail_at_the_start(faulty):
    faulty.files.fail_at = len(faulty.files.changes) + 1
    with pytest.raises(LogDirectoryError, match="/data/a, /data/b"):
        faulty.manager()


def test_a_flush_that_fails_takes_the_directory_offline(faulty, batch):
    results = []
    manager = faulty.manager(on_directory_failure=results.append)
    log = manager.create("orders", 0, ID, TopicConfig(flush_messages=5))
    append(log, batch, 4)
    files = faulty.files
    files.fail_at, files.lasting = len(files.changes) + 2, "once"  # the fsync after the write
    append(log, batch, 1)
    assert files.changes[-1][0] == "fsync"
    assert log.is_offline
    assert results == [log.log_directory]
    manager.close()


def test_settings_are_read_from_the_broker_configs():
    config = BrokerConfig.from_properties({"node.id": "1", "log.retention.check.interval.ms": "17"})
    assert LogSettings.from_settings(config) == LogSettings(log_retention_check_interval_ms=17)


@pytest.mark.parametrize("clean", [True, False])
def test_a_failed_start_changes_nothing(managers, batch, clean):
    manager = managers.manager()
    for partition in range(4):
        append(manager.create("orders", partition, ID, managers.config), batch, 3)
        manager.get("orders", partition).delete_records_before(2)
    if clean:
        manager.close()
    else:
        manager.housekeeping.checkpoint_log_start_offsets()
        managers.kill(manager)
    failing = managers.manager(start=False)
    failing.start(1)
    with pytest.raises(ZeroDivisionError):
        failing.open_all(lambda topic: 1 / 0)
    failing.close()
    again = managers.manager()
    assert [directory.was_clean for directory in again.directories] == [clean, clean]
    assert [log.log_start_offset for log in again.logs.values()] == [2] * 4
    again.close()


def test_the_clean_shutdown_file_is_that_of_apache_kafka(managers):
    managers.manager().close()
    assert json.loads(managers.text(".kafka_cleanshutdown")) == {"version": 0, "brokerEpoch": -1}


def test_an_abandoned_start_keeps_the_clean_shutdown_file(managers):
    managers.manager().close(12)
    given_up = managers.manager(start=False)
    given_up.start(1)
    given_up.close()
    assert json.loads(managers.text(".kafka_cleanshutdown")) == {"version": 0, "brokerEpoch": 12}


def test_a_truncation_lowers_the_recovery_point_on_the_disk(managers, batch):
    """The records appended in its place are not fsynced, so a power cut must not leave the old checkpoint."""
    manager = managers.manager()
    log = manager.create("orders", 0, ID, managers.config)
    for _ in range(9):
        log.append_as_leader(batch(1), leader_epoch=0, now_ms=0)
    log.flush()
    manager.housekeeping.checkpoint_recovery_points()
    directory = log.log_directory
    assert directory.read_checkpoint("recovery-point-offset-checkpoint") == {("orders", 0): 9}
    log.truncate_to(4)
    assert directory.read_checkpoint("recovery-point-offset-checkpoint") == {("orders", 0): 4}
    log.truncate_fully_and_start_at(2)
    assert directory.read_checkpoint("recovery-point-offset-checkpoint") == {("orders", 0): 0}
    manager.close()


# ------------------------------------------------------------ two logs of one partition


def put_logs(managers, batch, *logs):
    """Puts logs of one partition into directories; each is a directory, a topic id, and the epochs of its records."""
    for directory, topic_id, epochs in logs:
        manager = managers.manager()
        wanted = next(each for each in manager.directories if each.path == f"{managers.root}/{directory}")
        log = manager.create("orders", 0, topic_id, managers.config, directory_id=wanted.directory_id)
        for epoch in epochs:
            log.append_as_leader(batch(1), leader_epoch=epoch, now_ms=0)
        manager.close()
        managers.files.rename(f"{managers.root}/{directory}/orders-0", f"{managers.root}/{directory}-orders-0")
    for directory, _, _ in logs:
        managers.files.rename(f"{managers.root}/{directory}-orders-0", f"{managers.root}/{directory}/orders-0")
    return managers


@pytest.fixture
def doubled(managers, batch):
    """Two logs of a partition: three records in ``a``, of a topic with another id, and two in ``b``."""
    return put_logs(managers, batch, ("b", ID, [0, 0]), ("a", OTHER_ID, [0, 0, 0]))


def reopened(managers, **callbacks):
    manager = managers.manager(start=False)
    manager.start(1)
    manager.open_all(lambda topic: managers.config, **callbacks)
    return manager


def only_log(manager):
    """Returns the directory and the end of the only log."""
    (log,) = manager.logs.values()
    assert [log] == [each for directory in manager.directories for each in manager.registry.all_logs_in(directory)]
    assert not log.is_offline
    return log.log_directory.path[-1], log.log_end_offset


@pytest.mark.parametrize("stray", [ID, OTHER_ID])
def test_of_two_logs_the_stray_one_is_renamed(doubled, stray):
    manager = reopened(doubled, is_stray=lambda log: log.topic_id == stray)
    kept, renamed, end = ("a", "b", 3) if stray == ID else ("b", "a", 2)
    assert only_log(manager) == (kept, end)
    assert [name.endswith("-stray") for name in doubled.names(renamed) if name.startswith("orders-0")] == [True]
    manager.close()
    again = reopened(doubled)
    assert only_log(again) == (kept, end)
    again.close()


@pytest.mark.parametrize(("kept", "end"), [("a", 3), ("b", 2)])
def test_of_two_logs_the_one_in_the_assigned_directory_is_kept(doubled, kept, end):
    def assigned(log):
        return next(each.directory_id for each in manager.directories if each.path[-1] == kept)

    manager = doubled.manager(start=False)
    manager.start(1)
    manager.open_all(lambda topic: doubled.config, assigned_directory=assigned)
    assert only_log(manager) == (kept, end)
    manager.close()


def test_two_stray_logs_are_renamed(doubled):
    manager = reopened(doubled, is_stray=lambda log: True)
    assert manager.logs == {}
    manager.close()


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        ([0, 0, 0], [0, 0], "a"),
        ([0, 0], [0, 0, 0], "b"),
        ([0, 0, 0], [0, 1], "b"),
        ([0, 2], [0, 1, 1], "a"),
        ([], [0], "b"),
    ],
)
def test_without_an_assigned_one_the_log_that_ends_later_in_the_latest_epoch_is_kept(
    managers, batch, first, second, kept
):
    put_logs(managers, batch, ("a", ID, first), ("b", ID, second))
    manager = reopened(managers)
    assert only_log(manager) == (kept, len(first if kept == "a" else second))
    manager.close()


@pytest.mark.parametrize("kept", "abc")
def test_one_of_three_logs_is_kept(managers, batch, kept):
    managers.paths.append(f"{managers.root}/c")
    put_logs(managers, batch, ("a", ID, [0]), ("b", ID, [0, 0]), ("c", ID, [0, 0, 0]))

    def assigned(log):
        return next(each.directory_id for each in manager.directories if each.path[-1] == kept)

    manager = managers.manager(start=False)
    manager.start(1)
    manager.open_all(lambda topic: managers.config, assigned_directory=assigned)
    assert only_log(manager) == (kept, "abc".index(kept) + 1)
    manager.close()
    again = reopened(managers)
    assert only_log(again) == (kept, "abc".index(kept) + 1)
    again.close()
