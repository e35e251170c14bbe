"""Each change of a file fails once while transactions write to two partitions; the broker starts again: all or nothing.

A transaction whose commit was answered is there in both partitions, one that was not committed in neither; where the
answer is missing, in both or in neither. Nothing stays open once the producer is back.
"""

import itertools
from random import Random

import pytest

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.produce import produce
from barnabas.clock import ManualClock
from barnabas.cluster.metadata_log import MetadataLogError
from barnabas.config import BrokerConfig
from barnabas.errors import ConcurrentTransactions, KafkaError
from barnabas.log.log_directory import LogDirectoryError
from barnabas.records.batch import batches
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlType, control_type
from barnabas.records.record import records_of
from barnabas.testing.faults import FaultyFiles
from barnabas.transactions.messages import InitProducer
from barnabas.wire.messages.produce import ProduceRequest
from tests.broker.opening import opened

PROPERTIES = {
    "node.id": "1",
    "log.dirs": "/data",
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "num.recovery.threads.per.data.dir": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}
PARTITIONS = (0, 1)


class Promised:
    """Which transactions have to be seen, and which may be."""

    def __init__(self):
        self.committed = set()
        self.unknown = set()


class Node:
    """A broker on these files, with one producer of the second generation."""

    def __init__(self, files, promised, **properties):
        self.promised = promised
        self.clock = ManualClock()
        self.broker = opened(BrokerConfig.from_properties(PROPERTIES | properties), files, self.clock)
        self.producer = None

    def prepare(self):
        self.broker.create_topic("t", len(PARTITIONS), {"segment.bytes": "1048576"})
        self.broker.transaction_log.create_topic()
        self.init()

    def init(self):
        told = []
        for _ in range(2):  # the transaction before is aborted first
            self.broker.transactions.init_producer_id(InitProducer("x", 60_000), told.append)
            if told and told[-1].error is not ConcurrentTransactions:
                break
        if told and told[-1].error is None:
            self.producer = told[-1].producer_id, told[-1].producer_epoch
        return self.producer

    def write(self, name, partition):
        """Whether it was acknowledged."""
        producer_id, producer_epoch = self.producer
        records = build_batch(
            [(None, name, self.clock.time_ms())],
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=0,
            is_transactional=True,
        )
        data = ProduceRequest.TopicProduceData.PartitionProduceData(index=partition, records=memoryview(records))
        topic = ProduceRequest.TopicProduceData(name="t", partition_data=[data])
        context = Context(self.broker, listener="PLAINTEXT", client_host="127.0.0.1")
        context.api_version = 12
        answer = produce(ProduceRequest(transactional_id="x", acks=-1, timeout_ms=1, topic_data=[topic]), context)
        if isinstance(answer, Later):
            answer = answer.response
        return answer is not None and answer.responses[0].partition_responses[0].error_code == 0

    def transaction(self, name, *, is_commit):
        if self.producer is None:
            return
        written = [self.write(name, partition) for partition in PARTITIONS]
        is_commit = is_commit and all(written)
        if is_commit:
            self.promised.unknown.add(name)
        told = []
        self.broker.transactions.end("x", *self.producer, is_commit, told.append, client_version=2)
        if told and told[0].error is None:
            self.producer = told[0].producer_id, told[0].producer_epoch
            if is_commit:
                self.promised.committed.add(name)

    def visible(self, partition):
        """What a reader of committed transactions sees, by the markers alone."""
        log = self.broker.partition("t", partition).log
        seen, pending, offset = [], {}, log.log_start_offset
        while offset < log.last_stable_offset:
            for batch in batches(log.read(offset, 1 << 20, up_to=log.last_stable_offset, minimum_one=True)):
                offset = batch.next_offset
                (record,) = records_of(batch)
                if not batch.is_control:
                    pending.setdefault(batch.producer_id, []).append(record.value)
                elif control_type(record.key) is ControlType.COMMIT:
                    seen += pending.pop(batch.producer_id, [])
                else:
                    pending.pop(batch.producer_id, None)
        assert pending == {}
        return seen

    def check(self, where):
        """Once the producer is back."""
        if self.broker.image.topics_by_name.keys() < {"t", "__transaction_state"}:
            return
        assert self.init() is not None, where
        for partition in PARTITIONS:
            log = self.broker.partition("t", partition).log
            assert log.last_stable_offset == log.log_end_offset, where
        first, second = (self.visible(partition) for partition in PARTITIONS)
        assert first == second, where
        assert len(set(first)) == len(first), where
        assert self.promised.committed <= set(first) <= self.promised.committed | self.promised.unknown, where
        self.promised.committed, self.promised.unknown = set(first), set()


def story(files, promised, properties):
    node = Node(files, promised, **properties)
    node.prepare()
    node.transaction(b"one", is_commit=True)
    node.transaction(b"two", is_commit=False)
    node.broker.close()
    if not node.broker.controller.log.is_offline:
        node = Node(files, promised, **properties)
        node.init()
        node.transaction(b"three", is_commit=True)
        node.broker.close()


@pytest.mark.parametrize("flushes", [False, True], ids=["kill", "power cut"])
def test_all_or_nothing_whatever_fails(flushes):
    properties = {"log.flush.interval.messages": "1"} if flushes else {}
    for n in itertools.count(1):
        files, promised = FaultyFiles(n, lasting="for ever", torn=Random(n)), Promised()
        try:
            story(files, promised, properties)
        except (KafkaError, LogDirectoryError, MetadataLogError, OSError):
            assert files.has_failed
        if not files.has_failed:
            assert n > 100
            assert promised.committed == {b"one", b"three"}
            return
        where = f"failure at operation {n}, {files.changes[n - 1]}"
        again = Node(files.survivor(power_cut=flushes), promised, **properties)
        again.check(where)
        again.transaction(b"four", is_commit=True)
        again.check(f"a transaction after a {where}")
