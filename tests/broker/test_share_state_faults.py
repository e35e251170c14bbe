"""Each change of a file fails once while the state of a share partition is written; the broker starts again.

Acknowledged state exists; other state may exist. If records wait for the disk, this also holds after a power cut.
"""

import itertools
from random import Random

import pytest

from barnabas.broker.persister import Progress
from barnabas.clock import ManualClock
from barnabas.cluster.quorum.metadata_log import MetadataLogError
from barnabas.cluster.topic_names import SHARE_GROUP_STATE
from barnabas.config import BrokerConfig
from barnabas.errors import KafkaError
from barnabas.log.log_directory import LogDirectoryError
from barnabas.share.messages import StateBatch
from barnabas.testing.faults import FaultyFiles
from tests.broker.opening import opened
from tests.submitting import create_topic

PROPERTIES = {
    "node.id": "1",
    "log.dirs": "/data",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "num.recovery.threads.per.data.dir": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "2",
    "share.coordinator.state.topic.prune.interval.ms": "60000",
}


class Node:
    """A broker on these files, with a leader that writes batches, and moves its start offset.

    ``promised`` are the possible start offsets: one, or two while the outcome of a write is unknown.
    """

    def __init__(self, files, promised, properties):
        self.promised = promised
        self.clock = ManualClock()
        self.broker = opened(BrokerConfig.from_properties(PROPERTIES | properties), files, self.clock)

    @property
    def topic_id(self):
        return self.broker.image.topics_by_name["t"].id

    def prepare(self):
        create_topic(self.broker, "t", 1, {})
        answers = []
        self.broker.persister.initialize("g", {self.topic_id: {0: 0}}, 0, answers.append)
        self.promised.add(0)
        if self.is_well(answers):
            self.promised.discard(None)

    def write(self, start_offset):
        answers = []
        self.promised.add(start_offset)
        batches = [StateBatch(start_offset, start_offset + 5, 2, 1)]
        progress = Progress(start_offset, 6)
        self.broker.persister.write("g", self.topic_id, 0, 0, -1, lambda: progress, batches, answers.append)
        if self.is_well(answers):
            self.promised.clear()
            self.promised.add(start_offset)

    @staticmethod
    def is_well(answers):
        return bool(answers) and all(outcome.error is None for outcome in answers[0].values())

    def check(self, where):
        if self.broker.image.topics_by_name.keys() < {"t", SHARE_GROUP_STATE}:
            start_offset = None
        else:
            outcome = self.read()
            start_offset = None if outcome.error else outcome.state.start_offset
        assert start_offset in self.promised, where
        if start_offset:
            assert list(outcome.state.batches) == [StateBatch(start_offset, start_offset + 5, 2, 1)], where
        self.promised.clear()
        self.promised.add(start_offset)

    def read(self):
        answers = []
        self.broker.persister.read("g", self.topic_id, 0, -1, answers.append)
        return answers[0][self.topic_id, 0]


def story(files, promised, properties):
    node = Node(files, promised, properties)
    node.prepare()
    for start_offset in range(1, 5):
        node.write(start_offset)
        node.clock.advance(20)
    node.broker.close()
    if not node.broker.metadata.log.is_offline:
        node = Node(files, promised, properties)
        node.write(7)
        node.broker.close()


@pytest.mark.parametrize("flushes", [False, True], ids=["kill", "power cut"])
def test_what_was_acknowledged_is_there_whatever_fails(flushes):
    properties = {"log.flush.interval.messages": "1"} if flushes else {}
    for n in itertools.count(1):
        files, promised = FaultyFiles(n, lasting="for ever", torn=Random(n)), {None}
        try:
            story(files, promised, properties)
        except (KafkaError, LogDirectoryError, MetadataLogError, OSError):
            assert files.has_failed
        if not files.has_failed:
            assert n > 100
            assert promised == {7}
            return
        where = f"failure at operation {n}, {files.changes[n - 1]}"
        again = Node(files.survivor(power_cut=flushes), promised, properties)
        again.check(where)
        if promised != {None}:
            again.write(8)
            again.check(f"a write after a {where}")
            assert promised == {8}, where
