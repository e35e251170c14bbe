"""An observer that fetches snapshots, and one that is restarted."""

import pytest

from barnabas.cluster.quorum.client import NO_NODE, Leadership
from barnabas.cluster.quorum.controllers import Address
from barnabas.cluster.quorum.metadata_log import MetadataLogError
from barnabas.cluster.quorum.quorum_state import QuorumState, write_quorum_state
from barnabas.cluster.quorum.snapshots import SnapshotId
from barnabas.cluster.quorum.sole_voter import only_voter
from barnabas.errors import (
    FencedLeaderEpoch,
    NetworkException,
    NotLeaderOrFollower,
    SnapshotNotFound,
)
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from tests.cluster.quorum.observing import (
    CONTROLLER,
    DIRECTORY,
    LEADER,
    NODE,
    OTHER,
    STATE,
    Node,
    batch,
    snapshot,
    voters_batch,
)

# ---------------------------------------------------------------- snapshots


SNAPSHOT = SnapshotId(10, 4)


def download(node, data, size=100):
    for position in range(0, len(data), size):
        assert node.recipient() == (LEADER, FetchSnapshotRequest)
        assert node.request.position == position
        node.piece(SNAPSHOT, data[position : position + size], size=len(data), position=position)


def test_a_snapshot_is_fetched_in_pieces(node, files):
    node.fetched(batch(0, "gone"), high_watermark=1)
    node.sent_to_snapshot(SNAPSHOT)
    data = snapshot("a", "b", epoch=4)
    download(node, data)
    assert files.read(f"{DIRECTORY}/{SNAPSHOT.file_name}") == data
    assert (node.log.log_start_offset, node.log.log_end_offset, node.log.high_watermark) == (10, 10, 10)
    assert (node.request.fetch_offset, node.request.last_fetched_epoch) == (10, 4)
    node.fetched(batch(10, "c"), high_watermark=11)
    assert node.listener.take() == ["gone", (SNAPSHOT, ["a", "b"]), "c"]


def test_older_snapshots_go(node, files):
    old = f"{DIRECTORY}/{SnapshotId(3, 1).file_name}"
    files.write_atomically(old, snapshot(), sync=False)
    node.sent_to_snapshot(SNAPSHOT)
    download(node, snapshot("a"))
    assert not files.exists(old)


def test_a_snapshot_that_the_leader_has_deleted_is_given_up(node, files):
    node.sent_to_snapshot(SNAPSHOT)
    node.piece(SNAPSHOT, b"", size=0, position=0, error=SnapshotNotFound)
    node.fetched(error=NotLeaderOrFollower)
    node.clock.advance(0.02)
    assert node.recipient() == (LEADER, FetchRequest)


def test_a_refusal_of_apaches_gives_a_snapshot_up_too(node):
    """It cannot encode this error: a null is where none is allowed."""
    node.sent_to_snapshot(SNAPSHOT)
    node.answer(FetchSnapshotResponse(error_code=-1, topics=[]))
    node.fetched(error=NotLeaderOrFollower)
    node.clock.advance(0.02)
    assert node.recipient() == (LEADER, FetchRequest)


def test_a_download_goes_on_when_the_leader_can_be_reached_again(node):
    node.sent_to_snapshot(SNAPSHOT)
    node.piece(SNAPSHOT, b"xyz", size=9, position=0)
    node.answer(error=NetworkException())
    node.fetched(error=NotLeaderOrFollower)
    node.clock.advance(0.02)
    assert node.recipient() == (LEADER, FetchSnapshotRequest)
    assert node.request.position == 3


@pytest.mark.parametrize("expected", [{"position": 1}, {"snapshot_id": SnapshotId(11, 4)}, {"data": b""}])
def test_a_piece_that_was_not_requested_is_dropped(node, files, expected):
    node.sent_to_snapshot(SNAPSHOT)
    node.piece(**{"snapshot_id": SNAPSHOT, "data": b"xyz", "position": 0, "size": 9} | expected)
    assert node.recipient() == (OTHER, FetchRequest)
    assert node.log.log_end_offset == 0


def test_a_damaged_snapshot_is_not_kept(node, files):
    node.sent_to_snapshot(SNAPSHOT)
    data = bytearray(snapshot("a"))
    data[-1] ^= 1
    download(node, bytes(data), 1 << 20)
    assert not files.exists(f"{DIRECTORY}/{SNAPSHOT.file_name}")
    assert node.recipient() == (OTHER, FetchRequest)


def test_the_rest_of_a_snapshot_is_not_fetched_from_another_leader(node):
    node.sent_to_snapshot(SNAPSHOT)
    node.piece(SNAPSHOT, b"xyz", size=9, position=0, error=FencedLeaderEpoch, epoch=6, leader=OTHER)
    assert node.recipient() == (OTHER, FetchRequest)


class Held:
    """Background work that the test runs."""

    def __init__(self):
        self.work = []

    def run(self, work, done=None):
        self.work.append((work, done))

    def do(self, error=None):
        work, done = self.work.pop()
        if error is None:
            work()
        done(error)


def test_the_log_begins_anew_when_the_snapshot_is_on_the_disk(files):
    background = Held()
    node = Node(files, background=background).start()
    node.fetched(error=FencedLeaderEpoch)
    node.sent_to_snapshot(SNAPSHOT)
    download(node, snapshot("a"))
    assert node.peers.sent == []
    assert node.log.log_end_offset == 0
    background.do()
    assert node.log.log_end_offset == 10
    assert node.recipient() == (LEADER, FetchRequest)


def test_a_snapshot_that_cannot_be_written_is_fetched_again(files):
    background = Held()
    node = Node(files, voters=(LEADER,), background=background).start()
    node.fetched(error=FencedLeaderEpoch)
    node.sent_to_snapshot(SNAPSHOT)
    download(node, snapshot("a"))
    background.do(OSError("full"))
    assert node.log.log_end_offset == 0
    node.clock.advance(0.02)
    assert node.recipient() == (LEADER, FetchRequest)


# ---------------------------------------------------------------- restarts


def test_nothing_is_told_after_a_restart_before_the_leader_tells_the_high_watermark(node, files):
    node.fetched(batch(0, "a", "b"), high_watermark=2)
    node.observer.stop()
    again = Node(files).start()
    assert again.listener.take() == [Leadership(LEADER, 5)]
    assert again.recipient() == (LEADER, FetchRequest)
    assert (again.request.fetch_offset, again.request.last_fetched_epoch, again.request.high_watermark) == (2, 5, -1)
    again.fetched(batch(2, "c"), high_watermark=2)
    assert again.listener.take() == ["a", "b"]


def test_a_snapshot_is_reported_after_a_restart(node, files):
    node.sent_to_snapshot(SNAPSHOT)
    download(node, snapshot("a", epoch=4))
    again = Node(files).start()
    assert (again.request.fetch_offset, again.request.last_fetched_epoch) == (10, 4)
    assert again.listener.take() == [Leadership(LEADER, 5)]
    again.fetched(batch(10, "b"), high_watermark=11)
    assert again.listener.take() == [(SNAPSHOT, ["a"]), "b"]


def test_a_log_that_was_not_truncated_behind_a_snapshot_is_truncated(node, files):
    node.fetched(batch(0, "gone", epoch=4), high_watermark=1)
    files.write_atomically(f"{DIRECTORY}/{SNAPSHOT.file_name}", snapshot("a"), sync=False)
    again = Node(files).start()
    assert (again.log.log_start_offset, again.log.log_end_offset) == (10, 10)


def test_an_own_snapshot_is_no_reason_to_truncate(node, files):
    node.fetched(batch(0, "a") + batch(1, "b"), high_watermark=2)
    files.write_atomically(f"{DIRECTORY}/{SnapshotId(1, 5).file_name}", snapshot("a"), sync=False)
    again = Node(files).start()
    assert (again.log.log_start_offset, again.log.log_end_offset) == (0, 2)
    again.fetched(high_watermark=2)
    assert again.listener.take() == [Leadership(LEADER, 5), (SnapshotId(1, 5), ["a"]), "b"]


def test_voters_of_the_log_are_known_after_a_restart(node, files):
    kraft = only_voter(4, bytes([4]) * 16, [CONTROLLER])
    node.fetched(voters_batch(0, kraft), high_watermark=2)
    again = Node(files, voters=(), bootstrap=[Address("boot", 1)]).start()
    assert again.observer.endpoint_of(4) == CONTROLLER
    assert again.controllers.candidates == [-2, 4]


def test_an_epoch_of_the_log_is_not_forgotten(node, files):
    node.fetched(batch(0, "a"), high_watermark=1)
    files.delete(STATE)
    assert Node(files).start().observer.leadership == Leadership(NO_NODE, 5)


def test_a_damaged_state_is_no_epoch_0(files):
    node = Node(files)
    files.write_atomically(STATE, b"{", sync=False)
    node.observer.load()
    with pytest.raises(MetadataLogError):
        node.observer.start()


def test_a_node_that_was_a_leader_knows_none(files):
    node = Node(files)
    write_quorum_state(files, STATE, QuorumState(NODE, 3, ()))
    node.start()
    assert node.observer.leadership == Leadership(NO_NODE, 3)


def test_an_answer_after_the_stop_is_dropped(node):
    node.observer.stop()
    node.fetched(batch(0, "a"), high_watermark=1)
    assert node.log.log_end_offset == 0
    assert node.peers.sent == []
