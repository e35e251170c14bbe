"""Voters and their elections: single rules, and random walks of a quorum under Raft's invariants."""

from random import Random

import pytest

from barnabas.clock import ManualClock
from barnabas.cluster.quorum.client import NO_NODE, ReplicaKey
from barnabas.cluster.quorum.elections import (
    AskVote,
    BeginEpoch,
    Candidate,
    Elected,
    Elections,
    EndEpoch,
    Follower,
    Leader,
    LogEnd,
    Prospective,
    Resigned,
    Unattached,
)
from barnabas.errors import FencedLeaderEpoch, InvalidRequest, InvalidVoterKey

EMPTY = LogEnd(0, 0)


class Around:
    """Three voters, and a log that the test sets."""

    def __init__(self, size=3):
        self.size, self.end, self.stored = size, EMPTY, []

    def voters(self):
        return {node_id: ReplicaKey(node_id) for node_id in range(1, self.size + 1)}

    def log_end(self):
        return self.end

    def synced_offset(self):
        return self.end.offset

    def store(self, elected):
        self.stored.append(elected)


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def around():
    return Around()


@pytest.fixture
def voter(around, clock):
    """Voter 1 of three, just started."""
    made = Elections(ReplicaKey(1), around, clock, Random(1))
    made.start(Elected(4))
    return made


def ask(voter, *, candidate=2, epoch=5, end=EMPTY, pre_vote=False, directory=ReplicaKey(1)):  # noqa: B008
    error, granted = voter.vote(ReplicaKey(candidate), epoch, end, directory, pre_vote=pre_vote)
    return type(error) if error else granted


def elect(voter, clock):
    """Makes the voter win an election."""
    clock.advance(2)
    for node_id, request in [(each.voter.node_id, each) for each in voter.poll()]:
        voter.voted(node_id, request, granted=True)
    requests = voter.poll()
    voter.voted(requests[0].voter.node_id, requests[0], granted=True)
    assert voter.is_leader


# ---------------------------------------------------------------- single rules


def test_a_vote_is_given_once_an_epoch(voter, around):
    assert ask(voter, candidate=2) is True
    assert around.stored[-1] == Elected(5, NO_NODE, ReplicaKey(2))
    assert ask(voter, candidate=2) is True
    assert ask(voter, candidate=3) is False
    assert ask(voter, candidate=3, epoch=6) is True


def test_a_shorter_log_gets_no_vote(voter, around):
    around.end = LogEnd(3, 10)
    assert ask(voter, end=LogEnd(3, 9)) is False
    assert ask(voter, end=LogEnd(2, 90)) is False
    assert ask(voter, end=LogEnd(3, 10)) is True


def test_a_pre_vote_binds_nobody(voter, around):
    assert ask(voter, candidate=2, epoch=4, pre_vote=True) is True
    assert ask(voter, candidate=3, epoch=4, pre_vote=True) is True
    assert around.stored == []


def test_a_follower_that_hears_its_leader_gives_no_vote(voter):
    voter.heard_of(3, 5)
    assert ask(voter, pre_vote=True) is True  # it knows the leader, but has not fetched from it
    voter.fetched()
    assert ask(voter, pre_vote=True) is False
    assert ask(voter) is False
    assert ask(voter, epoch=6) is True


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        ({"epoch": 3}, FencedLeaderEpoch),
        ({"candidate": -1}, InvalidRequest),
        ({"end": LogEnd(-1, 0)}, InvalidRequest),
        ({"end": LogEnd(0, -1)}, InvalidRequest),
        ({"end": LogEnd(5, 1)}, InvalidRequest),
        ({"end": LogEnd(5, 1), "pre_vote": True}, True),
        ({"end": LogEnd(6, 1), "pre_vote": True}, InvalidRequest),
        ({"directory": ReplicaKey(2)}, InvalidVoterKey),
    ],
)
def test_requests_for_votes(voter, fields, answer):
    assert ask(voter, **fields) is answer


def test_an_election(voter, around, clock):
    clock.advance(2)
    requests = voter.poll()
    assert isinstance(voter.state, Prospective)
    assert [(each.voter.node_id, each.epoch, each.pre_vote) for each in requests] == [(2, 4, True), (3, 4, True)]
    assert voter.poll() == []
    voter.voted(2, requests[0], granted=True)
    assert isinstance(voter.state, Candidate)
    assert around.stored[-1] == Elected(5, NO_NODE, ReplicaKey(1))
    requests = voter.poll()
    assert [(each.epoch, each.pre_vote) for each in requests] == [(5, False), (5, False)]
    voter.voted(3, requests[1], granted=True)
    assert isinstance(voter.state, Leader)
    assert around.stored[-1] == Elected(5, 1, ReplicaKey(1))
    assert voter.poll() == [BeginEpoch(ReplicaKey(2), 5), BeginEpoch(ReplicaKey(3), 5)]


def test_a_lost_pre_vote_costs_no_epoch(voter, around, clock):
    clock.advance(2)
    for request in voter.poll():
        voter.voted(request.voter.node_id, request, granted=False)
    assert isinstance(voter.state, Unattached)
    assert (voter.epoch, around.stored) == (4, [])


def test_a_lost_election_begins_with_a_pre_vote_again(voter, clock):
    clock.advance(2)
    first, _ = voter.poll()
    voter.voted(2, first, granted=True)
    for request in voter.poll():
        voter.voted(request.voter.node_id, request, granted=False)
    assert isinstance(voter.state, Prospective)
    assert voter.epoch == 5


def test_a_request_without_a_response_is_repeated(voter, clock):
    clock.advance(2)
    voter.poll()
    voter.unanswered(3)
    assert [each.voter.node_id for each in voter.poll()] == [3]


def test_an_answer_to_an_earlier_election_does_not_count(voter, clock):
    clock.advance(2)
    old = AskVote(ReplicaKey(2), 3, EMPTY, True)
    voter.poll()
    voter.voted(2, old, granted=True)
    voter.voted(2, old._replace(epoch=4, pre_vote=False), granted=True)
    assert isinstance(voter.state, Prospective)


def test_a_follower_whose_leader_is_silent_begins_an_election(voter, clock):
    voter.heard_of(3, 5)
    clock.advance(1.9)
    voter.fetched()
    clock.advance(1.9)
    assert voter.poll() == []
    clock.advance(0.2)
    assert [each.pre_vote for each in voter.poll()] == [True, True]
    assert voter.leader_id == 3  # until there is another


def test_a_follower_whose_leader_refuses_connections_begins_an_election(voter, clock):
    voter.heard_of(3, 5)
    voter.fetched()
    voter.refused(2)
    assert voter.due == clock.monotonic() + 2
    voter.refused(3)
    assert voter.due <= clock.monotonic() + 0.1
    assert ask(voter, pre_vote=True) is True  # it gives its own pre-vote, too
    clock.advance(0.1)
    assert [each.pre_vote for each in voter.poll()] == [True, True]
    assert voter.epoch == 5


def test_a_leader_that_has_not_been_fetched_from_may_still_start(voter, clock):
    voter.heard_of(3, 5)
    voter.refused(3)
    assert voter.due == clock.monotonic() + 2


def test_a_leader_that_others_fetch_from_keeps_its_lead(voter, clock):
    """The network refuses connections of one voter only: the others reject its pre-votes once."""
    voter.heard_of(3, 5)
    voter.fetched()
    voter.refused(3)
    clock.advance(0.1)
    for request in voter.poll():
        voter.voted(request.voter.node_id, request, granted=False)
    voter.refused(3)
    assert (type(voter.state), voter.epoch, voter.leader_id) == (Follower, 5, 3)
    assert voter.due == clock.monotonic() + 2


def test_only_a_record_of_its_own_epoch_is_committed_by_count(voter, around, clock):
    around.end = LogEnd(3, 10)
    elect(voter, clock)
    assert voter.copied(2, 10) is False
    around.end = LogEnd(5, 11)
    assert voter.copied(2, 10) is False
    assert voter.copied(2, 11) is True
    assert voter.high_watermark == 11
    assert voter.copied(3, 5) is False
    assert voter.high_watermark == 11


def test_a_leader_that_a_majority_has_left_resigns(voter, clock):
    elect(voter, clock)
    clock.advance(2.9)
    voter.copied(3, 1)
    clock.advance(2.9)
    voter.poll()
    assert voter.is_leader
    clock.advance(0.2)
    assert voter.poll() == [
        EndEpoch(ReplicaKey(2), 5, (ReplicaKey(3), ReplicaKey(2))),
        EndEpoch(ReplicaKey(3), 5, (ReplicaKey(3), ReplicaKey(2))),
    ]
    assert isinstance(voter.state, Resigned)
    clock.advance(2)
    voter.poll()
    assert (type(voter.state), voter.epoch) == (Unattached, 6)


def test_successors_begin_one_after_the_other(voter, clock):
    for place, wait in ((0, 0.0), (1, 0.5), (2, 1.0)):
        voter.heard_of(3, 5 + place)
        successors = [ReplicaKey(7), ReplicaKey(8)]
        successors.insert(place, ReplicaKey(1))
        assert voter.end_epoch(3, 5 + place, successors[: place + 1]) is None
        assert voter.due == pytest.approx(clock.monotonic() + min(wait * 2 if place == 1 else wait, 1.0), abs=0.51)


def test_the_epochs_leader_is_one(voter):
    assert voter.begin_epoch(3, 5, ReplicaKey(1)) is None
    assert isinstance(voter.begin_epoch(2, 5, ReplicaKey(1)), InvalidRequest)
    assert isinstance(voter.begin_epoch(2, 4, ReplicaKey(1)), FencedLeaderEpoch)
    assert isinstance(voter.begin_epoch(1, 6, ReplicaKey(1)), InvalidRequest)
    assert voter.leader_id == 3


@pytest.mark.parametrize(
    ("stored", "state"),
    [
        (Elected(4), Unattached),
        (Elected(4, 3), Follower),
        (Elected(4, 1, ReplicaKey(1)), Resigned),
        (Elected(4, NO_NODE, ReplicaKey(1)), Candidate),
        (Elected(4, NO_NODE, ReplicaKey(2)), Unattached),
    ],
)
def test_after_a_restart(around, clock, stored, state):
    voter = Elections(ReplicaKey(1), around, clock, Random(1))
    voter.start(stored)
    assert (type(voter.state), voter.epoch) == (state, 4)


def test_a_lone_voter_leads_at_once(clock):
    around = Around(size=1)
    voter = Elections(ReplicaKey(1), around, clock, Random(1))
    voter.start(Elected(4, 1, ReplicaKey(1)))
    assert (voter.is_leader, voter.epoch) == (True, 5)
    around.end = LogEnd(5, 1)
    assert voter.advance()
    clock.advance(1000)
    assert voter.poll() == []


def test_a_leader_that_becomes_alone_goes_on(voter, around, clock):
    elect(voter, clock)
    around.size = 1
    voter.voters_changed()
    voter.heard_from(1)
    clock.advance(1000)
    assert voter.poll() == []
    assert voter.is_leader
    around.size = 3
    voter.voters_changed()
    clock.advance(1000)
    voter.poll()
    assert isinstance(voter.state, Resigned)


# ---------------------------------------------------------------- walks


class Member:
    """A voter of the walk, with a log of (epoch, value)."""

    def __init__(self, walk, node_id, kind):
        self.walk, self.id, self.kind = walk, node_id, kind
        self.log, self.elected, self.high_watermark = [], Elected(), 0
        self.voter, self.fetching, self.led = None, 0.0, 0
        self.start()

    def start(self):
        self.voter = self.kind(ReplicaKey(self.id), self, self.walk.clock, self.walk.random)
        self.high_watermark = 0
        self.voter.start(self.elected)

    def voters(self):
        return {node_id: ReplicaKey(node_id) for node_id in self.walk.ids}

    def log_end(self):
        return LogEnd(self.log[-1][0] if self.log else 0, len(self.log))

    def synced_offset(self):
        return len(self.log)

    def store(self, elected):
        before, self.elected = self.elected, elected
        assert elected.epoch >= before.epoch, "an epoch goes back"
        if elected.epoch == before.epoch:
            assert before.voted in (None, elected.voted), "two votes in an epoch"
            assert before.leader_id in (NO_NODE, elected.leader_id), "two leaders of an epoch"

    def step(self):
        """Sends the due messages."""
        voter, now = self.voter, self.walk.clock.monotonic()
        for message in voter.poll():
            self.walk.send(self.id, message.voter.node_id, message)
        if isinstance(voter.state, Leader):
            if self.led < voter.epoch:
                self.led = voter.epoch
                self.walk.elected(self)
                self.log.append((voter.epoch, None))
            if self.walk.random.random() < 0.3:
                self.log.append((voter.epoch, self.walk.random.random()))
            if voter.advance():
                self.walk.committed(self, voter.high_watermark)
        elif now >= self.fetching:
            others = [each for each in self.walk.ids if each != self.id]
            target = voter.leader_id if voter.leader_id != NO_NODE else self.walk.random.choice(others)
            self.fetching = now + 0.5
            end = self.log_end()
            self.walk.send(self.id, target, ("fetch", voter.epoch, end))

    def end_of(self, epoch):
        """Returns the largest epoch up to this one, and its end."""
        below = [each for each, _ in self.log if each <= epoch]
        return (below[-1] if below else 0, len(below))

    def receive(self, sender, message):
        voter = self.voter
        match message:
            case AskVote(key, epoch, end, pre_vote):
                error, granted = voter.vote(ReplicaKey(sender), epoch, end, key, pre_vote=pre_vote)
                answer = ("voted", message, granted if error is None else None, voter.epoch, voter.leader_id)
                self.walk.send(self.id, sender, answer)
            case BeginEpoch(key, epoch):
                voter.begin_epoch(sender, epoch, key)
            case EndEpoch(_, epoch, successors):
                voter.end_epoch(sender, epoch, successors)
            case ("voted", request, granted, epoch, leader_id):
                if voter.heard_of(leader_id, epoch) and granted is not None:
                    voter.voted(sender, request, granted=granted)
            case ("fetch", epoch, end):
                self.walk.send(self.id, sender, ("fetched", *self.fetched(sender, epoch, end), end))
            case ("fetched", epoch, leader_id, found, end):
                self.fetching = 0.0
                self.take(epoch, leader_id, found, end)

    def fetched(self, sender, epoch, end):
        voter = self.voter
        if voter.check_leader_request(epoch) is not None or not voter.is_leader:
            return voter.epoch, voter.leader_id, None
        last, offset = self.end_of(end.epoch)
        if end.offset and (last != end.epoch or offset < end.offset):
            return voter.epoch, voter.leader_id, ("diverging", last, offset)
        if voter.copied(sender, end.offset):
            self.walk.committed(self, voter.high_watermark)
        entries = self.log[end.offset : end.offset + 4]
        return voter.epoch, voter.leader_id, ("entries", entries, voter.high_watermark)

    def take(self, epoch, leader_id, found, end):
        voter = self.voter
        if not voter.heard_of(leader_id, epoch) or voter.epoch != epoch or found is None:
            return
        if not isinstance(voter.state, Follower) or end != self.log_end():
            return
        voter.fetched()
        if found[0] == "diverging":
            own, own_end = self.end_of(found[1])
            cut = min(own_end, found[2]) if own == found[1] else own_end
            assert cut >= self.high_watermark, "what is committed is removed"
            del self.log[cut:]
        else:
            self.log += found[1]
            self.high_watermark = max(self.high_watermark, min(found[2], len(self.log)))
            self.walk.check(self.log[: self.high_watermark])


class Walk:
    """A quorum under a random sequence of losses, partitions, pauses and restarts."""

    def __init__(self, seed, *, size=3, kind=Elections):
        self.random, self.clock = Random(seed), ManualClock()
        self.ids = list(range(1, size + 1))
        self.wire, self.leaders, self.commits, self.down, self.cut = [], {}, [], set(), set()
        self.loss = self.random.choice([0, 0.05, 0.3])
        self.members = {node_id: Member(self, node_id, kind) for node_id in self.ids}

    def send(self, sender, target, message):
        if self.random.random() >= self.loss:
            delay = self.random.choice([0.01, 0.05, self.random.random()])
            self.wire.append((self.clock.monotonic() + delay, sender, target, message))

    def elected(self, member):
        """Checks Raft's election safety and leader completeness."""
        epoch = member.voter.epoch
        assert self.leaders.setdefault(epoch, member.id) == member.id, "two nodes lead an epoch"
        assert member.log[: len(self.commits)] == self.commits, "a leader lacks what is committed"

    def committed(self, member, high_watermark):
        self.check(member.log[:high_watermark])
        self.commits += member.log[len(self.commits) : high_watermark]

    def check(self, log):
        """Checks state machine safety."""
        common = min(len(log), len(self.commits))
        assert log[:common] == self.commits[:common], "what was committed is another thing here"

    def run(self, seconds, *, faults):
        until = self.clock.monotonic() + seconds
        while self.clock.monotonic() < until:
            self.clock.advance(0.05)
            if faults and self.random.random() < 0.05:
                self.fault()
            now = self.clock.monotonic()
            due = sorted((each for each in self.wire if each[0] <= now), key=lambda each: each[0])
            self.wire = [each for each in self.wire if each[0] > now]
            for _, sender, target, message in due:
                if target not in self.down and not {(sender, target), (sender, 0), (0, target)} & self.cut:
                    self.members[target].receive(sender, message)
                elif message[0] == "fetch" and sender not in self.down and self.random.random() < 0.5:
                    self.members[sender].voter.refused(target)
            for member in self.members.values():
                if member.id not in self.down:
                    member.step()

    def fault(self):
        node_id = self.random.choice(self.ids)
        match self.random.randrange(6):
            case 0:
                self.down.add(node_id)
            case 1 | 2:
                if node_id in self.down:
                    self.down.discard(node_id)
                    if self.random.random() < 0.7:  # otherwise it was only paused
                        self.members[node_id].start()
            case 3:
                self.cut |= {(node_id, 0), (0, node_id)}
            case 4:
                self.cut.add((node_id, self.random.choice(self.ids)))  # one way
            case 5:
                self.cut = set()

    def heal(self):
        self.cut, self.loss = set(), 0
        for node_id in sorted(self.down):
            self.members[node_id].start()
        self.down = set()


@pytest.mark.parametrize("size", [2, 3, 5])
def test_walks(size):
    for seed in range(40):
        walk = Walk(seed, size=size)
        walk.run(60, faults=True)
        walk.heal()
        before = len(walk.commits)
        walk.run(15, faults=False)
        leaders = [each for each in walk.members.values() if each.voter.is_leader]
        assert len(leaders) == 1, f"seed {seed}: there is no leader"
        assert len(walk.commits) > before + 5, f"seed {seed}: nothing is committed"


class VotesTwice(Elections):
    def _grants(self, candidate, is_up_to_date, *, pre_vote):
        return is_up_to_date


class VotesForAnyLog(Elections):
    def _grants(self, candidate, is_up_to_date, *, pre_vote):
        return super()._grants(candidate, True, pre_vote=pre_vote)


class ForgetsItsVote(Elections):
    def start(self, stored):
        super().start(stored._replace(voted=None))


class CountsAMinority(Elections):
    def advance(self):
        state = self.state
        if isinstance(state, Leader) and self._around.log_end().offset > max(self.high_watermark, state.start_offset):
            self.high_watermark = self._around.log_end().offset
            return True
        return False


@pytest.mark.parametrize(
    "mistake",
    [VotesTwice, VotesForAnyLog, ForgetsItsVote, CountsAMinority],
)
def test_walks_find_mistakes(mistake):
    for seed in range(400):
        try:
            Walk(seed, size=3 + 2 * (seed % 2), kind=mistake).run(60, faults=True)
        except AssertionError:
            return
    raise AssertionError(f"{mistake.__name__} is not found")
