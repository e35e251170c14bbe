"""A leader whose log observers copy: single requests, and whole copies."""

from random import Random

import pytest

from barnabas.clock import ManualClock
from barnabas.cluster.controller.commands.topics import CreateTopics, NewTopic
from barnabas.cluster.image.loader import MetadataLoader
from barnabas.cluster.image.snapshot_generator import SnapshotGenerator, SnapshotLimits
from barnabas.cluster.quorum.client import NO_NODE, Leadership
from barnabas.cluster.quorum.controllers import Address, Controllers
from barnabas.cluster.quorum.fetching import Identity, fetch_request, snapshot_request
from barnabas.cluster.quorum.leader_log import Sender
from barnabas.cluster.quorum.metadata_log import TOPIC_ID, MetadataLog, Retention, topic_config
from barnabas.cluster.quorum.observer import Limits, Observer
from barnabas.cluster.quorum.snapshots import SnapshotId
from barnabas.config.endpoints import Endpoint
from barnabas.errors import (
    FencedLeaderEpoch,
    InconsistentClusterId,
    InvalidRequest,
    NetworkException,
    NotLeaderOrFollower,
    PositionOutOfRange,
    SnapshotNotFound,
    UnknownLeaderEpoch,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from barnabas.log.background import Inline
from barnabas.log.files import MemoryFiles
from barnabas.log.follower import Position
from barnabas.log.log_directory import LogDirectory
from barnabas.log.partition_log import LogServices
from barnabas.log.recovery import open_log
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse

CLUSTER = "the-cluster"
LEADER, OBSERVER = 1, 7
DIRECTORY_ID = bytes([9]) * 16
CONTROLLER = Endpoint("CONTROLLER", "127.0.0.1", 9093, "PLAINTEXT")
SENDER = Sender(18, "CONTROLLER", CLUSTER)
IDENTITY = Identity(OBSERVER, CLUSTER, DIRECTORY_ID)


@pytest.fixture
def leader(open_metadata):
    metadata = open_metadata.started()
    metadata.quorum.voter_endpoints = [CONTROLLER]
    return metadata


def create(metadata, *names):
    results = metadata.submit(CreateTopics([NewTopic(name, 1, 1) for name in names]))
    assert not any(result.error for result in results)


def request(metadata, offset=0, last_epoch=0, *, epoch=None, high_watermark=None, identity=IDENTITY, **fields):
    made = fetch_request(
        identity,
        metadata.epoch if epoch is None else epoch,
        Position(offset, last_epoch),
        high_watermark=high_watermark,
        max_bytes=1 << 20,
    )
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def ask(metadata, *args, sender=SENDER, now_ms=0, **fields):
    """Returns the whole response, its partition, and whether it is complete."""
    response, tells = metadata.quorum.leader_log.fetch(request(metadata, *args, **fields), sender, now_ms)
    ((partition,),) = [topic.partitions for topic in response.responses]
    return response, partition, tells


def is_nothing(partition):
    return partition.records == b"" and partition.diverging_epoch.epoch == partition.snapshot_id.epoch == -1


# ---------------------------------------------------------------- fetches


def test_records_up_to_the_end_of_the_log(leader):
    response, partition, tells = ask(leader)
    assert tells
    end = leader.log.log_end_offset
    assert partition.records == leader.log.read(0, 1 << 20, up_to=end, minimum_one=True)
    assert (partition.high_watermark, partition.log_start_offset, partition.last_stable_offset) == (end, 0, -1)
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (LEADER, 1)
    (endpoint,) = response.node_endpoints
    assert (endpoint.node_id, endpoint.host, endpoint.port) == (LEADER, "127.0.0.1", 9093)
    assert (response.responses[0].topic_id, response.session_id) == (TOPIC_ID, 0)


def test_the_address_is_that_of_the_senders_listener_and_new(leader):
    assert ask(leader, sender=SENDER._replace(listener="OTHER"))[0].node_endpoints == ()
    assert ask(leader, sender=SENDER._replace(version=16))[0].node_endpoints == ()


def test_at_the_end_there_is_nothing_to_tell(leader):
    end = leader.log.log_end_offset
    _, partition, tells = ask(leader, end, 1, high_watermark=end)
    assert is_nothing(partition)
    assert not tells


def test_a_new_high_watermark_is_something_to_tell(leader):
    end = leader.log.log_end_offset
    assert ask(leader, end, 1, high_watermark=end - 1)[2]
    assert ask(leader, end, 1, high_watermark=None)[2]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"epoch": 0}, FencedLeaderEpoch),
        ({"epoch": 2}, UnknownLeaderEpoch),
        ({"offset": -1}, InvalidRequest),
        ({"last_epoch": -1}, InvalidRequest),
        ({"last_epoch": 2}, InvalidRequest),
        ({"max_wait_ms": -1}, InvalidRequest),
        ({"identity": IDENTITY._replace(node_id=LEADER)}, UnknownServerError),
    ],
)
def test_errors_of_the_partition(leader, fields, error):
    _, partition, tells = ask(leader, **fields)
    assert partition.error_code == error.code
    assert tells
    assert (partition.high_watermark, partition.records) == (-1, b"")
    assert (partition.current_leader.leader_id, partition.current_leader.leader_epoch) == (LEADER, 1)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"cluster_id": "another"}, InconsistentClusterId),
        ({"topics": []}, InvalidRequest),
        ({"topics": [FetchRequest.FetchTopic(topic_id=bytes(16), partitions=[])]}, InvalidRequest),
        ({"topics": [FetchRequest.FetchTopic(topic_id=TOPIC_ID, partitions=[])]}, InvalidRequest),
    ],
)
def test_errors_of_the_request(leader, fields, error):
    response, tells = leader.quorum.leader_log.fetch(request(leader, **fields), SENDER, 0)
    assert (response.error_code, response.responses, tells) == (error.code, [], True)


def test_without_a_cluster_id_it_is_any(leader):
    assert ask(leader, cluster_id=None)[1].error_code == 0


def test_a_leader_that_has_resigned_does_not_answer(leader):
    leader.quorum._resign()
    response, partition, _ = ask(leader)
    assert partition.error_code == NotLeaderOrFollower.code
    assert partition.current_leader.leader_id == NO_NODE
    assert list(response.node_endpoints) == []


def test_an_offset_past_the_end_diverges(leader):
    end = leader.log.log_end_offset
    _, partition, tells = ask(leader, end + 1, 1)
    assert (partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset) == (1, end)
    assert tells


def test_an_epoch_that_ended_earlier_diverges(leader, open_metadata):
    end = leader.log.log_end_offset
    again = open_metadata()
    create(again, "orders")
    _, partition, _ = ask(again, end + 1, 1)
    assert (partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset) == (1, end)
    assert ask(again, end, 1)[1].diverging_epoch.epoch == -1


def test_who_waits_is_called_at_the_next_commit(leader):
    called = []
    log = leader.quorum.leader_log
    log.wait(lambda: called.append(leader.log.high_watermark))
    create(leader, "orders")
    create(leader, "others")
    assert called == [leader.log.high_watermark - 2]


def test_who_has_stopped_to_wait_is_not_called(leader):
    def fail():
        raise AssertionError

    leader.quorum.leader_log.wait(fail)
    leader.quorum.leader_log.stop_waiting(fail)
    create(leader, "orders")


def test_who_waits_hears_of_a_lost_leadership(leader):
    called = []
    leader.quorum.leader_log.wait(lambda: called.append(ask(leader)[1].error_code))
    leader.quorum._resign()
    assert called == [NotLeaderOrFollower.code]


# ---------------------------------------------------------------- who copies


def observers(leader, now_ms):
    return [
        (each.key.node_id, each.log_end_offset, each.last_fetch_ms, each.last_caught_up_ms)
        for each in leader.quorum.leader_log.observers(now_ms)
    ]


def test_how_far_the_copies_are(leader):
    end = leader.log.log_end_offset
    ask(leader, now_ms=1000)
    assert observers(leader, 1000) == [(OBSERVER, 0, 1000, -1)]
    create(leader, "orders")
    ask(leader, end, 1, now_ms=2000)
    assert observers(leader, 2000) == [(OBSERVER, end, 2000, 1000)]  # it had the records of the fetch before
    ask(leader, leader.log.log_end_offset, 1, now_ms=3000)
    assert observers(leader, 3000) == [(OBSERVER, leader.log.log_end_offset, 3000, 3000)]
    (found,) = leader.quorum.leader_log.observers(3000)
    assert found.key.directory_id == DIRECTORY_ID


def test_a_copy_that_nobody_fetches_for_is_forgotten_after_five_minutes(leader):
    ask(leader, now_ms=1000)
    assert observers(leader, 300_999)
    assert observers(leader, 301_000) == []


def test_who_is_no_replica_is_not_counted(leader):
    assert ask(leader, identity=IDENTITY._replace(node_id=-1))[1].records
    assert observers(leader, 0) == []


# ---------------------------------------------------------------- snapshots


@pytest.fixture
def shortened(open_metadata):
    """A leader whose log begins with a snapshot."""
    metadata = open_metadata.started(limits=SnapshotLimits(ms=0), retention=Retention(bytes=1))
    create(metadata, "orders")
    metadata.snapshots.write_snapshot()
    create(metadata, "others")
    metadata.snapshots.write_snapshot()
    metadata.snapshots._metadata_log.clean()
    assert metadata.log.log_start_offset > 0
    create(metadata, "more")
    return metadata


def test_a_log_that_begins_later_is_reached_by_a_snapshot(shortened):
    (snapshot_id,) = shortened.snapshot_ids()
    start = shortened.log.log_start_offset
    for offset, last_epoch in ((0, 0), (1, 1), (start - 1, 1), (start, 0), (start + 1, 0)):
        _, partition, tells = ask(shortened, offset, last_epoch)
        assert partition.snapshot_id == FetchResponse.FetchableTopicResponse.PartitionData.SnapshotId(
            end_offset=snapshot_id.end_offset, epoch=snapshot_id.epoch
        )
        assert (tells, partition.records) == (True, b"")
    assert ask(shortened, start, 1)[1].records


def test_an_empty_log_is_filled_from_a_snapshot_though_the_log_is_whole(leader):
    snapshot_id = leader.snapshots.write_snapshot()
    assert ask(leader)[1].snapshot_id.end_offset == snapshot_id.end_offset
    assert ask(leader, 1, 1)[1].records


def test_the_snapshot_of_a_formatted_directory_is_none(leader, open_metadata):
    open_metadata.files.write_atomically(f"{open_metadata.directory}/{SnapshotId(0, 0).file_name}", b"x", sync=False)
    assert ask(leader)[1].records
    assert piece(leader, SnapshotId(0, 0)).error_code == SnapshotNotFound.code


def piece(metadata, snapshot_id, position=0, *, max_bytes=1 << 20, epoch=1, **fields):
    made = snapshot_request(IDENTITY, epoch, snapshot_id, position=position, max_bytes=max_bytes)
    for name, value in fields.items():
        setattr(made.topics[0], name, value)
    response = metadata.quorum.leader_log.fetch_snapshot(made, SENDER)
    ((found,),) = [topic.partitions for topic in response.topics]
    return found


def test_a_snapshot_is_served_in_pieces(leader, open_metadata):
    snapshot_id = leader.snapshots.write_snapshot()
    whole = open_metadata.files.read(f"{open_metadata.directory}/{snapshot_id.file_name}")
    found = b""
    while len(found) < len(whole):
        each = piece(leader, snapshot_id, len(found), max_bytes=100)
        assert (each.size, each.position, each.error_code) == (len(whole), len(found), 0)
        assert (each.current_leader.leader_id, each.current_leader.leader_epoch) == (LEADER, 1)
        found += each.unaligned_records
    assert found == whole


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"epoch": 0}, FencedLeaderEpoch),
        ({"epoch": 2}, UnknownLeaderEpoch),
        ({"snapshot_id": SnapshotId(1, 1)}, SnapshotNotFound),
        ({"position": -1}, PositionOutOfRange),
        ({"position": 1 << 30}, PositionOutOfRange),
        ({"name": "orders"}, UnknownTopicOrPartition),
    ],
)
def test_errors_of_a_snapshot(leader, fields, error):
    snapshot_id = leader.snapshots.write_snapshot()
    found = piece(leader, **{"snapshot_id": snapshot_id} | fields)
    assert (found.error_code, found.unaligned_records, found.size) == (error.code, b"", 0)
    knows = (0, 0) if "name" in fields else (LEADER, 1)
    assert (found.current_leader.leader_id, found.current_leader.leader_epoch) == knows


def test_errors_of_a_whole_request_for_a_snapshot(leader):
    made = snapshot_request(IDENTITY, 1, SnapshotId(1, 1), position=0, max_bytes=1)
    made.cluster_id = "another"
    response = leader.quorum.leader_log.fetch_snapshot(made, SENDER)
    assert (response.error_code, response.topics) == (InconsistentClusterId.code, [])
    made.cluster_id, made.topics = CLUSTER, []
    assert leader.quorum.leader_log.fetch_snapshot(made, SENDER).error_code == InvalidRequest.code


# ---------------------------------------------------------------- the whole


class Wire:
    """Sends requests, encoded, to a leader that can be replaced."""

    def __init__(self, clock):
        self.clock = clock
        self.leader = None
        self.waiting = []
        self.limit = 1 << 20

    def send(self, node_id, request, done, *, lane="", timeout_ms=None):
        if self.leader is None:
            done(None, NetworkException())
            return
        version = request.versions.last
        request = type(request).decode(request.encode(version=version), version=version)
        log, sender = self.leader.quorum.leader_log, Sender(version, "CONTROLLER", CLUSTER)
        if isinstance(request, FetchRequest):
            request.max_bytes = self.limit
            response, tells = log.fetch(request, sender, self.clock.time_ms())
            if not tells:
                log.wait(lambda: self.send(node_id, request, done))
                return
        else:
            response = log.fetch_snapshot(request, sender)
        done(type(response).decode(response.encode(version=version), version=version), None)


class Copy:
    """An observer with its own loader and snapshots."""

    def __init__(self, wire, files, limits=SnapshotLimits(ms=0)):  # noqa: B008
        directory = "/data/__cluster_metadata-0"
        files.makedirs(directory)
        clock = wire.clock
        self.log = open_log(
            LogServices(LogDirectory(files, "/data")), directory, "__cluster_metadata", 0,
            topic_config(segment_bytes=1 << 20), clean=False, recovery_point=0, now_ms=0,
        )  # fmt: skip
        metadata_log = MetadataLog(self.log, directory, files, clock=clock, background=Inline())
        self.fatal, self.loader = [], MetadataLoader()
        self.observer = Observer(
            metadata_log, IDENTITY, Controllers("CONTROLLER", "PLAINTEXT", voters={LEADER: Address("one", 1)}), wire,
            files=files, clock=clock, scheduler=clock, random=Random(1), on_fatal=self.fatal.append,
            limits=Limits(fetch_snapshot_max_bytes=100),
        )  # fmt: skip
        self.snapshots = SnapshotGenerator(metadata_log, self.loader, lambda: self.observer.kraft, clock, limits)
        self.observer.listeners += [self.loader, self.snapshots]
        self.observer.load()
        self.observer.start()


@pytest.fixture
def wire():
    return Wire(ManualClock())


def equal(copy, leader):
    start, end = max(copy.log.log_start_offset, leader.log.log_start_offset), leader.log.log_end_offset
    whole = [each.read(start, 1 << 24, up_to=end, minimum_one=True) for each in (copy.log, leader.log)]
    return copy.log.log_end_offset == end and whole[0] == whole[1] and copy.loader.image == leader.image


def test_a_copy_is_equal_and_stays_so(leader, wire):
    wire.leader = leader
    copy = Copy(wire, MemoryFiles())
    assert equal(copy, leader)
    create(leader, "orders", "others")
    assert equal(copy, leader)
    assert copy.observer.leadership == Leadership(LEADER, 1)


def test_a_copy_that_begins_with_a_snapshot(shortened, wire):
    wire.leader = shortened
    files = MemoryFiles()
    copy = Copy(wire, files)
    assert equal(copy, shortened)
    assert copy.log.log_start_offset == shortened.log.log_start_offset
    copy.observer.stop()
    create(shortened, "meanwhile")
    again = Copy(wire, files)
    assert equal(again, shortened)
    assert again.log.log_start_offset == shortened.log.log_start_offset


def test_a_leader_that_begins_an_epoch_anew_is_found_again(leader, wire, open_metadata):
    wire.leader = leader
    copy = Copy(wire, MemoryFiles())
    wire.leader = None
    leader.quorum._resign()
    wire.leader = open_metadata()
    create(wire.leader, "orders")
    wire.clock.advance(1)
    assert equal(copy, wire.leader)
    assert copy.observer.leadership == Leadership(LEADER, 2)


def test_a_walk(opener):
    """A leader is restarted, writes snapshots and deletes its log; a copy is stopped and started: they stay equal."""
    for seed in range(20):
        random, clock = Random(seed), ManualClock()
        wire, open_it, files = Wire(clock), opener(MemoryFiles()), MemoryFiles()
        wire.limit = random.choice([1, 300, 1 << 20])
        wire.leader = leader = open_it.started(retention=Retention(bytes=2000))
        copy = Copy(wire, files, SnapshotLimits(bytes=700, ms=0))
        for step in range(60):
            match random.randrange(6):
                case 0:
                    wire.leader = None
                    leader.quorum._resign()
                    wire.leader = leader = open_it(retention=Retention(bytes=2000))
                case 1:
                    leader.snapshots.write_snapshot()
                case 2:
                    if copy is not None:
                        copy.observer.stop()
                        assert copy.fatal == []
                    copy = None if copy is not None else Copy(wire, files, SnapshotLimits(bytes=700, ms=0))
                case _:
                    create(leader, f"topic-{step}")
            clock.advance(0.1)
        copy = copy or Copy(wire, files, SnapshotLimits(bytes=700, ms=0))
        clock.advance(1)
        assert equal(copy, leader), seed
        assert copy.fatal == []
