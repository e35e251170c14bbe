"""Changes of the voters by a leader whose log, replicas and peers the test sets."""

import pytest

from barnabas.clock import ManualClock
from barnabas.cluster.features import KRAFT_VERSION
from barnabas.cluster.quorum.client import ReplicaKey
from barnabas.cluster.quorum.controllers import Address, Controllers
from barnabas.cluster.quorum.kraft_history import KRaftHistory
from barnabas.cluster.quorum.leader_log import Replica
from barnabas.cluster.quorum.record_batches import control_batch
from barnabas.cluster.quorum.snapshots import KRaftState, control_records
from barnabas.cluster.quorum.voter_changes import VoterChanges, voters_of, voters_record
from barnabas.cluster.quorum.voters import Levels, voter_record
from barnabas.config.endpoints import Endpoint
from barnabas.errors import (
    DuplicateVoter,
    InvalidRequest,
    NetworkException,
    NotLeaderOrFollower,
    RequestTimedOut,
    UnsupportedVersion,
    VoterNotFound,
)
from barnabas.records.batch import RecordBatch
from barnabas.wire.messages.api_versions import ApiVersionsResponse
from barnabas.wire.messages.control_records import VotersRecord

TIMEOUT_MS = 2000
HERE = [Endpoint("CONTROLLER", "127.0.0.1", 9093, "PLAINTEXT")]
ELSEWHERE = [Endpoint("CONTROLLER", "127.0.0.1", 9999, "PLAINTEXT")]


def key(node_id):
    return ReplicaKey(node_id, bytes([node_id]) * 16)


def kraft_of(*node_ids, version=1):
    voters = [voter_record(key(node_id), HERE, Levels(0, 1)) for node_id in node_ids]
    return KRaftState(version, VotersRecord(version=0, voters=voters) if version else None)


class Leader:
    """The leader, with the requests that it sends."""

    def __init__(self, kraft):
        self.key, self.kraft, self.voters_offset = key(1), kraft, 4
        self.high_watermark, self.end, self.is_elected = 10, 10, True
        self.replicas, self.heard, self.resigned, self.requests = {}, [], 0, []

    def latest_voters(self):
        return self.voters_offset, self.kraft

    def replica(self, replica):
        return self.replicas.get(replica)

    def heard_from(self, replica):
        self.heard.append(replica.node_id)

    def resign_soon(self):
        self.resigned += 1

    def append_control(self, records):
        ((_, record, _),) = records
        self.kraft, self.voters_offset = self.kraft._replace(voters=record), self.end
        self.end += 1
        return self.voters_offset

    def commit(self, changes):
        self.high_watermark = self.end
        changes.committed()

    # ------------------------------------------------------------ as peers

    def send(self, node_id, request, done, *, lane="", timeout_ms=None):
        self.requests.append((node_id, done))

    def answers(self, first=0, last=1, error=None, features=None):
        """Responds to the last request with the supported levels."""
        _, done = self.requests[-1]
        if features is None:
            feature = ApiVersionsResponse.SupportedFeatureKey(name=KRAFT_VERSION, min_version=first, max_version=last)
            features = [feature]
        done(None if error else ApiVersionsResponse(api_keys=[], supported_features=list(features)), error)


class Scene:
    def __init__(self, kraft):
        self.clock, self.leader, self.answers = ManualClock(), Leader(kraft), []
        self.controllers = Controllers("CONTROLLER", "PLAINTEXT", voters={1: Address("one", 1), 2: Address("two", 2)})
        self.changes = VoterChanges(
            self.leader, self.controllers, self.leader,
            clock=self.clock, scheduler=self.clock, timeout_ms=TIMEOUT_MS,
        )  # fmt: skip

    @property
    def voters(self):
        return sorted(voters_of(self.leader.kraft))

    def caught_up(self, node_id, ago_ms=0):
        replica = self.leader.replicas[key(node_id)] = Replica(key(node_id))
        replica.fetched(10, 10, self.clock.time_ms() - ago_ms)

    def add(self, node_id, *, waits=True):
        self.changes.add(key(node_id), HERE, self.answers.append, waits=waits)

    def remove(self, node_id):
        self.changes.remove(key(node_id), self.answers.append)


@pytest.fixture
def scene():
    return Scene(kraft_of(1, 2))


def test_a_voter_is_added_when_that_is_committed(scene):
    scene.caught_up(3)
    scene.add(3)
    assert scene.voters == [1, 2]
    scene.leader.answers()
    assert (scene.voters, scene.answers) == ([1, 2, 3], [])
    scene.changes.committed()  # the high watermark has not passed it
    assert scene.answers == []
    scene.leader.commit(scene.changes)
    assert scene.answers == [None]
    assert scene.controllers.endpoint_of(3).port == 9093
    scene.clock.advance(10)
    assert scene.answers == [None]


def test_who_does_not_wait_is_answered_when_the_record_is_appended(scene):
    scene.caught_up(3)
    scene.add(3, waits=False)
    scene.leader.answers()
    assert scene.answers == [None]
    with pytest.raises(RequestTimedOut, match="previous voter change"):
        scene.remove(2)  # the change is still one in progress
    scene.leader.commit(scene.changes)
    scene.remove(2)
    assert scene.answers == [None]


@pytest.mark.parametrize(
    ("spoil", "error", "text"),
    [
        (lambda leader: setattr(leader, "high_watermark", None), RequestTimedOut, "establish HWM"),
        (lambda leader: setattr(leader, "high_watermark", 4), RequestTimedOut, r"Optional\[4\] with HWM 4"),
        (
            lambda leader: setattr(leader, "kraft", kraft_of(version=0)),
            UnsupportedVersion,
            "kraft.version feature is 0",
        ),
    ],
)
def test_changes_that_must_wait_or_cannot_be(scene, spoil, error, text):
    spoil(scene.leader)
    for change in (scene.add, scene.remove):
        with pytest.raises(error, match=text):
            change(2)
    assert scene.leader.requests == []


def test_one_change_at_a_time(scene):
    scene.add(3)
    for change in (scene.add, scene.remove):
        with pytest.raises(RequestTimedOut, match="previous voter change"):
            change(2)
    with pytest.raises(RequestTimedOut):
        scene.changes.update(key(2), HERE, Levels(0, 1))


def test_a_voter_that_is_one_already(scene):
    with pytest.raises(
        DuplicateVoter, match=r"ReplicaKey\(id=2, .* already part of the set of voters \[ReplicaKey\(id=1"
    ):
        scene.add(2)


def test_a_new_voter_that_does_not_answer(scene):
    scene.caught_up(3)
    scene.add(3)
    scene.leader.answers(error=NetworkException())
    assert [type(each) for each in scene.answers] == [RequestTimedOut]
    scene.add(3)  # the next one may begin
    scene.clock.advance(TIMEOUT_MS / 1000)
    assert [type(each) for each in scene.answers] == [RequestTimedOut] * 2
    scene.leader.answers()  # too late
    assert (scene.voters, len(scene.answers)) == ([1, 2], 2)


@pytest.mark.parametrize("ago_ms", [None, 3_600_001])
def test_a_new_voter_that_lags(scene, ago_ms):
    if ago_ms is not None:
        scene.caught_up(3, ago_ms)
    scene.add(3)
    scene.leader.answers()
    (error,) = scene.answers
    assert isinstance(error, RequestTimedOut) and "lagging behind" in str(error)
    assert scene.voters == [1, 2]


def test_a_new_voter_that_knows_no_voters_in_the_log(scene):
    scene.caught_up(3)
    scene.add(3)
    scene.leader.answers(last=0)
    (error,) = scene.answers
    assert isinstance(error, InvalidRequest)
    assert "kraft.version range (min: 0, max: 0 doesn't support the finalized version 1" in str(error)  # as Apache's


def test_a_new_voter_that_names_no_levels(scene):
    scene.caught_up(3)
    scene.add(3)
    scene.leader.answers(features=())
    (error,) = scene.answers
    assert "kraft.version range (min: 0, max: 0) doesn't support the finalized version 1" in str(error)


def test_a_change_that_is_not_committed_in_time(scene):
    scene.remove(2)
    assert scene.voters == [1]
    scene.clock.advance(TIMEOUT_MS / 1000)
    assert [type(each) for each in scene.answers] == [RequestTimedOut]
    scene.leader.commit(scene.changes)
    assert len(scene.answers) == 1


def test_a_leader_that_leads_no_more(scene):
    scene.remove(2)
    scene.changes.lost()
    assert [type(each) for each in scene.answers] == [NotLeaderOrFollower]


def test_a_leader_that_is_removed_resigns_when_that_is_committed(scene):
    scene.remove(1)
    assert (scene.voters, scene.leader.resigned) == ([2], 0)
    scene.leader.commit(scene.changes)
    assert (scene.answers, scene.leader.resigned) == ([None], 1)


def test_a_leader_resigns_though_its_removal_took_longer_than_the_request(scene):
    scene.remove(1)
    scene.clock.advance(TIMEOUT_MS / 1000)
    scene.changes.committed()  # the high watermark has not passed it
    assert ([type(each) for each in scene.answers], scene.leader.resigned) == ([RequestTimedOut], 0)
    scene.leader.commit(scene.changes)
    assert (len(scene.answers), scene.leader.resigned) == (1, 1)


def test_a_leader_without_voters_in_its_log_stays():
    scene = Scene(kraft_of(version=0))
    scene.leader.commit(scene.changes)
    assert scene.leader.resigned == 0


@pytest.mark.parametrize(
    ("kraft", "replica"),
    [(kraft_of(1, 2), key(3)), (kraft_of(1, 2), ReplicaKey(2, bytes(15) + b"9")), (kraft_of(1), key(1))],
    ids=["no voter", "another directory", "the last one"],
)
def test_voters_that_cannot_be_removed(kraft, replica):
    scene = Scene(kraft)
    with pytest.raises(VoterNotFound, match="Cannot remove voter"):
        scene.changes.remove(replica, scene.answers.append)


def test_a_voter_that_listens_elsewhere(scene):
    scene.changes.update(key(2), ELSEWHERE, Levels(0, 1))
    assert [each.port for each in voters_of(scene.leader.kraft)[2].endpoints] == [9999]
    assert scene.leader.heard == [2]


@pytest.mark.parametrize(
    ("replica", "endpoints", "levels", "error"),
    [
        (key(3), HERE, Levels(0, 1), VoterNotFound),
        (ReplicaKey(2, bytes(15) + b"9"), HERE, Levels(0, 1), VoterNotFound),
        (key(2), HERE, Levels(0, 0), InvalidRequest),
        (key(2), [], Levels(0, 1), InvalidRequest),
    ],
)
def test_updates_that_are_refused(scene, replica, endpoints, levels, error):
    with pytest.raises(error):
        scene.changes.update(replica, endpoints, levels)


def test_directories_that_are_told_while_the_log_names_no_voters():
    scene = Scene(kraft_of(version=0))
    scene.changes.update(key(2), HERE, Levels(0, 1))
    with pytest.raises(VoterNotFound):
        scene.changes.update(key(7), HERE, Levels(0, 1))
    assert list(scene.changes.in_memory) == [2]
    scene.changes.lost()  # another leader gets the updates again
    assert scene.changes.in_memory == {}


def test_the_offset_of_the_record_that_names_the_voters():
    def batch(records, offset):
        return RecordBatch.parse(control_batch(records, timestamp=0, epoch=1, base_offset=offset))

    history = KRaftHistory()
    assert history.voters_offset == -1
    history.read([batch(control_records(kraft_of(1)), 5), batch([voters_record(voters_of(kraft_of(1, 2)))], 9)])
    assert history.voters_offset == 9
    history.truncate_to(9)
    assert (history.voters_offset, sorted(voters_of(history.latest))) == (5, [1])
    history.forget_before(8)
    assert history.voters_offset == -1
