"""Requests to three brokers of ours and to three of Apache Kafka: leader, follower and stranger are asked the same.

Of partition 0 of "t" broker 1 is the leader, and 2 and 3 are followers; "solo" is on broker 2 alone.
"""

import contextlib
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from barnabas.records.builder import build_batch
from tests.raw import Client

from .mixed import APACHE, BARNABAS, Mixed
from .plain import request_of, told

pytestmark = pytest.mark.xdist_group("forwarding")  # it has brokers of its own

LEADER, FOLLOWER, THIRD = 1, 2, 3
WITHIN_S = 30.0
MOMENT_MS = 1_700_000_000_000
LEFT_OUT = {
    "topic_id", "throttle_time_ms", "port", "cluster_id", "controller_id", "session_id", "broker_epoch", "member_id",
    "log_append_time_ms", "topic_authorized_operations", "cluster_authorized_operations",
}  # fmt: skip

BATCH = build_batch([(b"k", b"v", MOMENT_MS + number) for number in range(3)])


def produce(acks: int, topic: str = "t", partition: int = 0) -> dict[str, Any]:
    data = [{"index": partition, "records": bytes(BATCH)}]
    return {"acks": acks, "timeout_ms": 5000, "topic_data": [{"name": topic, "partition_data": data}]}


def fetch(offset: int = 0, topic: str = "t", replica_id: int = -1, **fields: Any) -> dict[str, Any]:
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20, **fields}
    return {
        "replica_id": replica_id, "max_wait_ms": 100, "min_bytes": 1, "session_epoch": -1,
        "topics": [{"topic": topic, "partitions": [partition]}],
    }  # fmt: skip


def offsets(timestamp: int, replica_id: int = -1, topic: str = "t", epoch: int = -1) -> dict[str, Any]:
    partition = {"partition_index": 0, "current_leader_epoch": epoch, "timestamp": timestamp}
    return {"replica_id": replica_id, "topics": [{"name": topic, "partitions": [partition]}]}


def epoch_end(epoch: int, current: int = -1, replica_id: int = -2, topic: str = "t") -> dict[str, Any]:
    partition = {"partition": 0, "current_leader_epoch": current, "leader_epoch": epoch}
    return {"replica_id": replica_id, "topics": [{"topic": topic, "partitions": [partition]}]}


def deletion(offset: int, topic: str = "t") -> dict[str, Any]:
    return {"topics": [{"name": topic, "partitions": [{"partition_index": 0, "offset": offset}]}]}


def markers(topic: str) -> dict[str, Any]:
    marker = {"producer_id": 7, "producer_epoch": 0, "transaction_result": True, "coordinator_epoch": 0}
    return {"markers": [{**marker, "topics": [{"name": topic, "partition_indexes": [0]}]}]}


EVERYBODY = (LEADER, FOLLOWER, THIRD)
#: Of the group g, and of the transactional id x: brokers that differ from run to run.
COORDINATOR, ANOTHER = -1, -2
BOTH = (COORDINATOR, ANOTHER)
GROUP = {"group_id": "g"}
COMMIT = {"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}]}

#: Who is asked, API, version, values.
REQUESTS: list[tuple[tuple[int, ...], str, int, dict[str, Any]]] = [
    (EVERYBODY, "Produce", 9, produce(-1)),
    (EVERYBODY, "Produce", 8, produce(1)),
    (EVERYBODY, "Produce", 10, produce(1, "solo")),
    ((LEADER,), "Produce", 9, produce(2)),
    ((LEADER, FOLLOWER), "Produce", 9, produce(-1, "nope")),
    (EVERYBODY, "ListOffsets", 7, offsets(-1)),
    ((LEADER,), "Fetch", 12, fetch()),
    *(((LEADER, FOLLOWER), "Fetch", 12, fetch(current_leader_epoch=epoch)) for epoch in (0, 1, 5)),
    ((LEADER, FOLLOWER), "Fetch", 12, fetch(1000)),
    ((LEADER, FOLLOWER), "Fetch", 10, fetch()),
    ((LEADER, FOLLOWER), "Fetch", 4, fetch()),
    ((LEADER, THIRD), "Fetch", 12, fetch(topic="solo")),
    ((LEADER,), "Fetch", 12, fetch(last_fetched_epoch=7, current_leader_epoch=0)),
    ((LEADER,), "Fetch", 12, fetch(5, last_fetched_epoch=0, current_leader_epoch=0)),
    ((LEADER, FOLLOWER), "Fetch", 12, fetch(replica_id=9, current_leader_epoch=0)),
    *(((LEADER, FOLLOWER), "ListOffsets", 7, offsets(stamp)) for stamp in (-2, -3, MOMENT_MS + 1, MOMENT_MS * 2)),
    *(((LEADER, FOLLOWER), "ListOffsets", 7, offsets(-1, epoch=epoch)) for epoch in (0, 1, 9)),
    ((LEADER, FOLLOWER), "ListOffsets", 7, offsets(-1, replica_id=-2)),
    ((LEADER, THIRD), "ListOffsets", 7, offsets(-1, topic="solo")),
    *(((LEADER, FOLLOWER), "OffsetForLeaderEpoch", 4, epoch_end(epoch)) for epoch in (-1, 0, 1)),
    *(((LEADER, FOLLOWER), "OffsetForLeaderEpoch", 4, epoch_end(0, current)) for current in (0, 1, 9)),
    ((LEADER, FOLLOWER), "OffsetForLeaderEpoch", 3, epoch_end(0, replica_id=-1)),
    ((LEADER, FOLLOWER), "OffsetForLeaderEpoch", 4, epoch_end(0, replica_id=FOLLOWER)),
    ((LEADER, FOLLOWER), "OffsetForLeaderEpoch", 4, epoch_end(0, topic="nope")),
    (EVERYBODY, "Metadata", 12, {
        "topics": [{"name": "t"}, {"name": "solo"}, {"name": "nope"}], "allow_auto_topic_creation": False,
    }),
    (EVERYBODY, "Metadata", 7, {"topics": [{"name": "t"}]}),
    ((LEADER, FOLLOWER), "DescribeTopicPartitions", 0, {"topics": [{"name": "t"}], "response_partition_limit": 10}),
    (EVERYBODY, "DescribeCluster", 1, {"endpoint_type": 1}),
    ((LEADER, FOLLOWER), "DescribeProducers", 0, {"topics": [{"name": "t", "partition_indexes": [0]}]}),
    ((LEADER, FOLLOWER), "WriteTxnMarkers", 1, markers("solo")),
    ((FOLLOWER,), "WriteTxnMarkers", 1, markers("t")),
    ((FOLLOWER,), "DeleteRecords", 2, deletion(1)),
    ((LEADER,), "DeleteRecords", 2, deletion(1)),
    ((LEADER,), "DeleteRecords", 2, deletion(10_000)),
    (BOTH, "Heartbeat", 4, {**GROUP, "generation_id": 1, "member_id": "m"}),
    (BOTH, "OffsetCommit", 8, {**GROUP, "generation_id_or_member_epoch": -1, "topics": [COMMIT]}),
    (BOTH, "OffsetFetch", 7, {**GROUP, "topics": [{"name": "t", "partition_indexes": [0]}]}),
    (BOTH, "DescribeGroups", 5, {"groups": ["g"]}),
    (BOTH, "DeleteGroups", 2, {"groups_names": ["g"]}),
    (BOTH, "EndTxn", 3, {"transactional_id": "x", "producer_id": 7, "producer_epoch": 0, "committed": True}),
    (EVERYBODY, "ElectLeaders", 2, {"topic_partitions": [{"topic": "t", "partitions": [0]}]}),
]  # fmt: skip


def until(ask: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + WITHIN_S
    while not (answer := ask()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return answer


def answers(home: Path, kind: str) -> list[tuple[str, Any]]:
    """What is answered by each who is asked."""
    with Mixed(home, kind, [kind] * 3) as cluster, contextlib.ExitStack() as stack:
        clients = {
            node_id: stack.enter_context(Client(node.port, timeout=30)) for node_id, node in cluster.brokers.items()
        }

        def ask(whom: int, name: str, version: int, **values: Any) -> Any:
            return clients[whom].ask(request_of(name, version, values), version)

        def coordinator(whom: int, key_type: int) -> int:
            """Who coordinates a group or a transactional id; 0 while nobody does."""
            (told,) = ask(whom, "FindCoordinator", 4, key_type=key_type, coordinator_keys=["gx"[key_type]]).coordinators
            return 0 if told.error_code else int(told.node_id)

        def watermark(whom: int) -> int:
            (topic,) = ask(whom, "Fetch", 12, **fetch()).responses
            return int(topic.partitions[0].high_watermark)

        placed = {"t": [(0, [1, 2, 3]), (1, [2, 3, 1]), (2, [3, 1, 2])], "solo": [(0, [2])]}
        topics = [
            {
                "name": name, "num_partitions": -1, "replication_factor": -1,
                "assignments": [{"partition_index": index, "broker_ids": ids} for index, ids in replicas],
                "configs": [] if name == "t" else [{"name": "min.insync.replicas", "value": "1"}],
            }
            for name, replicas in placed.items()
        ]  # fmt: skip
        created = ask(THIRD, "CreateTopics", 7, topics=topics)
        assert [each.error_code for each in created.topics] == [0, 0]
        coordinators: dict[int, int] = {}
        for whom in EVERYBODY:
            until(lambda whom=whom: len(ask(whom, "Metadata", 12, topics=[{"name": "solo"}]).topics[0].partitions))
        for key_type in (0, 1):
            named = {until(partial(coordinator, whom, key_type)) for whom in EVERYBODY}
            assert len(named) == 1
            (coordinators[key_type],) = named
        until(lambda: ask(coordinators[0], "DescribeGroups", 5, groups=["g"]).groups[0].error_code == 0)
        found = []
        for whom, name, version, values in REQUESTS:
            for role in whom:
                at_work = coordinators[name == "EndTxn"]
                each = {COORDINATOR: at_work, ANOTHER: at_work % 3 + 1}.get(role, role)
                if name in ("Fetch", "ListOffsets") and each == FOLLOWER:
                    until(lambda: watermark(FOLLOWER) == watermark(LEADER))  # which it hears of by its next fetch
                answer = told(ask(each, name, version, **values), LEFT_OUT)
                found.append((f"{name} v{version} {brief(values)} to {role}", answer))
    return found


def brief(values: dict[str, Any]) -> str:
    return repr(values)[:160].replace(repr(bytes(BATCH)), "batch")


def test_three_brokers_of_ours_answer_as_three_of_apaches(kafka_jars: Path, tmp_path: Path) -> None:
    theirs = answers(tmp_path / "apache", APACHE)
    ours = answers(tmp_path / "ours", BARNABAS)
    different = [
        f"{what}\n  ours:   {mine}\n  theirs: {other}"
        for (what, mine), (_, other) in zip(ours, theirs, strict=True)
        if mine != other
    ]
    if different:
        pytest.fail("\n".join(different))
