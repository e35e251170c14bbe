"""Each change of a file fails once while transactions write to two partitions, which stay atomic after a restart.

A transaction with an acknowledged commit is in both partitions, one without a commit in neither; without a response it
is in both or in neither. No transaction stays open when the producer has returned.
"""

import pytest

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.produce import produce
from barnabas.records.batch import batches
from barnabas.records.builder import build_batch
from barnabas.records.control import ControlRecordType, control_record_type
from barnabas.records.record import records_of
from barnabas.wire.messages.produce import ProduceRequest
from tests.asking import context_of
from tests.broker.failing import TransactionalNode, fail_each_change
from tests.submitting import create_topic, ready

PARTITIONS = (0, 1)


class Promised:
    """The transactions that must be visible, and those that may be."""

    def __init__(self):
        self.committed = set()
        self.unknown = set()


class Node(TransactionalNode):
    def prepare(self):
        create_topic(self.broker, "t", len(PARTITIONS), {"segment.bytes": "1048576"})
        self.broker.coordinators.transactions.create_topic(ready)
        self.init()

    def write(self, name, partition):
        """Writes a record; returns whether it was acknowledged."""
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
        context = context_of(self.broker, 12)
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
        if self.end(is_commit) and is_commit:
            self.promised.committed.add(name)

    def visible(self, partition):
        """Returns the records for read_committed, by the markers."""
        log = self.broker.partition("t", partition).log
        seen, pending, offset = [], {}, log.log_start_offset
        while offset < log.last_stable_offset:
            for batch in batches(log.read(offset, 1 << 20, up_to=log.last_stable_offset, minimum_one=True)):
                offset = batch.next_offset
                (record,) = records_of(batch)
                if not batch.is_control:
                    pending.setdefault(batch.producer_id, []).append(record.value)
                elif control_record_type(record.key) is ControlRecordType.COMMIT:
                    seen += pending.pop(batch.producer_id, [])
                else:
                    pending.pop(batch.producer_id, None)
        assert pending == {}
        return seen

    def check(self, where):
        """Checks the partitions when the producer has returned."""
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
    if not node.broker.metadata.log.is_offline:
        node = Node(files, promised, **properties)
        node.init()
        node.transaction(b"three", is_commit=True)
        node.broker.close()


@pytest.mark.parametrize("flushes", [False, True], ids=["kill", "power cut"])
def test_all_or_nothing_whatever_fails(flushes):
    def whole(promised):
        assert promised.committed == {b"one", b"three"}

    fail_each_change(Node, story, Promised, flushes=flushes, whole=whole, one_more=b"four")
