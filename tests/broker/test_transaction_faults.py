"""Each change of a file fails once while transactions commit offsets; the broker starts again, and all holds together.

A transaction whose end was answered has ended so; one whose end was not, has ended one way or the other once its
producer is back. Where commits wait for the disk this is so after a power cut, too.
"""

import itertools
from random import Random

import pytest

from barnabas.clock import ManualClock
from barnabas.cluster.metadata_log import MetadataLogError
from barnabas.cluster.topic_names import CONSUMER_OFFSETS
from barnabas.config import BrokerConfig
from barnabas.errors import ConcurrentTransactions, KafkaError
from barnabas.groups.messages import OffsetCommit, OffsetToCommit
from barnabas.log.log_directory import LogDirectoryError
from barnabas.offsets.pending import Producer
from barnabas.testing.faults import FaultyFiles
from barnabas.transactions.messages import InitProducer, TopicPartition
from tests.broker.opening import opened

PROPERTIES = {
    "node.id": "1",
    "log.dirs": "/data",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "num.recovery.threads.per.data.dir": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
PLAIN, IN_TRANSACTION = 0, 1


class Promised:
    """What each of the two partitions may be at: one offset, or two while it is not known what became of a commit."""

    def __init__(self):
        self.offsets = {PLAIN: {-1}, IN_TRANSACTION: {-1}}


class Node:
    """A broker on these files, with one producer."""

    def __init__(self, files, promised, **properties):
        self.promised = promised
        self.clock = ManualClock()
        self.broker = opened(BrokerConfig.from_properties(PROPERTIES | properties), files, self.clock)
        self.producer = None

    def prepare(self):
        self.broker.create_topic("t", 2, {})
        self.broker.group_log.create_topic()
        self.broker.transaction_log.create_topic()
        self.init()

    def init(self):
        told = []
        for _ in range(2):  # the transaction before is aborted first
            self.broker.transactions.init_producer_id(InitProducer("x", 60_000), told.append)
            if told and told[-1].error is not ConcurrentTransactions:
                break
        if told and told[-1].error is None:
            self.producer = Producer(told[-1].producer_id, told[-1].producer_epoch)
        return self.producer

    def commit(self, value):
        """By itself."""
        self.promised.offsets[PLAIN].add(value)
        told = []
        self._commit(PLAIN, value, told, None)
        if told == [0]:
            self.promised.offsets[PLAIN] = {value}

    def transaction(self, value, *, is_commit):
        if self.producer is None:
            return
        offsets = self.promised.offsets[IN_TRANSACTION]
        told = []
        place = TopicPartition(CONSUMER_OFFSETS, 0)

        def added(error):
            if error is None:
                self._commit(IN_TRANSACTION, value, told, self.producer)

        self.broker.transactions.add_partitions("x", *self.producer, [place], added, client_version=2)
        if told != [0]:
            return
        if is_commit:
            offsets.add(value)
        ended = []
        self.broker.transactions.end("x", *self.producer, is_commit, ended.append, client_version=2)
        if ended and ended[0].error is None:
            if is_commit:
                self.promised.offsets[IN_TRANSACTION] = {value}
            self.producer = Producer(ended[0].producer_id, ended[0].producer_epoch)

    def _commit(self, partition, value, told, producer):
        offsets = [OffsetToCommit("t", partition, value)]
        self.broker.groups.commit_offsets(OffsetCommit("g", offsets, producer=producer), told.extend)

    def check(self, where):
        """Once the producer is back."""
        if self.broker.image.topics_by_name.keys() < {"t", CONSUMER_OFFSETS, "__transaction_state"}:
            return
        assert self.init() is not None, where
        told = self.broker.groups.fetch_offsets("g").get("t", {})
        assert not self.broker.groups.unstable_offsets("g"), where
        for partition, expected in self.promised.offsets.items():
            offset = told[partition].offset if partition in told else -1
            assert offset in expected, f"{where}: partition {partition} is at {offset}, not at one of {expected}"
            self.promised.offsets[partition] = {offset}


def story(files, promised, properties):
    node = Node(files, promised, **properties)
    node.prepare()
    for value in (1, 2, 3, 4):
        node.commit(value)
        node.transaction(value, is_commit=value != 2)
    node.broker.close()
    if not node.broker.controller.log.is_offline:
        node = Node(files, promised, **properties)
        node.init()
        node.transaction(5, is_commit=True)
        node.broker.close()


@pytest.mark.parametrize("flushes", [False, True], ids=["kill", "power cut"])
def test_a_transaction_holds_together_whatever_fails(flushes):
    properties = {"log.flush.interval.messages": "1"} if flushes else {}
    for n in itertools.count(1):
        files, promised = FaultyFiles(n, lasting="for ever", torn=Random(n)), Promised()
        try:
            story(files, promised, properties)
        except (KafkaError, LogDirectoryError, MetadataLogError, OSError):
            assert files.has_failed
        if not files.has_failed:
            assert n > 100
            assert promised.offsets == {PLAIN: {4}, IN_TRANSACTION: {5}}
            return
        where = f"failure at operation {n}, {files.changes[n - 1]}"
        again = Node(files.survivor(power_cut=flushes), promised, **properties)
        again.check(where)
        again.transaction(6, is_commit=True)
        again.check(f"a transaction after a {where}")
