"""What the tests of export and backfill share: topics with generated records, and their records as they are read back.

Knows nothing of Spark.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.spark.generated import Made

ROOT = Path(__file__).parents[2]
COLUMNS = ["key", "value", "partition", "offset", "timestamp", "timestampType", "headers"]


def create(bootstrap: str, topic: str, partitions: int = 4, **configs: str) -> None:
    """Make a topic that keeps its records, however old they are."""
    config = {"retention.ms": "-1", **{name.replace("_", "."): value for name, value in configs.items()}}
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, 1, config=config)])[topic].result(30)


def committed(bootstrap: str, topic: str, partitions: int) -> list[list[Made]]:
    """What a read_committed consumer gets of each partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"{topic}-reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    found: list[list[Made]] = [[] for _ in range(partitions)]
    ended: set[int] = set()
    deadline = time.monotonic() + 60
    while len(ended) < partitions:
        assert time.monotonic() < deadline, "the records do not end: a transaction was left open"
        for message in consumer.consume(1000, 0.5):
            if message.error():
                ended.add(message.partition())
                continue
            headers, timestamp = tuple(message.headers() or ()), message.timestamp()[1]
            found[message.partition()].append(
                Made(topic, message.partition(), message.key(), message.value(), headers, timestamp)
            )
    consumer.close()
    return found


def parquet(directory: Path) -> pa.Table:
    """What a reader of a data set finds there."""
    return pyarrow.dataset.dataset(directory, partitioning="hive").to_table()


def rows(table: pa.Table, topic: str, partitions: int) -> list[list[Made]]:
    """A topic's rows of a table with metadata, by partition, in the order of their offsets, each offset once."""
    found: list[list[Made]] = [[] for _ in range(partitions)]
    ordered = table.sort_by([("partition", "ascending"), ("offset", "ascending")]).to_pylist()
    for row in ordered:
        if str(row["topic"]) != topic:
            continue
        its = found[row["partition"]]
        assert row["offset"] == len(its)
        assert row["timestampType"] == 0
        its.append(
            Made(
                topic,
                row["partition"],
                row["key"],
                row["value"],
                headers(row["headers"]),
                milliseconds(row["timestamp"]),
            )
        )
    return found


def headers(told: Iterable[Mapping[str, Any]] | None) -> tuple[tuple[str, bytes | None], ...]:
    return tuple((header["key"], header["value"]) for header in told or ())


def milliseconds(timestamp: Any) -> int:
    return round(timestamp.timestamp() * 1000)


def visible(directory: Path) -> list[Path]:
    """The files that readers see."""
    return sorted(
        path
        for path in directory.rglob("*")
        if path.is_file() and not any(part.startswith(("_", ".")) for part in path.relative_to(directory).parts)
    )


def run_mortal(step: str, bootstrap: str, source: str, target: str) -> None:
    """Run `mortal_jobs` until it is killed."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "compat_tests.spark.mortal_jobs", step, bootstrap, source, target],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode != 0, f"it came to its end, and was not killed\n{done.stdout}\n{done.stderr}"
    expected = -9 if step != "transaction" else 1
    assert done.returncode == expected, done.stderr[-4000:]
