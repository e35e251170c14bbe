"""Kafka Streams by the streams protocol (KIP-1071): words are counted exactly once while instances are killed.

The application is ``java/WordCount.java``. It writes every count, so the output of each word must be exactly
1, 2, 3 ...: a missing number was lost, a repeated one was counted twice.
"""

import itertools
import re
import shutil
import signal
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compat_tests.apache_kafka.apache import CURRENT, FLAGS, KafkaUnavailable, jars, run_java
from compat_tests.running import BarnabasProcess

confluent_kafka = pytest.importorskip("confluent_kafka")

PROGRAM = Path(__file__).parent / "java" / "WordCount.java"
TOOL = "org.apache.kafka.tools.streams.StreamsGroupCommand"
APPLICATION = "word-count"
PARTITIONS = 4
WORDS = ("broker", "barnabas", "castle", "klamm", "messenger", "surveyor", "village")
PATIENCE = 90.0

QUICK = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": "4000",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "300",
    "num.partitions": str(PARTITIONS),
}
"""Short timeouts: a killed member is removed within seconds."""


class Application:
    """Instances of the word count, each a process with its own state directory."""

    def __init__(self, home: Path, bootstrap: str) -> None:
        self.home, self.bootstrap = home, bootstrap
        self.classes = home / "classes"
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        class_path = f"{jars(CURRENT)}/*"
        subprocess.run(["javac", "-cp", class_path, "-d", str(self.classes), str(PROGRAM)], check=True)
        self.class_path = f"{self.classes}:{class_path}"

    def start(self, name: str) -> None:
        arguments = [self.bootstrap, APPLICATION, str(self.home / f"state-{name}"), f"{name}.example:8080"]
        level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        with (self.home / f"output-{name}").open("ab") as output:
            self.running[name] = subprocess.Popen(
                ["java", *FLAGS, "-Xmx256m", level, "-cp", self.class_path, "WordCount", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        process.kill()
        process.wait()

    def stop(self, name: str) -> None:
        """Stops an instance cleanly: it leaves the group."""
        process = self.running.pop(name)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (0, 128 + signal.SIGTERM), self.said(name)

    def said(self, name: str) -> str:
        return (self.home / f"output-{name}").read_text(errors="replace")[-4000:]

    def close(self) -> None:
        for name in list(self.running):
            self.kill(name)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BarnabasProcess]:
    if shutil.which("javac") is None:
        pytest.skip("the word count needs javac, which is not installed")
    try:
        jars(CURRENT)
    except KafkaUnavailable as missing:
        pytest.skip(str(missing))
    broker = BarnabasProcess(tmp_path / "broker", QUICK).start()
    try:
        yield broker
        assert broker.complaints() == []
    finally:
        broker.kill()


@pytest.fixture
def application(broker: BarnabasProcess, tmp_path: Path) -> Iterator[Application]:
    application = Application(tmp_path, broker.bootstrap)
    try:
        yield application
    finally:
        application.close()


class Lines:
    """The application's input, and its output."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.words = itertools.cycle(WORDS)
        self.written: Counter[str] = Counter()
        self.counted: dict[str, list[int]] = defaultdict(list)
        self.producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        self.consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "judge", "isolation.level": "read_committed"}
        )
        self.consumer.assign([confluent_kafka.TopicPartition("counted", each, 0) for each in range(PARTITIONS)])

    def write(self, lines: int) -> None:
        for at in range(lines):
            words = list(itertools.islice(self.words, 5))
            self.written.update(words)
            self.producer.produce("lines", " ".join(words), partition=at % PARTITIONS)
        assert self.producer.flush(30) == 0

    def read(self) -> None:
        for message in self.consumer.consume(1000, 0.2):
            if message.error() is None:
                self.counted[message.key().decode()].append(int(message.value()))

    def await_all(self, application: Application) -> None:
        """Waits until every written word is counted."""
        deadline = time.monotonic() + PATIENCE
        while any(len(self.counted[word]) < count for word, count in self.written.items()):
            assert time.monotonic() < deadline, [*map(application.said, application.running)]
            self.read()
        assert self.counted == {word: list(range(1, count + 1)) for word, count in self.written.items()}

    def await_some(self, application: Application) -> None:
        """Waits until there is more output."""
        before, deadline = sum(map(len, self.counted.values())), time.monotonic() + PATIENCE
        while sum(map(len, self.counted.values())) == before:
            assert time.monotonic() < deadline, [*map(application.said, application.running)]
            self.read()


def make_topics(bootstrap: str) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    wanted = [confluent_kafka.admin.NewTopic(name, PARTITIONS, 1) for name in ("lines", "counted")]
    for future in admin.create_topics(wanted).values():
        future.result(30)


def tool(bootstrap: str, *arguments: str) -> str:
    """Returns the output of Apache Kafka's own tool."""
    done = run_java(CURRENT, TOOL, "--bootstrap-server", bootstrap, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def described(bootstrap: str, *what: str) -> str:
    return tool(bootstrap, "--describe", "--group", APPLICATION, *what)


def await_described(bootstrap: str, is_so: Callable[[str], bool], *what: str) -> str:
    deadline = time.monotonic() + PATIENCE
    while not is_so(said := described(bootstrap, *what)):
        assert time.monotonic() < deadline, said
    return said


def shared_evenly(said: str) -> bool:
    """Returns whether two members have two tasks each of both subtopologies."""
    return len(re.findall(r"ACTIVE: 0:\[\d,\d\]; 1:\[\d,\d\];", said)) == 2


def test_words_are_counted_exactly_once(broker: BarnabasProcess, application: Application) -> None:
    make_topics(broker.bootstrap)
    lines = Lines(broker.bootstrap)
    lines.write(200)
    application.start("one")
    lines.await_all(application)

    application.start("two")
    await_described(broker.bootstrap, shared_evenly, "--members")
    lines.write(200)
    lines.await_all(application)

    lines.write(400)
    lines.await_some(application)
    application.kill("one")
    lines.write(200)
    lines.await_all(application)

    application.start("one")
    lines.write(400)
    lines.await_some(application)
    broker.kill()
    broker.start()
    lines.write(200)
    lines.await_all(application)

    application.stop("two")
    lines.write(100)
    lines.await_all(application)
    application.stop("one")
    assert "Empty" in described(broker.bootstrap, "--state")
    assert "successful" in tool(broker.bootstrap, "--delete", "--group", APPLICATION)
    lines.consumer.close()
