"""A query that writes exactly once is killed wherever that hurts, and each row is there once and in order."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.running import Running
from compat_tests.spark.generated import Made, by_partition, made, send
from compat_tests.spark.mortal import PATIENCE_SECONDS, PLAN

pytestmark = [pytest.mark.xdist_group("spark apart"), pytest.mark.long]

PARTITIONS = 2
ROOT = Path(__file__).parents[2]


def create(bootstrap: str, *topics: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made_topic in admin.create_topics([NewTopic(topic, PARTITIONS, 1) for topic in topics]).values():
        made_topic.result(30)


def committed(bootstrap: str, topic: str) -> list[list[Made]]:
    """What a read_committed consumer gets of each partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{topic}-reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    found: list[list[Made]] = [[] for _ in range(PARTITIONS)]
    ended: set[int] = set()
    deadline = time.monotonic() + 60
    while len(ended) < PARTITIONS:
        assert time.monotonic() < deadline, "the records do not end: a transaction was left open"
        for message in consumer.consume(1000, 0.5):
            if message.error():
                ended.add(message.partition())
                continue
            found[message.partition()].append(
                Made(
                    "source",
                    message.partition(),
                    message.key(),
                    message.value(),
                    tuple(message.headers() or ()),
                    message.timestamp()[1],
                )
            )
    consumer.close()
    return found


class Query:
    """The query of `mortal`, run again and again on one checkpoint."""

    def __init__(self, broker: Running, folder: Path) -> None:
        self.broker = broker
        self.folder = folder
        self.checkpoint = folder / "checkpoint"

    def start(self, **plan: int) -> subprocess.Popen[bytes]:
        """Begin, with what is to happen in which batch."""
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        told = json.dumps({**plan, "folder": str(self.folder)})
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "compat_tests.spark.mortal"),
                *(self.broker.bootstrap, "source", "target", str(self.checkpoint)),
            ],
            env={**os.environ, "PYTHONPATH": path, PLAN: told},
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=(self.folder / "errors").open("ab"),
        )

    def run(self, **plan: int) -> int:
        """To its end: the exit status."""
        process = self.start(**plan)
        try:
            return process.wait(PATIENCE_SECONDS)
        finally:
            process.kill()

    def errors(self) -> str:
        """What Spark said that went wrong."""
        return (self.folder / "errors").read_text()

    def has_committed(self, batch: int) -> bool:
        """Whether Spark has noted that the batch is done."""
        return (self.checkpoint / "commits" / str(batch)).exists()


@pytest.mark.timeout(900)
def test_each_row_once_whatever_is_killed(own_broker: Callable[..., Running], tmp_path: Path) -> None:
    """A worker amid its task; the driver between the sink's commit and Spark's; a task after its commit; the broker."""
    broker = own_broker()
    create(broker.bootstrap, "source", "target")
    records = made("source", 3_000, partitions=PARTITIONS, sizes=(0, 300))
    send(broker.bootstrap, records)
    query = Query(broker, tmp_path)

    assert query.run(worker=0, commit=1) != 0
    assert query.has_committed(0) and not query.has_committed(1)
    assert 1_500 < sum(map(len, committed(broker.bootstrap, "target"))) <= 1_600, "both batches are there"

    process = query.start(fail=2, pause=3)
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (tmp_path / "paused").exists():
            assert process.poll() is None and time.monotonic() < deadline, query.errors()
            time.sleep(0.05)
        broker.kill()
        broker.start()
        (tmp_path / "resumed").touch()
        assert process.wait(PATIENCE_SECONDS) == 0, query.errors()
    finally:
        process.kill()

    assert "this task fails once, after all is written" in query.errors()
    assert committed(broker.bootstrap, "target") == by_partition(records, PARTITIONS)
