"""One run: a broker, its clients and the planned faults; then all partitions are read, and the history is checked.

Knows how long to wait, and nothing of what is correct.
"""

import contextlib
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from tests.history.brokers import BROKERS, Broker
from tests.history.checker import Verdict, judge
from tests.history.clients.base import Lost
from tests.history.clients.confluent_kafka import Consumer, Producer
from tests.history.ending import PATIENCE_S, finish, read_to_the_end
from tests.history.faults import Faults
from tests.history.plan import TOPICS, Plan
from tests.history.proxy import Proxy
from tests.history.records import History, write
from tests.history.workers import Process, Scene


@dataclass(slots=True)
class Outcome:
    history: History
    verdict: Verdict
    faults: Counter[str]
    complaints: list[str]


def run(plan: Plan, home: Path, kind: str = "barnabas", mistake: str | None = None) -> Outcome:
    """Runs a plan in its own folder, which has the history."""
    home.mkdir(parents=True, exist_ok=True)
    with Proxy() as proxy:
        broker: Broker = BROKERS[kind](home / "broker", proxy, plan.level, mistake)
        broker.start()
        try:
            _prepare(broker.bootstrap, broker.copies)
            scene = Scene(broker.bootstrap, plan.seed)
            faults = Faults(broker, plan, scene.now)
            try:
                _play(plan, scene, faults)
            finally:
                scene.history.plan = plan.plain()
                scene.history.events = faults.events
                write(scene.history, home / "history.jsonl")
            complaints = broker.complaints()
        finally:
            broker.end()
    return Outcome(scene.history, judge(scene.history), faults.counts, complaints)


def _play(plan: Plan, scene: Scene, faults: Faults) -> None:
    processes = [Process(scene, worker, number) for number, worker in enumerate(plan.workers)]
    for process in processes:
        process.thread.start()
    try:
        faults.run()
        while scene.now() < plan.seconds and all(process.thread.is_alive() for process in processes):
            time.sleep(0.05)
    finally:
        faults.broker.calm()
    finish([process for process in processes if not process.worker.transforms])
    read_to_the_end(scene, [process for process in processes if process.worker.transforms])


def _prepare(bootstrap: str, copies: int) -> None:
    """Creates all topics, including the coordinators', without faults."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = [NewTopic(name, partitions, copies) for name, partitions in TOPICS.items()]
    for made in admin.create_topics(topics, operation_timeout=PATIENCE_S).values():
        made.result(PATIENCE_S)
    producer = Producer(bootstrap, "first")
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with contextlib.suppress(Lost):
            producer.start()
            break
    consumer = Consumer(bootstrap, "first", committed=True)
    consumer.subscribe(list(TOPICS))
    while not consumer.assignment() and time.monotonic() < deadline:
        consumer.poll(1, 0.1)
    consumer.close()
