"""Offsets in transactions over sockets, with a broker that is stopped or killed between the commit and the end."""

import time

import pytest

from barnabas.errors import NONE, ConcurrentTransactions, UnstableOffsetCommit
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest
from compat_tests.running import BarnabasProcess
from tests.raw import Client

SECONDS = 60
GROUP, TRANSACTIONAL = 0, 1
BY_ID = 6
VERSIONS = range(7)

FEW = {"offsets.topic.num.partitions": "3", "transaction.state.log.num.partitions": "3"}
UNSTABLE = UnstableOffsetCommit.code


@pytest.fixture
def broker(tmp_path):
    broker = BarnabasProcess(tmp_path, FEW)
    broker.start()
    yield broker
    broker.kill()
    assert broker.complaints() == []


class Asker(Client):
    """A client with the requests of a transactional producer, its consumer and their administrator."""

    def prepare(self):
        """Creates the topic and both coordinators; returns the topic's id."""
        topic = CreateTopicsRequest.CreatableTopic(
            name="t", num_partitions=8, replication_factor=1, assignments=[], configs=[]
        )
        self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 5)
        for kind in (GROUP, TRANSACTIONAL):
            assert self.ask(FindCoordinatorRequest(key="g", key_type=kind), 2).error_code == NONE
        (found,) = self.ask(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="t")]), 12).topics
        return found.topic_id

    def insist(self, request, version):
        """Repeats the request until the earlier transaction has ended."""
        deadline = time.monotonic() + SECONDS
        while (answer := self.ask(request, version)).error_code == ConcurrentTransactions.code:
            assert time.monotonic() < deadline
        assert answer.error_code == NONE
        return answer

    def init(self, name):
        answer = self.insist(InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000), 4)
        return {"transactional_id": name, "producer_id": answer.producer_id, "producer_epoch": answer.producer_epoch}

    def commit(self, version, producer, topic_id, partition, offset):
        self.insist(AddOffsetsToTxnRequest(group_id="g", **producer), 3)
        Topic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        row = Topic.TxnOffsetCommitRequestPartition(
            partition_index=partition, committed_offset=offset, committed_metadata="m"
        )
        name = {"topic_id": topic_id} if version >= BY_ID else {"name": "t"}
        request = TxnOffsetCommitRequest(group_id="g", topics=[Topic(partitions=[row], **name)], **producer)
        ((answer,),) = (each.partitions for each in self.ask(request, version).topics)
        assert (answer.partition_index, answer.error_code) == (partition, NONE)

    def end(self, producer, *, committed, version=4):
        self.insist(EndTxnRequest(committed=committed, **producer), version)

    def offsets(self, *partitions):
        """Returns offset and error code of each."""
        topic = OffsetFetchRequest.OffsetFetchRequestTopic(name="t", partition_indexes=partitions)
        answer = self.ask(OffsetFetchRequest(group_id="g", topics=[topic], require_stable=True), 7)
        return [(row.committed_offset, row.error_code) for row in answer.topics[0].partitions]

    def await_offsets(self, *expected):
        """Waits for stable offsets of the first partitions: a transaction completes shortly after it is prepared."""
        deadline = time.monotonic() + SECONDS
        found = self.offsets(*range(len(expected)))
        while UNSTABLE in [code for _, code in found]:
            assert time.monotonic() < deadline
            found = self.offsets(*range(len(expected)))
        assert found == [(offset, NONE) for offset in expected]


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_broker_ends_between_the_commit_and_the_end(broker, how):
    """A producer of each version commits an offset of its own partition; those of even versions succeed."""
    with Asker(broker.port) as asker:
        topic_id = asker.prepare()
        producers = [asker.init(f"x{version}") for version in VERSIONS]
        for version in VERSIONS:
            asker.commit(version, producers[version], topic_id, version, 10 + version)
        assert asker.offsets(*VERSIONS) == [(-1, UNSTABLE)] * 7
    getattr(broker, how)()
    broker.start()
    with Asker(broker.port) as asker:
        assert asker.offsets(*VERSIONS) == [(-1, UNSTABLE)] * 7
        for version in VERSIONS:
            asker.end(producers[version], committed=version % 2 == 0)
        asker.await_offsets(*(10 + version if version % 2 == 0 else -1 for version in VERSIONS))
    getattr(broker, how)()
    broker.start()
    with Asker(broker.port) as asker:
        asker.await_offsets(*(10 + version if version % 2 == 0 else -1 for version in VERSIONS))


def test_a_producer_that_comes_back_after_a_kill_takes_its_offsets_back(broker):
    with Asker(broker.port) as asker:
        topic_id = asker.prepare()
        asker.commit(5, asker.init("x"), topic_id, 0, 10)
    broker.kill()
    broker.start()
    with Asker(broker.port) as asker:
        successor = asker.init("x")
        asker.await_offsets(-1)
        asker.commit(5, successor, topic_id, 0, 20)
        asker.end(successor, committed=True)
        asker.await_offsets(20)
