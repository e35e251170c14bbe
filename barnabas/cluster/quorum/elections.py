"""The election of the quorum's leader, as the state machine of one voter.

Knows nothing of sockets, files or records: the time, randomness, the end of the log and the stored state are passed in.
States and transitions are those of Apache Kafka's ``QuorumState`` and ``KafkaRaftClient`` (KIP-595, pre-votes KIP-996).

::

    Unattached --election timeout--> Prospective --pre-votes of a majority--> Candidate --votes of a majority--> Leader
        |  ^                          |        ^                                 |                                |
        |  '--no leader: rejected-----'        '--------rejected, timeout--------'            check-quorum timeout|
        '--learns its leader----> Follower --fetch timeout--> Prospective                      Unattached <-- Resigned

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
    """The epoch of the last record and the log end offset. A greater one is more up to date."""

    epoch: int
    offset: int


class Elected(NamedTuple):
    """The state that must be stored before it is used: the epoch, its leader, and this node's vote in it."""

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
    """The environment of the elections."""

    def voters(self) -> Mapping[int, ReplicaKey]:
        """Returns the voters by their node ids, as of the end of the log."""

    def log_end(self) -> LogEnd:
        """Returns the end of the log."""

    def synced_offset(self) -> int:
        """Returns the offset up to which the log is fsynced."""

    def store(self, elected: Elected) -> None:
        """Stores the state durably."""


# ---------------------------------------------------------------- messages


class AskVote(NamedTuple):
    """A Vote request. In a pre-vote the epoch is the sender's current one."""

    voter: ReplicaKey
    epoch: int
    log_end: LogEnd
    pre_vote: bool


class BeginEpoch(NamedTuple):
    """A BeginQuorumEpoch request: this node leads the epoch."""

    voter: ReplicaKey
    epoch: int


class EndEpoch(NamedTuple):
    """An EndQuorumEpoch request: this node resigns; the preferred successors come first."""

    voter: ReplicaKey
    epoch: int
    successors: tuple[ReplicaKey, ...]


Message = AskVote | BeginEpoch | EndEpoch


# ---------------------------------------------------------------- states


@dataclass
class State:
    """The common part of all states. ``deadline`` is by the monotonic clock."""

    elected: Elected
    deadline: float = NEVER


@dataclass
class Unattached(State):
    """Waits for a leader, or for its election timeout. It may have voted in the epoch."""


@dataclass
class Follower(State):
    """Fetches from the leader."""

    has_fetched: bool = False


@dataclass
class Nominee(State):
    """Requests votes."""

    granted: set[int] = field(default_factory=set)
    rejected: set[int] = field(default_factory=set)
    sent_to: set[int] = field(default_factory=set)


@dataclass
class Prospective(Nominee):
    """Requests pre-votes in the current epoch (KIP-996)."""


@dataclass
class Candidate(Nominee):
    """Requests votes in a new epoch."""


@dataclass
class Copy:
    """The leader's knowledge of another voter's log."""

    offset: int = -1
    fetched_at: float = -NEVER


@dataclass
class Leader(State):
    """Leads the epoch, which begins at an offset of the log. Resigns at the deadline if no majority fetches."""

    start_offset: int = 0
    begin_at: float = 0.0  # when BeginQuorumEpoch is sent to voters that have not fetched
    copies: dict[int, Copy] = field(default_factory=dict)
    since_check: set[int] = field(default_factory=set)
    granting: frozenset[int] = frozenset()  #: the ids of the voters that have elected it, including itself


@dataclass
class Resigned(State):
    """Has resigned in the epoch, and sends EndQuorumEpoch until the voters respond or the election timeout ends."""

    successors: tuple[ReplicaKey, ...] = ()
    unanswered: set[int] = field(default_factory=set)


class Elections:
    """The state machine of one voter. Call :meth:`poll` whenever :attr:`due` is reached, and after every other call."""

    def __init__(
        self, own: ReplicaKey, around: Surroundings, clock: Clock, random: Random, times: Times = DEFAULT_TIMES
    ) -> None:
        self.own = own
        self.high_watermark = -1  #: of the leader; -1 until a record of its epoch is committed
        self._around = around
        self._clock = clock
        self._random = random
        self._times = times
        self.state: State = Unattached(Elected())

    # ------------------------------------------------------------ start

    def start(self, stored: Elected) -> None:
        """Continues from the stored state. A node that has led its epoch does not lead it again."""
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
        """The leader of the epoch; :data:`~barnabas.cluster.quorum.client.NO_NODE` if it is not known."""
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
        """Makes the transitions that are due, and returns the messages to send."""
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
            state.deadline = NEVER  # until it becomes a voter: see voters_changed
        elif isinstance(state, Prospective):
            self._lose(state)
        elif isinstance(state, Leader):
            self.resign()
        elif isinstance(state, Resigned):
            self._become_unattached(self.epoch + 1)
        else:  # there is no leader, the leader does not respond, or the vote was split
            self._become_prospective()

    def voters_changed(self) -> None:
        """Handles a change of the voters: this node may have become a voter, be none any more, or be the only one."""
        state = self.state
        if isinstance(state, Leader) and self._is_alone():
            state.deadline = NEVER
        elif state.deadline == NEVER and self._has_vote() and not self._is_alone():
            waits = self._times.fetch * 1.5 if isinstance(state, Leader) else self._times.election
            state.deadline = self._now() + waits * (1 + self._random.random())

    # ------------------------------------------------------------ requests

    def vote(
        self, candidate: ReplicaKey, epoch: int, log_end: LogEnd, voter: ReplicaKey, *, pre_vote: bool
    ) -> tuple[KafkaError | None, bool]:
        """Handles a Vote request. Returns the error, if there is one, and whether the vote is granted
        (``handleVoteRequest``).
        """
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
        """Handles a BeginQuorumEpoch request: a node leads the epoch."""
        error = self._check_voters_request(leader_id, epoch)
        if error is not None:
            return error
        self.heard_of(leader_id, epoch)
        return None if voter.matches(self.own) else InvalidVoterKey()

    def end_epoch(self, leader_id: int, epoch: int, successors: Iterable[ReplicaKey]) -> KafkaError | None:
        """Handles an EndQuorumEpoch request: the leader resigns. The first successor starts an election immediately."""
        error = self._check_voters_request(leader_id, epoch)
        if error is not None:
            return error
        self.heard_of(leader_id, epoch)
        if isinstance(self.state, Follower) and self.state.elected.leader_id == leader_id:
            self.state.deadline = self._now() + self._turn(list(successors))
        return None

    def _turn(self, successors: list[ReplicaKey]) -> float:
        """Returns the backoff of a successor, twice as long as that of the one before (``endEpochElectionBackoff``)."""
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

    # ------------------------------------------------------------ responses

    def voted(self, node_id: int, request: AskVote, *, granted: bool) -> None:
        """Counts a response to :class:`AskVote` without an error."""
        state = self.state
        is_pre_vote = isinstance(state, Prospective)
        if not isinstance(state, Nominee) or request.epoch != self.epoch or request.pre_vote != is_pre_vote:
            return
        (state.granted if granted else state.rejected).add(node_id)
        voters = self._around.voters().keys()
        majority = len(voters) // 2 + 1
        if len(state.granted & voters) >= majority:
            if is_pre_vote:
                self._become_candidate()
            else:
                self._become_leader(state, state.granted & voters)
        elif len(state.rejected & voters) > len(voters) - majority:
            self._lose(state)

    def unanswered(self, node_id: int) -> None:
        """Sends the request to that node again at the next :meth:`poll`: the request or its response was lost."""
        if isinstance(self.state, Nominee) and node_id not in self.state.granted | self.state.rejected:
            self.state.sent_to.discard(node_id)
        elif isinstance(self.state, Resigned):
            self.state.unanswered.add(node_id)

    def without_pre_votes(self) -> None:
        """Continues with the votes, since a voter does not support pre-votes (Apache Kafka before 4.0; KIP-996)."""
        if isinstance(self.state, Prospective):
            self._become_candidate()

    def heard_of(self, leader_id: int, epoch: int) -> bool:
        """Follows a leader or an epoch that a message names. Returns whether the epoch is now this node's epoch."""
        if epoch < self.epoch or (leader_id != NO_NODE and self._contradicts(leader_id, epoch)):
            return False
        if leader_id not in (NO_NODE, self.own.node_id):
            if epoch > self.epoch or self.state.elected.leader_id == NO_NODE:
                self._become_follower(leader_id, epoch)
        elif epoch > self.epoch:
            self._become_unattached(epoch)
        return True

    def fetched(self) -> None:
        """Resets the fetch timeout after a response of the leader to a fetch."""
        if isinstance(self.state, Follower):
            self.state.has_fetched = True
            self.state.deadline = self._now() + self._times.fetch

    def refused(self, node_id: int) -> None:
        """Handles a refused connection. A follower whose leader refuses it starts an election soon.

        The leader's process has ended, while Apache Kafka waits for ``controller.quorum.fetch.timeout.ms`` in this
        case, too. If the other voters still fetch from the leader, they reject the pre-votes (KIP-996), and nothing
        changes.
        """
        state = self.state
        if not (isinstance(state, Follower) and state.elected.leader_id == node_id and state.has_fetched):
            return
        state.has_fetched = False  # so that this node grants its vote to another one
        if self._has_vote():
            others = sorted(self._around.voters().keys() - {node_id})
            place = others.index(self.own.node_id)  # staggered, so that votes are rarely split
            wait = (place + self._random.random()) * self._times.election / 10
            state.deadline = min(state.deadline, self._now() + wait)

    # ------------------------------------------------------------ leading

    def copied(self, node_id: int, offset: int) -> bool:
        """Updates the log end offset of another voter. Returns whether the high watermark has advanced."""
        state = self.state
        if not isinstance(state, Leader):
            return False
        copy = state.copies.setdefault(node_id, Copy())
        copy.offset, copy.fetched_at = offset, self._now()
        self.heard_from(node_id)
        return self.advance()

    def heard_from(self, node_id: int) -> None:
        """Counts a fetch of a voter: a leader resigns if no majority fetches, unless it is the only voter."""
        state = self.state
        if not isinstance(state, Leader) or self._is_alone():
            return
        state.since_check.add(node_id)
        voters = self._around.voters().keys()
        if len((state.since_check | {self.own.node_id}) & voters) > len(voters) // 2:
            state.since_check = set()
            state.deadline = self._now() + self._times.fetch * 1.5

    def advance(self) -> bool:
        """Raises the high watermark to the offset that a majority has. Returns whether it was raised.

        A record of an earlier epoch is committed only with a record of this epoch.
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
        """Resigns as the leader, and sends EndQuorumEpoch to the other voters."""
        others = {voter.node_id for voter in self._others()}
        successors = self._successors()
        self.high_watermark = -1
        self.state = Resigned(self.state.elected, self._election_timeout(), successors, others)

    def check_leader_request(self, epoch: int) -> KafkaError | None:
        """Returns the error for a request to the leader of that epoch, except ``NOT_LEADER_OR_FOLLOWER``."""
        if epoch != self.epoch:
            return FencedLeaderEpoch() if epoch < self.epoch else UnknownLeaderEpoch()
        return None

    def _successors(self) -> tuple[ReplicaKey, ...]:
        """Returns the other voters, those with the greatest log end offsets first."""
        copies = self.state.copies if isinstance(self.state, Leader) else {}
        return tuple(sorted(self._others(), key=lambda voter: -copies.get(voter.node_id, Copy()).offset))

    # ------------------------------------------------------------ transitions

    def _become_unattached(self, epoch: int) -> None:
        # The deadline of a waiting state stays, so that a partitioned voter that returns does not delay elections.
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
        """Ends a lost election: a candidate becomes prospective, a prospective voter waits."""
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
        """Returns when the election timeout ends: once to twice the configured one, at random, to avoid split votes."""
        return self._now() + self._times.election * (1 + self._random.random())

    def _others(self) -> list[ReplicaKey]:
        return [voter for voter in self._around.voters().values() if not voter.matches(self.own)]

    def _has_vote(self) -> bool:
        voter = self._around.voters().get(self.own.node_id)
        return voter is not None and voter.matches(self.own)

    def _is_alone(self) -> bool:
        return list(self._around.voters()) == [self.own.node_id]
