"""A random walk over three replicas that lead and follow: records acknowledged with acks=all are never lost.

Brokers are fenced, killed and restarted; metadata arrives late at each of them; the controller's responses are late or
lost. The model: an acknowledged batch is at its offset on each later leader, and no two consumers read different
batches at one offset.
"""

from random import Random

import pytest

from barnabas.clock import ManualClock
from barnabas.cluster.image.image import BrokerImage, PartitionImage
from barnabas.cluster.replication.followers import CommittedIsr
from barnabas.cluster.replication.partition import ACKS_ALL, Partition
from barnabas.errors import FencedLeaderEpoch, IneligibleReplica, InvalidUpdateVersion, KafkaError
from barnabas.log.follower import EpochEnd, Fetched, Follower
from barnabas.records.batch import RecordBatch, batches
from barnabas.records.builder import build_batch
from barnabas.records.validation import ProducePolicy
from tests.cluster.replication.followers import TOPIC_ID, new_partition
from tests.cluster.replication.leading import Leading

NODES = (1, 2, 3)
STEPS = 500
NO_LEADER = -1


class Controller:
    """The partition and the brokers in the metadata log; each state is one record."""

    def __init__(self, random):
        self.random = random
        self.brokers = {each: BrokerImage(each, 100 + each, bytes(16), {}, fenced=False) for each in NODES}
        self.image = PartitionImage(NODES, NODES, (), (), 1, 0, partition_epoch=0, directories=(bytes(16),) * 3)
        self.log = [(self.image, self.brokers)]

    def record(self, **changes):
        if changes:
            self.image = self.image._replace(partition_epoch=self.image.partition_epoch + 1, **changes)
        self.log.append((self.image, dict(self.brokers)))

    def fence(self, broker_id):
        self.brokers[broker_id] = self.brokers[broker_id]._replace(fenced=True)
        isr = tuple(each for each in self.image.isr if each != broker_id) or self.image.isr
        changes = {}
        if isr != self.image.isr:
            changes["isr"] = isr
        if self.image.leader == broker_id:
            able = [each for each in isr if not self.brokers[each].fenced]
            changes |= {"leader": self.random.choice(able or [NO_LEADER]), "leader_epoch": self.image.leader_epoch + 1}
        self.record(**changes)

    def register(self, broker_id):
        """Returns the new broker epoch."""
        epoch = 1000 + len(self.log)
        self.brokers[broker_id] = self.brokers[broker_id]._replace(fenced=False, epoch=epoch)
        changes = {}
        if self.image.leader == NO_LEADER and broker_id in self.image.isr:
            changes = {"leader": broker_id, "leader_epoch": self.image.leader_epoch + 1}
        self.record(**changes)
        return epoch

    def alter(self, change):
        if change.leader_epoch < self.image.leader_epoch:
            raise FencedLeaderEpoch
        if change.partition_epoch < self.image.partition_epoch:
            raise InvalidUpdateVersion
        for broker_id, epoch in change.isr.items():
            broker = self.brokers[broker_id]
            if broker.fenced or epoch not in (-1, broker.epoch):
                raise IneligibleReplica
        self.record(isr=tuple(change.isr))
        return CommittedIsr(self.image.leader_epoch, self.image.partition_epoch, self.image.isr)


class Node:
    """A broker with its replica; it has ``applied`` records of the metadata."""

    def __init__(self, node_id, clock):
        self.node_id, self.clock = node_id, clock
        self.is_alive = True
        self.epoch = 100 + node_id
        self.start(new_partition(node_id, min_insync_replicas=2).log, 0)

    def start(self, log, applied):
        self.leading = Leading(self.clock)
        self.leading.broker_epoch = self.epoch
        self.partition = Partition("t", TOPIC_ID, 0, self.node_id, log, ProducePolicy(), lambda: self.leading)
        self.applied = applied

    def apply(self, log):
        if self.applied < len(log):
            image, self.leading.brokers = log[self.applied]
            self.applied += 1
            lead = image.leader == self.node_id
            (self.partition.become_leader if lead else self.partition.become_follower)(image)

    def batches(self, up_to):
        """Returns the CRC of each batch below an offset, by its offset. It covers neither offset nor epoch."""
        log = self.partition.log
        data = log.read(0, 1 << 20, up_to=up_to, minimum_one=True) if up_to else b""
        return {batch.base_offset: bytes(batch.buffer[17:21]) for batch in batches(bytes(data))}


class Walk:
    def __init__(self, seed):
        self.random = Random(seed)
        self.clock = ManualClock()
        self.controller = Controller(self.random)
        self.nodes = {each: Node(each, self.clock) for each in NODES}
        self.acknowledged, self.seen = {}, {}
        self.produced = 0
        for node in self.nodes.values():
            node.apply(self.controller.log)

    def alive(self):
        return [node for node in self.nodes.values() if node.is_alive]

    def produce(self):
        for node in self.alive():
            if not node.partition.leads:
                continue
            self.produced += 1
            batch = RecordBatch.parse(bytearray(build_batch([(None, b"%d" % self.produced, 0)])))
            try:
                appended = node.partition.append(batch, 0, acks=ACKS_ALL)
            except KafkaError:
                continue
            crc = bytes(batch.buffer[17:21])

            def done(error, offset=appended.base_offset, crc=crc):
                if error is None:
                    self.acknowledged[offset] = crc

            node.partition.when_safe(appended.last_offset + 1, ACKS_ALL, done)

    def fetch(self):
        follower = self.random.choice(self.alive())
        partition = follower.partition
        leader = self.nodes.get(partition.image.leader)
        if partition.leads or leader is None or not leader.is_alive:
            return
        log = leader.partition.log
        position = Follower(partition.log).position
        try:
            leader.partition.check_leader(partition.leader_epoch)
            replica = leader.partition.replica(follower.node_id, has_epoch=True)
            diverging = None
            if position.last_fetched_epoch >= 0:
                epoch, end = log.end_offset_for_epoch(position.last_fetched_epoch)
                if epoch < position.last_fetched_epoch or end < position.fetch_offset:
                    diverging = EpochEnd(epoch, end)
            high_watermark, end, data = log.high_watermark, log.log_end_offset, b""
            if diverging is None:
                size = self.random.choice((1, 1, 100, 10_000))
                data = leader.partition.read(position.fetch_offset, size, up_to=end, minimum_one=True)
                leader.partition.followers.fetched(replica, position.fetch_offset, 0, end, follower.epoch)
        except KafkaError:
            return
        if self.random.random() < 0.9:  # else the response is lost
            fetched = Fetched(data, high_watermark, 0, diverging)
            partition.follow(fetched, 0, partition.leader_epoch)

    def change_isr(self):
        """Handles a proposal as the controller; some responses are lost, and the proposal is repeated."""
        for node in self.alive():
            if node.leading.proposed:
                change, done = node.leading.proposed.pop(0)
                try:
                    answer = (self.controller.alter(change), None)
                except KafkaError as error:
                    answer = (None, error)
                if self.random.random() < 0.8:
                    done(*answer)
                else:
                    node.leading.proposed.append((change, done))

    def learn(self):
        self.random.choice(self.alive()).apply(self.controller.log)

    def wait(self):
        self.clock.advance(self.random.choice((1, 20, 50)))
        for node in self.alive():
            node.leading.look()

    def fence(self):
        """Ends the session of a broker; most of these are dead, the others do not know it yet."""
        node = self.random.choice(self.alive())
        if len(self.alive()) > 1 and not self.controller.brokers[node.node_id].fenced:
            self.controller.fence(node.node_id)
            node.is_alive = self.random.random() < 0.3

    def come_back(self):
        for node in self.nodes.values():
            if self.controller.brokers[node.node_id].fenced:
                log = node.partition.log
                node.partition.become_follower(node.partition.image._replace(leader=NO_LEADER))
                node.epoch = self.controller.register(node.node_id)
                node.is_alive = True
                node.start(log, len(self.controller.log) - 1)
                node.apply(self.controller.log)
                return

    def check(self):
        leader = self.nodes.get(self.controller.image.leader)
        for node in self.alive():
            for offset, crc in node.batches(node.partition.log.high_watermark).items():
                assert self.seen.setdefault(offset, crc) == crc, f"two batches at {offset}"
        if leader is not None and leader.is_alive and leader.partition.leads:
            held = leader.batches(leader.partition.log.log_end_offset)
            assert {offset: held.get(offset) for offset in self.acknowledged} == self.acknowledged

    def settle(self):
        """Restarts all, and runs until nothing is left to fetch."""
        for _ in NODES:
            self.come_back()
        for turn in range(300):
            if turn == 200:
                self.produce()
            for node in self.alive():
                node.apply(self.controller.log)
            self.change_isr()
            self.fetch()
        self.check()


STEP = {
    Walk.produce: 30,
    Walk.fetch: 30,
    Walk.change_isr: 20,
    Walk.learn: 15,
    Walk.wait: 8,
    Walk.fence: 5,
    Walk.come_back: 10,
}


@pytest.mark.parametrize("seed", range(40))
def test_what_was_acknowledged_is_never_lost(seed):
    walk = Walk(seed)
    for step in walk.random.choices(list(STEP), STEP.values(), k=STEPS):
        step(walk)
        walk.check()
    walk.settle()
    assert walk.acknowledged
    ends = {node.partition.log.log_end_offset for node in walk.nodes.values()}
    assert len(ends) == 1 and sorted(walk.controller.image.isr) == list(NODES)
