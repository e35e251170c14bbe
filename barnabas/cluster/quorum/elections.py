"""Who leads the quorum of voters: one voter's part in its elections.

Knows nothing of requests' bytes, sockets or files, nor of what the log holds: time, chance, the log's end and the store
of what must survive are passed in. States and transitions are those of Apache Kafka's ``QuorumState`` and
``KafkaRaftClient`` (KIP-595, pre-votes KIP-996).

::

    Unattached --election timeout--> Prospective --pre-votes of a majority--> Candidate --votes of a majority--> Leader
        |  ^                          |        ^                                 |                                |
        |  '--no leader: rejected-----'        '--------rejected, timeout--------'            check-quorum timeout|
        '--hears of the leader--> Follower --fetch timeout--> Prospective                      Unattached <-- Resigned

Any state becomes Unattached in a higher epoch, or Follower of its leader.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple, Protocol

from barnabas.clock import Clock
from barnabas.cluster.quorum.client import NO_NODE, ReplicaKey
from barnabas.errors import FencedLeaderEpoch, InvalidRequest, InvalidVoterKey, KafkaError, UnknownLeaderEpoch

NEVER = float("inf")


class LogEnd(NamedTuple):
    """The epoch of the last record and the end of the log. A later one is more up to date."""

    epoch: int
    offset: int


class Elected(NamedTuple):
    """What must be on the disk before it counts: the epoch, its leader, and whom this node has voted for in it."""

    epoch: int = 0
    leader_id: int = NO_NODE
    voted: ReplicaKey | None = None


class Times(NamedTuple):
    """The configs ``controller.quorum.*.ms``, in seconds."""

    election: float = 1.0
    fetch: float = 2.0
    backoff_max: float = 1.0


DEFAULT_TIMES = Times()


class Surroundings(Protocol):
    """What an election depends on."""

    def voters(self) -> Mapping[int, ReplicaKey]:
        """Returns the voters by their node ids, as the end of the log has them."""

    def log_end(self) -> LogEnd:
        """Returns the end of the log."""

    def synced_offset(self) -> int:
        """Returns the offset below which all of the log is on the disk."""

    def store(self, elected: Elected) -> None:
        """Writes to the disk what must survive."""


# ---------------------------------------------------------------- what is sent


class AskVote(NamedTuple):
    """A Vote request. In a pre-vote the epoch is the one that the sender is in."""

    voter: ReplicaKey
    epoch: int
    log_end: LogEnd
    pre_vote: bool


class BeginEpoch(NamedTuple):
    """A BeginQuorumEpoch request: this node leads the epoch."""

    voter: ReplicaKey
    epoch: int


class EndEpoch(NamedTuple):
    """An EndQuorumEpoch request: this node leads no more; the best successors come first."""

    voter: ReplicaKey
    epoch: int
    successors: tuple[ReplicaKey, ...]


Message = AskVote | BeginEpoch | EndEpoch


# ---------------------------------------------------------------- states


@dataclass
class State:
    """What all states have. ``deadline`` is by the monotonic clock."""

    elected: Elected
    deadline: float = NEVER


@dataclass
class Unattached(State):
    """Waits for a leader or for its election timeout. It may have voted in the epoch."""


@dataclass
class Follower(State):
    """Fetches from the leader."""

    has_fetched: bool = False


@dataclass
class Nominee(State):
    """Asks the others for their votes."""

    granted: set[int] = field(default_factory=set)
    rejected: set[int] = field(default_factory=set)
    sent_to: set[int] = field(default_factory=set)


@dataclass
class Prospective(Nominee):
    """Asks the others whether they would vote for it. The epoch stays (KIP-996)."""


@dataclass
class Candidate(Nominee):
    """Asks for votes in an epoch of its own."""


@dataclass
class Copy:
    """What a leader knows of another voter's log."""

    offset: int = -1
    fetched_at: float = -NEVER


@dataclass
class Leader(State):
    """Leads the epoch, which begins at an offset of the log. Resigns at the deadline if no majority fetches."""

    start_offset: int = 0
    begin_at: float = 0.0  # when BeginQuorumEpoch is sent to those who have not fetched
    copies: dict[int, Copy] = field(default_factory=dict)
    since_check: set[int] = field(default_factory=set)
    granting: frozenset[int] = frozenset()  #: whose votes have made it the leader, its own among them


@dataclass
class Resigned(State):
    """Has led the epoch, and tells the others, until they answer or its election timeout ends."""

    successors: tuple[ReplicaKey, ...] = ()
    unanswered: set[int] = field(default_factory=set)


class Elections:
    """One voter. Call :meth:`poll` whenever :attr:`due` has come, and after every other call."""

    def __init__(
        self, own: ReplicaKey, around: Surroundings, clock: Clock, random: Random, times: Times = DEFAULT_TIMES
    ) -> None:
        self.own = own
        self.high_watermark = -1  #: while this node leads: -1 until a record of its epoch is committed
        self._around = around
        self._clock = clock
        self._random = random
        self._times = times
        self.state: State = Unattached(Elected())

    # ------------------------------------------------------------ life

    def start(self, stored: Elected) -> None:
        """Goes on from what was stored. A node that has led its epoch does not lead it again."""
        end = self._around.log_end()
        if end.epoch > stored.epoch:
            stored = Elected(end.epoch)
        if stored.leader_id == self.own.node_id:
            self.state = Resigned(stored, self._election_timeout(), self._successors(), set())
        elif stored.leader_id != NO_NODE:
            self.state = Follower(stored, self._now() + self._times.fetch)
        elif stored.voted is not None and stored.voted.matches(self.own):
            self.state = Candidate(stored, self._election_timeout(), {self.own.node_id})
        else:
            self.state = Unattached(stored, self._election_timeout())
        if self._is_alone():
            self._become_candidate()

    @property
    def epoch(self) -> int:
        return self.state.elected.epoch

    @property
    def leader_id(self) -> int:
        """The leader of the epoch; :data:`~barnabas.cluster.quorum.client.NO_NODE` while it is not known."""
        return NO_NODE if isinstance(self.state, Resigned) else self.state.elected.leader_id

    @property
    def is_leader(self) -> bool:
        return isinstance(self.state, Leader)

    @property
    def due(self) -> float:
        """When :meth:`poll` is to be called at the latest."""
        if isinstance(self.state, Leader):
            return min(self.state.deadline, self.state.begin_at)
        return self.state.deadline

    def poll(self) -> list[Message]:
        """Does what is due, and returns what is to be sent."""
        if self._now() >= self.state.deadline:
            self._time_out()
        state = self.state
        if isinstance(state, Nominee):
            return self._ask(state)
        if isinstance(state, Leader) and self._now() >= state.begin_at:
            state.begin_at = self._now() + self._times.fetch / 2
            silent = [
                voter
                for voter in self._others()
                if state.copies.get(voter.node_id, Copy()).fetched_at <= self._now() - self._times.fetch / 2
            ]
            return [BeginEpoch(voter, self.epoch) for voter in silent]
        if isinstance(state, Resigned) and state.unanswered:
            unanswered, state.unanswered = state.unanswered, set()
            return [
                EndEpoch(voter, self.epoch, state.successors) for voter in self._others() if voter.node_id in unanswered
            ]
        return []

    def _ask(self, state: Nominee) -> list[Message]:
        is_pre_vote, end = isinstance(state, Prospective), self._around.log_end()
        silent = [voter for voter in self._others() if voter.node_id not in state.sent_to]
        state.sent_to |= {voter.node_id for voter in silent}
        return [AskVote(voter, self.epoch, end, is_pre_vote) for voter in silent]

    def _time_out(self) -> None:
        state = self.state
        if not self._has_vote() and not isinstance(state, Leader | Resigned):
            state.deadline = NEVER  # until it gets a vote: see voters_changed
        elif isinstance(state, Prospective):
            self._lose(state)
        elif isinstance(state, Leader):
            self.resign()
        elif isinstance(state, Resigned):
            self._become_unattached(self.epoch + 1)
        else:  # nobody leads, or the leader is silent, or the vote is split
            self._become_prospective()

    def voters_changed(self) -> None:
        """Takes over that the log names other voters: this node may have got a vote, lost it, or be alone now."""
        state = self.state
        if isinstance(state, Leader) and self._is_alone():
            state.deadline = NEVER
        elif state.deadline == NEVER and self._has_vote() and not self._is_alone():
            waits = self._times.fetch * 1.5 if isinstance(state, Leader) else self._times.election
            state.deadline = self._now() + waits * (1 + self._random.random())

    # ------------------------------------------------------------ asked by others

    def vote(
        self, candidate: ReplicaKey, epoch: int, log_end: LogEnd, voter: ReplicaKey, *, pre_vote: bool
    ) -> tuple[KafkaError | None, bool]:
        """Answers a Vote request: an error, or whether the vote is granted (``handleVoteRequest``)."""
        if log_end.epoch < 0 or log_end.offset < 0 or epoch < 0:
            return InvalidRequest(), False
        if log_end.epoch > epoch or (log_end.epoch == epoch and not pre_vote):
            return InvalidRequest(), False
        if epoch < self.epoch:
            return FencedLeaderEpoch(), False
        if candidate.node_id < 0:
            return InvalidRequest(), False
        if epoch > self.epoch:
            self._become_unattached(epoch)
        if not voter.matches(self.own):
            return InvalidVoterKey(), False
        granted = self._grants(candidate, log_end >= self._around.log_end(), pre_vote=pre_vote)
        if granted and not pre_vote:
            self._store(self.state.elected._replace(voted=candidate))
            if isinstance(self.state, Unattached):
                self.state.deadline = self._election_timeout()
        return None, granted

    def _grants(self, candidate: ReplicaKey, is_up_to_date: bool, *, pre_vote: bool) -> bool:
        state, elected = self.state, self.state.elected
        if pre_vote:
            if isinstance(state, Follower):
                return is_up_to_date and not state.has_fetched
            return is_up_to_date and not isinstance(state, Leader)
        if not isinstance(state, Unattached | Prospective):
            return False
        if elected.voted is not None:
            return elected.voted.matches(candidate)
        return elected.leader_id == NO_NODE and is_up_to_date

    def begin_epoch(self, leader_id: int, epoch: int, voter: ReplicaKey) -> KafkaError | None:
        """Answers a BeginQuorumEpoch request: a node says that it leads."""
        error = self._check_voters_request(leader_id, epoch)
        if error is not None:
            return error
        self.heard_of(leader_id, epoch)
        return None if voter.matches(self.own) else InvalidVoterKey()

    def end_epoch(self, leader_id: int, epoch: int, successors: Iterable[ReplicaKey]) -> KafkaError | None:
        """Answers an EndQuorumEpoch request: the leader resigns. The best successor begins an election at once."""
        error = self._check_voters_request(leader_id, epoch)
        if error is not None:
            return error
        self.heard_of(leader_id, epoch)
        if isinstance(self.state, Follower) and self.state.elected.leader_id == leader_id:
            self.state.deadline = self._now() + self._turn(list(successors))
        return None

    def _turn(self, successors: list[ReplicaKey]) -> float:
        """Returns how long a successor waits: each twice as long as the one before (``endEpochElectionBackoff``)."""
        place = next((index for index, each in enumerate(successors) if each.matches(self.own)), len(successors))
        if place == 0:
            return 0.0
        least = self._times.backoff_max / (1 << max(len(successors) - 1, 0))
        return min(self._times.backoff_max, least * (1 << (place - 1)))

    def _check_voters_request(self, node_id: int, epoch: int) -> KafkaError | None:
        if epoch < self.epoch:
            return FencedLeaderEpoch()
        if node_id < 0 or self._contradicts(node_id, epoch):
            return InvalidRequest()
        return None

    def _contradicts(self, leader_id: int, epoch: int) -> bool:
        if leader_id == self.own.node_id:
            return not (self.is_leader and epoch == self.epoch)
        return epoch == self.epoch and self.state.elected.leader_id not in (NO_NODE, leader_id)

    # ------------------------------------------------------------ answered by others

    def voted(self, node_id: int, request: AskVote, *, granted: bool) -> None:
        """Counts an answer to :class:`AskVote` that has no error."""
        state = self.state
        is_pre_vote = isinstance(state, Prospective)
        if not isinstance(state, Nominee) or request.epoch != self.epoch or request.pre_vote != is_pre_vote:
            return
        (state.granted if granted else state.rejected).add(node_id)
        voters = self._around.voters().keys()
        majority = len(voters) // 2 + 1
        if len(state.granted & voters) >= majority:
            self._become_candidate() if is_pre_vote else self._become_leader(state, state.granted & voters)
        elif len(state.rejected & voters) > len(voters) - majority:
            self._lose(state)

    def unanswered(self, node_id: int) -> None:
        """Asks that node again at the next :meth:`poll`: the request, or its answer, is lost."""
        if isinstance(self.state, Nominee) and node_id not in self.state.granted | self.state.rejected:
            self.state.sent_to.discard(node_id)
        elif isinstance(self.state, Resigned):
            self.state.unanswered.add(node_id)

    def without_pre_votes(self) -> None:
        """Goes on to the votes, since a voter does not know pre-votes (Apache Kafka before 4.0; KIP-996)."""
        if isinstance(self.state, Prospective):
            self._become_candidate()

    def heard_of(self, leader_id: int, epoch: int) -> bool:
        """Takes over what an answer or a request says of the leader. Returns whether the epoch is this node's now."""
        if epoch < self.epoch or (leader_id != NO_NODE and self._contradicts(leader_id, epoch)):
            return False
        if leader_id not in (NO_NODE, self.own.node_id):
            if epoch > self.epoch or self.state.elected.leader_id == NO_NODE:
                self._become_follower(leader_id, epoch)
        elif epoch > self.epoch:
            self._become_unattached(epoch)
        return True

    def fetched(self) -> None:
        """Counts an answer from the leader to a fetch of this follower."""
        if isinstance(self.state, Follower):
            self.state.has_fetched = True
            self.state.deadline = self._now() + self._times.fetch

    def refused(self, node_id: int) -> None:
        """Takes in that a node refuses connections. A follower whose leader does so begins an election soon.

        The leader's process has ended. Apache Kafka waits for ``controller.quorum.fetch.timeout.ms`` all the same. If
        the other voters still fetch from the leader, they refuse their pre-votes (KIP-996), and nothing has changed.
        """
        state = self.state
        if not (isinstance(state, Follower) and state.elected.leader_id == node_id and state.has_fetched):
            return
        state.has_fetched = False  # another one may have this vote
        if self._has_vote():
            others = sorted(self._around.voters().keys() - {node_id})
            place = others.index(self.own.node_id)  # one after the other: so votes are rarely split
            wait = (place + self._random.random()) * self._times.election / 10
            state.deadline = min(state.deadline, self._now() + wait)

    # ------------------------------------------------------------ leading

    def copied(self, node_id: int, offset: int) -> bool:
        """Takes over that another node's log has everything below ``offset``. Returns whether more is committed."""
        state = self.state
        if not isinstance(state, Leader):
            return False
        copy = state.copies.setdefault(node_id, Copy())
        copy.offset, copy.fetched_at = offset, self._now()
        self.heard_from(node_id)
        return self.advance()

    def heard_from(self, node_id: int) -> None:
        """Counts a voter among those that follow: a leader that no majority follows resigns, unless it is alone."""
        state = self.state
        if not isinstance(state, Leader) or self._is_alone():
            return
        state.since_check.add(node_id)
        voters = self._around.voters().keys()
        if len((state.since_check | {self.own.node_id}) & voters) > len(voters) // 2:
            state.since_check = set()
            state.deadline = self._now() + self._times.fetch * 1.5

    def advance(self) -> bool:
        """Raises the high watermark to what a majority has. Returns whether it was raised.

        A record of an earlier epoch is committed with one of this epoch only.
        """
        state = self.state
        if not isinstance(state, Leader):
            return False
        own = {self.own.node_id: self._around.synced_offset()}
        ends = {node_id: copy.offset for node_id, copy in state.copies.items()} | own
        voters = self._around.voters()
        offsets = sorted((ends.get(node_id, -1) for node_id in voters), reverse=True)
        offset = offsets[len(offsets) // 2]
        if offset <= state.start_offset or offset <= self.high_watermark:
            return False
        self.high_watermark = offset
        return True

    def resign(self) -> None:
        """Gives up the lead of the epoch, and tells the other voters."""
        others = {voter.node_id for voter in self._others()}
        successors = self._successors()
        self.high_watermark = -1
        self.state = Resigned(self.state.elected, self._election_timeout(), successors, others)

    def check_leader_request(self, epoch: int) -> KafkaError | None:
        """Returns why a request to the leader of that epoch is refused, but for ``NOT_LEADER_OR_FOLLOWER``."""
        if epoch != self.epoch:
            return FencedLeaderEpoch() if epoch < self.epoch else UnknownLeaderEpoch()
        return None

    def _successors(self) -> tuple[ReplicaKey, ...]:
        """Returns the other voters, those with the longest logs first."""
        copies = self.state.copies if isinstance(self.state, Leader) else {}
        return tuple(sorted(self._others(), key=lambda voter: -copies.get(voter.node_id, Copy()).offset))

    # ------------------------------------------------------------ transitions

    def _become_unattached(self, epoch: int) -> None:
        # In a state that waits, the wait goes on: a partitioned voter that comes back must not put off elections.
        deadline = self.state.deadline if isinstance(self.state, Unattached | Nominee) else self._election_timeout()
        self.high_watermark = -1
        self._store(Elected(epoch))
        self.state = Unattached(self.state.elected, min(deadline, self._election_timeout()))

    def _become_follower(self, leader_id: int, epoch: int) -> None:
        voted = self.state.elected.voted if epoch == self.epoch else None
        self.high_watermark = -1
        self._store(Elected(epoch, leader_id, voted))
        self.state = Follower(self.state.elected, self._now() + self._times.fetch)

    def _become_prospective(self) -> None:
        self.state = Prospective(self.state.elected, self._election_timeout(), {self.own.node_id})
        if self._is_alone():
            self._become_candidate()

    def _become_candidate(self) -> None:
        self._store(Elected(self.epoch + 1, NO_NODE, self.own))
        self.state = Candidate(self.state.elected, self._election_timeout(), {self.own.node_id})
        if self._is_alone():
            self._become_leader(self.state, {self.own.node_id})

    def _become_leader(self, candidate: State, granting: Iterable[int]) -> None:
        self._store(candidate.elected._replace(leader_id=self.own.node_id))
        self.high_watermark = -1
        now = self._now()
        deadline = NEVER if self._is_alone() else now + self._times.fetch * 1.5
        start = self._around.log_end().offset
        self.state = Leader(self.state.elected, deadline, start, now, granting=frozenset(granting))

    def _lose(self, state: Nominee) -> None:
        """Ends a lost election: a candidate looks whether it could win another one, a prospective waits."""
        elected = self.state.elected
        if isinstance(state, Candidate):
            self.state = Prospective(elected, self._election_timeout(), {self.own.node_id})
        elif elected.leader_id != NO_NODE:
            self.state = Follower(elected, self._now() + self._times.fetch)
        else:
            self.state = Unattached(elected, self._election_timeout())

    def _store(self, elected: Elected) -> None:
        self._around.store(elected)
        self.state.elected = elected

    # ------------------------------------------------------------ helpers

    def _now(self) -> float:
        return self._clock.monotonic()

    def _election_timeout(self) -> float:
        """Returns when the election time-out ends: once to twice the configured one, so that votes are rarely split."""
        return self._now() + self._times.election * (1 + self._random.random())

    def _others(self) -> list[ReplicaKey]:
        return [voter for voter in self._around.voters().values() if not voter.matches(self.own)]

    def _has_vote(self) -> bool:
        voter = self._around.voters().get(self.own.node_id)
        return voter is not None and voter.matches(self.own)

    def _is_alone(self) -> bool:
        return list(self._around.voters()) == [self.own.node_id]
