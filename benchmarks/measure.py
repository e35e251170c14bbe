"""The measurements: one function for each figure, which gets a folder to work in and yields rows of the table.

Knows nothing of how rows are printed or kept.
"""

import socket
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from benchmarks import librdkafka, load, servers
from benchmarks.servers import Running

MIB = 1 << 20

PLAIN_SOCKETS = ("socket.receive.buffer.bytes=-1",)
"""Configs of the broker beside the sink, whose receive buffer has the system's size; others have 100 KiB (default)."""


class Row(NamedTuple):
    """One row of the table."""

    what: str
    measured: str
    baseline: str
    ratio: float | None  #: of measured to baseline: the median of the rounds' ratios; None where the budget is absolute
    budget: str
    holds: bool | None  #: None where there is no budget


def median_ratio(pairs: list[tuple[float, float]]) -> float:
    return statistics.median(ours / theirs for ours, theirs in pairs)


# ---------------------------------------------------------------- starting and memory


def start_up(folder: Path, rounds: int) -> Iterator[Row]:
    """Time from process start to the first ApiVersions response, with an empty data directory; and idle memory."""
    times, sizes = [], []
    with servers.barnabas(folder / "first"):
        pass  # the first start compiles the bytecode
    for index in range(rounds):
        began = time.perf_counter()
        with servers.barnabas(folder / f"start-{index}") as running:
            first_answer(running.port)
            times.append((time.perf_counter() - began) * 1000)
            sizes.append(running.rss() / 1e6)
    took, rss = statistics.median(times), statistics.median(sizes)
    yield Row("start: to first ApiVersions", f"{took:.0f} ms", "", None, "<= 150 ms", took <= 150)
    yield Row("idle memory", f"{rss:.0f} MB", "", None, "<= 50 MB", rss <= 50)


def first_answer(port: int) -> None:
    with load.connected(port) as connection:
        connection.sendall(bytes.fromhex("0000000a 0012 0000 00000001 0000"))
        assert connection.recv(4)


def restart(folder: Path, rounds: int) -> Iterator[Row]:
    """Time from process start to the first ApiVersions response with 2,000 partitions and 1 GiB of data, after a clean
    stop.
    """
    partitions, directory = 2000, folder / "restart"
    with servers.barnabas(directory, keep=True) as running:
        load.create_topic(running.port, "many", partitions)
        load.pump(running.port, load.produce_frame("many", MIB - 2048).data, 1024, 5)
    yield started_again(f"start: with {partitions} partitions and 1 GiB", directory, rounds)


def started_again(what: str, directory: Path, rounds: int) -> Row:
    """Returns the time from process start to the first ApiVersions response; deletes the directory afterwards."""
    times = []
    for index in range(rounds):
        began = time.perf_counter()
        with servers.barnabas(directory, keep=index + 1 < rounds) as running:
            first_answer(running.port)
            times.append(time.perf_counter() - began)
    took = statistics.median(times)
    return Row(what, f"{took:.2f} s", "", None, "<= 2 s", took <= 2)


def memory(folder: Path, rounds: int) -> Iterator[Row]:
    """Memory of an idle partition and of an idle connection."""
    partitions, connections = 2000, 500
    with servers.barnabas(folder / "memory") as running:
        first_answer(running.port)
        empty = running.rss()
        load.create_topic(running.port, "many", partitions)
        with_partitions = running.rss()
        with ExitStack() as stack:
            for _ in range(connections):
                connection = stack.enter_context(socket.create_connection(("127.0.0.1", running.port)))
                connection.sendall(bytes.fromhex("0000000a 0012 0000 00000001 0000"))
                assert connection.recv(4)
            with_connections = running.rss()
    each = (with_partitions - empty) / partitions / 1e3
    yield Row(f"memory per partition, of {partitions}", f"{each:.1f} KB", "", None, "<= 20 KB", each <= 20)
    each = (with_connections - with_partitions) / connections / 1e3
    yield Row(f"memory per connection, of {connections}", f"{each:.1f} KB", "", None, "<= 30 KB", each <= 30)


# ---------------------------------------------------------------- beside bare servers


def produce_beside_sink(folder: Path, rounds: int) -> Iterator[Row]:
    """Sends the same frames to Barnabas and to a sink that only checks and appends."""
    for size, total, budget in ((MIB, 512 * MIB, 0.8), (64 << 10, 256 * MIB, 0.6)):
        frame = load.produce_frame("bench", size)
        pairs = []
        for index in range(rounds):
            with servers.barnabas(folder / f"produce-{index}", *PLAIN_SOCKETS) as running:
                load.create_topic(running.port, "bench")
                load.pump(running.port, frame.data, 16, 4)
                seconds = load.pump(running.port, frame.data, total // size, 5)
                ours = total / seconds / 1e6
            path = folder / "sink"
            with servers.baseline("sink", path, str(frame.batch_at)) as running:
                load.pump(running.port, frame.data, 16, 4)
                seconds = load.pump(running.port, frame.data, total // size, 5)
            path.unlink()
            pairs.append((ours, total / seconds / 1e6))
        yield beside(f"produce, requests of {size >> 10} KiB, MB/s", "sink", pairs, budget)


def fetch_beside_reader(folder: Path, rounds: int) -> Iterator[Row]:
    """Fetches 1 MiB at a time from Barnabas, and from a loop of pread and send on the same file."""
    size, total = MIB, 512 * MIB
    frame = load.produce_frame("bench", size - 2048)
    records = (size - 2048) // 1024
    pairs = []
    with servers.barnabas(folder / "fetch") as running:
        load.create_topic(running.port, "bench")
        load.pump(running.port, frame.data, total // size, 5)
        requests = [load.fetch_frame("bench", index * records, size) for index in range(total // size)]
        log = next((folder / "fetch").glob("bench-0/*.log"))
        with servers.baseline("reader", log) as reader:
            for _ in range(rounds):
                seconds, received = load.drain(running.port, requests)
                ours = received / seconds / 1e6
                piece = received // len(requests)
                seconds, received = load.drain_raw(reader.port, [i * piece for i in range(len(requests) - 1)], piece)
                pairs.append((ours, received / seconds / 1e6))
    yield beside("fetch, 1 MiB at a time, MB/s", "pread loop", pairs, 0.8)


def beside(what: str, baseline: str, pairs: list[tuple[float, float]], budget: float) -> Row:
    ratio = median_ratio(pairs)
    ours, theirs = (statistics.median(each) for each in zip(*pairs, strict=True))
    return Row(what, f"{ours:,.0f}", f"{baseline} {theirs:,.0f}", ratio, f">= {budget}x", ratio >= budget)


# ---------------------------------------------------------------- per request, per partition


def small_requests(folder: Path, rounds: int) -> Iterator[Row]:
    """Pipelines requests of one 100-byte record each over one connection, acks=1."""
    count, frame, rates, costs = 100_000, load.produce_frame("bench", 100, 100), [], []
    with servers.barnabas(folder / "small") as running:
        load.create_topic(running.port, "bench")
        load.pump(running.port, frame.data, 4096, 256, 32)
        for _ in range(rounds):
            before = running.cpu_s()
            rates.append(count / load.pump(running.port, frame.data, count, 256, 32))
            costs.append((running.cpu_s() - before) / count * 1e6)
    rate, cost = statistics.median(rates), statistics.median(costs)
    yield Row(
        "small produce requests a second",
        f"{rate:,.0f} ({cost:.1f} us CPU each)",
        "",
        None,
        ">= 25,000",
        rate >= 25_000,
    )


def small_requests_with_quotas(folder: Path, rounds: int) -> Iterator[Row]:
    """Sends the same requests without quotas, with a quota of another user, and with quotas for bytes and time."""
    count, frame = 50_000, load.produce_frame("bench", 100, 100)
    unreached = {"producer_byte_rate": 1e12, "request_percentage": 1e9}
    settings = {
        "of somebody else": ("nobody", unreached),
        "of bytes": (load.CLIENT_ID, {"producer_byte_rate": 1e12}),
        "of bytes and time": (load.CLIENT_ID, unreached),
    }
    costs: dict[str, list[tuple[float, float]]] = {what: [] for what in settings}
    with servers.barnabas(folder / "quotas") as running:
        load.create_topic(running.port, "bench")
        load.pump(running.port, frame.data, 4096, 256, 32)

        def cost() -> float:
            before = running.cpu_s()
            load.pump(running.port, frame.data, count, 256, 32)
            return (running.cpu_s() - before) / count * 1e6

        for _ in range(rounds):
            for what, (client_id, values) in settings.items():
                without = cost()
                load.set_quotas(running.port, client_id, values)
                costs[what].append((cost(), without))
                load.set_quotas(running.port, client_id, dict.fromkeys(values))
    for what, pairs in costs.items():
        ours, without = (statistics.median(each) for each in zip(*pairs, strict=True))
        yield Row(
            f"small produce requests, quotas {what}: CPU each",
            f"{ours:.1f} us",
            f"without {without:.1f} us",
            median_ratio(pairs),
            "<= 1.5x",
            median_ratio(pairs) <= 1.5,
        )


def many_partitions(folder: Path, rounds: int) -> Iterator[Row]:
    """Compares a fetch of 1,000 partitions with one of a single partition: the cost of each partition."""
    partitions, repeat = 1000, 50
    one, many = [], []
    with servers.barnabas(folder / "many") as running:
        load.create_topic(running.port, "bench", partitions)
        for _ in range(rounds):
            for number, costs in ((1, one), (partitions, many)):
                requests = [load.fetch_frame("bench", 0, MIB, number)] * repeat
                before = running.cpu_s()
                for _ in range(4):
                    load.drain(running.port, requests, ahead=1)
                costs.append((running.cpu_s() - before) / repeat / 4 * 1e6)
    each = (statistics.median(many) - statistics.median(one)) / (partitions - 1)
    yield Row("fetch over 1,000 partitions, each", f"{each:.2f} us", "", None, "<= 3 us", each <= 3)


def growth(folder: Path, rounds: int) -> Iterator[Row]:
    """Sends the same small fetches from the middle of a log of 1 MiB and of one of 2 GiB."""
    frame = load.produce_frame("bench", MIB - 2048)
    records = (MIB - 2048) // 1024
    pairs = []
    with servers.barnabas(folder / "growth") as running:
        for topic, megabytes in (("little", 1), ("much", 2048)):
            load.create_topic(running.port, topic)
            load.pump(running.port, load.produce_frame(topic, MIB - 2048).data, megabytes, 4)
        assert frame
        for _ in range(rounds):
            costs = []
            for topic, megabytes in (("much", 2048), ("little", 1)):
                requests = [load.fetch_frame(topic, megabytes * records // 2, 1024)] * 300
                before = running.cpu_s()
                load.drain(running.port, requests)
                costs.append(running.cpu_s() - before)
            pairs.append((costs[0], max(costs[1], 0.01)))
    ratio = median_ratio(pairs)
    yield Row("fetch from 2 GiB, to one from 1 MiB, CPU", f"{ratio:.2f}x", "", ratio, "<= 1.3x", ratio <= 1.3)


# ---------------------------------------------------------------- beside Apache Kafka


Flows = dict[int, librdkafka.Flow]


def beside_apache(folder: Path, rounds: int) -> Iterator[Row]:
    """Runs the load of librdkafka on both, in turns, on the same cores; each runs alone."""
    produced: dict[int, list[tuple[librdkafka.Flow, librdkafka.Flow]]] = {}
    consumed: dict[int, list[tuple[librdkafka.Flow, librdkafka.Flow]]] = {}
    fetched: dict[int, list[tuple[librdkafka.Flow, librdkafka.Flow]]] = {}
    waits: list[tuple[list[float], list[float]]] = []
    loads = {100: 200_000_000, 1024: 512 * MIB, 10_240: 512 * MIB}
    for index in range(rounds):
        flows: list[tuple[Flows, Flows, Flows, list[float]]] = []
        for start in (servers.barnabas, servers.apache):
            with start(folder / f"beside-{index}") as running:
                flows.append(one_round(running, loads))
        for size in loads:
            produced.setdefault(size, []).append((flows[0][0][size], flows[1][0][size]))
            consumed.setdefault(size, []).append((flows[0][1][size], flows[1][1][size]))
            fetched.setdefault(size, []).append((flows[0][2][size], flows[1][2][size]))
        waits.append((flows[0][3], flows[1][3]))
    for size in loads:
        yield from compared(f"produce {size} B", produced[size], 1.3, 0.7)
    for size in (1024, 10_240):
        yield from compared(f"consume {size} B (librdkafka)", consumed[size], 1.1, 0.8)
        yield from compared(f"fetch {size} B (thrown away)", fetched[size], 1.1, 0.8)
    for name, at, most in (("p50", 0.5, 1.0), ("p99", 0.99, 3.0)):
        pairs = [(ours[int(len(ours) * at)], theirs[int(len(theirs) * at)]) for ours, theirs in waits]
        ours, theirs = (statistics.median(each) for each in zip(*pairs, strict=True))
        budget = f"<= {most:.0f} ms, <= Apache"
        yield Row(
            f"produce to consume {name}, 1,000/s", f"{ours:.2f} ms", f"Apache {theirs:.2f} ms", median_ratio(pairs),
            budget, ours <= most and ours <= theirs,
        )  # fmt: skip


def one_round(running: Running, loads: dict[int, int]) -> tuple[Flows, Flows, Flows, list[float]]:
    produced, consumed, fetched = {}, {}, {}
    for size, total in loads.items():
        topic = f"bench-{size}"
        load.create_topic(running.port, topic)
        load.create_topic(running.port, f"warm-{size}")
        librdkafka.produce(running.bootstrap, running.cpu_s, f"warm-{size}", size, total // 8)
        produced[size] = librdkafka.produce(running.bootstrap, running.cpu_s, topic, size, total)
        consumed[size] = librdkafka.consume(running.bootstrap, running.cpu_s, topic, size, total)
        fetched[size] = raw_fetch(running, topic, size, total)
    load.create_topic(running.port, "trickle")
    return produced, consumed, fetched, librdkafka.latency(running.bootstrap, "trickle", 1000, 4)


def raw_fetch(running: Running, topic: str, record_bytes: int, total: int) -> librdkafka.Flow:
    """Measures the throughput of the server with a client that discards the records."""
    step = MIB // record_bytes
    requests = [load.fetch_frame(topic, offset, MIB) for offset in range(0, total // record_bytes - step, step)]
    before = running.cpu_s()
    seconds, received = load.drain(running.port, requests)
    return librdkafka.Flow(received, seconds, running.cpu_s() - before)


def compared(
    what: str, pairs: list[tuple[librdkafka.Flow, librdkafka.Flow]], speed: float, cost: float
) -> Iterator[Row]:
    for unit, of, budget, is_met in (
        ("MB/s", lambda flow: flow.mb_per_s, f">= {speed}x", lambda ratio: ratio >= speed),
        ("CPU s/GB", lambda flow: flow.cpu_s_per_gb, f"<= {cost}x", lambda ratio: ratio <= cost),
    ):
        figures = [(of(ours), of(theirs)) for ours, theirs in pairs]
        ratio = median_ratio(figures)
        ours, theirs = (statistics.median(each) for each in zip(*figures, strict=True))
        yield Row(f"{what}, {unit}", f"{ours:,.2f}", f"Apache {theirs:,.2f}", ratio, budget, is_met(ratio))


MEASUREMENTS: dict[str, Callable[[Path, int], Iterator[Row]]] = {
    "start": start_up,
    "restart": restart,
    "memory": memory,
    "produce": produce_beside_sink,
    "fetch": fetch_beside_reader,
    "small": small_requests,
    "quotas": small_requests_with_quotas,
    "partitions": many_partitions,
    "growth": growth,
    "apache": beside_apache,
}
