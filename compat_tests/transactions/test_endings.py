"""Transactions whose producer or broker stops in the middle of them."""

import contextlib
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from compat_tests.adapters import CLIENTS, Client, Fenced, Refused
from compat_tests.adapters.base import WAIT_S
from compat_tests.running import Running
from compat_tests.waiting import read

ROOT = Path(__file__).parent.parent.parent
ROUNDS = int(os.environ.get("BARNABAS_SOAK_ROUNDS", "4"))
PARTITIONS = 3


@contextlib.contextmanager
def process(module: str, *arguments: str) -> "Iterator[subprocess.Popen[bytes]]":
    """Runs one of this folder's programs, and kills it at the end."""
    command = [sys.executable, "-W", "ignore", "-m", f"compat_tests.transactions.{module}", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    running = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        yield running
    finally:
        running.kill()
        running.communicate()


def test_a_killed_producers_successor_aborts_what_it_left(
    client: Client, topic: str, name: str, request: pytest.FixtureRequest
) -> None:
    client.create_topic(topic, PARTITIONS)
    places = [(topic, index) for index in range(PARTITIONS)]
    library = request.node.callspec.params["client"]
    with process("producer", library, client.bootstrap, topic, name) as dying:
        assert dying.stdout is not None
        assert dying.stdout.readline() == b"written\n"
    patient, hasty = (client.consumer(isolation=level) for level in ("read_committed", "read_uncommitted"))
    for consumer in (patient, hasty):
        consumer.assign(places)
    assert {(record.partition, record.offset) for record in read(hasty, 3)} == {(0, 0), (1, 0), (2, 0)}
    assert patient.poll(0.3) == []
    assert [patient.bounds(place) for place in places] == [(0, 0)] * 3
    producer = client.transactional(name)
    producer.begin()
    for index in range(PARTITIONS):
        assert producer.send(topic, b"of the living", partition=index).result() == (index, 2)
    producer.commit()
    assert [(record.offset, record.value) for record in read(patient, 3)] == [(2, b"of the living")] * 3
    assert [patient.bounds(place) for place in places] == [(0, 4)] * 3


@pytest.mark.parametrize("ending", ["stop", "kill"])
@pytest.mark.parametrize("library", sorted(CLIENTS))
def test_an_open_transaction_outlives_its_broker(
    own_broker: Callable[..., Running], topic: str, group: str, name: str, library: str, ending: str
) -> None:
    """One transaction is committed afterwards, one aborted, with records and offsets from before and after."""
    broker = own_broker()
    with contextlib.closing(CLIENTS[library](broker.bootstrap)) as client:
        client.create_topic(topic, PARTITIONS)
        consumer = client.consumer(group=group)
        consumer.assign([(topic, 0)])
        patient = client.consumer(isolation="read_committed")
        patient.assign([(topic, 0)])
        producers = {end: client.transactional(f"{name} {end}") for end in ("commit", "abort")}
        for number, (end, producer) in enumerate(producers.items()):
            producer.begin()
            producer.send(topic, b"before %b" % end.encode()).result()
            producer.send_offsets(consumer, {(topic, 1 + number): 5})
        getattr(broker, ending)()
        broker.start()
        for end, producer in producers.items():
            producer.send(topic, b"after %b" % end.encode()).result()
            getattr(producer, end)()
        values = [(record.offset, record.value) for record in read(patient, 2)]
        assert values == [(0, b"before commit"), (2, b"after commit")]
        assert patient.bounds((topic, 0)) == (0, 6)
        assert [consumer.committed((topic, index)) for index in (1, 2)] == [5, None]


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_an_abandoned_transaction_times_out(
    own_broker: Callable[..., Running], topic: str, name: str, ending: str
) -> None:
    """The producer is killed, the broker is restarted before the timeout: the broker has to abort the transaction."""
    broker = own_broker()
    with contextlib.closing(CLIENTS["confluent_kafka"](broker.bootstrap)) as client:
        client.create_topic(topic, PARTITIONS)
        with process("producer", "confluent_kafka", broker.bootstrap, topic, name, "3000") as dying:
            assert dying.stdout is not None
            assert dying.stdout.readline() == b"written\n"
        getattr(broker, ending)()
        broker.start()
        plain = client.producer()
        patient = client.consumer(isolation="read_committed")
        patient.assign([(topic, index) for index in range(PARTITIONS)])
        for index in range(PARTITIONS):
            plain.send(topic, b"plain", partition=index)
        plain.flush()
        assert [record.value for record in read(patient, 3)] == [b"plain"] * 3
        assert [patient.bounds((topic, index)) for index in range(PARTITIONS)] == [(0, 3)] * 3


class Fire:
    """A broker that is killed or stopped at random moments of a seed, and restarted, by a thread."""

    def __init__(self, broker: Running, rounds: int, seed: int) -> None:
        self.broker, self.rounds, self.random = broker, rounds, random.Random(seed)
        self.progress = threading.Semaphore(0)
        self.failure: BaseException | None = None
        self.ended = False
        self.thread = threading.Thread(target=self._run, name="fire")

    def _run(self) -> None:
        try:
            for number in range(self.rounds):
                for _ in range(2):
                    assert self.progress.acquire(timeout=2 * WAIT_S), "no transaction ends any more"
                if self.ended:
                    return
                time.sleep(self.random.random() * 0.1)
                (self.broker.stop if number % 2 else self.broker.kill)()
                self.broker.start()
        except BaseException as failure:
            self.failure = failure

    def __enter__(self) -> "Fire":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended = True
        self.progress.release(2)
        self.thread.join()
        assert self.failure is None, self.failure


class Outcome(NamedTuple):
    number: int
    fate: str
    """"committed" and "aborted" as the producer was told, "unknown" where it was told neither."""


def ledger(client: Client, topic: str, transactional_id: str, fire: Fire) -> list[Outcome]:
    """Runs transactions, each with two records to each partition, during the kills and a few after them."""
    outcomes: list[Outcome] = []
    producer, more = client.transactional(transactional_id), 3
    while more:
        more -= not fire.thread.is_alive()
        number = len(outcomes)
        fate, end = ("aborted", producer.abort) if number % 4 == 3 else ("committed", producer.commit)
        try:
            producer.begin()
            for n in range(2 * PARTITIONS):
                producer.send(topic, b"%d" % number, partition=n % PARTITIONS)
            producer.flush()
            end()
        except (Fenced, Refused):
            fate = "unknown"
            producer = client.transactional(transactional_id)
        outcomes.append(Outcome(number, fate))
        fire.progress.release()
    return outcomes


@pytest.mark.timeout(120 + 5 * ROUNDS)
@pytest.mark.parametrize("library", sorted(CLIENTS))
def test_transactions_are_atomic_over_kills_and_restarts(
    own_broker: Callable[..., Running], topic: str, name: str, library: str
) -> None:
    broker = own_broker()
    with contextlib.closing(CLIENTS[library](broker.bootstrap)) as client:
        client.create_topic(topic, PARTITIONS)
        with Fire(broker, ROUNDS, seed=PARTITIONS) as fire:
            outcomes = ledger(client, topic, name, fire)
        by_fate = {fate: [number for number, each in outcomes if each == fate] for _, fate in outcomes}
        found: list[list[int]] = [[] for _ in range(PARTITIONS)]
        reader = client.consumer(isolation="read_committed")
        places = [(topic, index) for index in range(PARTITIONS)]
        reader.assign(places)
        deadline = time.monotonic() + WAIT_S
        while any(reader.position(place) < reader.bounds(place)[1] for place in places):
            assert time.monotonic() < deadline, outcomes
            for record in reader.poll(0.2):
                found[record.partition].append(int(record.value or b"-1"))
        everything = client.consumer()
        assert [everything.bounds(place) for place in places] == [reader.bounds(place) for place in places]
    allowed = sorted({*by_fate["committed"], *(set(by_fate.get("unknown", ())) & set(found[0]))})
    assert found == [[number for number in allowed for _ in range(2)]] * PARTITIONS, outcomes
    assert len(by_fate["committed"]) > ROUNDS
