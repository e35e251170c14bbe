"""The cost of transactions: the time of a small one, the throughput of large ones, and a start with many ids.

Knows nothing of how a coordinator works. The client sends raw frames over a blocking socket: only the server is
measured. Both generations are measured, beside Apache Kafka where Java is installed.
"""

import contextlib
import shutil
import socket
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from barnabas.records.builder import build_batch
from barnabas.wire.message import Request, Response
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from barnabas.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from benchmarks import load, servers
from benchmarks.measure import Row, beside, started_again

TOPIC = "bench"
PARTITIONS = 3
RECORDS, RECORD_BYTES = 100, 100  #: of a small transaction
SMALL_TRANSACTIONS = 400  #: a round
BATCH_BYTES = 64 << 10
BATCHES, LARGE_TRANSACTIONS = 100, 40  #: in each, and a round
IDS = 10_000
TRANSACTION = 1  #: the coordinator type of FindCoordinator
CONCURRENT_TRANSACTIONS = 51
GENERATIONS = {"v1": {"produce": 11, "end": 4}, "v2": {"produce": 12, "end": 5}}

R = TypeVar("R", bound=Response)


class Producer:
    """A transactional producer that waits for each response, of either protocol version."""

    def __init__(self, port: int, connection: socket.socket, generation: str, transactional_id: str = "bench") -> None:
        self.port = port
        self.connection = connection
        self.generation = generation
        self.transactional_id = transactional_id
        self.buffer = bytearray(1 << 16)
        self.id, self.epoch = -1, -1
        self.sequences = [0] * PARTITIONS

    def ask(self, request: Request, version: int, answered: type[R]) -> R:
        self.connection.sendall(framed(request, version))
        return self.answer(version, answered)

    def answer(self, version: int, answered: type[R]) -> R:
        size = load.receive(self.connection, self.buffer)
        return answered.decode(memoryview(self.buffer)[9:size], version=version)

    def begin_with(self, timeout_ms: int = 60_000) -> None:
        """Initialises a producer; waits for the coordinator, whose topic may not exist yet."""
        find = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[self.transactional_id])
        deadline = time.monotonic() + load.LONGEST_SILENCE_S
        while time.monotonic() < deadline:
            found = self.ask(find, 4, FindCoordinatorResponse)
            if not found.coordinators[0].error_code:
                request = InitProducerIdRequest(
                    transactional_id=self.transactional_id, transaction_timeout_ms=timeout_ms
                )
                given = self.ask(request, 5, InitProducerIdResponse)
                if not given.error_code:
                    self.id, self.epoch = given.producer_id, given.producer_epoch
                    return
            time.sleep(0.05)
        raise TimeoutError(f"there is no coordinator of {self.transactional_id}")

    def add(self) -> None:
        """Adds all partitions; a producer of the second generation does so by writing to them."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=TOPIC, partitions=list(range(PARTITIONS)))
            ],
        )

        def answer() -> int:
            (topic,) = self.ask(request, 3, AddPartitionsToTxnResponse).results_by_topic_v3_and_below
            return max(each.partition_error_code for each in topic.results_by_partition)

        until_accepted(answer)

    def produce(self, records: Sequence[int], record_bytes: int) -> Request:
        """Produces this number of records to each partition, in one request."""
        topic_type = ProduceRequest.TopicProduceData
        now_ms = time.time_ns() // 1_000_000
        data = []
        for index, count in enumerate(records):
            batch = build_batch(
                [(None, b"v" * (record_bytes - 8), now_ms)] * count,
                producer_id=self.id,
                producer_epoch=self.epoch,
                base_sequence=self.sequences[index],
                is_transactional=True,
            )
            self.sequences[index] += count
            data.append(topic_type.PartitionProduceData(index=index, records=batch))
        topics = [topic_type(name=TOPIC, partition_data=data)]
        return ProduceRequest(transactional_id=self.transactional_id, acks=-1, timeout_ms=30_000, topic_data=topics)

    def end(self, version: int) -> None:
        """Commits, and continues with the epoch of the response."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id, producer_id=self.id, producer_epoch=self.epoch, committed=True
        )
        given = self.ask(request, version, EndTxnResponse)
        assert not given.error_code, given
        if given.producer_epoch >= 0:
            self.id, self.epoch = given.producer_id, given.producer_epoch
            self.sequences = [0] * PARTITIONS

    def transaction(self) -> None:
        """Runs a small transaction."""
        versions = GENERATIONS[self.generation]
        if self.generation == "v1":
            self.add()
        shares = [RECORDS // PARTITIONS + (index < RECORDS % PARTITIONS) for index in range(PARTITIONS)]
        version = versions["produce"]
        frame = framed(self.produce(shares, RECORD_BYTES), version)

        def answer() -> int:
            self.connection.sendall(frame)
            (topic,) = self.answer(version, ProduceResponse).responses
            return max(each.error_code for each in topic.partition_responses)

        until_accepted(answer)
        self.end(versions["end"])


def until_accepted(answer: Callable[[], int]) -> None:
    """Retries while the previous transaction is being completed, as clients do."""
    deadline = time.monotonic() + load.LONGEST_SILENCE_S
    while (code := answer()) != 0:
        assert code == CONCURRENT_TRANSACTIONS, code
        assert time.monotonic() < deadline


def framed(request: Request, version: int) -> bytes:
    return load.framed(request.api_key, version, request.encode(version=version))


@contextlib.contextmanager
def producing(port: int, generation: str) -> Iterator[Producer]:
    with load.connected(port) as connection:
        producer = Producer(port, connection, generation)
        producer.begin_with()
        yield producer


def small(folder: Path, rounds: int) -> Iterator[Row]:
    """Measures 100 records over 3 partitions, from the begin to the response of the commit, sequentially."""
    starts: dict[str, Callable[[Path], contextlib.AbstractContextManager[servers.Running]]]
    starts = {"Barnabas": servers.barnabas}
    if shutil.which("java"):
        starts["Apache"] = servers.apache
    for generation in GENERATIONS:
        times: dict[str, list[float]] = {}
        for index in range(rounds):
            for name, start in starts.items():
                with start(folder / f"small-{index}") as running:
                    load.create_topic(running.port, TOPIC, PARTITIONS)
                    with producing(running.port, generation) as producer:
                        for _ in range(SMALL_TRANSACTIONS // 4):
                            producer.transaction()
                        for _ in range(SMALL_TRANSACTIONS):
                            began = time.perf_counter()
                            producer.transaction()
                            times.setdefault(name, []).append((time.perf_counter() - began) * 1000)
        ours, theirs = (statistics.median(times.get(name, [0.0])) for name in ("Barnabas", "Apache"))
        what = f"a transaction ({generation}) of {RECORDS} records over {PARTITIONS} partitions, p50"
        ratio = ours / theirs if theirs else None
        baseline = f"Apache {theirs:.2f} ms" if theirs else ""
        yield Row(what, f"{ours:.2f} ms", baseline, ratio, "<= 5 ms", ours <= 5)


def large(folder: Path, rounds: int) -> Iterator[Row]:
    """Measures transactions of 6.4 MB in batches of 64 KiB, five in flight; beside the same without transactions."""
    count = BATCHES * LARGE_TRANSACTIONS
    for generation in GENERATIONS:
        pairs = []
        for index in range(rounds):
            with servers.barnabas(folder / f"large-{index}") as running:
                load.create_topic(running.port, TOPIC, PARTITIONS)
                with producing(running.port, generation) as producer:
                    transfer(producer)
                    turns = [(transfer(producer), plain_transfer(producer)) for _ in range(LARGE_TRANSACTIONS)]
            seconds, without = (sum(each) for each in zip(*turns, strict=True))
            pairs.append((count * BATCH_BYTES / seconds / 1e6, count * BATCH_BYTES / without / 1e6))
        yield beside(f"transactions ({generation}) of {BATCHES} batches of 64 KiB, MB/s", "without", pairs, 0.8)


def transfer(producer: Producer) -> float:
    """Sends one large transaction to one partition; returns the seconds from begin to the response of the commit."""
    versions = GENERATIONS[producer.generation]
    version = versions["produce"]
    records = BATCH_BYTES // 1024
    frames = [framed(producer.produce([records], 1024), version) for _ in range(BATCHES)]
    began = time.perf_counter()
    if producer.generation == "v1":
        producer.add()
    flow(producer, frames, version)
    producer.end(versions["end"])
    return time.perf_counter() - began


def plain_transfer(producer: Producer) -> float:
    """Sends the same amount by the same client, without a transaction; returns the seconds."""
    # Each frame has its own memory, as in a transaction: a frame that is sent repeatedly stays in the CPU's cache.
    frames = [load.produce_frame(TOPIC, BATCH_BYTES).data for _ in range(BATCHES)]
    began = time.perf_counter()
    flow(producer, frames, load.PRODUCE_VERSION)
    return time.perf_counter() - began


def flow(producer: Producer, frames: Sequence[bytes], version: int) -> None:
    """Sends all frames, five in flight, and waits for all responses."""
    under_way = 0
    for frame in frames:
        if under_way == 5:
            expect_taken(producer, version)
            under_way -= 1
        producer.connection.sendall(frame)
        under_way += 1
    for _ in range(under_way):
        expect_taken(producer, version)


def expect_taken(producer: Producer, version: int) -> None:
    (topic,) = producer.answer(version, ProduceResponse).responses
    assert not topic.partition_responses[0].error_code, topic


def start_with_ids(folder: Path, rounds: int) -> Iterator[Row]:
    """Measures process start to first ApiVersions response with many transactional ids, a tenth in transactions."""
    directory = folder / "ids"
    with servers.barnabas(directory, keep=True) as running:
        load.create_topic(running.port, TOPIC, PARTITIONS)
        with load.connected(running.port) as connection:
            for number in range(IDS):
                producer = Producer(running.port, connection, "v2", f"id-{number}")
                producer.begin_with()
                if number % 10 == 0:
                    producer.transaction()
    yield started_again(f"start: with {IDS:,} transactional ids", directory, rounds)
