"""The cost of metrics for a request: the CPU time of nodes with and without them, under the same small requests.

Knows nothing of what is counted. The nodes of a pair take turns of about a second, so that both meet what else the
machine does, and the median of many turns of several pairs counts: one node costs 1 to 5 % more than another, as their
addresses and hashes differ. Two rounds without metrics on either side say 1.00. A turn is long enough to be a steady
load: metrics time more requests of a burst after a pause.
"""

import statistics
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from benchmarks import load, servers
from benchmarks.measure import Row, median_ratio
from benchmarks.servers import Running

PAIRS, TURNS = 4, 4
LISTENER = "barnabas.metrics.listener=127.0.0.1:0"


class Load(NamedTuple):
    """Small produce requests: how many, how many in flight, and how many to a send."""

    count: int
    depth: int
    pieces: int


LOADS = {"pipelined": Load(48_000, 256, 32), "one at a time": Load(24_000, 1, 1)}


def cost_us(running: Running, frame: bytes, of: Load) -> float:
    """Returns the microseconds of CPU that a request takes."""
    before = running.cpu_s()
    load.pump(running.port, frame, of.count, of.depth, of.pieces)
    return (running.cpu_s() - before) / of.count * 1e6


def cost(folder: Path, rounds: int) -> Iterator[Row]:
    """Produce requests of 100 bytes to two nodes in turns."""
    frame = load.produce_frame("bench", 100, 100).data
    pairs: dict[str, list[tuple[float, ...]]] = {name: [] for name in LOADS}
    for index in range(rounds * PAIRS):
        with ExitStack() as stack:
            settings = [("with", (LISTENER,)), ("without", ())]
            started = {
                name: stack.enter_context(servers.barnabas(folder / f"{name}-{index}", *overrides))
                for name, overrides in (settings if index % 2 else settings[::-1])
            }
            nodes = [started[name] for name, _ in settings]
            for node in nodes:
                load.create_topic(node.port, "bench")
                cost_us(node, frame, Load(4000, 256, 32))
            for turn in range(TURNS):
                order = nodes if turn % 2 else nodes[::-1]  # whichever is first has a colder machine
                for name, of in LOADS.items():
                    costs = {node: cost_us(node, frame, of) for node in order}
                    pairs[name].append(tuple(costs[node] for node in nodes))
    for name, each in pairs.items():
        counted, plain = (statistics.median(costs) for costs in zip(*each, strict=True))
        ratio = median_ratio(each)
        yield Row(
            f"metrics: CPU of a small produce request, {name}, us", f"{counted:.1f}", f"without {plain:.1f}", ratio,
            "<= 1.02x", ratio <= 1.02,
        )  # fmt: skip
