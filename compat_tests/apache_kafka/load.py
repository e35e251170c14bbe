"""Producers and a group under load while nodes are started and stopped, which record acknowledged and read records; and
waits with deadlines.

Knows nothing of the brokers.
"""

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from .apache import CURRENT, java_command

PARTITIONS = 3
WITHIN = 30.0


class Load:
    """librdkafka's idempotent producer: sends numbers to the partitions of a topic in turn, until it is stopped."""

    def __init__(self, bootstrap: str, topic: str, in_flight: int = 5) -> None:
        self.acknowledged: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self.failures: list[str] = []
        self._topic = topic
        self._producer = Producer({
            "bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 2, "message.timeout.ms": 60_000,
            "reconnect.backoff.max.ms": 200, "log_level": 0, "max.in.flight": in_flight,
        })  # fmt: skip
        self._stops = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stops.is_set():
            for partition in range(PARTITIONS):
                self._producer.produce(self._topic, b"%d" % number, partition=partition, on_delivery=self._on_delivery)
            number += 1
            self._producer.poll(0.005)
        self._producer.flush(60)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(error.str())
        else:
            self.acknowledged[message.partition() or 0].append(int(message.value() or b""))

    def goes_on(self) -> None:
        """Returns when another hundred records have been acknowledged."""
        wanted, end = self.total + 100, time.monotonic() + WITHIN
        while self.total < wanted:
            assert time.monotonic() < end, f"no hundred records are acknowledged within {WITHIN} s"
            time.sleep(0.02)

    def at_rest(self, seconds: float = 2.0) -> int:
        """Returns the number of acknowledged records once none has been added for that time."""
        end = time.monotonic() + WITHIN
        total, since = self.total, time.monotonic()
        while time.monotonic() < since + seconds:
            assert time.monotonic() < end, f"records are still acknowledged after {WITHIN} s"
            time.sleep(0.02)
            if total != (total := self.total):
                since = time.monotonic()
        return total

    @property
    def total(self) -> int:
        """The number of acknowledged records."""
        return sum(map(len, self.acknowledged))

    def stop(self) -> None:
        """Returns when everything that was sent has been answered."""
        self._stops.set()
        self._thread.join(90)


class JavaLoad:
    """The Java client's idempotent producer: Apache Kafka's VerifiableProducer sends numbers until it is stopped."""

    def __init__(self, bootstrap: str, topic: str, home: Path) -> None:
        config = home / "java-producer.properties"
        config.write_text(f"enable.idempotence=true\nretries={2**31 - 1}\n")  # the tool has 0 retries by itself
        words = ["--bootstrap-server", bootstrap, "--topic", topic, "--throughput", "100", "--acks", "-1"]
        words += ["--command-config", str(config)]
        command = java_command(
            CURRENT,
            "org.apache.kafka.tools.VerifiableProducer",
            words,
            options=("-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        )
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def stop(self) -> tuple[set[int], list[str]]:
        """Returns the acknowledged numbers, and the errors, once everything that was sent has been answered."""
        self._process.terminate()  # its hook closes the producer
        output, _ = self._process.communicate(timeout=90)
        acknowledged, failures = set(), []
        for line in output.splitlines():
            with contextlib.suppress(ValueError):
                said = json.loads(line)
                if said["name"] == "producer_send_success":
                    acknowledged.add(int(said["value"]))
                elif said["name"] == "producer_send_error":
                    failures.append(line)
        return acknowledged, failures


class Group:
    """A group of two members that reads a topic, and commits, until it has read all expected records."""

    def __init__(self, bootstrap: str, topic: str, name: str) -> None:
        self.seen: set[bytes] = set()
        self._ends = threading.Event()
        self._members = [threading.Thread(target=self._run, args=(bootstrap, topic, name)) for _ in range(2)]
        for member in self._members:
            member.start()

    def _run(self, bootstrap: str, topic: str, name: str) -> None:
        consumer = Consumer({
            "bootstrap.servers": bootstrap, "group.id": name, "auto.offset.reset": "earliest", "log_level": 0,
            "auto.commit.interval.ms": 200, "reconnect.backoff.max.ms": 200, "session.timeout.ms": 6000,
        })  # fmt: skip
        consumer.subscribe([topic])
        while not self._ends.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                self.seen.add(message.value() or b"")
        consumer.close()

    def goes_on(self) -> None:
        """Returns when a record has been read that had not been read before."""
        before = len(self.seen)
        until(lambda: len(self.seen) > before, "the group goes on")

    def end(self) -> None:
        self._ends.set()
        for member in self._members:
            member.join(60)


def until(condition: Callable[[], bool], what: str) -> None:
    """Returns when the condition is true. Errors of clients while brokers come and go count as no."""
    end = time.monotonic() + WITHIN
    while True:
        last: Exception | None = None
        try:
            if condition():
                return
        except (KafkaException, OSError) as error:
            last = error
        assert time.monotonic() < end, f"not within {WITHIN} s: {what}; the last error: {last!r}"
        time.sleep(0.05)
