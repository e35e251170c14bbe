"""The cost of metrics for a request: the CPU time of nodes with and without them, under the same small requests.

Knows nothing of what is counted.
"""

import statistics
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from benchmarks import load, servers
from benchmarks.measure import Row, median_ratio
from benchmarks.servers import Running

COUNT, PIECES, TURNS = 40_000, 32, 3
LISTENER = "barnabas.metrics.listener=127.0.0.1:0"


def cost_us(running: Running, frame: bytes, count: int = COUNT) -> float:
    """Returns the microseconds of CPU that a request takes."""
    before = running.cpu_s()
    load.pump(running.port, frame, count, 256, PIECES)
    return (running.cpu_s() - before) / count * 1e6


def cost(folder: Path, rounds: int) -> Iterator[Row]:
    """Sends produce requests of 100 bytes to two nodes in turns."""
    frame = load.produce_frame("bench", 100, 100).data
    pairs = []
    for index in range(rounds):
        with ExitStack() as stack:
            nodes = [
                stack.enter_context(servers.barnabas(folder / f"{name}-{index}", *overrides))
                for name, overrides in (("with", (LISTENER,)), ("without", ()))
            ]
            for node in nodes:
                load.create_topic(node.port, "bench")
                cost_us(node, frame, COUNT // 10)
            for turn in range(TURNS):
                order = nodes if (index + turn) % 2 else nodes[::-1]  # the first measurement finds colder caches
                costs = {node: cost_us(node, frame) for node in order}
                pairs.append(tuple(costs[node] for node in nodes))
    counted, plain = (statistics.median(each) for each in zip(*pairs, strict=True))
    ratio = median_ratio(pairs)
    yield Row(
        "metrics: CPU of a small produce request, us", f"{counted:.1f}", f"without {plain:.1f}", ratio, "<= 1.02x",
        ratio <= 1.02,
    )  # fmt: skip
