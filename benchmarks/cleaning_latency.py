"""The effect of compaction on a small constant load in the same broker: the slowest responses with and without it.

Knows nothing of how the broker cleans: topics get ``cleanup.policy=compact``, and the broker decides when it cleans.
"""

import random
import socket
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from barnabas.records.builder import build_batch
from benchmarks import load, servers
from benchmarks.measure import Row, median_ratio
from benchmarks.servers import Running

MIB = 1 << 20
RATE = 1000  # records, and requests, a second
SECONDS = 4.0
DIRTY_BYTES = 96 * MIB
KEYS = 300_000
BUDGET = 1.5


def fill(running: Running, topic: str) -> None:
    """Writes many keys to a topic, most of them several times."""
    create = AdminClient({"bootstrap.servers": running.bootstrap}).create_topics
    create([NewTopic(topic, 1, 1, config={"segment.bytes": str(8 * MIB)})])[topic].result(30)
    chance, now_ms = random.Random(topic), time.time_ns() // 1_000_000
    each = MIB // 2
    with load.connected(running.port) as connection:
        answer = bytearray(1 << 16)
        for _ in range(DIRTY_BYTES // each):
            records = [(b"key %d" % chance.randrange(KEYS), b"v" * 90, now_ms) for _ in range(each // 110)]
            connection.sendall(load.produce_frame_of(topic, bytes(build_batch(records))).data)
            load.receive(connection, answer)


def set_policy(running: Running, topic: str, policy: str) -> None:
    admin = AdminClient({"bootstrap.servers": running.bootstrap})
    entry = ConfigEntry("cleanup.policy", policy, incremental_operation=AlterConfigOpType.SET)
    for future in admin.incremental_alter_configs(
        [ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])]
    ).values():
        future.result(30)


def waits(connection: socket.socket, frame: bytes) -> list[float]:
    """Returns ms from due time to response for each of ``RATE`` requests a second; a late response delays the next."""
    found, buffer = [], bytearray(1 << 12)
    began = time.perf_counter()
    for number in range(int(RATE * SECONDS)):
        due = began + number / RATE
        while (left := due - time.perf_counter()) > 0:
            time.sleep(left)
        connection.sendall(frame)
        load.receive(connection, buffer)
        found.append((time.perf_counter() - due) * 1000)
    return found


def cleaners_cpu_s(running: Running) -> float:
    """Returns CPU seconds of all child processes of the broker."""
    total = 0.0
    for child in running.psutil.children():
        try:
            times = child.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


def latency(folder: Path, rounds: int) -> Iterator[Row]:
    """Measures the same load on the same broker, in turns: otherwise idle, and while a large log is compacted."""
    frame = load.produce_frame("steady", 100, 100).data
    percentile, pairs, busy = {"p50": 0.5, "p99": 0.99}, [], []
    settings = ("log.cleaner.backoff.ms=20", "log.retention.check.interval.ms=600000")
    with servers.barnabas(folder / "latency", *settings) as running:
        load.create_topic(running.port, "steady")
        for index in range(rounds):
            topic = f"dirty-{index}"
            fill(running, topic)
            with load.connected(running.port) as connection:
                quiet = sorted(waits(connection, frame))
                set_policy(running, topic, "compact")
                while not cleaners_cpu_s(running):
                    time.sleep(0.01)
                before = cleaners_cpu_s(running)
                loaded = sorted(waits(connection, frame))
                busy.append((cleaners_cpu_s(running) - before) / SECONDS)
            set_policy(running, topic, "delete")
            pairs.append((loaded, quiet))
    share = statistics.median(busy)
    for name, at in percentile.items():
        figures = [(ours[int(len(ours) * at)], theirs[int(len(theirs) * at)]) for ours, theirs in pairs]
        with_it, without = (statistics.median(each) for each in zip(*figures, strict=True))
        ratio = median_ratio(figures)
        is_judged = name == "p99"
        yield Row(
            f"produce {name}, 1,000/s, while a log is compacted ({share:.0%} of a core)",
            f"{with_it:.2f} ms",
            f"else {without:.2f} ms",
            ratio,
            f"<= {BUDGET}x" if is_judged else "",
            ratio <= BUDGET if is_judged else None,
        )
