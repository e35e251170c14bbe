"""A pipeline of two processes, killed and restarted with its broker: each input has one output, in order."""

import contextlib
import operator
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException

from compat_tests.adapters import CLIENTS, Client, Consumer
from compat_tests.adapters.confluent_kafka import ConfluentClient
from compat_tests.go.program import built
from compat_tests.running import Running

ROOT = Path(__file__).parent.parent.parent
ROUNDS = max(1, int(os.environ.get("BARNABAS_SOAK_ROUNDS", "1")) // 10)
PARTITIONS = 4
SECONDS = 60.0
LOADING = (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)


class Source:
    """Sends numbered records to each partition of a topic, on a thread, until it is stopped."""

    def __init__(self, client: Client, topic: str) -> None:
        self.producer, self.topic = client.producer(idempotent=True), topic
        self.sent = [0] * PARTITIONS
        self.ending = threading.Event()
        self.failure: BaseException | None = None
        self.thread = threading.Thread(target=self._run, name="source")

    def _run(self) -> None:
        try:
            while not self.ending.is_set():
                for partition in range(PARTITIONS):
                    self.producer.send(self.topic, b"%d" % self.sent[partition], partition=partition)
                    self.sent[partition] += 1
                self.producer.flush()
                self.ending.wait(0.02)
        except BaseException as failure:
            self.failure = failure

    def __enter__(self) -> "Source":
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.set()
        self.thread.join()
        assert self.failure is None, self.failure


class Pipeline:
    """Two processes; one that exits is restarted, as by a supervisor."""

    def __init__(self, home: Path, library: str, bootstrap: str, source: str, target: str, group: str) -> None:
        self.home = home
        self.command = [sys.executable, "-W", "ignore", "-m", "compat_tests.transactions.pipeline", library]
        if library == "franz_go":  # its transactions are those of KIP-890
            self.command = [str(built())]
        self.command += [bootstrap, source, target, group]
        self.assigned = library == "aiokafka"  # it sends the group's name only: the broker would not recognise a zombie
        self.source, self.group = source, group
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, member: int) -> None:
        partitions = [str(index) for index in range(PARTITIONS) if index % 2 == member] if self.assigned else []
        with (self.home / f"member-{member}").open("ab") as output:
            self.processes[member] = subprocess.Popen(
                [*self.command, f"{self.group}-{member}", *partitions],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdout=output,
                stderr=output,
            )

    def kill(self, member: int) -> None:
        self.processes[member].kill()
        self.processes[member].wait()

    def revive(self) -> None:
        for member, process in self.processes.items():
            if process.poll() is not None:
                self.start(member)

    def __enter__(self) -> "Pipeline":
        for member in range(2):
            self.start(member)
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.processes:
            self.kill(member)

    def said(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-4000:] for path in sorted(self.home.glob("member-*")))


def committed(consumer: Consumer, topic: str) -> list[int]:
    """Returns the group's offsets; librdkafka does not wait for a coordinator that is loading."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            return [consumer.committed((topic, index)) or 0 for index in range(PARTITIONS)]
        except KafkaException as error:
            if error.args[0].code() not in LOADING or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


@pytest.mark.timeout(240 + 10 * ROUNDS)
@pytest.mark.parametrize("library", [*sorted(CLIENTS), "franz_go"])
def test_each_input_comes_out_once(
    own_broker: Callable[..., Running], tmp_path: Path, topic: str, group: str, library: str
) -> None:
    broker = own_broker({"group.min.session.timeout.ms": "1000"})
    source, target = f"{topic}-in", f"{topic}-out"
    with contextlib.closing(ConfluentClient(broker.bootstrap)) as client:
        for each in (source, target):
            client.create_topic(each, PARTITIONS)
        watcher = client.consumer(group=group)
        inputs = Source(client, source)
        with Pipeline(tmp_path, library, broker.bootstrap, source, target, group) as pipeline:

            def wait_for(reached: Callable[[], bool]) -> None:
                deadline = time.monotonic() + SECONDS
                while not reached():
                    if time.monotonic() > deadline:
                        pytest.fail(f"{committed(watcher, source)} of {inputs.sent}\n{pipeline.said()}")
                    pipeline.revive()
                    time.sleep(0.02)

            def go_on() -> None:
                before = committed(watcher, source)
                wait_for(lambda: all(map(operator.lt, before, committed(watcher, source))))

            with inputs:
                for _ in range(ROUNDS):
                    go_on()
                    pipeline.kill(0)
                    go_on()
                    broker.kill()
                    broker.start()
                    go_on()
                    pipeline.kill(1)
                    broker.stop()
                    broker.start()
                    go_on()
            wait_for(lambda: committed(watcher, source) == inputs.sent)
            patient = client.consumer(isolation="read_committed")
            # a process that was killed in a transaction must restart to abort it
            wait_for(lambda: ends(patient, target) == ends(watcher, target))
        found = outputs(patient, target)
    assert found == [[b"%d:%d" % (n, n) for n in range(sent)] for sent in inputs.sent]


def ends(consumer: Consumer, topic: str) -> list[int]:
    return [consumer.bounds((topic, index))[1] for index in range(PARTITIONS)]


def outputs(reader: Consumer, topic: str) -> list[list[bytes | None]]:
    found: list[list[bytes | None]] = [[] for _ in range(PARTITIONS)]
    places = [(topic, index) for index in range(PARTITIONS)]
    reader.assign(places)
    deadline = time.monotonic() + SECONDS
    wanted = ends(reader, topic)
    while any(reader.position(place) < end for place, end in zip(places, wanted, strict=True)):
        assert time.monotonic() < deadline, [reader.position(place) for place in places]
        for record in reader.poll(0.2):
            found[record.partition].append(record.value)
    return found
