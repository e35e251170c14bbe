"""Members of a share group on plain sockets, over kill -9 of their broker.

Each record is acquired by one member at a time, an accepted record is never delivered again, and in the end all records
are accepted.

``BARNABAS_SOAK_ROUNDS`` sets a higher number of rounds than the gate has time for.
"""

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from barnabas.records.builder import build_batch
from barnabas.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from barnabas.wire.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)
from barnabas.wire.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from barnabas.wire.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from compat_tests.running import BarnabasProcess
from tests.raw import Client

ROUNDS = max(3, int(os.environ.get("BARNABAS_SOAK_ROUNDS", "20")) // 5)
SECONDS = 60.0
GROUP, TOPIC = "queue", "work"
ACCEPT, RELEASE, REJECT = 1, 2, 3
SHARE = 2

Fetched = ShareFetchRequest.FetchTopic
Acknowledged = ShareAcknowledgeRequest.AcknowledgeTopic


class Gone(Exception):
    """The broker is down, or has closed the connection."""


class Truth:
    """The state of each record, as the members know it. ``life`` counts the broker's starts: a restart ends all earlier
    acquisitions."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.life = 0
        self.holders: dict[int, str] = {}
        self.heard: set[int] = set()
        self.done: set[int] = set()  #: according to the broker's responses
        self.produced = 0
        self.failures: list[str] = []
        self.ending = threading.Event()

    def given(self, life: int, member: str, first: int, last: int) -> None:
        with self.lock:
            self.heard.update(range(first, last + 1))
            if life != self.life:
                return
            for offset in range(first, last + 1):
                if offset in self.done:
                    self.failures.append(f"{offset} was done with, and came to {member}")
                holder = self.holders.setdefault(offset, member)
                if holder != member:
                    self.failures.append(f"{offset} is {holder}'s, and came to {member}")

    def given_back(self, first: int, last: int) -> None:
        with self.lock:
            for offset in range(first, last + 1):
                self.holders.pop(offset, None)

    def finished(self, first: int, last: int) -> None:
        with self.lock:
            self.done.update(range(first, last + 1))

    def killed(self) -> None:
        with self.lock:
            self.life += 1
            self.holders.clear()


class Asker(threading.Thread):
    """Sends requests over its own connection, and over a new one after a restart of the broker."""

    def __init__(self, name: str, broker: BarnabasProcess, truth: Truth) -> None:
        super().__init__(name=name)
        self.broker, self.truth = broker, truth
        self.random = Random(name)
        self.client: Client

    def run(self) -> None:
        while not self.truth.ending.is_set():
            try:
                life = self.truth.life
                with Client(port_of(self.broker), timeout=SECONDS) as self.client:
                    self.work(life)
            except (OSError, Gone):
                time.sleep(0.01)
            except BaseException as failure:
                self.truth.failures.append(f"{self.name}: {failure!r}")
                raise

    def work(self, life: int) -> None:
        raise NotImplementedError

    def ask(self, request: Any, version: int) -> Any:
        answer = self.client.ask(request, version)
        if answer is None:
            raise Gone
        return answer


class Source(Asker):
    """Produces small batches."""

    def work(self, life: int) -> None:
        topic = ProduceRequest.TopicProduceData
        while not self.truth.ending.is_set():
            records = [(None, b"work", time.time_ns() // 1_000_000)] * self.random.randint(1, 12)
            data = topic.PartitionProduceData(index=0, records=build_batch(records))
            request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic(name=TOPIC, partition_data=[data])])
            (found,) = cast(ProduceResponse, self.ask(request, 9)).responses
            if not found.partition_responses[0].error_code:
                self.truth.produced = found.partition_responses[0].base_offset + len(records)
            time.sleep(0.002)


class Worker(Asker):
    """A member that acquires and acknowledges records; sometimes it leaves without an acknowledgement."""

    def __init__(self, name: str, broker: BarnabasProcess, truth: Truth, topic_id: bytes) -> None:
        super().__init__(name, broker, truth)
        self.topic_id = topic_id

    def work(self, life: int) -> None:
        epoch = 0
        held: list[tuple[int, int]] = []
        while not self.truth.ending.is_set():
            acquired = self.fetch(epoch)
            epoch += 1
            for first, last, _ in acquired:
                self.truth.given(life, self.name, first, last)
                held.append((first, last))
            while held:
                self.say(epoch, *held.pop(), is_whole=self.random.random() < 0.5)
                epoch += 1
            if self.random.random() < 0.05:
                return  # disconnects, and connects again

    def fetch(self, epoch: int) -> list[tuple[int, int, int]]:
        partition = Fetched.FetchPartition(partition_index=0, acknowledgement_batches=[])
        request = ShareFetchRequest(
            group_id=GROUP,
            member_id=self.name,
            share_session_epoch=epoch,
            max_wait_ms=50,
            min_bytes=1,
            max_records=self.random.choice((1, 10, 100)),
            batch_size=10,
            share_acquire_mode=self.random.choice((0, 1)),
            topics=[Fetched(topic_id=self.topic_id, partitions=[partition])],
            forgotten_topics_data=[],
        )
        answer = cast(ShareFetchResponse, self.ask(request, 2))
        if answer.error_code or any(each.error_code for topic in answer.responses for each in topic.partitions):
            raise Gone
        return [
            (each.first_offset, each.last_offset, each.delivery_count)
            for topic in answer.responses
            for partition_data in topic.partitions
            for each in partition_data.acquired_records
        ]

    def say(self, epoch: int, first: int, last: int, *, is_whole: bool) -> None:
        """Sends one acknowledgement type for all records, or one for each. Notes releases before they are sent."""
        wanted = [ACCEPT, ACCEPT, ACCEPT, REJECT, RELEASE]
        count = last - first + 1
        types = [self.random.choice(wanted)] if is_whole else self.random.choices(wanted, k=count)
        found = types * count if len(types) == 1 else types
        self.truth.given_back(first, last)
        batch = Acknowledged.AcknowledgePartition.AcknowledgementBatch(
            first_offset=first, last_offset=last, acknowledge_types=types
        )
        partition = Acknowledged.AcknowledgePartition(partition_index=0, acknowledgement_batches=[batch])
        request = ShareAcknowledgeRequest(
            group_id=GROUP,
            member_id=self.name,
            share_session_epoch=epoch,
            topics=[Acknowledged(topic_id=self.topic_id, partitions=[partition])],
        )
        answer = cast(ShareAcknowledgeResponse, self.ask(request, 2))
        if answer.error_code or answer.responses[0].partitions[0].error_code:
            raise Gone
        for offset, kind in enumerate(found, start=first):
            if kind != RELEASE:
                self.truth.finished(offset, offset)


def prepare(port: int) -> bytes:
    """Creates the topic, which the group reads from its start; returns its id."""
    with Client(port, timeout=SECONDS) as client:
        topic = CreateTopicsRequest.CreatableTopic(
            name=TOPIC, num_partitions=1, replication_factor=1, assignments=[], configs=[]
        )
        made = cast(CreateTopicsResponse, client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7))
        topic_id = bytes(made.topics[0].topic_id)
        client.ask(FindCoordinatorRequest(key_type=SHARE, coordinator_keys=[f"{GROUP}:AAAAAAAAAAAAAAAAAAAAAA:0"]), 6)
        data = InitializeShareGroupStateRequest.InitializeStateData
        begin = data.PartitionData(partition=0, state_epoch=0, start_offset=0)
        request = InitializeShareGroupStateRequest(group_id=GROUP, topics=[data(topic_id=topic_id, partitions=[begin])])
        begun = cast(InitializeShareGroupStateResponse, client.ask(request, 0))
        assert begun.results[0].partitions[0].error_code == 0, begun
    return topic_id


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BarnabasProcess]:
    if os.environ.get("BARNABAS_COMPAT_BROKER") == "apache" or os.environ.get("BARNABAS_COMPAT_BOOTSTRAP"):
        pytest.skip("this test kills a broker of ours")
    running = BarnabasProcess(
        tmp_path,
        {
            "share.coordinator.state.topic.replication.factor": "1",
            "share.coordinator.state.topic.min.isr": "1",
            "share.coordinator.snapshot.update.records.per.snapshot": "20",
        },
    )
    running.start()
    try:
        yield running
    finally:
        running.stop()


@pytest.mark.timeout(180 + 10 * ROUNDS)
def test_two_members_share_a_partition_over_kills(broker: BarnabasProcess) -> None:
    truth = Truth()
    topic_id = prepare(port_of(broker))
    threads = [Source("source", broker, truth), *(Worker(name, broker, truth, topic_id) for name in ("anna", "ben"))]
    for thread in threads:
        thread.start()
    try:
        for _ in range(ROUNDS):
            await_more(truth, 100)
            broker.kill()
            truth.killed()
            broker.start()
        await_more(truth, 100)
        await_start(truth, broker, topic_id)
    finally:
        truth.ending.set()
        for thread in threads:
            thread.join(SECONDS)
    assert not truth.failures


def await_more(truth: Truth, count: int) -> None:
    """Waits until ``count`` more records are acknowledged."""
    before, deadline = len(truth.done), time.monotonic() + SECONDS
    while len(truth.done) < before + count and not truth.failures:
        assert time.monotonic() < deadline, (before, len(truth.done), truth.produced)
        time.sleep(0.005)


def await_start(truth: Truth, broker: BarnabasProcess, topic_id: bytes) -> None:
    """Waits until the share-partition start offset is the log end offset; each record has been delivered."""
    last, deadline = truth.produced, time.monotonic() + SECONDS
    data = ReadShareGroupStateSummaryRequest.ReadStateSummaryData
    request = ReadShareGroupStateSummaryRequest(
        group_id=GROUP,
        topics=[data(topic_id=topic_id, partitions=[data.PartitionData(partition=0, leader_epoch=-1)])],
    )
    with Client(port_of(broker), timeout=SECONDS) as client:
        while not truth.failures:
            found = cast(ReadShareGroupStateSummaryResponse, client.ask(request, 0)).results[0].partitions[0]
            if found.start_offset >= last:
                break
            assert time.monotonic() < deadline, (found, last)
            time.sleep(0.02)
    with truth.lock:
        assert truth.heard >= set(range(last))


def port_of(broker: BarnabasProcess) -> int:
    return int(broker.bootstrap.rpartition(":")[2])
