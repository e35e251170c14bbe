"""The mirror: the records of one cluster at another, row by row, while any part of it is killed."""

import contextlib
import json
import multiprocessing
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)
from pyspark.sql import SparkSession

from barnabas.pipelines.client.cluster import Cluster
from barnabas.pipelines.jobs import run_job
from barnabas.pipelines.jobs.mirror import MirrorOptions
from barnabas.pipelines.jobs.mirroring.copying import copy
from barnabas.pipelines.jobs.mirroring.planner import Planner
from barnabas.pipelines.jobs.progress import Progress
from barnabas.pipelines.offsets import StreamOffset
from compat_tests.apache_kafka.apache import ApacheKafka, KafkaUnavailable
from compat_tests.running import ALONE, Running
from compat_tests.spark.generated import Made, by_partition, made, renamed, send
from compat_tests.spark.processes import started
from compat_tests.spark.topics import as_made, committed, create


def await_records(bootstrap: str, records: list[Made], topic: str, partitions: int, seconds: float = 120) -> None:
    """Waits until the target has all records, unchanged, in order, without duplicates."""
    deadline = time.monotonic() + seconds
    wanted = by_partition(renamed(records, topic), partitions)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    while len(getattr(admin.list_topics(timeout=30).topics.get(topic), "partitions", ())) < partitions:
        assert time.monotonic() < deadline, f"{topic} is not there"
        time.sleep(0.1)
    while (found := committed(bootstrap, topic)) != wanted:
        assert time.monotonic() < deadline, [
            (len(there), len(here), there == here[: len(there)]) for there, here in zip(found, wanted, strict=True)
        ]
        time.sleep(0.2)


def configs_of(bootstrap: str, topic: str) -> dict[str, str | None]:
    """Returns the configs that are set for the topic."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    found = admin.describe_configs([resource])[resource].result(30)
    return {name: entry.value for name, entry in found.items() if entry.source == 1}


def commit(bootstrap: str, group: str, offsets: list[TopicPartition]) -> None:
    wanted = ConsumerGroupTopicPartitions(group, offsets)
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.alter_consumer_group_offsets([wanted])[group].result(30)


def rest_of(bootstrap: str, group: str, topic: str, count: int) -> list[Made]:
    """Returns ``count`` records that a member of the group gets from the committed offsets."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "error",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([topic])
    found: list[Made] = []
    while len(found) < count:
        message = consumer.poll(30)
        assert message is not None, (len(found), count)
        assert message.error() is None, message.error()
        found.append(as_made(message))
    consumer.close()
    return found


@contextlib.contextmanager
def mirroring(spark: SparkSession, checkpoint: Path, **options: Any) -> Iterator[list[Progress]]:
    """Runs a mirror on a thread within the block; yields its progress. Raises its error."""
    stop, reported, failed = threading.Event(), [], []

    def work() -> None:
        try:
            run_job(
                MirrorOptions(**options),
                spark=spark,
                checkpoint=str(checkpoint),
                report=reported.append,
                stop=stop,
            )
        except Exception as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield reported
    finally:
        stop.set()
        thread.join(60)
        if failed:
            raise failed[0]
    assert not thread.is_alive()


def test_everything_while_it_runs(spark: SparkSession, own_broker: Callable[..., Running], tmp_path: Path) -> None:
    """Topics, partitions, configs and groups change, the target is killed; then a consumer moves over."""
    source, target = own_broker(), own_broker()
    options: dict[str, Any] = {
        "source": source.bootstrap,
        "target": target.bootstrap,
        "source_alias": "prague",
        "target_alias": "vienna",
        "refresh_seconds": 0.3,
        "poll_seconds": 0.1,
    }
    create(source.bootstrap, "orders", max_message_bytes="2000000", min_insync_replicas="1")
    orders = made("orders", 3_000, partitions=4)
    send(source.bootstrap, orders[:1_500], compression_type="lz4")
    with mirroring(spark, tmp_path / "checkpoint", **options) as reported:
        await_records(target.bootstrap, orders[:1_500], "prague.orders", 4)
        assert configs_of(target.bootstrap, "prague.orders") == {
            "max.message.bytes": "2000000",
            "retention.ms": "-1",
        }
        target.kill()
        send(source.bootstrap, orders[1_500:], compression_type="zstd")
        target.start()
        admin = AdminClient({"bootstrap.servers": source.bootstrap})
        create(source.bootstrap, "payments", partitions=2)
        admin.create_partitions([NewPartitions("orders", 6)])["orders"].result(30)
        change = ConfigEntry("retention.ms", "86400000000", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, "orders", incremental_configs=[change])
        admin.incremental_alter_configs([resource])[resource].result(30)
        payments = made("payments", 300, partitions=2)
        send(source.bootstrap, payments)
        more = made("orders", 600, partitions=6, seed=8)
        send(source.bootstrap, more)
        half = [TopicPartition("orders", partition, 150 + partition) for partition in range(6)]
        half[5].offset = 0
        commit(source.bootstrap, "shop", half)
        await_records(target.bootstrap, [*orders, *more], "prague.orders", 6)
        await_records(target.bootstrap, payments, "prague.payments", 2)

    assert sum(progress.rows for progress in reported) == len(orders) + len(more) + len(payments)
    assert reported[-1].lag == 0
    assert configs_of(target.bootstrap, "prague.orders")["retention.ms"] == "86400000000"
    everything = by_partition(renamed([*orders, *more], "prague.orders"), 6)
    left = [records[at.offset :] for records, at in zip(everything, half, strict=True)]
    found = by_partition(rest_of(target.bootstrap, "shop", "prague.orders", sum(map(len, left))), 6)
    assert found == left, "the group goes on with the very record that it would have read next"


def _mirror_on(options: dict[str, Any], checkpoint: Path) -> None:
    """Does what a query does, batch by batch, in its own process, with offsets kept as Spark keeps them."""
    spec = MirrorOptions(**options).spec()
    planner = Planner(spec, Cluster.of(spec.source_settings), Cluster.of(spec.target_settings))
    while True:
        kept = checkpoint.exists()
        start = StreamOffset.from_json(json.loads(checkpoint.read_text())) if kept else planner.initial()
        end = planner.latest(start, 100)
        for each in planner.ranges(start, end):
            copy(spec, each, piece_bytes=10_000)
        if end == start:
            return
        aside = checkpoint.with_suffix(f".{os.getpid()}")
        aside.write_text(json.dumps(end.to_json()))
        aside.replace(checkpoint)


@pytest.mark.xdist_group("spark apart")
@pytest.mark.long
def test_tasks_killed_again_and_again(own_broker: Callable[..., Running], tmp_path: Path) -> None:
    """Runs without Spark, so that there is time for many kills; some killed tasks run on beside their successors."""
    source, target = own_broker(), own_broker()
    create(source.bootstrap, "orders", partitions=3)
    orders = made("orders", 4_800, partitions=3, seed=9)
    options = {"source": source.bootstrap, "target": target.bootstrap, "policy": "identity"}
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([__name__])
    chance, left, killed = random.Random(4), [], 0
    for first in range(0, len(orders), 400):
        send(source.bootstrap, orders[first : first + 400])
        process = processes.Process(target=_mirror_on, args=(options, tmp_path / "checkpoint"))
        process.start()
        left.append(process)
        process.join(chance.uniform(0.1, 0.5))
        while len(left) > chance.choice((0, 0, 1)):
            gone = left.pop(0)
            killed += gone.is_alive()
            gone.kill()
            gone.join()
    for process in left:
        process.kill()
        process.join()
    assert killed
    _mirror_on(options, tmp_path / "checkpoint")
    assert committed(target.bootstrap, "orders") == by_partition(orders, 3)


@pytest.mark.xdist_group("spark apart")
@pytest.mark.long
def test_killed_at_any_moment(spark: SparkSession, own_broker: Callable[..., Running], tmp_path: Path) -> None:
    """Driver, workers, target, the checkpoint's last entry: nothing is lost or duplicated."""
    source, target = own_broker(), own_broker()
    chance = random.Random(11)
    create(source.bootstrap, "orders", partitions=4)
    orders = made("orders", 6_000, partitions=4, seed=5)
    send(source.bootstrap, orders[:2_000])
    checkpoint = tmp_path / "checkpoint"
    arguments = ["--source", source.bootstrap, "--target", target.bootstrap, "--policy", "identity"]
    limits = ["--max-offsets-per-batch", "150", "--poll-seconds", "0", "--checkpoint", str(checkpoint)]
    command = [sys.executable, "-m", "barnabas", "pipeline", "mirror", *arguments, *limits, "--master", "local[2]"]
    command += ["--conf", "spark.driver.memory=512m", "--conf", "spark.driver.bindAddress=127.0.0.1"]
    output = tmp_path / "output"
    with output.open("wb") as said, started(*command, seconds=280, stdout=said, stderr=said) as driver:
        _await_batches(output, 2, driver)
        send(source.bootstrap, orders[2_000:4_000])
        target.kill()
        time.sleep(chance.uniform(0, 0.3))  # at any moment
        target.start()
        _await_batches(output, 4 + chance.randrange(4), driver)
        time.sleep(chance.uniform(0, 0.2))
    send(source.bootstrap, orders[4_000:])
    done = sorted((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    done[-1].unlink()  # as if the last batch had been killed before Spark wrote down that it was done
    done[-1].with_name(f".{done[-1].name}.crc").unlink(missing_ok=True)
    run_job(
        MirrorOptions(source=source.bootstrap, target=target.bootstrap, policy="identity"),
        spark=spark,
        checkpoint=str(checkpoint),
        once=True,
    )
    assert committed(target.bootstrap, "orders") == by_partition(orders, 4)
    outcome = run_job(
        MirrorOptions(source=source.bootstrap, target=target.bootstrap, policy="identity"),
        spark=spark,
        checkpoint=str(tmp_path / "another"),
        once=True,
    )
    assert outcome.rows == 0, "without its checkpoint it goes by what the target keeps"
    assert committed(target.bootstrap, "orders") == by_partition(orders, 4)


def _await_batches(output: Path, count: int, driver: "subprocess.Popen[str]") -> None:
    """Waits until the command has printed this number of batches."""
    deadline = time.monotonic() + 150
    while output.read_bytes().count(b": batch ") < count:
        assert driver.poll() is None, output.read_text()
        assert time.monotonic() < deadline, output.read_text()
        time.sleep(0.02)


@pytest.mark.xdist_group("spark apart")
def test_apache_kafka_both_ways(spark: SparkSession, own_broker: Callable[..., Running], tmp_path: Path) -> None:
    """Mirrors Barnabas to Apache Kafka and on to another Barnabas: names have the path, and nothing returns."""
    first, last = own_broker(), own_broker()
    few = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
    with contextlib.ExitStack() as stack:
        try:
            apache = stack.enter_context(ApacheKafka(tmp_path / "apache", {**ALONE, **few}))
        except KafkaUnavailable as reason:
            pytest.skip(str(reason))
        create(first.bootstrap, "orders", partitions=3, compression_type="gzip")
        orders = made("orders", 1_000, partitions=3, seed=2)
        send(first.bootstrap, orders)
        places = [TopicPartition("orders", 0, 0), TopicPartition("orders", 1, 100), TopicPartition("orders", 2, 7)]
        commit(first.bootstrap, "shop", places)
        here, there, beyond = first.bootstrap, apache.bootstrap, last.bootstrap
        for number, (source, target, alias, other) in enumerate(
            [(here, there, "prague", "vienna"), (there, beyond, "vienna", "berlin"), (there, here, "vienna", "prague")]
        ):
            run_job(
                MirrorOptions(source=source, target=target, source_alias=alias, target_alias=other),
                spark=spark,
                checkpoint=str(tmp_path / f"checkpoint-{number}"),
                once=True,
            )
        assert committed(there, "prague.orders") == by_partition(renamed(orders, "prague.orders"), 3)
        everything = by_partition(renamed(orders, "vienna.prague.orders"), 3)
        assert committed(beyond, "vienna.prague.orders") == everything
        assert configs_of(beyond, "vienna.prague.orders") == {"compression.type": "gzip", "retention.ms": "-1"}
        admin = AdminClient({"bootstrap.servers": here})
        topics = admin.list_topics(timeout=30).topics
        assert [name for name in topics if "internal" not in name and not name.startswith("__")] == ["orders"]
        left = [records[at.offset :] for records, at in zip(everything, places, strict=True)]
        assert by_partition(rest_of(beyond, "shop", "vienna.prague.orders", sum(map(len, left))), 3) == left
