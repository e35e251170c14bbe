"""The cost of the proxy: direct requests to a node beside the same through `barnabas proxy`, in turns.

Knows nothing of how the proxy forwards them. A relay that looks at nothing shows what of it is the price of one more
process: its wake-ups and its calls of the kernel.
"""

import contextlib
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks import load, servers
from benchmarks.measure import MIB, Row, median_ratio
from benchmarks.servers import Running

REQUESTS, TURNS = 2_000, 3
TOTAL = 512 * MIB


@contextlib.contextmanager
def proxy_of(running: Running) -> Iterator[Running]:
    """Runs a proxy in front of a node."""
    to = ["--listen", "127.0.0.1:0", "--to", running.bootstrap]
    with servers.spawned("proxy", [sys.executable, "-m", "barnabas", "proxy", *to]) as proxy:
        yield proxy


def relay_to(running: Running) -> contextlib.AbstractContextManager[Running]:
    """Runs a relay in front of a node."""
    return servers.spawned("relay", [sys.executable, "-m", "benchmarks.relay", str(running.port)])


def waits_us(port: int, frame: bytes, count: int = REQUESTS) -> list[float]:
    """Sends requests one after the other; returns the microseconds to each response."""
    found, buffer = [], bytearray(1 << 16)
    with load.connected(port) as connection:
        for _ in range(count):
            began = time.perf_counter()
            connection.sendall(frame)
            load.receive(connection, buffer)
            found.append((time.perf_counter() - began) * 1e6)
    return found


def in_between(folder: Path, rounds: int) -> Iterator[Row]:
    """Measures sequential small requests, and large ones with five in flight."""
    small, large = load.produce_frame("small", 100, 100).data, load.produce_frame("large", MIB - 2048).data
    records = (MIB - 2048) // 1024
    fetches = [load.fetch_frame("large", index * records, MIB) for index in range(TOTAL // MIB)]
    waits: list[tuple[float, ...]] = []
    produced: list[tuple[float, float]] = []
    fetched: list[tuple[float, float]] = []
    for index in range(rounds):
        directory = folder / f"behind-{index}"
        with servers.barnabas(directory) as running, proxy_of(running) as proxy, relay_to(running) as relay:
            load.create_topic(running.port, "small")
            load.create_topic(running.port, "large")
            for node in (running, proxy, relay):
                waits_us(node.port, small, REQUESTS // 10)
            for _ in range(TURNS):
                waits.append(tuple(statistics.median(waits_us(node.port, small)) for node in (proxy, relay, running)))
            seconds = [load.pump(node.port, large, TOTAL // MIB, 5) for node in (running, proxy)]
            produced.append((TOTAL / seconds[1] / 1e6, TOTAL / seconds[0] / 1e6))
            flows = [load.drain(node.port, fetches) for node in (proxy, running)]
            proxied, direct = (received / seconds / 1e6 for seconds, received in flows)
            fetched.append((proxied, direct))
    between, relayed, straight = (statistics.median(each) for each in zip(*waits, strict=True))
    ratio = median_ratio([(each[0], each[2]) for each in waits])
    floor = median_ratio([(each[1], each[2]) for each in waits])
    yield Row(
        "small produce through a relay that looks at nothing, p50", f"{relayed:.0f} us", f"straight {straight:.0f} us",
        floor, "", None,
    )  # fmt: skip
    yield Row(
        "small produce through the proxy, p50", f"{between:.0f} us", f"straight {straight:.0f} us", ratio, "<= 1.3x",
        ratio <= 1.3,
    )  # fmt: skip
    for what, pairs in (("produce", produced), ("fetch", fetched)):
        through, straight = (statistics.median(each) for each in zip(*pairs, strict=True))
        yield Row(
            f"{what}, 1 MiB through the proxy, MB/s", f"{through:,.0f}", f"straight {straight:,.0f}",
            median_ratio(pairs), ">= 500", through >= 500,
        )  # fmt: skip
