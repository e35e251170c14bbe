"""A voter of several: it copies the metadata log from the leader, takes part in elections, and may lead.

Knows nothing of sockets, nor of metadata records. It extends the observer. The module
:mod:`~barnabas.cluster.quorum.elections` decides who is elected. Apache Kafka's ``KafkaRaftClient`` (KIP-595, KIP-853,
KIP-996).
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from barnabas.clock import Timer
from barnabas.cluster.features import KRAFT
from barnabas.cluster.quorum import ballots
from barnabas.cluster.quorum.client import NO_NODE, LastLeader, Leadership, ReplicaKey
from barnabas.cluster.quorum.elections import (
    DEFAULT_TIMES,
    NEVER,
    AskVote,
    Elected,
    Elections,
    Follower,
    Leader,
    LogEnd,
    Message,
    Resigned,
    State,
    Times,
)
from barnabas.cluster.quorum.fetching import Answer
from barnabas.cluster.quorum.leader_log import LeaderLog, Replica
from barnabas.cluster.quorum.membership import Membership
from barnabas.cluster.quorum.metadata_log import MetadataLogError
from barnabas.cluster.quorum.observer import Observer
from barnabas.cluster.quorum.quorum_state import CorruptQuorumState, QuorumState, read_quorum_state, write_quorum_state
from barnabas.cluster.quorum.record_batches import EncodedBatch, control_batch
from barnabas.cluster.quorum.snapshots import KRaftState, control_records
from barnabas.cluster.quorum.voter_changes import VoterChanges
from barnabas.cluster.quorum.voters import voter_record
from barnabas.config.endpoints import Endpoint
from barnabas.errors import InvalidUpdateVersion, KafkaError, KafkaStorageError, NotController
from barnabas.records.batch import RecordBatch
from barnabas.records.control import ControlRecordType
from barnabas.wire.message import Message as WireMessage
from barnabas.wire.messages.control_records import LeaderChangeMessage, VotersRecord
from barnabas.wire.messages.vote import VoteRequest

logger = logging.getLogger(__name__)

LANE = "elections"

PRE_VOTES = 2
"""The first version of Vote with pre-votes."""


class RaftVoter(Observer):
    """A :class:`~barnabas.cluster.quorum.client.Quorum` for a controller. It has the parameters of an observer.

    A node that is elected is not active immediately: :attr:`is_leader` is true once a record of its epoch is committed,
    and its listeners have all records before it.
    """

    def __init__(self, *arguments: Any, times: Times = DEFAULT_TIMES, joins: bool = False, **options: Any) -> None:
        """
        :param joins: whether a node without a vote adds itself (``controller.quorum.auto.join.enable``)
        """
        super().__init__(*arguments, **options)
        self.key = ReplicaKey(self._identity.node_id, self._identity.directory_id)
        self.elections = Elections(self.key, self, self._clock, self._random, times)
        self._leader_log = LeaderLog(self, self.metadata_log, on_fetch=self._copied)
        known = self._controllers.endpoint_of(self.node_id)
        self.voter_endpoints = [] if known is None else [known]
        self.changes = VoterChanges(
            self,
            self._controllers,
            self._peers,
            clock=self._clock,
            scheduler=self._scheduler,
            timeout_ms=self._limits.request_timeout_ms,
        )
        self._membership = Membership(
            self,
            self._peers,
            self._scheduler,
            self._identity.cluster_id,
            update=self.changes.update,
            interval_ms=self._limits.fetch_timeout_ms,
            joins=joins,
        )
        self._is_active = False
        self._is_turning = self._turns_again = False
        self._is_committing = False
        self._is_syncing = False  # whether the next fetch waits for the disk
        self._due: tuple[float, Timer] | None = None
        self._when_resigned: Callable[[], object] | None = None

    # ------------------------------------------------------------ start and stop

    def start(self) -> None:
        """Takes part in elections, or follows the last known leader.

        :raises MetadataLogError: the last epoch is not known, or nothing names the voters
        :raises KafkaStorageError: the disk fails
        """
        try:
            stored = self._stored = read_quorum_state(self._files, self._state_path)
        except CorruptQuorumState as error:
            raise MetadataLogError(str(error)) from error
        before = stored or QuorumState()
        if not self.voters() and self.metadata_log.log.log_end_offset:
            logger.warning(
                "Neither controller.quorum.voters nor the metadata log names the voters: this node has no vote. If it "
                "was a quorum of its own, start it as before, raise kraft.version to 1, and start it again like this"
            )
        self.metadata_log.log.flush()  # a crash must not lose records that other voters know
        self._is_following = True
        self.elections.start(Elected(before.leader_epoch, before.leader_id, before.voted))
        self._turn()

    def stop(self) -> None:
        super().stop()
        self._membership.stop()
        if self._due is not None:
            self._due[1].cancel()

    def resign(self, done: Callable[[], object]) -> None:
        """Resigns, and calls ``done`` when another node leads, or immediately if this one does not lead."""
        if not self.elections.is_leader or not self._others():
            done()
            return
        self._when_resigned = done
        self.elections.resign()
        self._turn()

    # ------------------------------------------------------------ for the elections

    def log_end(self) -> LogEnd:
        return LogEnd(self.metadata_log.last_epoch, self.metadata_log.log.log_end_offset)

    def synced_offset(self) -> int:
        log = self.metadata_log.log
        return min(log.recovery_point, log.log_end_offset)

    def store(self, elected: Elected) -> None:
        voters = None if self._replica.latest_kraft.version else self._controllers.configured_voters
        state = QuorumState(elected.leader_id, elected.epoch, voters, elected.voted)
        if state == self._stored:
            return
        try:
            write_quorum_state(self._files, self._state_path, state)
        except OSError as failure:
            self.stop()
            self._on_fatal(f"the state of the metadata quorum cannot be stored: {failure}")
            raise KafkaStorageError(str(failure)) from failure
        self._stored = state

    def _others(self) -> list[ReplicaKey]:
        return [voter for voter in self.voters().values() if not voter.matches(self.key)]

    @property
    def has_vote(self) -> bool:
        voter = self.voters().get(self.node_id)
        return voter is not None and voter.matches(self.key)

    # ------------------------------------------------------------ turns

    def _turn(self) -> None:
        """Polls the elections, and continues to fetch."""
        self._elect()
        self._step()

    def _elect(self) -> None:
        """Polls the elections, and applies the result."""
        if self._is_turning:
            self._turns_again = True
            return
        self._is_turning = True
        try:
            while self._is_following:
                self._turns_again = False
                messages = self.elections.poll()
                self._adopt()
                for message in messages:
                    self._ask(message)
                if not messages and not self._turns_again:
                    break
        except KafkaStorageError as failure:  # the failure was reported, and this node is stopping
            logger.error("Node %d cannot take part in elections: %s", self.node_id, failure)
        finally:
            self._is_turning = False
        self._arm()

    def _arm(self) -> None:
        """Sets a timer for :meth:`_turn` when the elections are due. An earlier timer is kept."""
        due = self.elections.due
        if not self._is_following or due == NEVER or (self._due is not None and self._due[0] <= due):
            return
        if self._due is not None:
            self._due[1].cancel()
        delay = max(due - self._clock.monotonic(), 0.0)
        self._due = due, self._scheduler.call_later(delay, self._fire)

    def _fire(self) -> None:
        self._due = None
        self._turn()

    def _adopt(self) -> None:
        """Applies a change of the leader."""
        found = Leadership(self.elections.leader_id, self.elections.epoch)
        if found == self.leadership:
            return
        self._is_active = False
        self._attempt = self._download = None  # responses of the earlier leader are ignored
        self._backing_off.clear()
        if self.leadership.leader_id == self.node_id:
            self.last_leader = LastLeader()
        if found.leader_id not in (NO_NODE, self.node_id):
            self.last_leader = LastLeader(found.leader_id, self._clock.monotonic())
        self._announce(found)
        self.changes.lost()
        self._leader_log.forget()
        self._leader_log.advanced()  # waiting fetches belong to another node now
        self._membership.stop()
        state = self.elections.state
        if isinstance(state, Follower | Leader):
            self._membership.follow()
        if isinstance(state, Leader) and state.elected.epoch == found.epoch:
            self._begin_epoch(state)
        elif self._when_resigned is not None and found.leader_id != NO_NODE:
            done, self._when_resigned = self._when_resigned, None
            done()

    # ------------------------------------------------------------ requests to other voters

    def _ask(self, message: Message) -> None:
        request = ballots.request_of(message, self.key, self._identity.cluster_id, self.voter_endpoints)
        done = partial(self._replied, message, self.elections.state)
        self._peers.send(message.voter.node_id, request, done, lane=LANE, timeout_ms=self._limits.request_timeout_ms)

    def _replied(
        self, message: Message, state: State, response: ballots.Response | None, error: KafkaError | None
    ) -> None:
        if not self._is_following:
            return
        answer = Answer(error) if response is None else ballots.read_answer(response)
        of_this_epoch = False
        if answer.leadership is not None:
            for node_id, host, port in answer.endpoints:
                self._controllers.learn(node_id, host, port)
            of_this_epoch = self.elections.heard_of(*answer.leadership)
        if isinstance(message, AskVote) and message.pre_vote and not self._knows_pre_votes(message.voter.node_id):
            self.elections.without_pre_votes()  # the request was for a vote there
        elif answer.error is not None or not of_this_epoch:
            backoff = self._limits.retry_backoff_ms / 1000
            self._scheduler.call_later(backoff, self._retry, message.voter.node_id, state)
        elif isinstance(message, AskVote):
            self.elections.voted(message.voter.node_id, message, granted=answer.body.vote_granted)
        self._turn()

    def _knows_pre_votes(self, node_id: int) -> bool:
        versions = self._peers.versions_of(node_id)
        return versions is None or versions.get(VoteRequest.api_key, (0, 0))[1] >= PRE_VOTES

    def _retry(self, node_id: int, state: State) -> None:
        """Sends a request again to a voter that has not responded, unless the election is over."""
        if self._is_following and self.elections.state is state:
            self.elections.unanswered(node_id)
            self._turn()

    # ------------------------------------------------------------ requests of other voters

    def vote(
        self, candidate: ReplicaKey, epoch: int, log_end: LogEnd, voter: ReplicaKey, *, pre_vote: bool
    ) -> tuple[KafkaError | None, bool]:
        """Handles Vote, as :meth:`Elections.vote` does."""
        answer = self.elections.vote(candidate, epoch, log_end, voter, pre_vote=pre_vote)
        self._turn()
        return answer

    def begin_epoch(self, leader_id: int, epoch: int, voter: ReplicaKey) -> KafkaError | None:
        """Handles BeginQuorumEpoch, as :meth:`Elections.begin_epoch` does."""
        error = self.elections.begin_epoch(leader_id, epoch, voter)
        self._turn()
        return error

    def end_epoch(self, leader_id: int, epoch: int, successors: Sequence[ReplicaKey]) -> KafkaError | None:
        """Handles EndQuorumEpoch, as :meth:`Elections.end_epoch` does."""
        error = self.elections.end_epoch(leader_id, epoch, successors)
        self._turn()
        return error

    def learn(self, node_id: int, host: str, port: int) -> None:
        """Stores the address of a leader."""
        self._controllers.learn(node_id, host, port)

    # ------------------------------------------------------------ following

    def _follow(self, leadership: Leadership) -> None:
        self.elections.heard_of(*leadership)
        self._elect()  # the next fetch follows when the current response is handled

    def _target(self) -> int | None:
        if not self._fetches() or self._waits_for_disk():
            return None
        if not self.has_vote:
            return super()._target()
        self._end_backoffs()  # otherwise the next timer would be for the end of one that has ended, and come at once
        leader_id = self.leadership.leader_id
        return None if leader_id in self._backing_off else leader_id

    def _fetches(self) -> bool:
        """Returns whether the log is fetched in this state. A node without a vote finds the leader in this way."""
        state = self.elections.state
        return isinstance(state, Follower) or not (self.has_vote or isinstance(state, Leader | Resigned))

    def _waits_for_disk(self) -> bool:
        """Returns whether the log has to be fsynced: the next fetch acknowledges all records before its offset."""
        log = self.metadata_log.log
        if log.recovery_point >= log.log_end_offset:
            return False
        if not self._is_syncing:
            self._is_syncing = True
            log.when_flushed(log.log_end_offset, self._synced)
        return self._is_syncing

    def _synced(self) -> None:
        self._is_syncing = False
        self._step()

    def _wait(self) -> None:
        if self._fetches() and not self._is_syncing:
            super()._wait()

    def _fetched(self) -> bool:
        self.elections.fetched()
        return super()._fetched()

    def _refused(self, node_id: int) -> None:
        self.elections.refused(node_id)
        self._elect()

    def _learn_voters(self, kraft: KRaftState) -> None:
        super()._learn_voters(kraft)
        self.elections.voters_changed()

    # ------------------------------------------------------------ leading

    @property
    def is_leader(self) -> bool:
        return self._is_active

    @property
    def leader_log(self) -> LeaderLog:
        return self._leader_log

    @property
    def is_elected(self) -> bool:
        return self.elections.is_leader

    def leader_endpoint(self, listener: str) -> Endpoint | None:
        if self.is_elected:
            return next((each for each in self.voter_endpoints if each.name == listener), None)
        known = self.endpoint_of(self.leadership.leader_id)
        return known if known is not None and known.name == listener else None

    @property
    def high_watermark(self) -> int | None:
        if self.elections.is_leader:
            known = self.elections.high_watermark
            return None if known < 0 else known
        return self._replica.high_watermark

    def _begin_epoch(self, state: Leader) -> None:
        """Appends the first records of the epoch (``LeaderState.appendStartOfEpochControlRecords``)."""
        kind = LeaderChangeMessage.Voter
        change = LeaderChangeMessage(
            version=0,
            leader_id=self.node_id,
            voters=[kind(voter_id=node_id) for node_id in sorted(self.voters())],
            granting_voters=[kind(voter_id=node_id) for node_id in sorted(state.granting)],
        )
        records: list[tuple[ControlRecordType, WireMessage, int]] = [(ControlRecordType.LEADER_CHANGE, change, 0)]
        if self.metadata_log.log.log_end_offset == 0:
            records += control_records(self._replica.latest_kraft)
        self.append_control(records)

    def append(self, batches: Sequence[EncodedBatch]) -> int:
        if not self.is_leader:
            raise NotController
        for data, _ in batches:
            self._append(data)
        return self._appended()

    def append_control(self, records: Sequence[tuple[ControlRecordType, WireMessage, int]]) -> int:
        """Appends control records, as :meth:`append` does. Their voters are used immediately."""
        if not self.elections.is_leader:
            raise NotController
        timestamp, epoch = self._clock.time_ms(), self.elections.epoch
        self._append(control_batch(records, timestamp=timestamp, epoch=epoch))
        return self._appended()

    def _append(self, data: bytearray) -> None:
        batch = RecordBatch.parse(data)
        try:
            self._replica.append_as_leader(batch, self.elections.epoch, self._clock.time_ms())
        except KafkaStorageError:
            self._scheduler.call_later(0, self._fail)
            raise

    def _appended(self) -> int:
        log = self.metadata_log.log
        log.when_flushed(log.log_end_offset, self._flushed)
        self._leader_log.advanced()
        return log.log_end_offset - 1

    def _fail(self) -> None:
        """Resigns after a failure of the disk: this node can neither lead nor follow."""
        if self.elections.is_leader:
            self.elections.resign()
            self._turn()

    def _flushed(self) -> None:
        if self.metadata_log.log.is_offline:
            self._fail()
        elif self.elections.advance():
            self._commit_as_leader()

    def _copied(self, replica: ReplicaKey, log_end_offset: int) -> None:
        """Updates the log end offset of another node."""
        voter = self.voters().get(replica.node_id)
        if voter is not None and voter.matches(replica) and self.elections.copied(replica.node_id, log_end_offset):
            self._commit_as_leader()

    def _commit_as_leader(self) -> None:
        """Passes committed records to the listeners. A listener that appends is not called within its own call."""
        if self._is_committing:
            return
        self._is_committing = True
        try:
            while self.elections.high_watermark > (self._replica.high_watermark or 0):
                if not self._guard(partial(self._commit_up_to, self.elections.high_watermark)):
                    break
            self._activate()
            self.changes.committed()
        finally:
            self._is_committing = False
        self._leader_log.advanced()

    def _commit_up_to(self, high_watermark: int) -> bool:
        self._commit(high_watermark)
        return True

    def _activate(self) -> None:
        """Becomes active when the first record of the epoch is committed."""
        state = self.elections.state
        if self._is_active or not isinstance(state, Leader) or not self._replica.has_heard(state.start_offset + 1):
            return
        self._is_active = True
        logger.info("Node %d is the active controller in epoch %d", self.node_id, self.elections.epoch)
        for listener in self.listeners:
            listener.leadership_changed(self.leadership)

    # ------------------------------------------------------------ changes of the voters

    def latest_voters(self) -> tuple[int, KRaftState]:
        return self._replica.voters_offset, self._replica.latest_kraft

    def replica(self, key: ReplicaKey) -> Replica | None:
        return self._leader_log.replica(key)

    def heard_from(self, key: ReplicaKey) -> None:
        self.elections.heard_from(key.node_id)

    def resign_soon(self) -> None:
        self._scheduler.call_later(0, self.resign, lambda: None)

    def upgrade_kraft_version(self) -> None:
        """Appends the control records with the voters and their directories (KIP-853).

        :raises NotController: this node does not lead
        :raises InvalidUpdateVersion: the directory of a voter is not known
        """
        if not self.is_leader:
            raise NotController
        own = voter_record(self.key, self.voter_endpoints)
        known = {**self.changes.in_memory, self.node_id: own}
        missing = sorted(set(self.voters()) - set(known))
        if missing:
            raise InvalidUpdateVersion(f"Directory id must be known for all of the voters: {missing} are not")
        voters = VotersRecord(version=0, voters=[known[node_id] for node_id in sorted(known)])
        self.append_control(control_records(KRaftState(KRAFT.last, voters)))
