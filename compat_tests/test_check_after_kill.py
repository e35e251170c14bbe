"""``barnabas check-log`` over the files of a broker that was killed during compaction and retention: no error.

Knows nothing of the expected records, which ``test_kill.py`` checks.
"""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.running import BarnabasProcess

ROUNDS, LOAD_SECONDS = 3, 1.5
SEGMENTS = {"internal.segment.bytes": "20000", "index.interval.bytes": "400"}
TOPICS = {
    "compacted": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "500"},
    "short": {"retention.bytes": "60000"},
}
BUSY = {
    "log.cleaner.backoff.ms": "200",
    "log.retention.check.interval.ms": "300",
    "log.initial.task.delay.ms": "50",
    "log.flush.offset.checkpoint.interval.ms": "300",
    "replica.high.watermark.checkpoint.interval.ms": "300",
    "log.flush.start.offset.checkpoint.interval.ms": "300",
}
"""Configs with short intervals of all tasks."""


def load(bootstrap: str, chance: random.Random, compacted: Path) -> None:
    """Sends records of few keys, in batches of every codec, from idempotent and other producers; until ``compacted``
    is.
    """
    producers = [
        Producer(
            {
                "bootstrap.servers": bootstrap,
                "linger.ms": 2,
                "compression.type": codec,
                "enable.idempotence": number % 2 == 0,
                "log_level": 0,
            }
        )
        for number, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd"))
    ]
    until = time.monotonic() + LOAD_SECONDS
    while time.monotonic() < until or not compacted.exists():
        assert time.monotonic() < until + 60, "nothing is compacted"
        for producer in producers:
            value = None if chance.random() < 0.1 else chance.randbytes(chance.randrange(150))
            producer.produce(chance.choice(list(TOPICS)), value, b"%d" % chance.randrange(30))
            producer.poll(0)
        time.sleep(0.001)
    for producer in producers:
        producer.flush(60)


@pytest.mark.parametrize("ending", ["kill", "stop"])
def test_nothing_is_wrong(tmp_path: Path, ending: str) -> None:
    broker = BarnabasProcess(tmp_path, BUSY)
    chance = random.Random(ending)
    for turn in range(ROUNDS if ending == "kill" else 1):
        broker.start()
        try:
            if turn == 0:
                admin = AdminClient({"bootstrap.servers": broker.bootstrap})
                topics = [NewTopic(name, 1, 1, config={**SEGMENTS, **config}) for name, config in TOPICS.items()]
                for made in admin.create_topics(topics).values():
                    made.result(30)
            load(broker.bootstrap, chance, tmp_path / "data/cleaner-offset-checkpoint")
        finally:
            getattr(broker, ending)()
        check = [sys.executable, "-m", "barnabas", "check-log", str(tmp_path / "data")]
        found = subprocess.run(check, capture_output=True, text=True, timeout=60, check=False)
        assert found.returncode == 0, found.stdout + found.stderr
    assert not broker.complaints()
