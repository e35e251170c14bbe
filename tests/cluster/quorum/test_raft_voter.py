"""Voters of one quorum, each with a log on a disk: random walks under Raft's invariants, and the mistakes they find."""

import errno
from types import SimpleNamespace

import pytest

from barnabas.cluster.quorum.ballots import vote_request
from barnabas.cluster.quorum.client import LastLeader, ReplicaKey
from barnabas.cluster.quorum.elections import AskVote, Leader, LogEnd
from barnabas.cluster.quorum.raft_voter import RaftVoter
from barnabas.errors import KafkaStorageError
from tests.cluster.quorum.voting import CLUSTER_ID, Walk


def settled(walk):
    """Runs until the quorum is idle. Returns the leader."""
    walk.heal()
    before = len(walk.commits)
    walk.run(15, faults=False)
    leaders = [member for member in walk.up if member.voter.is_leader]
    assert len(leaders) == 1, "there is no leader"
    assert len(walk.commits) > before + 5, "nothing is committed"
    return leaders[0]


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_walks(size):
    for seed in range(25):
        walk = Walk(seed, size=size)
        walk.run(40, faults=True)
        leader = settled(walk)
        walk.run(5, faults=False, changes=False)
        logs = {member.content(member.log.log_end_offset) for member in walk.up}
        assert logs == {leader.content(leader.log.log_end_offset)}, f"seed {seed}: the logs differ"


def test_voters_that_know_no_pre_votes():
    for seed in range(10):
        walk = Walk(seed, votes=1)
        walk.run(40, faults=True)
        settled(walk)


class AnswersBeforeTheDisk(RaftVoter):
    """Counts its log, instead of the fsynced part of it."""

    def synced_offset(self):
        return self.metadata_log.log.log_end_offset

    def _waits_for_disk(self):
        return False


class IsActiveAtOnce(RaftVoter):
    """Becomes active before it knows the committed records."""

    @property
    def is_leader(self):
        return self.is_elected


class CommitsAnEarlierEpoch(RaftVoter):
    """Commits the records of a majority, even without a record of its own epoch."""

    def _turn(self):
        super()._turn()
        if isinstance(self.elections.state, Leader):
            self.elections.state.start_offset = -1


@pytest.mark.parametrize("mistake", [AnswersBeforeTheDisk, IsActiveAtOnce, CommitsAnEarlierEpoch])
def test_walks_find_mistakes(mistake):
    for seed in range(200):
        walk = Walk(seed, kind=mistake)
        try:
            walk.run(40, faults=True)
            settled(walk)
        except AssertionError:
            return
    raise AssertionError("no walk has found it")


def test_a_new_leader_knows_when_the_last_one_has_answered():
    walk = Walk(5)
    before = settled(walk)
    before.kill(power_cut=False)
    killed = walk.clock.monotonic()
    after = settled(walk)
    assert after is not before
    assert after.voter.last_leader.node_id == before.id
    assert killed - after.voter.last_leader.answered <= 0.5
    after.voter.resign(lambda: None)
    assert after.voter.last_leader == LastLeader()
    walk.run(5, faults=False)
    assert after.voter.last_leader.node_id == after.voter.leadership.leader_id != after.id


def test_a_voter_whose_vote_cannot_be_stored_stops():
    walk = Walk(3)
    broken = walk.members[1]
    broken.files.fail_now(errno.ENOSPC)
    answers = []
    broken.answer(vote_of(walk.members[2]), answers.append)
    (answer,) = answers
    assert (answer.error_code, answer.topics) == (KafkaStorageError.code, [])
    (reason,) = broken.fatal
    assert "the state of the metadata quorum cannot be stored" in reason
    assert "quorum-state" in reason


def vote_of(member):
    """Requests a vote in a new epoch."""
    message = AskVote(ReplicaKey(1), 1, LogEnd(0, 0), pre_vote=False)
    return vote_request(message, ReplicaKey(member.id, bytes([member.id]) * 16), CLUSTER_ID)


def test_a_backoff_that_has_ended_is_no_time_to_wait_for(monkeypatch):
    """Otherwise the timer for the leader's backoff would come at once, again and again."""
    walk = Walk(3)
    leader = settled(walk)
    member, other = (each for each in walk.up if each is not leader)
    voter = member.voter
    now, waited = walk.clock.monotonic(), []
    monkeypatch.setattr(voter, "_waits_for_disk", lambda: False)
    voter._attempt, voter._is_syncing = None, False
    voter._backing_off = {other.id: now - 1.0, leader.id: now + 0.5}
    voter._scheduler = SimpleNamespace(call_later=lambda delay, call: waited.append(delay))
    voter._step()
    assert waited == [0.5]
