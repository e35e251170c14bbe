"""Apache Kafka's own tools against three nodes of Barnabas and three of Apache Kafka: the same calls, line by line.

Holds no expected output. Calls are in ``three_nodes.txt``; one node is stopped and started between them.
"""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .mixed import APACHE, BARNABAS, Combined
from .test_console_tools import Tools
from .tools_beside import CLASSES, Call, Outcome, Side, calls_of, settled

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(600),  # each call of a tool may take seconds on a busy machine
    pytest.mark.xdist_group("tools_of_three"),
]

SCENARIO = Path(__file__).with_name("three_nodes.txt")
WITHIN_S = 60.0
"""The timeout of a change, until all nodes have applied it."""

PLANS = {
    "move": {"version": 1, "partitions": [{"topic": "solo", "partition": 0, "replicas": [3, 2]}]},
    "absent": {"version": 1, "partitions": [{"topic": "solo", "partition": 0, "replicas": [9]}]},
    "elect": {"partitions": [{"topic": "orders", "partition": 0}, {"topic": "orders", "partition": 1}]},
}
#: Differences between two clusters: the order of an ISR, and the coordinator of a group.
DIFFERING = (
    (r"(?<=Isr: )[\d,]+", lambda found: ",".join(sorted(found[0].split(",")))),
    (r"PORT-\d +\(\d\)", lambda _: "PORT-N (N)"),  # coordinators
)


class Three(Side):
    """Three nodes, and Apache Kafka's tools in one JVM."""

    def __init__(self, cluster: Combined, scratch: Path) -> None:
        super().__init__(cluster.brokers[1].address, scratch / "data", scratch)
        self.cluster = cluster
        self.tools = Tools(self.bootstrap)

    def run(self, call: Call) -> Outcome | None:
        match call.words:
            case ["stop", node_id]:
                self.cluster.brokers[int(node_id)].stop()
                return None
            case ["start", node_id]:
                self.cluster.brokers[int(node_id)].start()
                return None
            case ["await", text, *words]:
                return self.until(call._replace(words=words), text)
            case ["drain", *words]:
                return self.until(call._replace(words=words), None)
        return self.outcome(call, *self.tools.run(CLASSES[call.tool], *self.words(call), stdin=call.stdin))

    def until(self, call: Call, text: str | None) -> Outcome:
        """Repeats a call until it prints the text, or nothing."""
        end = time.monotonic() + WITHIN_S
        while True:
            found = self.run(call)
            assert found is not None
            if any(text in line for line in found.lines) if text else not any(found.lines):
                return found
            assert time.monotonic() < end, found
            time.sleep(0.2)

    def outcome(self, call: Call, code: int, out: str, err: str) -> Outcome:
        found = super().outcome(call, code, out, err)
        if call.tool != "metadata-quorum":
            return found
        lines = [re.sub(r"\s+", " ", re.sub(r"\b-?\d+\b", "N", line)) for line in found.lines]  # any node may lead
        return found._replace(lines=sorted(lines))

    def plain(self, text: str) -> str:
        for node_id, node in self.cluster.brokers.items():
            text = text.replace(str(node.data), "DATA")
            for port in {node.port, *map(int, re.findall(r":(\d+)", node.properties["listeners"]))}:
                text = re.sub(rf"\b127\.0\.0\.1([: ]+){port}\b", rf"HOST\1PORT-{node_id}", text)
        text = super().plain(text)
        for pattern, replacement in DIFFERING:
            text = re.sub(pattern, replacement, text)
        return text


def outcomes(kind: str, home: Path) -> Iterator[tuple[Call, Outcome | None, Three]]:
    """Returns the result of each line of the scenario at nodes of a kind."""
    with Combined(home, [kind] * 3) as cluster:
        for name, plan in PLANS.items():
            (home / f"{name}.json").write_text(json.dumps(plan))
        side = Three(cluster, home)
        for call in calls_of(SCENARIO.read_text()):
            yield call, side.run(call), side
        assert side.tools.process.stdin is not None
        side.tools.process.stdin.close()
        side.tools.process.wait(10)
        if kind == BARNABAS:
            assert [line for node in cluster.brokers.values() for line in node.errors()] == []


def test_tools_print_the_same(kafka_jars: Path, tmp_path: Path) -> None:
    differences = []
    expected = [wanted for _, wanted, _ in outcomes(APACHE, tmp_path / APACHE)]
    for wanted, (call, found, side) in zip(expected, outcomes(BARNABAS, tmp_path / BARNABAS), strict=True):
        found = settled(side, call, found, wanted)
        if found != wanted:
            differences.append(f"{' '.join(call.words)}\n  theirs: {wanted}\n  ours:   {found}")
    assert not differences, "\n".join(differences)
