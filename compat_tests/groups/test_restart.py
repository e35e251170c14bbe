"""Groups of the newer kinds over kill -9 of their broker, under load: nothing is lost, and no acknowledged record is
delivered again.

``BARNABAS_SOAK_ROUNDS`` sets a higher number of rounds than the gate has time for.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from confluent_kafka import AcknowledgeType, KafkaException

from barnabas.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from compat_tests.adapters.base import Place, Refused
from compat_tests.adapters.confluent_kafka import ConfluentClient
from compat_tests.running import Running
from compat_tests.transactions.test_pipeline import PARTITIONS, Source
from tests.raw import Client

from .members import Group, Member

ROUNDS = max(2, int(os.environ.get("BARNABAS_SOAK_ROUNDS", "20")) // 10)
SECONDS = 60.0


class Worker:
    """A thread that repeats a step until it is stopped; its errors are raised in the test."""

    def __init__(self, turn: Callable[[], None], leave: Callable[[], Any]) -> None:
        self.turn, self.leave = turn, leave
        self.ending = threading.Event()
        self.failure: BaseException | None = None
        self.thread = threading.Thread(target=self._run, name="worker")

    def _run(self) -> None:
        try:
            while not self.ending.is_set():
                self.turn()
            self.leave()
        except BaseException as failure:
            self.failure = failure

    def end(self) -> None:
        self.ending.set()
        self.thread.join(SECONDS)
        assert not self.thread.is_alive()
        assert self.failure is None, repr(self.failure)


@contextlib.contextmanager
def working(begin: Callable[[int], Worker]) -> Iterator[list[Worker]]:
    """Runs two workers."""
    workers = [begin(0), begin(1)]
    for worker in workers:
        worker.thread.start()
    try:
        yield workers
    finally:
        for worker in workers:
            worker.end()


class Ledger:
    """The members' delivered records and acknowledged commits; ``lock`` protects them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.heard: dict[int, set[int]] = {partition: set() for partition in range(PARTITIONS)}
        self.promised = [0] * PARTITIONS
        """The committed offset of each partition, as acknowledged by the broker."""

    def progress(self) -> list[int]:
        with self.lock:
            return list(self.promised)


def reading(member: Member, ledger: Ledger) -> Callable[[], None]:
    """Consumes records, each of which contains its offset; commits them."""

    def turn() -> None:
        offsets: dict[Place, int] = {}
        for record in member.poll(0.1):
            with ledger.lock:
                assert record.value == b"%d" % record.offset
                assert record.offset >= ledger.promised[record.partition], "what is committed came again"
                ledger.heard[record.partition].add(record.offset)
            offsets[record.topic, record.partition] = record.offset + 1
        for place, offset in offsets.items():
            with contextlib.suppress(Refused, KafkaException):  # the broker is down, or the partition moved
                member.commit({place: offset})
                with ledger.lock:
                    ledger.promised[place[1]] = max(ledger.promised[place[1]], offset)

    return turn


def await_progress(progress: Callable[[], Sequence[int]], workers: Sequence[Worker]) -> None:
    """Waits until each of the counts has risen by a few."""
    before, deadline = progress(), time.monotonic() + SECONDS
    while not all(now > then + 4 for now, then in zip(progress(), before, strict=True)):
        assert time.monotonic() < deadline, (before, progress())
        assert not [worker.failure for worker in workers if worker.failure], [worker.failure for worker in workers]
        time.sleep(0.01)


def killed_and_started(broker: Running, rounds: int, go_on: Callable[[], None]) -> None:
    for _ in range(rounds):
        go_on()
        broker.kill()
        broker.start()
    go_on()


@pytest.mark.timeout(180 + 10 * ROUNDS)
def test_a_consumer_group_goes_on(own_group: tuple[Running, Group], topic: str) -> None:
    broker, group = own_group
    with contextlib.closing(ConfluentClient(broker.bootstrap)) as client:
        client.create_topic(topic, PARTITIONS)
        ledger = Ledger()
        made: list[Member] = []

        def join(_: int = 0) -> Worker:
            member = group.member(f"member {len(made)}")
            made.append(member)
            member.subscribe([topic])
            return Worker(reading(member, ledger), member.close)

        inputs = Source(client, topic)
        with working(join) as workers:
            with inputs:
                killed_and_started(broker, ROUNDS, lambda: await_progress(ledger.progress, workers))
                workers.pop(0).end()  # one member leaves, another joins: the broker has loaded the group from the log
                workers.append(join())
                workers[-1].thread.start()
                killed_and_started(broker, 1, lambda: await_progress(ledger.progress, workers))
            deadline = time.monotonic() + SECONDS
            while ledger.progress() != inputs.sent:
                assert time.monotonic() < deadline, (ledger.progress(), inputs.sent)
                time.sleep(0.01)
        assert ledger.heard == {partition: set(range(sent)) for partition, sent in enumerate(inputs.sent)}
        watcher = client.consumer(group=group.group_id)
        assert [watcher.committed((topic, index)) for index in range(PARTITIONS)] == inputs.sent


@pytest.mark.timeout(180 + 10 * ROUNDS)
def test_a_share_group_continues(own_group: tuple[Running, Group], topic: str) -> None:
    broker, group = own_group
    group.configure(share_auto_offset_reset="earliest")
    heard: list[set[int]] = [set() for _ in range(PARTITIONS)]
    done: list[set[int]] = [set() for _ in range(PARTITIONS)]  # acknowledged to the member as accepted
    lock = threading.Lock()

    def join(_: int) -> Worker:
        consumer = group.sharer()
        consumer.subscribe([topic])

        def turn() -> None:
            taken: dict[int, set[int]] = {}
            for message in consumer.poll(timeout=0.2):
                if message.error() is not None:
                    continue
                partition, offset = message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                with lock:
                    assert offset not in done[partition], f"{partition} {offset} was done with"
                    heard[partition].add(offset)
                consumer.acknowledge(message, AcknowledgeType.ACCEPT)
                taken.setdefault(partition, set()).add(offset)
            for place, error in consumer.commit_sync(timeout=SECONDS).items():
                if error is None:
                    with lock:
                        done[place.partition] |= taken.get(place.partition, set())

        return Worker(turn, consumer.close)

    def progress() -> list[int]:
        with lock:
            return [len(each) for each in done]

    with contextlib.closing(ConfluentClient(broker.bootstrap)) as client:
        client.create_topic(topic, PARTITIONS)
        inputs = Source(client, topic)
        with working(join) as workers:
            with inputs:
                killed_and_started(broker, ROUNDS, lambda: await_progress(progress, workers))
            deadline = time.monotonic() + SECONDS
            while (
                lags(broker, group.group_id, topic) != [0] * PARTITIONS
            ):  # some may be accepted although the response was lost
                assert time.monotonic() < deadline, (progress(), inputs.sent)
                time.sleep(0.05)
    assert heard == [set(range(sent)) for sent in inputs.sent]


def lags(broker: Running, group_id: str, topic: str) -> list[int]:
    """Returns the number of unacknowledged records of each partition of a share group."""
    requested_group = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup(
        group_id=group_id, topics=None
    )
    with Client(int(broker.bootstrap.rpartition(":")[2])) as client:
        answer: Any = client.ask(DescribeShareGroupOffsetsRequest(groups=[requested_group]), 1)
    (shown,) = answer.groups
    found = {
        each.partition_index: each.lag for one in shown.topics if one.topic_name == topic for each in one.partitions
    }
    return [found.get(partition, -1) for partition in range(PARTITIONS)]
