"""The start and end offsets of leader epochs (KIP-101, KIP-279)."""

import pytest

from barnabas.log.checkpoints import CorruptCheckpoint
from barnabas.log.leader_epochs import LeaderEpochs


@pytest.fixture
def epochs(memory):
    return LeaderEpochs(memory.files, f"{memory.path}/leader-epoch-checkpoint")


@pytest.fixture
def three(epochs):
    for epoch, start in [(2, 0), (5, 100), (6, 150)]:
        assert epochs.assign(epoch, start)
    return epochs


def test_the_bytes(three, memory):
    assert memory.files.read(three.path) == b"0\n3\n2 0\n5 100\n6 150\n"
    assert LeaderEpochs.load(memory.files, three.path).entries == [(2, 0), (5, 100), (6, 150)]


def test_an_invalid_checkpoint(epochs, memory):
    with pytest.raises(FileNotFoundError):
        LeaderEpochs.load(memory.files, epochs.path)
    memory.files.create(epochs.path).write(b"0\n1\nx y\n")
    with pytest.raises(CorruptCheckpoint):
        LeaderEpochs.load(memory.files, epochs.path)


def test_a_known_epoch_is_not_written_again(three):
    assert not three.assign(6, 150)
    assert not three.assign(6, 170)
    assert three.latest == 6


@pytest.mark.parametrize(
    ("epoch", "start", "left"),
    [
        (7, 200, [(2, 0), (5, 100), (6, 150), (7, 200)]),
        (7, 150, [(2, 0), (5, 100), (7, 150)]),
        (7, 50, [(2, 0), (7, 50)]),
        (6, 120, [(2, 0), (5, 100), (6, 120)]),
        (4, 300, [(2, 0), (4, 300)]),
        (9, 0, [(9, 0)]),
    ],
)
def test_contradicting_entries_are_removed(three, epoch, start, left):
    assert three.assign(epoch, start)
    assert three.entries == left


@pytest.mark.parametrize(
    ("epoch", "answer"),
    [
        (-1, (-1, -1)),
        (0, (0, 0)),
        (2, (2, 100)),
        (3, (2, 100)),
        (4, (2, 100)),
        (5, (5, 150)),
        (6, (6, 200)),
        (7, (-1, -1)),
    ],
)
def test_the_end_offset_of_an_epoch(three, epoch, answer):
    assert three.end_offset_for(epoch, log_end_offset=200) == answer


def test_without_entries(epochs):
    assert epochs.latest == -1
    assert epochs.end_offset_for(0, 10) == (-1, -1)
    assert epochs.epoch_of(5) == -1


@pytest.mark.parametrize(("offset", "epoch"), [(0, 2), (99, 2), (100, 5), (149, 5), (150, 6), (10**9, 6)])
def test_the_epoch_of_an_offset(three, offset, epoch):
    assert three.epoch_of(offset) == epoch


@pytest.mark.parametrize(
    ("end", "left"),
    [(151, [(2, 0), (5, 100), (6, 150)]), (150, [(2, 0), (5, 100)]), (100, [(2, 0)]), (1, [(2, 0)]), (0, [])],
)
def test_truncation_from_the_end(three, memory, end, left):
    assert three.truncate_from_end(end) == (len(left) < 3)
    assert three.entries == left
    assert LeaderEpochs.load(memory.files, three.path).entries == left


@pytest.mark.parametrize(
    ("start", "left"),
    [
        (0, [(2, 0), (5, 100), (6, 150)]),
        (1, [(2, 1), (5, 100), (6, 150)]),
        (99, [(2, 99), (5, 100), (6, 150)]),
        (100, [(5, 100), (6, 150)]),
        (149, [(5, 149), (6, 150)]),
        (999, [(6, 999)]),
    ],
)
def test_truncation_from_the_start(three, memory, start, left):
    three.truncate_from_start(start)
    assert three.entries == left
    assert LeaderEpochs.load(memory.files, three.path).entries == left


def test_replay_does_not_write(three, memory):
    three.replay(7, 200)
    three.replay(7, 210)
    three.replay(6, 220)
    assert three.entries[-1] == (7, 200)
    assert LeaderEpochs.load(memory.files, three.path).latest == 6
    three.write()
    assert LeaderEpochs.load(memory.files, three.path).latest == 7


def test_an_epoch_is_written_with_its_first_record(three, memory):
    written = memory.files.read(three.path)
    three.assign_without_records(7, 200)
    three.assign_without_records(8, 200)
    assert three.entries[-1] == (8, 200)
    assert three.latest == 8
    assert memory.files.read(three.path) == written
    assert three.assign(8, 200)
    assert memory.files.read(three.path) == written.replace(b"\n3\n", b"\n4\n") + b"8 200\n"
    assert not three.assign(8, 200)


def test_epochs_without_records_are_removed_when_the_log_is_opened(three, memory):
    three.assign(7, 200)
    again = LeaderEpochs.load(memory.files, three.path)
    again.remove_without_records(200)
    assert again.entries == [(2, 0), (5, 100), (6, 150)]
    again.assign_without_records(7, 200)
    assert again.assign(7, 200)
    assert memory.files.read(three.path).endswith(b"6 150\n7 200\n")
