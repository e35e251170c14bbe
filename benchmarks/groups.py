"""The cost of large groups and of many groups: 500 members until they are stable, and a start with 10,000 groups.

Knows nothing of how a coordinator works. Settling is measured as elapsed time and as CPU seconds of the broker. The
budget is for the CPU time, since the members run on the same cores.
"""

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from barnabas.wire.message import Request
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from benchmarks import load, many_groups, members, servers
from benchmarks.measure import Row, first_answer

MEMBERS, PARTITIONS = 500, 1_000
GROUPS = 10_000
PROTOCOLS: dict[str, type[members.Member]] = {"classic": members.ClassicMember, "consumer": members.ConsumerMember}


def large(folder: Path, rounds: int) -> Iterator[Row]:
    """500 members join at once, by either protocol, until each has its share of 1,000 partitions."""
    for protocol, kind in PROTOCOLS.items():
        figures = []
        for index in range(rounds):
            with servers.barnabas(folder / f"large-{protocol}-{index}") as running:
                load.create_topic(running.port, members.TOPIC, PARTITIONS)
                await_coordinator(running.port, members.GROUP)
                cpu_began = running.cpu_s()
                took, theirs = members.come_together(running.port, [kind], MEMBERS, PARTITIONS)
                figures.append((running.cpu_s() - cpu_began, took, theirs))
        cpu, took, theirs = (statistics.median(each) for each in zip(*figures, strict=True))
        yield Row(
            f"{MEMBERS} members of a {protocol} group settle on {PARTITIONS} partitions, CPU seconds of the broker",
            f"{cpu:.2f} s ({took:.2f} s by the clock, members {theirs:.2f} s of CPU)",
            "",
            None,
            "<= 2 s",
            cpu <= 2,
        )


def replay(folder: Path, rounds: int) -> Iterator[Row]:
    """Measures process start to first ApiVersions response, with 10,000 groups and without any."""
    directory = folder / "groups"
    with servers.barnabas(directory, "offsets.topic.num.partitions=50", keep=True) as running:
        load.create_topic(running.port, many_groups.TOPIC, many_groups.PARTITIONS)
        await_coordinator(running.port, "any")
    empty = start(directory)
    records = many_groups.fill(directory, GROUPS)
    figures = [start(directory) for _ in range(rounds)]
    took, cpu = (statistics.median(each) for each in zip(*figures, strict=True))
    yield Row(
        f"start: with {GROUPS:,} groups, {records:,} records, CPU seconds",
        f"{cpu:.2f} s ({took:.2f} s by the clock)",
        f"without {empty[1]:.2f} s",
        None,
        "<= 3 s",
        cpu <= 3,
    )


def start(directory: Path) -> tuple[float, float]:
    """Returns wall-clock seconds and CPU seconds until the first response."""
    began = time.perf_counter()
    with servers.barnabas(directory, keep=True) as running:
        first_answer(running.port)
        return time.perf_counter() - began, running.cpu_s()


def await_coordinator(port: int, group_id: str) -> None:
    """Creates the topic of offsets."""
    request: Request = FindCoordinatorRequest(key_type=0, coordinator_keys=[group_id])
    buffer = bytearray(1 << 16)
    deadline = time.monotonic() + load.LONGEST_SILENCE_S
    with load.connected(port) as connection:
        while time.monotonic() < deadline:
            connection.sendall(load.framed(request.api_key, 4, request.encode(version=4)))
            size = load.receive(connection, buffer)
            found = FindCoordinatorResponse.decode(memoryview(buffer)[9:size], version=4)
            if not found.coordinators[0].error_code:
                return
            time.sleep(0.05)
    raise TimeoutError(f"there is no coordinator of {group_id}")
