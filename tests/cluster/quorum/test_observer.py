"""An observer whose leader is a script: the test receives each request and returns each response."""

from random import Random

import pytest

from barnabas.clock import ManualClock
from barnabas.cluster.quorum.client import NO_NODE, Leadership
from barnabas.cluster.quorum.controllers import Address, Controllers
from barnabas.cluster.quorum.fetching import Identity
from barnabas.cluster.quorum.metadata_log import MetadataLog, MetadataLogError, topic_config
from barnabas.cluster.quorum.observer import DEFAULT_LIMITS, Limits, Observer
from barnabas.cluster.quorum.quorum_state import QuorumState, read_quorum_state, write_quorum_state
from barnabas.cluster.quorum.record_batches import control_batch, encode_batches
from barnabas.cluster.quorum.snapshots import KRaftState, SnapshotId, control_records, encode_snapshot
from barnabas.cluster.quorum.sole_voter import only_voter
from barnabas.config.endpoints import Endpoint
from barnabas.errors import (
    BrokerNotAvailable,
    FencedLeaderEpoch,
    InconsistentClusterId,
    NetworkException,
    NotController,
    NotLeaderOrFollower,
    RequestTimedOut,
    SnapshotNotFound,
    UnknownLeaderEpoch,
)
from barnabas.log.background import Inline
from barnabas.log.files import MemoryFiles
from barnabas.log.log_directory import LogDirectory
from barnabas.log.partition_log import LogServices
from barnabas.log.recovery import open_log
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotRequest, FetchSnapshotResponse
from barnabas.wire.messages.metadata_records import ConfigRecord

DIRECTORY = "/data/__cluster_metadata-0"
STATE = f"{DIRECTORY}/quorum-state"
NODE, LEADER, OTHER = 7, 1, 2
CONTROLLER = Endpoint("CONTROLLER", "127.0.0.1", 9093, "PLAINTEXT")


class Peers:
    """The sent requests, for responses of the test."""

    def __init__(self):
        self.sent = []

    def send(self, node_id, request, done, *, lane="", timeout_ms=None):
        assert lane
        assert timeout_ms == 2000
        self.sent.append((node_id, request, done))


class Listener:
    """Records the calls of an observer."""

    def __init__(self):
        self.heard = []

    def snapshot_loaded(self, snapshot_id, records, timestamp):
        self.heard.append((snapshot_id, [record.name for record in records]))

    def committed(self, batches):
        self.heard += [record.name for batch in batches for record in batch.records]

    def leadership_changed(self, leadership):
        self.heard.append(leadership)

    def take(self):
        taken, self.heard = self.heard, []
        return taken


class Node:
    """An observer on a disk in memory, with access for the test."""

    def __init__(self, files, *, voters=(LEADER, OTHER), bootstrap=(), background=None, limits=DEFAULT_LIMITS):
        self.files, self.clock, self.peers, self.listener, self.fatal = files, ManualClock(), Peers(), Listener(), []
        files.makedirs(DIRECTORY)
        self.log = open_log(
            LogServices(LogDirectory(files, "/data")), DIRECTORY, "__cluster_metadata", 0,
            topic_config(segment_bytes=1 << 20), clean=False, recovery_point=0, now_ms=0,
        )  # fmt: skip
        self.controllers = Controllers(
            "CONTROLLER", "PLAINTEXT", voters={each: Address(f"host-{each}", 9093) for each in voters},
            bootstrap=bootstrap,
        )  # fmt: skip
        self.observer = Observer(
            MetadataLog(self.log, DIRECTORY, files, clock=self.clock, background=background or Inline()),
            Identity(NODE, "the-cluster", bytes([9]) * 16),
            self.controllers,
            self.peers,
            files=files,
            clock=self.clock,
            scheduler=self.clock,
            random=Random(1),
            on_fatal=self.fatal.append,
            limits=limits,
        )
        self.observer.listeners.append(self.listener)

    def start(self):
        self.observer.load()
        self.observer.start()
        return self

    @property
    def state(self):
        return read_quorum_state(self.files, STATE)

    @property
    def request(self):
        """Returns the partition of the one request in flight."""
        ((_, request, _),) = self.peers.sent
        return request.topics[0].partitions[0]

    def recipient(self):
        """Returns the recipient and the class of the one request in flight."""
        ((node_id, request, _),) = self.peers.sent
        return node_id, type(request)

    def answer(self, response=None, error=None):
        ((_, _, done),) = self.peers.sent
        self.peers.sent = []
        done(response, error)

    def fetched(self, records=b"", *, error=None, epoch=5, leader=LEADER, high_watermark=-1, endpoints=(), **fields):
        """Responds to a fetch."""
        body = FetchResponse.FetchableTopicResponse.PartitionData
        partition = body(
            partition_index=0,
            error_code=error.code if error else 0,
            high_watermark=high_watermark,
            current_leader=body.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch),
            records=records,
            **{name: getattr(body, kind)(**value) for name, (kind, value) in fields.items()},
        )
        topic = FetchResponse.FetchableTopicResponse(topic="__cluster_metadata", partitions=[partition])
        self.answer(FetchResponse(responses=[topic], node_endpoints=list(endpoints)))

    def diverged(self, diverging_epoch, end_offset, **fields):
        self.fetched(diverging_epoch=("EpochEndOffset", {"epoch": diverging_epoch, "end_offset": end_offset}), **fields)

    def sent_to_snapshot(self, snapshot_id, **fields):
        self.fetched(snapshot_id=("SnapshotId", snapshot_id._asdict()), **fields)

    def piece(self, snapshot_id, data, *, size, position, error=None, epoch=5, leader=LEADER):
        body = FetchSnapshotResponse.TopicSnapshot.PartitionSnapshot
        partition = body(
            index=0,
            error_code=error.code if error else 0,
            snapshot_id=body.SnapshotId(**snapshot_id._asdict()),
            current_leader=body.LeaderIdAndEpoch(leader_id=leader, leader_epoch=epoch),
            size=size,
            position=position,
            unaligned_records=data,
        )
        topic = FetchSnapshotResponse.TopicSnapshot(name="__cluster_metadata", partitions=[partition])
        self.answer(FetchSnapshotResponse(topics=[topic]))

    def content(self):
        return self.log.read(self.log.log_start_offset, 1 << 20, up_to=self.log.log_end_offset, minimum_one=True)


def record(name):
    return ConfigRecord(resource_type=4, resource_name="", name=name, value="x")


def batch(base_offset, *names, epoch=5):
    (encoded,) = encode_batches(
        map(record, names), metadata_version=30, timestamp=0, epoch=epoch, base_offset=base_offset
    )
    return bytes(encoded.data)


def voters_batch(base_offset, kraft, epoch=5):
    return bytes(control_batch(control_records(kraft), timestamp=0, epoch=epoch, base_offset=base_offset))


def snapshot(*names, kraft=KRaftState(), epoch=5):  # noqa: B008
    return encode_snapshot(
        map(record, names), kraft=kraft, metadata_version=30, epoch=epoch, last_timestamp=0, now_ms=0
    )


@pytest.fixture
def files():
    return MemoryFiles()


@pytest.fixture
def node(files):
    """An observer that knows node 1 as the leader of epoch 5."""
    found = Node(files).start()
    found.fetched(error=FencedLeaderEpoch)
    assert found.listener.take() == [Leadership(NO_NODE, 0), Leadership(LEADER, 5)]
    return found


# ---------------------------------------------------------------- finding the leader


def test_the_first_request_goes_to_any_controller(files):
    node = Node(files).start()
    target, kind = node.recipient()
    assert target in (LEADER, OTHER)
    assert kind is FetchRequest
    assert (node.request.current_leader_epoch, node.request.fetch_offset, node.request.last_fetched_epoch) == (0, 0, 0)


def test_the_fields_are_those_of_apaches_observer(node):
    ((_, request, _),) = node.peers.sent
    assert request.cluster_id == "the-cluster"
    assert request.replica_state.replica_id == request.replica_id == NODE
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (500, 0, 1 << 20)
    assert (request.session_id, request.session_epoch) == (0, -1)
    assert node.request.replica_directory_id == bytes([9]) * 16
    assert node.request.high_watermark == -1
    assert node.request.current_leader_epoch == 5


@pytest.mark.parametrize(("time_out_ms", "wait_ms"), [(2000, 500), (10_000, 500), (500, 250)])
def test_a_leader_answers_before_the_time_out_has_passed(files, time_out_ms, wait_ms):
    node = Node(files, limits=Limits(fetch_timeout_ms=time_out_ms)).start()
    ((_, request, _),) = node.peers.sent
    assert request.max_wait_ms == wait_ms


@pytest.mark.parametrize("error", [FencedLeaderEpoch, NotLeaderOrFollower])
def test_an_answer_names_the_leader(files, error):
    node = Node(files).start()
    node.fetched(error=error, leader=OTHER, epoch=3)
    assert node.observer.leadership == Leadership(OTHER, 3)
    assert node.recipient() == (OTHER, FetchRequest)
    assert node.state == QuorumState(OTHER, 3, (LEADER, OTHER))


def test_what_the_leader_answers_to_the_first_request_counts(files):
    node = Node(files).start()
    node.fetched(batch(0, "a", epoch=0), epoch=0, high_watermark=1)
    assert node.listener.take() == [Leadership(NO_NODE, 0), Leadership(LEADER, 0), "a"]


def test_a_leader_that_only_its_answer_names_can_be_reached(files):
    node = Node(files, voters=(), bootstrap=[Address("boot", 1)]).start()
    assert node.recipient() == (-2, FetchRequest)
    assert node.observer.endpoint_of(-2) == Endpoint("CONTROLLER", "boot", 1, "PLAINTEXT")
    where = FetchResponse.NodeEndpoint(node_id=4, host="four", port=94)
    node.fetched(error=FencedLeaderEpoch, leader=4, endpoints=[where])
    assert node.recipient() == (4, FetchRequest)
    assert node.observer.endpoint_of(4) == Endpoint("CONTROLLER", "four", 94, "PLAINTEXT")
    assert node.state == QuorumState(4, 5, ())


def test_while_there_is_no_leader_it_asks_all_in_turns(files):
    node = Node(files).start()
    (first, _) = node.recipient()
    node.fetched(error=NotLeaderOrFollower, leader=NO_NODE, epoch=2)
    assert node.observer.leadership == Leadership(NO_NODE, 2)
    (second, _) = node.recipient()
    assert {first, second} == {LEADER, OTHER}
    node.fetched(error=NotLeaderOrFollower, leader=NO_NODE, epoch=2)
    assert node.peers.sent == []
    node.clock.advance(0.02)
    node.recipient()


@pytest.mark.parametrize("error", [NetworkException, RequestTimedOut])
def test_another_controller_knows_who_leads_now(node, error):
    node.answer(error=error())
    assert node.recipient() == (OTHER, FetchRequest)
    node.fetched(error=FencedLeaderEpoch, leader=OTHER, epoch=6)
    assert node.recipient() == (OTHER, FetchRequest)
    assert node.listener.take() == [Leadership(OTHER, 6)]


def test_requests_go_to_a_leader_that_has_returned(node):
    node.answer(error=NetworkException())
    node.fetched(error=NotLeaderOrFollower)
    assert node.peers.sent == []
    node.clock.advance(0.02)
    assert node.recipient() == (LEADER, FetchRequest)
    assert node.listener.take() == []


def test_requests_go_to_a_silent_leader_that_is_no_voter_in_the_log(node):
    """It has become a voter, and the leader, since this node has fetched for the last time (KAFKA-19354)."""
    node.fetched(voters_batch(0, only_voter(OTHER, bytes([2]) * 16, [CONTROLLER])))
    assert node.controllers.candidates == [OTHER]
    assert node.recipient() == (LEADER, FetchRequest)
    node.clock.advance(2.5)
    node.answer(error=RequestTimedOut())
    assert node.recipient() == (OTHER, FetchRequest)
    node.fetched(error=NotLeaderOrFollower)
    node.clock.advance(0.02)
    assert node.recipient() == (LEADER, FetchRequest)


def test_a_leader_with_useless_responses_is_not_the_only_recipient(node):
    node.answer(FetchResponse(error_code=BrokerNotAvailable.code, responses=[]))
    assert node.recipient() == (OTHER, FetchRequest)


@pytest.mark.parametrize("error", [InconsistentClusterId, BrokerNotAvailable])
def test_an_error_of_the_whole_answer_is_a_reason_to_wait(files, error):
    node = Node(files, voters=(LEADER,)).start()
    node.answer(FetchResponse(error_code=error.code, responses=[]))
    assert node.peers.sent == []
    node.clock.advance(0.02)
    node.recipient()


@pytest.mark.parametrize("error", [FencedLeaderEpoch, NotLeaderOrFollower, UnknownLeaderEpoch, None])
def test_an_answer_from_an_earlier_epoch_changes_nothing(node, error):
    node.fetched(batch(0, "old"), error=error, epoch=4, leader=OTHER, high_watermark=1)
    assert node.observer.leadership == Leadership(LEADER, 5)
    assert node.log.log_end_offset == 0


@pytest.mark.parametrize("leader", [OTHER, NODE])
def test_an_answer_that_contradicts_the_epochs_leader_changes_nothing(node, leader):
    node.fetched(batch(0, "old"), epoch=5, leader=leader, high_watermark=1)
    assert node.observer.leadership == Leadership(LEADER, 5)
    assert node.log.log_end_offset == 0


def test_an_epoch_without_a_leader_is_taken_over(node):
    node.fetched(error=NotLeaderOrFollower, epoch=6, leader=NO_NODE)
    assert node.listener.take() == [Leadership(NO_NODE, 6)]
    assert node.state == QuorumState(-1, 6, (LEADER, OTHER))


# ---------------------------------------------------------------- what is committed


def test_what_is_fetched_is_told_when_the_high_watermark_has_passed_it(node):
    node.fetched(batch(0, "a", "b") + batch(2, "c"), high_watermark=2)
    assert node.listener.take() == ["a", "b"]
    assert (node.request.fetch_offset, node.request.last_fetched_epoch, node.request.high_watermark) == (3, 5, 2)
    node.fetched(high_watermark=3)
    assert node.listener.take() == ["c"]
    assert node.log.high_watermark == 3


def test_a_leader_that_does_not_know_the_high_watermark_tells_nothing(node):
    node.fetched(batch(0, "a"), high_watermark=-1)
    assert node.listener.take() == []
    assert node.observer.high_watermark is None


def test_the_high_watermark_never_goes_back(node):
    node.fetched(batch(0, "a", "b"), high_watermark=2)
    node.fetched(high_watermark=1)
    assert node.observer.high_watermark == 2


def test_a_batch_that_a_size_limit_has_cut_off_is_fetched_again(node):
    node.fetched(batch(0, "a") + batch(1, "b")[:-3], high_watermark=2)
    assert node.content() == batch(0, "a")
    assert node.request.fetch_offset == 1


@pytest.mark.parametrize("damage", [lambda data: data[:-1] + b"?", lambda data: batch(0, "again")])
def test_records_that_cannot_be_appended_are_fetched_again(node, damage):
    node.fetched(batch(0, "a"), high_watermark=1)
    node.fetched(damage(batch(1, "b")), high_watermark=2)
    assert node.content() == batch(0, "a")
    node.clock.advance(0.02)
    node.fetched(error=NotLeaderOrFollower)
    node.clock.advance(0.02)
    assert node.request.fetch_offset == 1
    assert node.fatal == []


def test_who_waits_is_called_when_the_first_high_watermark_is_reached(node):
    called = []
    node.observer.when_caught_up(lambda: called.append(1))
    node.fetched(batch(0, "a"), high_watermark=2)
    assert called == []
    node.fetched(batch(1, "b"), high_watermark=3)
    assert called == [1]
    node.observer.when_caught_up(lambda: called.append(2))
    assert called == [1, 2]


def test_it_appends_nothing_itself(node):
    assert not node.observer.is_leader
    with pytest.raises(NotController):
        node.observer.append([])


# ---------------------------------------------------------------- divergence


def test_what_another_leader_does_not_have_is_removed(node):
    node.fetched(batch(0, "a") + batch(1, "b"), high_watermark=1)
    node.fetched(error=FencedLeaderEpoch, epoch=6, leader=OTHER)
    node.diverged(5, 1, epoch=6, leader=OTHER)
    assert node.content() == batch(0, "a")
    node.fetched(batch(1, "c", epoch=6), epoch=6, leader=OTHER, high_watermark=2)
    assert node.listener.take() == ["a", Leadership(OTHER, 6), "c"]


def test_what_is_committed_is_not_removed(node):
    node.fetched(batch(0, "a") + batch(1, "b"), high_watermark=2)
    node.diverged(5, 1)
    assert node.log.log_end_offset == 2
    assert len(node.fatal) == 1
    assert node.peers.sent == []


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


# ---------------------------------------------------------------- voters


def test_voters_that_the_log_names_can_be_reached(node):
    kraft = only_voter(4, bytes([4]) * 16, [CONTROLLER])
    node.fetched(voters_batch(0, kraft), high_watermark=0)
    assert node.observer.endpoint_of(4) == CONTROLLER
    assert node.observer.kraft == KRaftState()
    node.fetched(high_watermark=2)
    assert node.observer.kraft == kraft
    node.fetched(error=FencedLeaderEpoch, epoch=6, leader=4)
    assert node.state == QuorumState(4, 6, None)


def test_voters_that_were_not_committed_are_forgotten(node):
    first, second = (only_voter(each, bytes([each]) * 16, [CONTROLLER]) for each in (4, 5))
    node.fetched(voters_batch(0, first) + voters_batch(2, second), high_watermark=2)
    assert node.controllers.candidates == [5]
    node.diverged(5, 2)
    assert node.controllers.candidates == [4]


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
