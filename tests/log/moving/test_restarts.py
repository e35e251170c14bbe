"""Moves over restarts and crashes: they are resumed, and the copy becomes equal to the log."""

import pytest

from barnabas.log.files import MemoryFiles
from tests.log.moving.node import KEY, Node, filled


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
