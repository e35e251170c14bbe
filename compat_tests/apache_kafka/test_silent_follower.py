"""A group coordinator whose follower is silent answers as Apache Kafka's does.

It may have a successor, and not know of it. No answer rests on what is not replicated. The nodes of Apache Kafka are
combined and a broker, as are two of ``barnabas cluster``.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from compat_tests.running import environment

from .apache import ApacheBroker, ApacheKafka
from .sasl_pair import Talk

pytestmark = pytest.mark.xdist_group("silent_follower")  # it starts its own brokers

CONFIGS = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "2",
    "offsets.commit.timeout.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
    "replica.lag.time.max.ms": "120000",  # the silent follower stays in sync
    "broker.session.timeout.ms": "120000",
}
WITHIN_S = 30.0
OFFSETS = {"GroupId": "g", "Topics": [{"Name": "t", "PartitionIndexes": [0]}]}


class Node(NamedTuple):
    """A broker: where it listens, and its process."""

    port: int
    pid: int


@contextmanager
def apache(home: Path) -> Iterator[list[Node]]:
    combined = ApacheKafka(home / "1", CONFIGS)
    voters = "controller.quorum.voters"
    plaintext = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"}
    quorum = (voters, combined.properties[voters])
    broker = ApacheBroker(home / "2", 2, combined.cluster_id, quorum, CONFIGS | plaintext)
    with combined, broker:
        assert combined.process is not None
        assert broker.process is not None
        yield [Node(combined.port, combined.process.pid), Node(broker.port, broker.process.pid)]


@contextmanager
def barnabas(home: Path) -> Iterator[list[Node]]:
    python = os.environ.get("BARNABAS_COMPAT_PYTHON") or sys.executable
    ready, output = home / "ready", home / "output"
    command = [python, "-m", "barnabas", "cluster", "--nodes", "2", "--ready-file", str(ready)]
    for name, value in CONFIGS.items():
        command += ["--override", f"{name}={value}"]
    with output.open("wb") as out:
        cluster = subprocess.Popen(command, cwd=home, stdout=out, stderr=out, env=environment())
    try:
        wait_until(ready.exists, output.read_text)
        nodes = json.loads(ready.read_text())["nodes"]
        yield [Node(int(each["bootstrap_servers"].rpartition(":")[2]), each["pid"]) for each in nodes]
    finally:
        cluster.terminate()
        cluster.wait(WITHIN_S)


def wait_until(is_so: Callable[[], bool], about: Callable[[], object]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < deadline, about()
        time.sleep(0.05)


def asked(port: int, api: str, version: int, **body: Any) -> Any:
    with Talk(port) as talk:
        return talk.ask(api, version, **body)


def coordinator(nodes: list[Node]) -> tuple[Node, Node]:
    """Returns the coordinator, once it is active and knows topic t, and its follower, once it is in sync."""

    def offsets_topic() -> Any:
        for node in nodes:
            asked(node.port, "FindCoordinator", 2, Key="g", KeyType=0)
        names = [{"Name": "t"}, {"Name": "__consumer_offsets"}]
        topics = asked(nodes[-1].port, "Metadata", 4, Topics=names, AllowAutoTopicCreation=True)["Topics"]
        (found,) = (each["Partitions"] for each in topics if each["Name"] == "__consumer_offsets")
        return found[0] if found else {"IsrNodes": []}

    wait_until(lambda: len(offsets_topic()["IsrNodes"]) == 2, offsets_topic)
    leader = offsets_topic()["LeaderId"]
    found = nodes[leader - 1]

    def is_ready() -> bool:
        (topic,) = asked(found.port, "Metadata", 4, Topics=[{"Name": "t"}], AllowAutoTopicCreation=False)["Topics"]
        group = asked(found.port, "OffsetFetch", 7, **OFFSETS, RequireStable=True)
        return bool(topic["ErrorCode"] == group["ErrorCode"] == 0)

    wait_until(is_ready, offsets_topic)
    return found, nodes[2 - leader]


def size_of_log(node: Node) -> int:
    topics = [{"Topic": "__consumer_offsets", "Partitions": [0]}]
    (found,) = asked(node.port, "DescribeLogDirs", 1, Topics=topics)["Results"]
    return int(found["Topics"][0]["Partitions"][0]["PartitionSize"])


def is_stopped(node: Node) -> bool:
    """Returns whether no thread of the process runs."""
    states = []
    for thread in Path(f"/proc/{node.pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # of a thread that has ended
            states.append((thread / "stat").read_text().rpartition(")")[2].split()[0])
    return set(states) == {"T"}


def commit(member_id: str, offset: int) -> dict[str, Any]:
    partition = {
        "PartitionIndex": 0,
        "CommittedOffset": offset,
        "CommittedLeaderEpoch": -1,
        "CommittedMetadata": "",
    }
    member = {"GenerationIdOrMemberEpoch": 1, "MemberId": member_id, "GroupInstanceId": None}
    return {"GroupId": "g", **member, "Topics": [{"Name": "t", "Partitions": [partition]}]}


def answers(nodes: list[Node]) -> dict[str, Any]:
    """Returns what a coordinator answers while a commit waits for its silent follower."""
    leader, follower = coordinator(nodes)
    with Talk(leader.port) as talk:
        protocols = [{"Name": "range", "Metadata": b""}]
        times = {"SessionTimeoutMs": 45_000, "RebalanceTimeoutMs": 60_000}
        joined = talk.ask(
            "JoinGroup", 3, GroupId="g", MemberId="", ProtocolType="consumer", Protocols=protocols, **times
        )
        member_id = joined["MemberId"]
        member = {"GroupId": "g", "GenerationId": 1, "MemberId": member_id, "GroupInstanceId": None}
        synced = talk.ask("SyncGroup", 3, **member, Assignments=[{"MemberId": member_id, "Assignment": b"all"}])
        found = {
            "joined": joined["ErrorCode"],
            "synced": synced,
            "committed": talk.ask("OffsetCommit", 8, **commit(member_id, 1)),
        }
        found["heartbeat"] = talk.ask("Heartbeat", 3, **member)
        found["stable"] = talk.ask("OffsetFetch", 7, **OFFSETS, RequireStable=True)
        before = size_of_log(leader)
        os.kill(follower.pid, signal.SIGSTOP)
        try:
            wait_until(lambda: is_stopped(follower), lambda: "it goes on")  # once one of its threads gets the signal
            talk.send("OffsetCommit", 8, **commit(member_id, 2))
            wait_until(lambda: size_of_log(leader) > before, lambda: "nothing is appended")
            with Talk(leader.port) as other:
                found["unstable"] = other.ask("OffsetFetch", 7, **OFFSETS, RequireStable=False)
                found["stable later"] = other.ask("OffsetFetch", 7, **OFFSETS, RequireStable=True)
                found["heartbeat later"] = other.ask("Heartbeat", 3, **member)
                position = {"Name": "t", "Partitions": [{"PartitionIndex": 0}]}
                found["delete"] = other.ask("OffsetDelete", 0, GroupId="g", Topics=[position])  # it is subscribed to
                found["delete groups"] = other.ask("DeleteGroups", 1, GroupsNames=["nobody's"])
                leaving = [{"MemberId": member_id, "GroupInstanceId": None}]
                found["leave"] = other.ask("LeaveGroup", 3, GroupId="g", Members=leaving)
            found["committed later"] = talk.receive("OffsetCommit", 8)
        finally:
            os.kill(follower.pid, signal.SIGCONT)
    return found


def test_both_answer_alike(kafka_jars: Path, tmp_path: Path) -> None:
    with apache(tmp_path / "apache") as nodes:
        theirs = answers(nodes)
    (tmp_path / "ours").mkdir()
    with barnabas(tmp_path / "ours") as nodes:
        assert answers(nodes) == theirs
    names = ("stable", "unstable", "stable later", "heartbeat later", "delete", "leave")
    assert [theirs[name]["ErrorCode"] for name in names] == [0, 0, 16, 15, 15, 15]
    assert theirs["unstable"]["Topics"][0]["Partitions"][0]["CommittedOffset"] == 1
