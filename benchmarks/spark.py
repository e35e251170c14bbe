"""The data pipeline beside Spark's own Kafka connector: one session on two cores, one broker, in turns.

Knows nothing of how either reads or writes: both are used by the name of their format.
"""

import contextlib
import functools
import itertools
import os
import random
import shutil
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from barnabas.pipelines import jars
from barnabas.pipelines.jobs import run_job
from barnabas.pipelines.jobs.backfill import BackfillOptions
from barnabas.pipelines.jobs.export import ExportOptions
from barnabas.pipelines.session import spark_session
from benchmarks import load, servers
from benchmarks.ceiling import Ready
from benchmarks.measure import Row, median_ratio

OURS, THEIRS, CEILING = "barnabas", "kafka", "ready"
THEIR_STREAM = "kafka, as a stream"
PARTITIONS = 4
SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.session.timeZone": "UTC",
}
KEY_BYTES = 8


class Load(NamedTuple):
    """Records of one kind, enough for a run of a few seconds."""

    what: str
    records: int
    sizes: tuple[int, int]  #: the shortest and the longest value, in bytes
    compression: str
    budget: float  #: the budget: reading is this many times as fast as the connector


LOADS = (
    Load("100 B", 1_000_000, (100, 100), "none", 2.0),
    Load("20 to 180 B", 1_000_000, (20, 180), "none", 2.0),
    Load("100 B, lz4", 1_000_000, (100, 100), "lz4", 2.0),
    Load("1 KiB", 250_000, (1024, 1024), "none", 1.2),
)
WRITES = {"100 B": (800_000, 100), "1 KiB": (200_000, 1024)}
LATENCY_RATE, LATENCY_S, LATENCY_SETTLE_S = 100, 15, 5


class Bench(NamedTuple):
    """The session and the broker of all measurements."""

    spark: SparkSession
    broker: servers.Running
    folder: Path

    @property
    def bootstrap(self) -> str:
        return self.broker.bootstrap

    def cpu_s(self) -> float:
        """Returns the CPU seconds so far of Spark, its Python workers, and the broker, which share two cores.

        They include those of processes that have ended: Spark starts one for each stream.
        """
        everyone = psutil.Process().children(recursive=True)
        return sum(sum(each.cpu_times()[:4]) for each in everyone)

    def source(self, kind: str, topic: str) -> DataFrame:
        """Returns all of a topic, as a batch."""
        return self.connected(self.spark.read.format(kind)).option("subscribe", topic).load()

    def sink(self, kind: str, frame: DataFrame, topic: str) -> None:
        self.connected(frame.write.format(kind)).option("topic", topic).mode("append").save()

    def connected(self, given: Any) -> Any:
        """Returns the reader or writer with the broker's address."""
        return given.option("kafka.bootstrap.servers", self.bootstrap)

    def topic(self, name: str) -> str:
        load.create_topic(self.broker.port, name, PARTITIONS)
        return name


@contextlib.contextmanager
def bench(folder: Path) -> Iterator[Bench]:
    """Yields the session of this process, which is reused, with a new broker."""
    os.environ["PYTHONPATH"] = os.pathsep.join([str(servers.REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])])
    names = ",".join(map(str, jars.fetch()))
    spark = spark_session("benchmarks", master="local[2]", configs={**SETTINGS, "spark.jars": names})
    spark.dataSource.register(Ready)
    with servers.barnabas(folder / "broker") as running:
        yield Bench(spark, running, folder)


def fill(bench: Bench, wanted: Load) -> str:
    """Makes a topic with the records of a load."""
    topic = bench.topic(wanted.what.lower().replace(" ", "-").replace(",", ""))
    chance = random.Random(7)
    text = " ".join(chance.choices(["orders", "payments", "castle", "land surveyor", "42", "größe"], k=4000)).encode()
    values = []
    for _ in range(10_000):
        at, size = chance.randrange(len(text) - 2048), chance.randint(*wanted.sizes)
        values.append(text[at : at + size])
    producer = Producer(
        {
            "bootstrap.servers": bench.bootstrap,
            "linger.ms": 20,
            "batch.size": 100_000,
            "compression.type": wanted.compression,
            "queue.buffering.max.messages": 2_000_000,
            "queue.buffering.max.kbytes": 1_000_000,
        }
    )
    made = 0
    while made < wanted.records:
        for partition in range(PARTITIONS):
            chunk = values[:2500]
            producer.produce_batch(
                topic,
                [{"key": b"%0*d" % (KEY_BYTES, made + n), "value": value} for n, value in enumerate(chunk)],
                partition=partition,
            )
            made += len(chunk)
        values = values[2500:] + values[:2500]
        while len(producer) > 500_000:
            producer.poll(0.05)
    assert producer.flush(120) == 0
    return topic


def to_nowhere(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def reading(folder: Path, rounds: int) -> Iterator[Row]:
    """Reads a topic to a sink that discards rows: Barnabas's source, Spark's own, and prepared batches."""
    with bench(folder) as on:
        for wanted in LOADS:
            topic = fill(on, wanted)
            size = sum(wanted.sizes) // 2
            ready = on.spark.read.format(CEILING).options(rows=wanted.records, bytes=size, partitions=PARTITIONS).load()
            frames = {OURS: on.source(OURS, topic), THEIRS: on.source(THEIRS, topic), CEILING: ready}
            flows = in_turns(
                on,
                rounds,
                wanted.records,
                {kind: functools.partial(to_nowhere, frame) for kind, frame in frames.items()},
            )
            yield beside(f"Spark reads {wanted.what}", flows, wanted.budget)
            yield beside(f"Spark reads {wanted.what}, were batches ready", flows, None, of=CEILING)


def writing(folder: Path, rounds: int) -> Iterator[Row]:
    """Writes rows made by Spark to a topic, and a topic to a topic."""
    with bench(folder) as on:
        for what, (count, size) in WRITES.items():
            rows = made_rows(on.spark, count, size).cache()
            to_nowhere(rows)
            topics = {kind: on.topic(f"{kind}-{size}") for kind in (OURS, THEIRS)}
            works = {kind: functools.partial(on.sink, kind, rows, topic) for kind, topic in topics.items()}
            yield beside(f"Spark writes {what}", in_turns(on, rounds, count, works), 1.2)
            source = fill(on, Load(f"from {what}", count, (size, size), "none", 0))
            copies = {kind: functools.partial(copy, on, kind, source, topic) for kind, topic in topics.items()}
            yield beside(f"Spark, topic to topic {what}", in_turns(on, rounds, count, copies), 1.2)
            rows.unpersist()


def made_rows(spark: SparkSession, count: int, size: int) -> DataFrame:
    """Returns rows to be cached in memory: making them costs as much as writing them."""
    text = F.col("id").cast("string")
    return spark.range(0, count, 1, PARTITIONS).select(
        F.lpad(text, KEY_BYTES, "0").cast("binary").alias("key"), F.rpad(text, size, "v").cast("binary").alias("value")
    )


def copy(on: Bench, kind: str, source: str, topic: str) -> None:
    on.sink(kind, on.source(kind, source).select("key", "value"), topic)


class Flow(NamedTuple):
    """Throughput, and CPU time."""

    per_s: float
    cpu_s: float  #: for a million records


def in_turns(on: Bench, rounds: int, records: int, works: Mapping[str, Callable[[], None]]) -> dict[str, list[Flow]]:
    """Returns the flows of each, round by round; the first round is a warm-up and is not counted."""
    flows: dict[str, list[Flow]] = {name: [] for name in works}
    for index in range(rounds + 1):
        for name, work in works.items():
            cpu, began = on.cpu_s(), time.perf_counter()
            work()
            seconds = time.perf_counter() - began
            if index:
                flows[name].append(Flow(records / seconds, (on.cpu_s() - cpu) / records * 1e6))
    return flows


def beside(
    what: str, flows: dict[str, list[Flow]], budget: float | None, *, of: str = OURS, baseline: str = THEIRS
) -> Row:
    ratio = median_ratio([(ours.per_s, theirs.per_s) for ours, theirs in zip(flows[of], flows[baseline], strict=True)])
    return Row(
        f"{what}, records/s",
        flow_text(flows[of]),
        f"connector {flow_text(flows[baseline])}",
        ratio,
        "" if budget is None else f">= {budget}x",
        None if budget is None else ratio >= budget,
    )


def flow_text(flows: list[Flow]) -> str:
    per_s, cpu_s = (statistics.median(each) for each in zip(*flows, strict=True))
    return f"{per_s:,.0f} ({cpu_s:.2f} CPU s a million)"


# ---------------------------------------------------------------- files


def filing(folder: Path, rounds: int) -> Iterator[Row]:
    """Runs the jobs: a topic to Parquet, beside Spark's connector as batch and stream, and from there to a topic."""
    with bench(folder) as on:
        for what, (count, size) in WRITES.items():
            source = fill(on, Load(f"of {what}", count, (size, size), "none", 0))
            places = (folder / f"{size}-{number}" for number in itertools.count())
            flows = in_turns(
                on,
                rounds,
                count,
                {
                    OURS: lambda source=source, places=places: export(on, source, next(places)),
                    THEIRS: lambda source=source, places=places: to_parquet(on, source, next(places)),
                    THEIR_STREAM: lambda source=source, places=places: stream_to_parquet(on, source, next(places)),
                },
            )
            yield beside(f"Spark, topic to Parquet {what}, beside a batch", flows, 1.0)
            yield beside(f"Spark, topic to Parquet {what}, beside a stream", flows, 1.0, baseline=THEIR_STREAM)
            export(on, source, folder / f"{size}")
            topics = (f"back-{size}-{number}" for number in itertools.count())
            works = {OURS: lambda size=size, topics=topics: backfill(on, folder / f"{size}", next(topics))}
            back = in_turns(on, rounds, count, works)
            yield Row(f"Spark, Parquet back to a topic {what}, records/s", flow_text(back[OURS]), "", None, "", None)


def export(on: Bench, topic: str, to: Path) -> None:
    """Exports with offsets and times, as for a backfill."""
    options = ExportOptions(topics=(topic,), to=str(to), bootstrap_servers=on.bootstrap, with_metadata=True)
    run_job(options, spark=on.spark, once=True, checkpoint=f"{to}-checkpoint")


def to_parquet(on: Bench, topic: str, to: Path) -> None:
    """Writes a batch with the columns, codec and directories of an export; keeps no offsets, and merges no files."""
    frame = on.connected(on.spark.read.format(THEIRS)).options(subscribe=topic, includeHeaders="true").load()
    dated(frame).write.option("compression", "zstd").partitionBy("date").parquet(str(to))


def stream_to_parquet(on: Bench, topic: str, to: Path) -> None:
    """Writes each record once, by a stream that keeps its offsets, as an export does; merges no files."""
    stream = on.connected(on.spark.readStream.format(THEIRS))
    stream = stream.options(subscribe=topic, includeHeaders="true", startingOffsets="earliest").load()
    writer = dated(stream).writeStream.format("parquet").option("compression", "zstd").partitionBy("date")
    writer = writer.option("checkpointLocation", f"{to}-checkpoint").trigger(availableNow=True)
    writer.start(str(to)).awaitTermination()


def dated(frame: DataFrame) -> DataFrame:
    """Adds the column that names the directories of an export; the session's time zone is UTC."""
    return frame.withColumn("date", F.to_date("timestamp"))


def backfill(on: Bench, place: Path, topic: str) -> None:
    options = BackfillOptions(source=str(place), to_topic=topic, bootstrap_servers=on.bootstrap)
    run_job(options, spark=on.spark, once=True, checkpoint=f"{place}-back-{time.time_ns()}")


# ---------------------------------------------------------------- latency


def latency(folder: Path, rounds: int) -> Iterator[Row]:
    """Copies a topic by a stateless query, 100 records a second: the time of each record from send to receipt."""
    waits: dict[str, list[list[float]]] = {OURS: [], THEIRS: []}
    with bench(folder) as on:
        for index in range(rounds):
            for kind in waits:
                waits[kind].append(sorted(trickled(on, kind, f"{kind}-{index}")))
    for name, at, most in (("p50", 0.5, 400), ("p99", 0.99, None)):
        pairs = [
            (ours[int(len(ours) * at)], theirs[int(len(theirs) * at)])
            for ours, theirs in zip(waits[OURS], waits[THEIRS], strict=True)
        ]
        ratio = median_ratio(pairs)
        ours, theirs = (statistics.median(each) for each in zip(*pairs, strict=True))
        yield Row(
            f"Spark, topic to topic at {LATENCY_RATE}/s, {name}",
            f"{ours:.0f} ms",
            f"connector {theirs:.0f} ms",
            ratio,
            f"<= {most} ms, <= 2x" if most else "",
            ours <= most and ratio <= 2 if most else None,
        )


def trickled(on: Bench, kind: str, name: str) -> list[float]:
    """Returns the milliseconds from send to receipt of each record, once the query runs."""
    source, sink = on.topic(f"{name}-in"), on.topic(f"{name}-out")
    stream = on.connected(on.spark.readStream.format(kind)).option("subscribe", source).load()
    query = (
        on.connected(stream.select("key", "value").writeStream.format(kind))
        .option("topic", sink)
        .option("checkpointLocation", str(on.folder / f"checkpoint-{name}"))
        .start()
    )
    stop = threading.Event()
    sender = threading.Thread(target=send_steadily, args=(on.bootstrap, source, stop))
    sender.start()
    try:
        waits = received(on.bootstrap, sink, LATENCY_SETTLE_S, LATENCY_S)
    finally:
        stop.set()
        sender.join()
        query.stop()
        shutil.rmtree(on.folder / f"checkpoint-{name}", ignore_errors=True)
    return waits


def send_steadily(bootstrap: str, topic: str, stop: threading.Event) -> None:
    """Sends records whose values are the current time."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    due = time.monotonic()
    while not stop.is_set():
        producer.produce(topic, str(time.time_ns()).encode())
        producer.poll(0)
        due += 1 / LATENCY_RATE
        time.sleep(max(0.0, due - time.monotonic()))
    producer.flush(10)


def received(bootstrap: str, topic: str, settle_s: float, for_s: float) -> list[float]:
    """Returns milliseconds since each record was sent, received within `for_s` seconds, `settle_s` after the first."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "fetch.wait.max.ms": 100})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    waits: list[float] = []
    try:
        first = consumer.poll(60)
        assert first is not None, "the query wrote nothing"
        begin = time.monotonic() + settle_s
        while time.monotonic() < begin + for_s:
            message = consumer.poll(1)
            if message is not None and not message.error() and time.monotonic() >= begin:
                waits.append((time.time_ns() - int(message.value())) / 1e6)
    finally:
        consumer.close()
    assert len(waits) > LATENCY_RATE * for_s / 2, f"only {len(waits)} records came"
    return waits


MEASUREMENTS: dict[str, Callable[[Path, int], Iterator[Row]]] = {
    "spark-read": reading,
    "spark-write": writing,
    "spark-files": filing,
    "spark-latency": latency,
}
