"""The producer state of a broker, over a socket: retries are detected, also after a restart and after a kill.

Knows only the broker's protocol: it sends single batches, in an order in which no client would.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from barnabas.records.builder import build_batch
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.describe_producers import DescribeProducersRequest
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from compat_tests.running import Running
from tests.raw import Client, framed

TOPIC = "once"
VERSION = 11
DEADLINE_SECONDS = 60
HOUR_MS = 3_600_000

COORDINATOR_LOAD_IN_PROGRESS, OUT_OF_ORDER_SEQUENCE_NUMBER, INVALID_PRODUCER_EPOCH = 14, 45, 47

Answer = ProduceResponse.TopicProduceResponse.PartitionProduceResponse
Partition = ProduceRequest.TopicProduceData.PartitionProduceData
Topic = CreateTopicsRequest.CreatableTopic


class Producer:
    """An idempotent producer of one partition."""

    def __init__(self, broker: Running) -> None:
        self.broker = broker
        self.connect()
        topic = Topic(name=TOPIC, num_partitions=1, replication_factor=1, assignments=[], configs=[])
        self.client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 4)
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        deadline = time.monotonic() + DEADLINE_SECONDS
        while (answer := self.client.ask(request, 1)).error_code == COORDINATOR_LOAD_IN_PROGRESS:  # type: ignore[attr-defined]
            assert time.monotonic() < deadline
        self.id, self.epoch = answer.producer_id, 0  # type: ignore[attr-defined]
        self.known()

    def connect(self) -> None:
        self.client = Client(int(self.broker.bootstrap.rpartition(":")[2]), timeout=DEADLINE_SECONDS)

    def close(self) -> None:
        self.client.socket.close()

    def again(self, end: Callable[[], None]) -> None:
        """Stops or kills the broker, and restarts it; the producer keeps its state."""
        self.close()
        end()
        self.broker.start()
        self.connect()
        self.known()

    def request(self, sequence: int, count: int, age_ms: int) -> ProduceRequest:
        at = int(time.time() * 1000) - age_ms
        records = build_batch(
            [(b"k", b"%d" % (sequence + number), at) for number in range(count)],
            producer_id=self.id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
        )
        data = [Partition(index=0, records=memoryview(records))]
        topic = ProduceRequest.TopicProduceData(name=TOPIC, partition_data=data)
        return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])

    def send(self, *batches: tuple[int, int], age_ms: int = 0) -> list[tuple[int, int]]:
        """Sends batches of this size from that sequence on, all in flight at once; returns errors and offsets."""
        for number, (sequence, count) in enumerate(batches):
            self.client.send(framed(self.request(sequence, count, age_ms), VERSION, number))
        answers = [self.answer() for _ in batches]
        return [(answer.error_code, answer.base_offset) for answer in answers]

    def answer(self) -> Answer:
        frame = self.client.receive()
        assert frame is not None
        at = 4 + ProduceResponse.header_version(VERSION)
        ((answer,),) = (
            each.partition_responses for each in ProduceResponse.decode(frame, version=VERSION, at=at).responses
        )
        return answer

    def known(self) -> list[tuple[int, int, int]]:
        """Returns ids, epochs and last sequences of the partition's producer state."""
        requested_topic = DescribeProducersRequest.TopicRequest(name=TOPIC, partition_indexes=[0])
        deadline = time.monotonic() + DEADLINE_SECONDS
        while True:
            found = self.client.ask(DescribeProducersRequest(topics=[requested_topic]), 0)
            (partition,) = found.topics[0].partitions  # type: ignore[attr-defined]
            if not partition.error_code:
                return [
                    (each.producer_id, each.producer_epoch, each.last_sequence) for each in partition.active_producers
                ]
            assert time.monotonic() < deadline, "the topic, or its leader, does not come"


FIVE: Sequence[tuple[int, int]] = [(0, 10), (10, 3), (13, 1), (14, 20), (34, 6)]
PLACES = [(0, 0), (0, 10), (0, 13), (0, 14), (0, 34)]


@pytest.fixture
def producer(own_broker: Callable[..., Running]) -> Iterator[Producer]:
    made = Producer(own_broker())
    yield made
    made.close()


def test_five_in_flight_are_found_again(producer: Producer) -> None:
    assert producer.send(*FIVE) == PLACES
    assert producer.send(*FIVE) == PLACES
    assert producer.send((40, 1), *FIVE[1:]) == [(0, 40), *PLACES[1:]]
    assert producer.send(FIVE[0]) == [(OUT_OF_ORDER_SEQUENCE_NUMBER, -1)]


def test_a_gap_is_refused_until_it_is_filled(producer: Producer) -> None:
    lost, *others = FIVE
    assert producer.send(lost) == PLACES[:1]
    assert [error for error, _ in producer.send(*others[1:])] == [OUT_OF_ORDER_SEQUENCE_NUMBER] * 3
    assert producer.send(*others) == PLACES[1:]


def test_after_a_stop_the_last_batch_is_known(producer: Producer) -> None:
    """A snapshot has one batch of each producer, as in Kafka's file format."""
    producer.send(*FIVE)
    producer.again(producer.broker.stop)
    assert producer.send(FIVE[-1]) == PLACES[-1:]
    assert producer.send(FIVE[0]) == [(OUT_OF_ORDER_SEQUENCE_NUMBER, -1)]
    assert producer.send((40, 2)) == [(0, 40)]


def test_after_a_kill_the_last_batch_is_known(producer: Producer) -> None:
    producer.send(*FIVE)
    producer.again(producer.broker.kill)
    assert producer.send(FIVE[-1]) == PLACES[-1:]
    assert producer.send((40, 2)) == [(0, 40)]


@pytest.mark.skipif(os.environ.get("BARNABAS_COMPAT_BROKER") == "apache", reason="it remembers the last batch alone")
def test_after_a_kill_all_five_are_known(producer: Producer) -> None:
    producer.send(*FIVE)
    producer.again(producer.broker.kill)
    assert producer.send(*FIVE) == PLACES
    assert producer.send((40, 2)) == [(0, 40)]
    producer.again(producer.broker.kill)
    assert producer.send((40, 2), (42, 1)) == [(0, 40), (0, 42)]


def test_a_newer_epoch_starts_over_and_fences_the_older(producer: Producer) -> None:
    """A client with an unknown sequence number raises its epoch by itself (KIP-360)."""
    producer.send(*FIVE)
    producer.epoch = 1
    assert producer.send((40, 1)) == [(OUT_OF_ORDER_SEQUENCE_NUMBER, -1)]
    assert producer.send((0, 2), (2, 1)) == [(0, 40), (0, 42)]
    producer.epoch = 0
    assert producer.send(FIVE[-1]) == [(INVALID_PRODUCER_EPOCH, -1)]
    producer.again(producer.broker.kill)
    assert producer.send((40, 1)) == [(INVALID_PRODUCER_EPOCH, -1)]
    producer.epoch = 1
    assert producer.send((2, 1), (3, 1)) == [(0, 42), (0, 43)]


EXPIRING = {"producer.id.expiration.ms": str(HOUR_MS)}


def test_an_idle_producer_expires(own_broker: Callable[..., Running]) -> None:
    often = {"producer.id.expiration.check.interval.ms": "50", "log.initial.task.delay.ms": "50"}
    with contextlib.closing(Producer(own_broker(EXPIRING | often))) as producer:
        deadline = time.monotonic() + DEADLINE_SECONDS
        assert producer.send((0, 5), age_ms=2 * HOUR_MS) == [(0, 0)]
        while producer.known():
            assert time.monotonic() < deadline
        assert producer.send((17, 1)) == [(0, 5)]  # as from an unknown producer
        assert producer.known() == [(producer.id, 0, 17)]


def test_expired_producers_are_not_loaded_at_the_next_start(own_broker: Callable[..., Running]) -> None:
    with contextlib.closing(Producer(own_broker(EXPIRING))) as producer:
        assert producer.send((0, 5), age_ms=2 * HOUR_MS) == [(0, 0)]
        assert producer.known() == [(producer.id, 0, 4)]
        producer.again(producer.broker.stop)
        assert producer.known() == []
