"""Transactional produce over a socket, where the coordinator's record must be flushed before the response."""

import threading
import time
from collections.abc import Iterator

import pytest

from barnabas.records.batch import batches
from barnabas.records.builder import build_batch
from barnabas.testing import Broker
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.end_txn import EndTxnRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from tests.raw import Client, framed

Topic = CreateTopicsRequest.CreatableTopic
VERSION = 12
PARTITIONS = 3
ROUNDS = 10
NOW_MS = int(time.time() * 1000)


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    """The port of a broker whose transaction log is flushed with each record."""
    flushed = Topic.CreatableTopicConfig(name="flush.messages", value="1")
    topics = [("__transaction_state", 1, [flushed]), ("t", PARTITIONS, [])]
    with Broker() as broker, Client(broker.port) as client:
        made = client.ask(
            CreateTopicsRequest(
                topics=[
                    Topic(name=name, num_partitions=count, replication_factor=1, assignments=[], configs=configs)
                    for name, count, configs in topics
                ],
                timeout_ms=1000,
            ),
            4,
        )
        assert [each.error_code for each in made.topics] == [0, 0]
        yield broker.port


def request(
    transactional_id: str, producer_id: int, epoch: int, sequence: int, partition: int, value: bytes
) -> ProduceRequest:
    records = build_batch(
        [(None, value, NOW_MS)],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=True,
    )
    data = ProduceRequest.TopicProduceData.PartitionProduceData(index=partition, records=memoryview(records))
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=[data])
    return ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=1000, topic_data=[topic])


def produce_all(port: int, transactional_id: str, value: bytes) -> None:
    """Produces transactions of two batches to each partition, all in flight at once."""
    with Client(port, timeout=60) as client:
        ask = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000)
        answer = client.ask(ask, 4)
        producer_id, epoch = answer.producer_id, answer.producer_epoch
        for _ in range(ROUNDS):
            order = [(sequence, index) for index in range(PARTITIONS) for sequence in range(2)]
            for number, (sequence, index) in enumerate(order):
                made = request(transactional_id, producer_id, epoch, sequence, index, value * (number + 1))
                client.send(framed(made, VERSION, number))
            at = 4 + ProduceResponse.header_version(VERSION)
            for _ in order:
                frame = client.receive()
                assert frame is not None
                (topic,) = ProduceResponse.decode(frame, version=VERSION, at=at).responses
                assert [each.error_code for each in topic.partition_responses] == [0]
            end = EndTxnRequest(
                transactional_id=transactional_id, producer_id=producer_id, producer_epoch=epoch, committed=True
            )
            ended = client.ask(end, 5)
            assert ended.error_code == 0
            producer_id, epoch = ended.producer_id, ended.producer_epoch


def test_batches_that_wait_stay_what_they_were(port: int) -> None:
    """Connections share their buffers, so a batch that waits for the coordinator must not be in one."""
    names = {b"a" * 100: "first", b"b" * 1000: "second", b"c" * 10_000: "third"}
    failures: list[BaseException] = []

    def run(value: bytes, name: str) -> None:
        try:
            produce_all(port, name, value)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=each) for each in names.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with Client(port) as client:
        for index in range(PARTITIONS):
            partition = FetchRequest.FetchTopic.FetchPartition(
                partition=index, fetch_offset=0, partition_max_bytes=1 << 26, current_leader_epoch=-1
            )
            topic = FetchRequest.FetchTopic(topic="t", partitions=[partition])
            shown = client.ask(
                FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1 << 26, isolation_level=1, topics=[topic]), 11
            )
            (partition,) = shown.responses[0].partitions
            assert partition.last_stable_offset == partition.high_watermark
            found = [batch for batch in batches(partition.records) if not batch.is_control]
            for batch in found:
                batch.check_crc()
            assert len(found) == 2 * ROUNDS * len(names)
