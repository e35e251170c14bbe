"""Fetch, FetchSnapshot and DescribeQuorum to Apache Kafka's controller and to ours: all errors are equal."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.clock import SystemClock
from barnabas.cluster.quorum.fetching import Identity, fetch_request, snapshot_request
from barnabas.cluster.quorum.metadata_log import TOPIC_ID
from barnabas.cluster.quorum.snapshots import SnapshotId
from barnabas.config import BrokerConfig
from barnabas.config.endpoints import Endpoint
from barnabas.log.follower import Position
from barnabas.peers.network import NetworkPeers
from barnabas.wire.message import Request
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotRequest

from .apache import ApacheController
from .observing import CLUSTER_ID, Controller

pytestmark = pytest.mark.xdist_group("quorum")  # it starts its own brokers

IDENTITY = Identity(7, CLUSTER_ID, bytes([7]) * 16)
PAST_THE_END = 1 << 40


def fetch(
    offset: int = 0, last_epoch: int = 0, epoch: int = 1, high_watermark: int | None = None, **fields: Any
) -> FetchRequest:
    identity = fields.pop("identity", IDENTITY)
    made = fetch_request(
        identity, epoch, Position(offset, last_epoch), high_watermark=high_watermark, max_bytes=1 << 20
    )
    for name, value in {"max_wait_ms": 0, **fields}.items():
        setattr(made, name, value)
    return made


def topic(topic_id: bytes = TOPIC_ID, *partitions: int) -> FetchRequest.FetchTopic:
    kind = FetchRequest.FetchTopic
    wanted = [kind.FetchPartition(partition=each, fetch_offset=0, partition_max_bytes=0) for each in partitions]
    return kind(topic_id=topic_id, partitions=wanted)


def piece(snapshot_id: SnapshotId = SnapshotId(1, 1), epoch: int = 1, position: int = 0, **fields: Any) -> Request:  # noqa: B008
    name, cluster_id = fields.get("name", "__cluster_metadata"), fields.get("cluster_id", CLUSTER_ID)
    identity = IDENTITY._replace(cluster_id=cluster_id)
    made = snapshot_request(identity, epoch, snapshot_id, position=position, max_bytes=1 << 20)
    made.topics[0].name = name
    made.topics[0].partitions[0].partition = fields.get("partition", 0)
    return made


def describe(*topics: tuple[str, list[int]]) -> DescribeQuorumRequest:
    kind = DescribeQuorumRequest.TopicData
    return DescribeQuorumRequest(
        topics=[
            kind(topic_name=name, partitions=[kind.PartitionData(partition_index=each) for each in indexes])
            for name, indexes in topics
        ]
    )


REQUESTS: dict[str, Request] = {
    "records": fetch(),
    "another cluster": fetch(cluster_id="x"),
    "any cluster": fetch(cluster_id=None),
    "an epoch that has passed": fetch(epoch=0),
    "an epoch to come": fetch(epoch=9),
    "no epoch": fetch(epoch=-1),
    "a negative offset": fetch(-1),
    "a negative last epoch": fetch(last_epoch=-1),
    "a last epoch after the leader's": fetch(last_epoch=2),
    "a negative wait": fetch(max_wait_ms=-1),
    "past the end": fetch(PAST_THE_END, 1),
    "past the end of an epoch": fetch(PAST_THE_END, 0),
    "an epoch that does not exist": fetch(5, 0),
    "in the middle of a batch": fetch(3, 1),
    "no replica": fetch(identity=IDENTITY._replace(node_id=-1)),
    "the leader itself": fetch(identity=IDENTITY._replace(node_id=1)),
    "no topic": fetch(topics=[]),
    "another topic": fetch(topics=[topic(bytes([1]) * 16, 0)]),
    "another partition": fetch(topics=[topic(TOPIC_ID, 1)]),
    "no partition": fetch(topics=[topic(TOPIC_ID)]),
    "two partitions": fetch(topics=[topic(TOPIC_ID, 0, 1)]),
    "a partition without epochs": fetch(topics=[topic(TOPIC_ID, 0)]),
    "a snapshot that is not there": piece(),
    "the snapshot of the formatting": piece(SnapshotId(0, 0)),
    "a snapshot in another epoch": piece(epoch=0),
    "a snapshot in an epoch to come": piece(epoch=2),
    "a snapshot of another cluster": piece(cluster_id="x"),
    "a snapshot of another topic": piece(name="x"),
    "a snapshot of another partition": piece(partition=1),
    "another topic's quorum": describe(("x", [0])),
    "another partition's quorum": describe(("__cluster_metadata", [1])),
    "two quorums": describe(("__cluster_metadata", [0]), ("x", [0])),
    "no quorum": describe(),
}


class Asking:
    """Sends requests to a controller."""

    node_id = 7

    def __init__(self, port: int) -> None:
        self.cluster_clock, self.cluster_scheduler = SystemClock(), asyncio.get_running_loop()
        self.config = BrokerConfig.from_properties({"node.id": "7"})
        self.peers = NetworkPeers(self, lambda _: Endpoint("CONTROLLER", "127.0.0.1", port, "PLAINTEXT"))

    async def __call__(self, request: Request) -> Any:
        answered: asyncio.Future[Any] = self.cluster_scheduler.create_future()
        self.peers.send(1, request, lambda response, error: answered.set_result(response or error), timeout_ms=10_000)
        return await answered


def shape(answer: Any) -> Any:
    """Returns the comparable part of a response; sizes differ, since the logs do."""
    if isinstance(answer, Exception):
        return repr(answer)
    answer.node_endpoints = [(each.node_id, each.host) for each in getattr(answer, "node_endpoints", ())]
    for found in getattr(answer, "responses", ()):
        for each in found.partitions:
            each.records = bool(each.records)
            each.high_watermark = each.high_watermark > 0
            each.diverging_epoch = each.diverging_epoch.epoch
    return repr(answer)


@pytest.fixture(params=[False, True], ids=["static", "dynamic"])
def ports(request: pytest.FixtureRequest, kafka_jars: Path, tmp_path: Path) -> Iterator[tuple[int, int]]:
    """Returns the addresses of our controller and of theirs."""
    ours = Controller(tmp_path / "ours", standalone=request.param)
    theirs = ApacheController(tmp_path / "theirs", standalone=request.param)
    theirs.cluster_id = CLUSTER_ID
    try:
        with theirs:
            ours.start()
            yield ours.port, theirs.port
        assert ours.complaints() == []
    finally:
        ours.kill()


def test_every_answer_is_alike(ports: tuple[int, int]) -> None:
    async def scene() -> dict[str, tuple[Any, Any]]:
        found = {}
        both = [Asking(port) for port in ports]
        for name, request in REQUESTS.items():
            ours, theirs = [shape(await ask(request)) for ask in both]
            found[name] = (ours, theirs)
        for ask in both:
            ask.peers.close()
        return found

    found = asyncio.run(scene())
    different = {name: each for name, each in found.items() if each[0] != each[1]}
    # Apache Kafka cannot encode an error of FetchSnapshot: its records are null, which the schema forbids. Its
    # followers understand our response.
    theirs = {each[1] for name, each in different.items() if isinstance(REQUESTS[name], FetchSnapshotRequest)}
    assert theirs == {"FetchSnapshotResponse(error_code=-1, topics=[], node_endpoints=[])"}
    assert [name for name in different if not isinstance(REQUESTS[name], FetchSnapshotRequest)] == []
