"""A random walk over elections, crashes, lost and late messages: in the end the replicas' logs are equal.

Followers are fetchers with their logs; the leader responds from its own log, and its ISR has all replicas.
"""

from random import Random

import pytest

from barnabas.cluster.replication.fetcher import Fetcher, FetchSettings
from barnabas.cluster.replication.partition import Partition
from barnabas.cluster.replication.throttle import ReplicationThrottle
from barnabas.config.topic import TopicConfig
from barnabas.errors import (
    FencedLeaderEpoch,
    KafkaError,
    NotLeaderOrFollower,
    UnknownLeaderEpoch,
)
from barnabas.log.follower import LogSource, Position
from barnabas.log.log_directory import LogDirectory
from barnabas.log.partition_log import LogServices
from barnabas.log.recovery import create_log, open_log
from barnabas.records.batch import RecordBatch
from barnabas.records.builder import build_batch
from barnabas.records.validation import ProducePolicy
from barnabas.testing.faults import FaultyFiles
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from tests.cluster.replication.followers import TOPIC_ID, image
from tests.cluster.replication.leading import Leading

SETTINGS = FetchSettings(max_wait_ms=0, min_bytes=1, max_bytes=10_000, partition_max_bytes=150, backoff_s=1.0)
CONFIG = TopicConfig(segment_bytes=400, index_interval_bytes=50)
NODES = (1, 2, 3)
TopicData = FetchResponse.FetchableTopicResponse
PartitionData = TopicData.PartitionData
Offsets = ListOffsetsResponse.ListOffsetsTopicResponse


class Services(LogServices):
    """Keeps the content of checkpoints."""

    def __init__(self, replica):
        super().__init__(LogDirectory(replica.files, "/data"))
        self.replica = replica

    def log_truncated(self, log, end):
        self.replica.recovery_point = min(self.replica.recovery_point, end)


class Replica:
    """A node with its replica of the partition."""

    def __init__(self, node_id, random):
        self.node_id, self.random = node_id, random
        self.files = FaultyFiles()
        self.files.makedirs("/data")
        self.recovery_point = self.high_watermark = self.log_start_offset = 0
        self.now = 0.0
        log = create_log(Services(self), "/data/t-0", "t", 0, TOPIC_ID, CONFIG, now_ms=0)
        self.files.keep()
        self.serve(log)

    def serve(self, log):
        self.partition = Partition("t", TOPIC_ID, 0, self.node_id, log, ProducePolicy(), Leading)
        self.fetcher = Fetcher(self.node_id, lambda: 1, lambda: SETTINGS, ReplicationThrottle(lambda: None))
        self.session_id = 0
        self.ends = {}  # of followers, as the leader knows them
        self.in_flight = None

    @property
    def log(self):
        return self.partition.log

    def learn(self, epoch, leader):
        """Applies the metadata."""
        self.ends.clear()
        if leader == self.node_id:
            self.fetcher.remove((TOPIC_ID, 0))
            self.partition.become_leader(image(epoch, leader))
        else:
            self.partition.become_follower(image(epoch, leader))
            self.fetcher.add(self.partition)
            self.in_flight = None  # another connection

    def checkpoint(self):
        self.log.flush()
        self.recovery_point = self.log.recovery_point
        self.high_watermark = self.log.high_watermark
        self.log_start_offset = self.log.log_start_offset

    def crash(self, *, power_cut):
        """Restarts with the content of the disk."""
        self.files = self.files.survivor(power_cut=power_cut, chance=self.random)
        log = open_log(
            Services(self),
            "/data/t-0",
            "t",
            0,
            CONFIG,
            clean=False,
            recovery_point=self.recovery_point,
            log_start_offset=self.log_start_offset,
            now_ms=0,
        )
        log.maybe_set_high_watermark(min(self.high_watermark, log.log_end_offset))
        self.serve(log)

    # ------------------------------------------------------------ as the leader

    def append(self):
        values = [b"%d" % self.random.randrange(1000)] * self.random.randint(1, 3)
        batch = RecordBatch.parse(bytearray(build_batch([(None, value, 0) for value in values])))
        self.partition.append(batch, 0)

    def answer(self, request):
        """Returns the response, decoded from its bytes."""
        version = type(request).versions.last
        answer = self._offsets if isinstance(request, ListOffsetsRequest) else self._fetch
        response = answer(request)
        return type(response).decode(response.encode(version=version), version=version)

    def _check(self, epoch):
        if epoch < self.partition.leader_epoch:
            raise FencedLeaderEpoch
        if epoch > self.partition.leader_epoch:
            raise UnknownLeaderEpoch
        if not self.partition.leads:
            raise NotLeaderOrFollower

    def _fetch(self, request):
        """Responds without a session, so each request names the partition."""
        data = [self._read(each, request) for topic in request.topics for each in topic.partitions]
        return FetchResponse(responses=[TopicData(topic_id=TOPIC_ID, partitions=data)] if data else [])

    def _read(self, wanted, request):
        log = self.log
        try:
            self._check(wanted.current_leader_epoch)
            fetched = LogSource(log).fetch(
                Position(wanted.fetch_offset, wanted.last_fetched_epoch), wanted.partition_max_bytes
            )
        except KafkaError as error:
            return PartitionData(partition_index=0, error_code=error.code, high_watermark=-1, records=b"")
        answer = PartitionData(
            partition_index=0,
            high_watermark=log.high_watermark,
            log_start_offset=log.log_start_offset,
            records=bytes(fetched.data),
        )
        if fetched.diverging_epoch is not None:
            answer.diverging_epoch = PartitionData.EpochEndOffset(
                epoch=fetched.diverging_epoch.epoch, end_offset=fetched.diverging_epoch.end_offset
            )
        else:
            self.ends[request.replica_state.replica_id] = wanted.fetch_offset
            if len(self.ends) == len(NODES) - 1:
                log.maybe_set_high_watermark(min(*self.ends.values(), log.log_end_offset))
                answer.high_watermark = log.high_watermark
        return answer

    def _offsets(self, request):
        answers = []
        for each in request.topics[0].partitions:
            answer = Offsets.ListOffsetsPartitionResponse(partition_index=0)
            try:
                self._check(each.current_leader_epoch)
                answer.offset = self.log.log_end_offset if each.timestamp == -1 else self.log.log_start_offset
            except KafkaError as error:
                answer.error_code = error.code
            answers.append(answer)
        return ListOffsetsResponse(topics=[Offsets(name="t", partitions=answers)])


class World:
    def __init__(self, seed, *, clean):
        self.random = random = Random(seed)
        self.clean = clean
        self.replicas = {node_id: Replica(node_id, random) for node_id in NODES}
        self.leader, self.epoch = 1, 0
        self.committed = b""
        self.late = []
        for node_id in NODES:
            self.learn(node_id)

    def learn(self, node_id):
        replica = self.replicas[node_id]
        if replica.partition.leader_epoch < self.epoch:
            replica.learn(self.epoch, self.leader)

    def exchange(self, replica, *, reliable=False):
        """Exchanges a request of a follower and its response, either of which may be lost or late."""
        random = self.random
        replica.now += 2.0
        leader = self.replicas.get(replica.partition.image.leader)
        request = replica.fetcher.next_request(replica.now, 0)
        if request is None:
            return
        lost = "" if reliable else random.choice(["", "", "", "request", "response", "late"])
        if lost == "request":
            replica.fetcher.failed(replica.now)
            return
        response = leader.answer(request)
        if lost == "response":
            replica.fetcher.failed(replica.now)
        elif lost == "late":
            self.late.append((replica, replica.fetcher, response))
        else:
            self.take(replica, response)

    def take(self, replica, response):
        replica.fetcher.answered(response, replica.now, 0)
        while replica.fetcher.work(self.random.randint(1, 300), replica.now, 0):
            pass

    def deliver_late(self):
        while self.late:
            replica, fetcher, response = self.late.pop()
            if replica.fetcher is fetcher:
                self.take(replica, response)

    def step(self):
        random = self.random
        replica = self.replicas[random.choice(NODES)]
        what = random.random()
        if what < 0.35:
            if not any(each is replica for each, _, _ in self.late):
                self.exchange(replica)
        elif what < 0.6:
            leader = self.replicas[self.leader]
            if leader.partition.leads:
                leader.append()
        elif what < 0.7:
            self.learn(replica.node_id)
        elif what < 0.8:
            self.deliver_late()
        elif what < 0.86:
            replica.checkpoint()
        elif what < 0.93:
            self.elect(replica.node_id)
        elif what < 0.97:
            self.restart(replica)
        elif self.replicas[self.leader].partition.leads:
            log = self.replicas[self.leader].log
            log.delete_records_before(random.randint(log.log_start_offset, log.high_watermark))
        self.note_committed()

    def elect(self, node_id):
        self.leader, self.epoch = node_id, self.epoch + 1
        self.learn(node_id)

    def restart(self, replica):
        self.late = [each for each in self.late if each[0] is not replica]
        epoch = replica.partition.leader_epoch
        replica.crash(power_cut=not self.clean)
        assert replica.log.log_start_offset <= replica.log.high_watermark <= replica.log.log_end_offset
        if replica.node_id == self.leader:
            self.elect(self.random.choice(NODES))
        if epoch >= 0 or self.leader == replica.node_id:
            self.learn(replica.node_id)

    def note_committed(self):
        """Checks that records below a leader's high watermark stay, unless an unclean election or a power cut loses
        them.
        """
        if not self.clean:
            return
        log = self.replicas[self.leader].log
        if self.replicas[self.leader].partition.leads and log.log_start_offset == 0:
            known = content(log, log.high_watermark)
            shorter = min(len(known), len(self.committed))
            assert known[:shorter] == self.committed[:shorter]
            self.committed = max(known, self.committed, key=len)

    def settle(self):
        """Runs until all replicas are caught up."""
        self.late.clear()
        for replica in self.replicas.values():
            replica.fetcher.failed(replica.now)
        self.elect(self.random.choice(NODES))
        leader = self.replicas[self.leader]
        leader.append()
        for node_id in NODES:
            self.learn(node_id)
        for _ in range(200):
            for replica in self.replicas.values():
                if replica is not leader:
                    self.exchange(replica, reliable=True)
        return leader


def content(log, up_to=None):
    """Returns all batches from the log start offset on, as they are in its segments."""
    up_to = log.log_end_offset if up_to is None else up_to
    found, offset = b"", log.log_start_offset
    while offset < up_to:
        data = bytes(log.read(offset, 1 << 20, up_to=up_to, minimum_one=True))
        found += data
        offset = RecordBatch.parse(data[last_batch_at(data) :]).next_offset
    return found


def last_batch_at(data):
    at = last = 0
    while at < len(data):
        last = at
        at += RecordBatch.parse(data, at).size_in_bytes
    return last


def check_equal(world):
    leader = world.settle()
    for replica in world.replicas.values():
        log = replica.log
        assert log.log_end_offset == leader.log.log_end_offset
        assert log.high_watermark == leader.log.high_watermark == log.log_end_offset
        start = max(log.log_start_offset, leader.log.log_start_offset)
        assert log.log_start_offset == start
        assert content(log).endswith(content(leader.log)) or content(leader.log).endswith(content(log))
        assert log.leader_epochs.entries[-1] == leader.log.leader_epochs.entries[-1]
    if world.clean and leader.log.log_start_offset == 0:
        assert content(leader.log).startswith(world.committed)


@pytest.mark.parametrize("seed", range(40))
def test_unclean_elections_and_power_cuts_leave_equal_logs(seed):
    world = World(seed, clean=False)
    for _ in range(250):
        world.step()
    check_equal(world)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_committed_stays(seed):
    world = World(1000 + seed, clean=True)
    for _ in range(250):
        world.step()
    check_equal(world)
