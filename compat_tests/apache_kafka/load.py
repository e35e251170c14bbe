"""An idempotent producer that never stops while nodes come and go and remembers what was acknowledged, and patience.

Knows nothing of the brokers.
"""

import threading
import time
from collections.abc import Callable

from confluent_kafka import KafkaError, KafkaException, Message, Producer

PARTITIONS = 3
WITHIN = 30.0


class Load:
    """Sends numbers to the partitions of a topic in turn, from a thread of its own, until it is stopped."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.acknowledged: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self.failures: list[str] = []
        self._topic = topic
        self._producer = Producer({
            "bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 2, "message.timeout.ms": 60_000,
            "reconnect.backoff.max.ms": 200, "log_level": 0,
        })  # fmt: skip
        self._stops = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stops.is_set():
            for partition in range(PARTITIONS):
                self._producer.produce(self._topic, b"%d" % number, partition=partition, on_delivery=self._told)
            number += 1
            self._producer.poll(0.005)
        self._producer.flush(60)

    def _told(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(error.str())
        else:
            self.acknowledged[message.partition() or 0].append(int(message.value() or b""))

    def goes_on(self) -> None:
        """Returns when another hundred records have been acknowledged."""
        wanted, end = self._total + 100, time.monotonic() + WITHIN
        while self._total < wanted:
            assert time.monotonic() < end, f"no hundred records are acknowledged within {WITHIN} s"
            time.sleep(0.02)

    @property
    def _total(self) -> int:
        return sum(map(len, self.acknowledged))

    def stop(self) -> None:
        """Returns when everything that was sent has been answered."""
        self._stops.set()
        self._thread.join(90)


def until(condition: Callable[[], bool], what: str) -> None:
    """Returns when the condition is true. Errors of clients while brokers come and go count as no."""
    end = time.monotonic() + WITHIN
    while True:
        try:
            if condition():
                return
        except (KafkaException, OSError):
            pass
        assert time.monotonic() < end, f"not within {WITHIN} s: {what}"
        time.sleep(0.05)
