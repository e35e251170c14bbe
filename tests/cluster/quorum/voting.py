"""Several voters in one process, on disks that lose unsynced writes, and a network with delays, losses and partitions.

Knows nothing of elections: it passes requests, encoded, to the handlers of the controllers' listener.
"""

import contextlib
import itertools
from functools import partial
from random import Random
from types import SimpleNamespace

from barnabas.api_handlers import error_responses
from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.begin_quorum_epoch import begin_quorum_epoch
from barnabas.api_handlers.controller_fetch import controller_fetch
from barnabas.api_handlers.end_quorum_epoch import end_quorum_epoch
from barnabas.api_handlers.fetch_snapshot import fetch_snapshot
from barnabas.api_handlers.update_raft_voter import update_raft_voter
from barnabas.api_handlers.vote import vote
from barnabas.clock import ManualClock
from barnabas.cluster.quorum.controllers import Address, Controllers
from barnabas.cluster.quorum.fetching import Identity
from barnabas.cluster.quorum.metadata_log import MetadataLog, topic_config
from barnabas.cluster.quorum.raft_voter import RaftVoter
from barnabas.cluster.quorum.record_batches import encode_batches
from barnabas.errors import KafkaError, KafkaStorageError, NetworkException, NotController, RequestTimedOut
from barnabas.log.background import Inline
from barnabas.log.log_directory import LogDirectory
from barnabas.log.partition_log import LogServices
from barnabas.log.recovery import open_log
from barnabas.testing.cluster_node import MortalScheduler
from barnabas.testing.faults import FaultyFiles
from barnabas.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from barnabas.wire.messages.end_quorum_epoch import EndQuorumEpochRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotRequest
from barnabas.wire.messages.metadata_records import ConfigRecord
from barnabas.wire.messages.update_raft_voter import UpdateRaftVoterRequest
from barnabas.wire.messages.vote import VoteRequest

CLUSTER_ID = "a-cluster"
DIRECTORY = "/data/__cluster_metadata-0"
HANDLERS = {
    VoteRequest: vote,
    BeginQuorumEpochRequest: begin_quorum_epoch,
    EndQuorumEpochRequest: end_quorum_epoch,
    FetchRequest: controller_fetch,
    FetchSnapshotRequest: fetch_snapshot,
    UpdateRaftVoterRequest: update_raft_voter,
}


class SlowFlushes(LogServices):
    """Flushes are slow, and complete out of order."""

    def __init__(self, log_directory, scheduler, random):
        super().__init__(log_directory)
        self._scheduler, self._random = scheduler, random

    def request_flush(self, log, up_to):
        self._scheduler.call_later(self._random.choice([0, 0.01, 0.2]), self._flush, log, up_to)

    @staticmethod
    def _flush(log, up_to):
        if not log.is_offline:
            log.flush(min(up_to, log.log_end_offset))


class Member:
    """One voter, which may be killed and restarted from its disk."""

    def __init__(self, walk, node_id):
        self.walk, self.id, self.files = walk, node_id, FaultyFiles(clock=walk.clock)
        self.files.makedirs(DIRECTORY)
        self.files.keep()
        self.voter, self.is_paused = None, False
        self.start()

    def start(self):
        walk = self.walk
        self.scheduler = MortalScheduler(walk.clock)
        self.fatal, self.heard, self.epoch_begun = [], 0, 0
        log = open_log(
            SlowFlushes(LogDirectory(self.files, "/data"), self.scheduler, walk.random), DIRECTORY,
            "__cluster_metadata", 0, topic_config(), clean=False, recovery_point=0, now_ms=walk.clock.time_ms(),
        )  # fmt: skip
        metadata_log = MetadataLog(log, DIRECTORY, self.files, clock=walk.clock, background=Inline())
        voters = {node_id: Address(f"node-{node_id}", 9093) for node_id in walk.ids}
        self.voter = walk.kind(
            metadata_log, Identity(self.id, CLUSTER_ID, bytes([self.id]) * 16),
            Controllers("CONTROLLER", "PLAINTEXT", voters=voters), partial_peers(walk, self), files=self.files,
            clock=walk.clock, scheduler=self.scheduler, random=walk.random, on_fatal=self.fatal.append,
        )  # fmt: skip
        self.voter.listeners.append(self)
        self.context = SimpleNamespace(
            broker=SimpleNamespace(
                quorum=self.voter, cluster_id=CLUSTER_ID, clock=walk.clock, scheduler=self.scheduler,
                config=SimpleNamespace(controller_listener_name="CONTROLLER"),
            ),
            session=SimpleNamespace(listener="CONTROLLER"), api_version=0, time_ms=0,
        )  # fmt: skip
        self.voter.load()
        self.voter.start()

    def kill(self, *, power_cut):
        """Kills the process; a power cut loses unsynced writes."""
        self.scheduler.is_dead = True
        self.files = self.files.survivor(power_cut=power_cut, chance=self.walk.random)
        self.voter = None

    @property
    def log(self):
        return self.voter.metadata_log.log

    def content(self, up_to):
        """Returns the log before an offset, as bytes."""
        return bytes(self.log.read(0, 1 << 24, up_to=up_to, minimum_one=True)) if up_to else b""

    # ------------------------------------------------------------ as a listener

    def snapshot_loaded(self, snapshot_id, records, timestamp):
        raise AssertionError("nobody writes snapshots here")

    def committed(self, batches):
        for batch in batches:
            assert batch.base_offset == self.heard, "what is committed comes in order, and once"
            self.heard = batch.last_offset + 1
            self.walk.committed(self, batch)

    def leadership_changed(self, leadership):
        if self.voter.is_leader:
            assert self.heard == self.log.log_end_offset, "a controller becomes active before it knows everything"

    # ------------------------------------------------------------ as a controller

    def change(self):
        """Appends a record, if this node is the active controller."""
        record = ConfigRecord(resource_type=4, resource_name="", name="n", value=str(next(self.walk.numbers)))
        epoch = self.voter.leadership.epoch
        with contextlib.suppress(NotController, KafkaStorageError):
            self.voter.append(list(encode_batches([record], metadata_version=25, timestamp=0, epoch=epoch)))

    def answer(self, request, done):
        version = self.walk.votes if isinstance(request, VoteRequest) else request.versions.last
        request = type(request).decode(request.encode(version=version), version=version)
        self.context.api_version, self.context.time_ms = version, self.walk.clock.time_ms()
        try:
            response = HANDLERS[type(request)](request, self.context)
        except KafkaError as error:
            response = error_responses.error_response(request, error, version)
        if isinstance(response, Later):
            response.then(lambda found: done(encoded(found, version)))
        else:
            done(encoded(response, version))


def encoded(response, version):
    return type(response).decode(response.encode(version=version), version=version)


def partial_peers(walk, member):
    return SimpleNamespace(
        send=partial(walk.send, member, member.scheduler), versions_of=lambda node_id: {52: (0, walk.votes)}
    )


class Walk:
    """A quorum under a random sequence of losses, partitions, pauses, kills and power cuts."""

    def __init__(self, seed, *, size=3, kind=RaftVoter, votes=VoteRequest.versions.last):
        self.votes = votes  # the newest version of Vote
        self.random, self.clock, self.kind = Random(seed), ManualClock(), kind
        self.ids = list(range(1, size + 1))
        self.numbers = itertools.count()
        self.leaders, self.commits, self.cut = {}, {}, set()
        self.loss, self.longest = self.random.choice([0, 0.05, 0.3]), 1.0
        self.members = {node_id: Member(self, node_id) for node_id in self.ids}

    @property
    def up(self):
        return [member for member in self.members.values() if member.voter is not None]

    # ------------------------------------------------------------ the network

    def passes(self, sender, target):
        return self.random.random() >= self.loss and not {(sender, target), (sender, 0), (0, target)} & self.cut

    def delay(self):
        return self.random.choice([0.001, 0.01, 0.05, self.longest * self.random.random()])

    def send(self, member, life, target, request, done, *, lane="", timeout_ms=None):
        answered = []

        def finish(response, error):
            if not answered and not life.is_dead:
                answered.append(True)
                done(response, error)

        def arrive():
            other = self.members[target]
            if not self.passes(member.id, target):
                return
            if other.voter is None:
                life.call_later(self.delay(), finish, None, NetworkException())
                return
            other.answer(request, back)

        def back(response):
            if self.passes(target, member.id):
                life.call_later(self.delay(), finish, response, None)

        life.call_later((timeout_ms or 2000) / 1000, finish, None, RequestTimedOut())
        self.clock.call_later(self.delay(), arrive)

    # ------------------------------------------------------------ Raft's invariants

    def committed(self, member, batch):
        """Checks state machine safety: all nodes commit the same."""
        data = member.content(batch.last_offset + 1)[-batch.size :]
        assert self.commits.setdefault(batch.base_offset, data) == data, "what was committed is another thing here"

    def check(self):
        """Checks election safety and leader completeness."""
        for member in self.up:
            assert member.fatal == [], member.fatal
            voter = member.voter
            if voter.is_elected:
                epoch = voter.elections.epoch
                assert self.leaders.setdefault(epoch, member.id) == member.id, "two nodes lead an epoch"
            if voter.is_leader and voter.leadership.epoch == max(self.leaders):
                whole = b"".join(self.commits[offset] for offset in sorted(self.commits))
                assert member.content(member.log.log_end_offset).startswith(whole), "a leader lacks what is committed"

    # ------------------------------------------------------------ what happens

    def run(self, seconds, *, faults, changes=True):
        end = self.clock.monotonic() + seconds
        while self.clock.monotonic() < end:
            self.clock.advance(0.05)
            if faults and self.random.random() < 0.05:
                self.fault()
            for member in self.up:
                if changes and self.random.random() < 0.3:
                    member.change()
            self.check()

    def fault(self):
        member = self.members[self.random.choice(self.ids)]
        match self.random.randrange(6):
            case 0 | 1:
                if member.voter is not None:
                    member.kill(power_cut=self.random.random() < 0.7)
            case 2 | 3:
                if member.voter is None:
                    member.start()
            case 4:
                self.cut = set()
            case 5:
                one_way = (member.id, self.random.choice(self.ids))
                self.cut |= self.random.choice([{one_way}, {(member.id, 0), (0, member.id)}])

    def heal(self):
        self.cut, self.loss, self.longest = set(), 0, 0.1
        for member in self.members.values():
            if member.voter is None:
                member.start()
