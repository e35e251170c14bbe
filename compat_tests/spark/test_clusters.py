"""Executors of their own, Spark Connect, and a declarative pipeline: each in a process of its own, checked row by row.

Knows nothing of how they are used; that is `elsewhere`, and the example of the docs.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.running import Running

from .generated import Made, by_partition, made, send

pytestmark = pytest.mark.xdist_group("spark")

REPOSITORY = Path(__file__).parents[2]
PARTITIONS = 4


@pytest.mark.parametrize(("kind", "executors"), [("local-cluster[2,1,1024]", 2), ("connect", 0)])
def test_what_is_read_written_and_mirrored_is_what_was_sent(
    bootstrap: str, own_broker: Callable[..., Running], topic: str, tmp_path: Path, kind: str, executors: int
) -> None:
    target = own_broker().bootstrap
    create(bootstrap, topic, f"{topic}-batch", f"{topic}-stream")
    records = made(topic, 1500, partitions=PARTITIONS)
    send(bootstrap, records)
    done = run("-m", "compat_tests.spark.elsewhere", kind, bootstrap, target, topic, str(tmp_path))
    assert done == {"rows": 1500, "streamed": 1500, "mirrored": 1500, "where": executors}
    for where, name in ((bootstrap, f"{topic}-batch"), (bootstrap, f"{topic}-stream"), (target, f"source.{topic}")):
        assert_holds(where, name, records)


def create(bootstrap: str, *topics: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic(name, PARTITIONS) for name in topics]).values():
        created.result(30)


def run(*arguments: str) -> dict[str, int]:
    """What the program says last, as JSON."""
    path = os.pathsep.join([str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
    told: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return told


def assert_holds(bootstrap: str, topic: str, records: list[Made]) -> None:
    """The topic has these records, each in its partition, in their order, and nothing else."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": topic, "enable.partition.eof": False, "check.crcs": True}
    )
    consumer.assign([Position(topic, partition, 0) for partition in range(PARTITIONS)])
    found: list[list[tuple[object, ...]]] = [[] for _ in range(PARTITIONS)]
    try:
        for _ in records:
            message = consumer.poll(20)
            assert message is not None and not message.error(), f"{topic} has only {sum(map(len, found))} records"
            headers = tuple(message.headers() or ())
            found[message.partition()].append((message.key(), message.value(), headers, message.timestamp()[1]))
        extra = consumer.poll(0.2)
        assert extra is None, f"{topic} has more than it should: {extra.key()!r}"
    finally:
        consumer.close()
    wanted = by_partition(records, PARTITIONS)
    assert found == [[(one.key, one.value, one.headers, one.timestamp) for one in held] for held in wanted]
