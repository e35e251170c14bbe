"""Calls of Kafka's tools: Apache Kafka's tools with Apache Kafka, and ours with Barnabas.

Holds no expected output.
"""

import contextlib
import io
import re
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from barnabas.cli.kafka_tools import table
from compat_tests.running import BarnabasProcess

from .apache import ApacheKafka
from .test_console_tools import Tools

TOOLS = "org.apache.kafka.tools"
CLASSES = {
    "acls": f"{TOOLS}.AclCommand",
    "broker-api-versions": f"{TOOLS}.BrokerApiVersionsCommand",
    "client-metrics": f"{TOOLS}.ClientMetricsCommand",
    "cluster": f"{TOOLS}.ClusterTool",
    "configs": "kafka.admin.ConfigCommand",
    "console-consumer": f"{TOOLS}.consumer.ConsoleConsumer",
    "console-producer": f"{TOOLS}.ConsoleProducer",
    "consumer-groups": f"{TOOLS}.consumer.group.ConsumerGroupCommand",
    "delete-records": f"{TOOLS}.DeleteRecordsCommand",
    "features": f"{TOOLS}.FeatureCommand",
    "get-offsets": f"{TOOLS}.GetOffsetShell",
    "groups": f"{TOOLS}.GroupsCommand",
    "leader-election": f"{TOOLS}.LeaderElectionCommand",
    "log-dirs": f"{TOOLS}.LogDirsCommand",
    "metadata-quorum": f"{TOOLS}.MetadataQuorumCommand",
    "reassign-partitions": f"{TOOLS}.reassign.ReassignPartitionsCommand",
    "storage": "kafka.tools.StorageTool",
    "topics": f"{TOOLS}.TopicCommand",
    "transactions": f"{TOOLS}.TransactionsCommand",
}
KNOWN_S = 5.0
"""How long a node may take to apply a change that the controller has answered."""

#: Differences between any two clusters, and their replacements.
VARYING = (
    (r"\b[A-Za-z0-9_-]{22}\b", "ID"),
    (r"\b1[5-9]\d{11}\b", "TIME"),
    (r"\b\d+ ms ago\b *", "AGO"),
    (r"(?<=ID\t)\d+ +", "OFFSET"),
    (r"(?<=Epoch: )\d+", "OFFSET"),
    (r"(?<=\"size\":)\d+", "SIZE"),  # depends on the producer's batches
)
#: Lists without a defined order, from Java's sets and maps, by their prefix and separator.
UNORDERED = (
    (r"(?<=Valid states are: ).+", r", "),
    (r"(?<=one of these options: ).+", r", "),
    (r"(?<=Configs: ).+", r",(?=[a-z.]+=)"),
    (r"(?<=\"partitions\":\[).+?(?=\])", r",(?=\{)"),
)
#: Lines that the Java clients log on standard error besides the tool's.
OF_CLIENTS = re.compile(r"\[|The consumer rebalance protocol|\s+at |ended$|Tools\$Ended|$")


class Call(NamedTuple):
    """A line of a scenario: whether the output has no defined order, the words, and standard input."""

    is_unordered: bool
    words: list[str]
    stdin: str

    @property
    def tool(self) -> str:
        return self.words[0]

    @property
    def only_asks(self) -> bool:
        return not {"--describe", "--list", "describe"}.isdisjoint(self.words)


class Outcome(NamedTuple):
    """The normalised result of a call; ``complaint`` is the first line of standard error, after a failure."""

    code: int
    lines: list[str]
    complaint: str


def calls_of(text: str) -> Iterator[Call]:
    """Returns the calls of a scenario: a line each; ``~`` marks output without an order, ``<<<`` standard input."""
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        is_unordered = line.startswith("~")
        line, _, stdin = line.lstrip("~").partition("<<<")
        yield Call(is_unordered, shlex.split(line), stdin.strip().encode().decode("unicode_escape"))


class Side:
    """One broker with its tools."""

    def __init__(self, bootstrap: str, data: Path, scratch: Path) -> None:
        self.bootstrap, self.data, self.scratch = bootstrap, data, scratch

    def words(self, call: Call) -> list[str]:
        places = {"{b}": self.bootstrap, "{data}": str(self.data), "{scratch}": str(self.scratch)}
        words = call.words[1:]
        for name, value in places.items():
            words = [word.replace(name, value) for word in words]
        return words

    def outcome(self, call: Call, code: int, out: str, err: str) -> Outcome:
        lines = [line for line in self.plain(out).splitlines() if not line.startswith("\tat ")]
        complaints = [line for line in self.plain(err).splitlines() if not OF_CLIENTS.match(line)]
        complaint = complaints[0] if complaints and code and not lines else ""
        if call.is_unordered:
            lines = sorted(line.strip() for line in lines)  # the first of several has another indentation
        return Outcome(code, lines, complaint)

    def plain(self, text: str) -> str:
        host, _, port = self.bootstrap.partition(":")
        text = text.replace(str(self.data), "DATA").replace(str(self.scratch), "SCRATCH")
        text = re.sub(rf"{re.escape(host)}([: ]+){port}\b", r"HOST\1PORT", text)
        for pattern, replacement in VARYING:
            text = re.sub(pattern, replacement, text)
        for pattern, between in UNORDERED:
            text = re.sub(pattern, lambda found, between=between: ",".join(sorted(re.split(between, found[0]))), text)
        return text


class Runs(Protocol):
    """A side that runs calls."""

    def run(self, call: Call) -> Outcome | None: ...


def settled(side: Runs, call: Call, found: Outcome | None, wanted: Outcome | None) -> Outcome | None:
    """Returns the result of a call that has returned `found`.

    Repeats one that changes nothing until the node has applied the last change.
    """
    end = time.monotonic() + KNOWN_S
    while found != wanted and call.only_asks and time.monotonic() < end:
        time.sleep(0.1)
        found = side.run(call)
    return found


class Theirs(Side):
    """Apache Kafka, and its tools in one JVM."""

    def __init__(self, broker: ApacheKafka, tools: Tools, scratch: Path) -> None:
        super().__init__(broker.bootstrap, broker.home / "data", scratch)
        self.tools = tools

    def run(self, call: Call) -> Outcome:
        return self.outcome(call, *self.tools.run(CLASSES[call.tool], *self.words(call), stdin=call.stdin))


class Ours(Side):
    """Barnabas, and its tools in this process."""

    def __init__(self, broker: BarnabasProcess, scratch: Path) -> None:
        super().__init__(broker.bootstrap, broker.home / "data", scratch)

    def run(self, call: Call) -> Outcome:
        return self.outcome(call, *run_ours(call.tool, self.words(call), call.stdin))


def run_ours(tool: str, words: Sequence[str], stdin: str) -> tuple[int, str, str]:
    """Runs one of our tools; returns its exit code, output and errors."""
    out, err = (io.TextIOWrapper(io.BytesIO(), write_through=True) for _ in range(2))
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin.encode()))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = table.run(tool, words)
    finally:
        sys.stdin = before
    texts = []
    for stream in (out, err):
        stream.seek(0)
        texts.append(stream.read())
    return code, texts[0], texts[1]
