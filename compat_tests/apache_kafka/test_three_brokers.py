"""Requests to three brokers of ours and to three of Apache Kafka: leader, follower and a broker without a replica get
the same requests.

Broker 1 leads partition 0 of "t", brokers 2 and 3 are followers; "solo" is on broker 2 alone, which is killed before
the last requests. A topic's name in the place of a topic id stands for the topic's id.
"""

import contextlib
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from barnabas.records.builder import build_batch
from barnabas.uuids import uuid_text
from tests.raw import Client

from .mixed import APACHE, BARNABAS, Mixed
from .plain import comparable, request_of

pytestmark = pytest.mark.xdist_group("forwarding")  # it starts its own brokers

LEADER, FOLLOWER, THIRD = 1, 2, 3
WITHIN_S = 30.0
MOMENT_MS = 1_700_000_000_000
LEFT_OUT = {
    "topic_id", "throttle_time_ms", "port", "cluster_id", "controller_id", "session_id", "broker_epoch", "member_id",
    "log_append_time_ms", "topic_authorized_operations", "cluster_authorized_operations", "authorized_operations",
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


def replica_fetch(epoch: int, offset: int = 0, replica_id: int = FOLLOWER) -> dict[str, Any]:
    partition = {"partition": 0, "fetch_offset": offset, "log_start_offset": 0, "partition_max_bytes": 1 << 20}
    return {
        "replica_state": {"replica_id": replica_id, "replica_epoch": epoch}, "max_wait_ms": 100, "session_epoch": -1,
        "topics": [{"topic_id": "t", "partitions": [partition]}],
    }  # fmt: skip


def share_fetch(session_epoch: int, member_id: str = "sharer", topic: str = "t", **fields: Any) -> dict[str, Any]:
    topics = [{"topic_id": topic, "partitions": [{"partition_index": 0}]}]
    return {
        **SHARE, "member_id": member_id, "share_session_epoch": session_epoch, "max_wait_ms": 5000, "min_bytes": 1,
        "max_records": 2, "batch_size": 2, "topics": topics, **fields,
    }  # fmt: skip


def acknowledgement(session_epoch: int, first: int, last: int) -> dict[str, Any]:
    batch = {"first_offset": first, "last_offset": last, "acknowledge_types": [1]}
    topics = [{"topic_id": "t", "partitions": [{"partition_index": 0, "acknowledgement_batches": [batch]}]}]
    return {**SHARE, "member_id": "sharer", "share_session_epoch": session_epoch, "topics": topics}


def share_state(**fields: Any) -> dict[str, Any]:
    return {**SHARE, "topics": [{"topic_id": "t", "partitions": [{"partition": 0, **fields}]}]}


def beat(group: dict[str, str], member_id: str, epoch: int, **fields: Any) -> dict[str, Any]:
    return {**group, "member_id": member_id, "member_epoch": epoch, **fields}


EVERYBODY = (LEADER, FOLLOWER, THIRD)
SURVIVORS = (LEADER, THIRD)
#: The coordinators of the groups, of the transactional id x, and of the share state, which differ from run to run.
COORDINATOR, ANOTHER = -1, -2
BOTH = (COORDINATOR, ANOTHER)
#: The hashes of these names select the same partition of three: they have one coordinator.
GROUP, CONSUMERS, SHARE, STREAMS = ({"group_id": name} for name in "gdjm")
COMMIT = {"name": "t", "partitions": [{"partition_index": 0, "committed_offset": 1, "committed_metadata": ""}]}
SUBSCRIBED = {"subscribed_topic_names": ["t"]}
CONSUMING = {**SUBSCRIBED, "rebalance_timeout_ms": 45_000, "topic_partitions": []}
STREAMING = {
    "rebalance_timeout_ms": 45_000, "process_id": "p", "active_tasks": [], "standby_tasks": [], "warmup_tasks": [],
    "topology": {"epoch": 0, "subtopologies": [{"subtopology_id": "0", "source_topics": ["t"]}]},
}  # fmt: skip
STATE_APIS = ("ShareGroupState", "ShareGroupStateSummary")

#: The records are older than a week; retention must not delete them.
CONFIGS = {"t": {"retention.ms": "-1"}, "solo": {"retention.ms": "-1", "min.insync.replicas": "1"}}

#: Broker, API, version, values.
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
    (BOTH, "ConsumerGroupHeartbeat", 1, beat(CONSUMERS, "consumer", 0, **CONSUMING)),
    (BOTH, "ConsumerGroupHeartbeat", 1, beat(CONSUMERS, "consumer", 7)),
    (BOTH, "ConsumerGroupHeartbeat", 1, beat(CONSUMERS, "stranger", 1)),
    (BOTH, "ConsumerGroupDescribe", 1, {"group_ids": ["d"]}),
    (BOTH, "ShareGroupHeartbeat", 1, beat(SHARE, "sharer", 70)),
    (BOTH, "ShareGroupHeartbeat", 1, beat(SHARE, "stranger", 1)),
    (BOTH, "ShareGroupDescribe", 1, {"group_ids": ["j", "g"]}),
    (EVERYBODY, "ShareFetch", 1, share_fetch(0)),
    ((FOLLOWER,), "ShareFetch", 1, share_fetch(0, topic="solo")),
    ((LEADER,), "ShareFetch", 1, share_fetch(5)),
    ((LEADER,), "ShareFetch", 1, share_fetch(1, "stranger")),
    (EVERYBODY, "ShareAcknowledge", 1, acknowledgement(1, 1, 1)),
    ((LEADER,), "ShareAcknowledge", 1, acknowledgement(2, 50, 60)),
    (BOTH, "ReadShareGroupState", 0, share_state(leader_epoch=0)),
    (BOTH, "ReadShareGroupState", 0, share_state(leader_epoch=-1)),
    (BOTH, "ReadShareGroupStateSummary", 0, share_state(leader_epoch=0)),
    (BOTH, "WriteShareGroupState", 0, share_state(state_epoch=-1, leader_epoch=0, start_offset=0)),
    (BOTH, "WriteShareGroupState", 0, share_state(state_epoch=0, leader_epoch=-2, start_offset=0)),
    (BOTH, "DescribeShareGroupOffsets", 0, {
        "groups": [{**SHARE, "topics": [{"topic_name": "t", "partitions": [0]}]}],
    }),
    (BOTH, "AlterShareGroupOffsets", 0, {
        **SHARE, "topics": [{"topic_name": "t", "partitions": [{"partition_index": 0, "start_offset": 1}]}],
    }),
    (BOTH, "DeleteShareGroupOffsets", 0, {**SHARE, "topics": [{"topic_name": "t"}]}),
    (BOTH, "DeleteShareGroupState", 0, share_state()),
    (BOTH, "ReadShareGroupState", 0, share_state(leader_epoch=0)),
    (BOTH, "StreamsGroupHeartbeat", 0, beat(STREAMS, "streamer", 0, **STREAMING)),
    (BOTH, "StreamsGroupHeartbeat", 0, beat(STREAMS, "stranger", 1)),
    (BOTH, "StreamsGroupDescribe", 0, {"group_ids": ["m", "j"]}),
]  # fmt: skip

#: After broker 2 was killed and fenced.
AFTERWARDS: list[tuple[tuple[int, ...], str, int, dict[str, Any]]] = [
    *(
        (SURVIVORS, "Metadata", version, {"topics": [{"name": "t"}, {"name": "solo"}]})
        for version in (0, 1, 4, 5, 7, 9, 12)
    ),
    (SURVIVORS, "DescribeTopicPartitions", 0, {
        "topics": [{"name": "t"}, {"name": "solo"}], "response_partition_limit": 10,
    }),
    (SURVIVORS, "DescribeCluster", 2, {"endpoint_type": 1}),
    (SURVIVORS, "DescribeCluster", 2, {"endpoint_type": 1, "include_fenced_brokers": True}),
    (SURVIVORS, "Produce", 10, produce(1, "solo")),
    ((LEADER,), "Produce", 9, produce(-1)),
    (SURVIVORS, "Fetch", 12, fetch(topic="solo")),
    (SURVIVORS, "ListOffsets", 7, offsets(-1, topic="solo")),
    (SURVIVORS, "OffsetForLeaderEpoch", 4, epoch_end(0, topic="solo")),
    (SURVIVORS, "ElectLeaders", 2, {"topic_partitions": [{"topic": "solo", "partitions": [0]}]}),
    (SURVIVORS, "ElectLeaders", 2, {"election_type": 1, "topic_partitions": [{"topic": "solo", "partitions": [0]}]}),
    *((SURVIVORS, "Fetch", 17, replica_fetch(epoch)) for epoch in (0, -1, 1 << 40, 0)),
    ((LEADER,), "Fetch", 17, replica_fetch(0, replica_id=9)),
]  # fmt: skip


def until(ask: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + WITHIN_S
    while not (answer := ask()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return answer


class Asker:
    """Sends requests to the brokers of a cluster by role, and keeps their responses."""

    def __init__(self, clients: dict[int, Client]) -> None:
        self.clients = clients
        self.found: list[tuple[str, Any]] = []
        self.topic_ids: dict[str, bytes] = {}
        self.coordinators: dict[int, int] = {}

    def ask(self, whom: int, name: str, version: int, **values: Any) -> Any:
        return self.clients[whom].ask(request_of(name, version, self._by_id(values)), version)

    def _by_id(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._by_id(each) for each in value]
        if isinstance(value, dict):
            return {
                name: self.topic_ids[each] if name == "topic_id" else self._by_id(each) for name, each in value.items()
            }
        return value

    def coordinator(self, whom: int, key_type: int) -> int:
        """Returns the coordinator of groups, the transactional id or the share state; 0 if there is none."""
        key = ("g", "x", f"j:{uuid_text(self.topic_ids['t'])}:0")[key_type]
        (found,) = self.ask(whom, "FindCoordinator", 6, key_type=key_type, coordinator_keys=[key]).coordinators
        return 0 if found.error_code else int(found.node_id)

    def watermark(self, whom: int) -> int:
        (topic,) = self.ask(whom, "Fetch", 12, **fetch()).responses
        return int(topic.partitions[0].high_watermark)

    def leader_of_solo(self, whom: int) -> int:
        (topic,) = self.ask(whom, "Metadata", 12, topics=[{"name": "solo"}]).topics
        return int(topic.partitions[0].leader_id) if topic.partitions else 0

    def run(self, requests: list[tuple[tuple[int, ...], str, int, dict[str, Any]]]) -> None:
        for whom, name, version, values in requests:
            at_work = self.coordinators[1 if name == "EndTxn" else 2 if name.endswith(STATE_APIS) else 0]
            for role in whom:
                each = {COORDINATOR: at_work, ANOTHER: at_work % 3 + 1}.get(role, role)
                if name in ("Fetch", "ListOffsets") and each == FOLLOWER:
                    # a follower learns it by its next fetch
                    until(lambda: self.watermark(FOLLOWER) == self.watermark(LEADER))
                answer = comparable(self.ask(each, name, version, **values), LEFT_OUT)
                self.found.append((f"{name} v{version} {brief(values)} to {role}", answer))


def prepare(asker: Asker) -> None:
    """Makes topics, loaded coordinators, and a share group whose member has its partitions."""
    ask = asker.ask
    placed = {"t": [(0, [1, 2, 3]), (1, [2, 3, 1]), (2, [3, 1, 2])], "solo": [(0, [2])]}
    topics = [
        {
            "name": name, "num_partitions": -1, "replication_factor": -1,
            "assignments": [{"partition_index": index, "broker_ids": ids} for index, ids in replicas],
            "configs": [{"name": config, "value": value} for config, value in CONFIGS[name].items()],
        }
        for name, replicas in placed.items()
    ]  # fmt: skip
    created = ask(THIRD, "CreateTopics", 7, topics=topics)
    assert [each.error_code for each in created.topics] == [0, 0]
    asker.topic_ids = {each.name: each.topic_id for each in created.topics}
    earliest = [{"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}]
    ask(LEADER, "IncrementalAlterConfigs", 1, resources=[{
        "resource_type": 32, "resource_name": SHARE["group_id"], "configs": earliest,
    }])  # fmt: skip
    for whom in EVERYBODY:
        until(lambda whom=whom: asker.leader_of_solo(whom))
    for key_type in (0, 1, 2):
        named = {until(partial(asker.coordinator, whom, key_type)) for whom in EVERYBODY}
        assert len(named) == 1
        (asker.coordinators[key_type],) = named
    groups, states = asker.coordinators[0], asker.coordinators[2]
    until(lambda: ask(groups, "DescribeGroups", 5, groups=["g"]).groups[0].error_code == 0)
    unloaded = share_state(leader_epoch=0)
    until(lambda: ask(states, "ReadShareGroupStateSummary", 0, **unloaded).results[0].partitions[0].error_code != 14)
    ask(groups, "ShareGroupHeartbeat", 1, **beat(SHARE, "sharer", 0, **SUBSCRIBED))

    def assigned() -> int:
        (group,) = ask(groups, "ShareGroupDescribe", 1, group_ids=[SHARE["group_id"]]).groups
        (member,) = group.members
        ask(groups, "ShareGroupHeartbeat", 1, **beat(SHARE, "sharer", member.member_epoch))
        return sum(len(topic.partitions) for topic in member.assignment.topic_partitions)

    until(lambda: assigned() == 3)


def answers(home: Path, kind: str) -> list[tuple[str, Any]]:
    """Returns the responses of each broker."""
    with Mixed(home, kind, [kind] * 3) as cluster, contextlib.ExitStack() as stack:
        asker = Asker(
            {node_id: stack.enter_context(Client(node.port, timeout=30)) for node_id, node in cluster.brokers.items()}
        )
        prepare(asker)
        asker.run(REQUESTS)
        cluster.brokers[FOLLOWER].kill()
        for whom in SURVIVORS:
            until(lambda whom=whom: asker.leader_of_solo(whom) == -1)
        asker.run(AFTERWARDS)
        return asker.found


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
