"""Vote, BeginQuorumEpoch and EndQuorumEpoch to a controller of Apache Kafka and to ours: all responses are equal.

Each is the first of three voters; this test plays the others. Time-outs are so long that neither begins an election.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.uuids import uuid_text
from barnabas.wire.message import Request
from barnabas.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from barnabas.wire.messages.end_quorum_epoch import EndQuorumEpochRequest
from barnabas.wire.messages.vote import VoteRequest
from barnabas.wire.types import ZERO_UUID
from compat_tests.ports import free_port

from .mixed import APACHE, BARNABAS, CLUSTER_ID, Node
from .test_quorum_answers import Asking

pytestmark = pytest.mark.xdist_group("quorum")  # it starts its own nodes

SLOW = {
    "controller.quorum.election.timeout.ms": "120000",
    "controller.quorum.fetch.timeout.ms": "120000",
}
LOG = "__cluster_metadata"


def directory(node_id: int) -> bytes:
    return bytes([node_id]) * 16


def vote(candidate: int, epoch: int, end: tuple[int, int] = (0, 0), **fields: Any) -> VoteRequest:
    kind = VoteRequest.TopicData
    partition = kind.PartitionData(
        partition_index=fields.get("partition", 0),
        replica_epoch=epoch,
        replica_id=candidate,
        replica_directory_id=fields.get("directory", directory(max(candidate, 0))),
        voter_directory_id=fields.get("voter_directory", ZERO_UUID),
        last_offset_epoch=end[0],
        last_offset=end[1],
        pre_vote=fields.get("pre_vote", False),
    )
    topics = [kind(topic_name=fields.get("topic", LOG), partitions=[partition])] * fields.get("times", 1)
    return VoteRequest(cluster_id=fields.get("cluster_id", CLUSTER_ID), voter_id=fields.get("voter", 1), topics=topics)


def begin(leader: int, epoch: int, **fields: Any) -> BeginQuorumEpochRequest:
    kind = BeginQuorumEpochRequest
    partition = kind.TopicData.PartitionData(
        partition_index=fields.get("partition", 0),
        voter_directory_id=fields.get("voter_directory", ZERO_UUID),
        leader_id=leader,
        leader_epoch=epoch,
    )
    return kind(
        cluster_id=fields.get("cluster_id", CLUSTER_ID),
        voter_id=fields.get("voter", 1),
        topics=[kind.TopicData(topic_name=fields.get("topic", LOG), partitions=[partition])],
        leader_endpoints=[kind.LeaderEndpoint(name="CONTROLLER", host="127.0.0.1", port=9)],
    )


def end(leader: int, epoch: int, *successors: int, **fields: Any) -> EndQuorumEpochRequest:
    kind = EndQuorumEpochRequest
    partition = kind.TopicData.PartitionData(
        partition_index=fields.get("partition", 0),
        leader_id=leader,
        leader_epoch=epoch,
        preferred_candidates=[
            kind.TopicData.PartitionData.ReplicaInfo(candidate_id=each, candidate_directory_id=directory(each))
            for each in successors
        ],
    )
    return kind(
        cluster_id=fields.get("cluster_id", CLUSTER_ID),
        topics=[kind.TopicData(topic_name=fields.get("topic", LOG), partitions=[partition])],
        leader_endpoints=[kind.LeaderEndpoint(name="CONTROLLER", host="127.0.0.1", port=9)],
    )


def script(known: bytes) -> list[Request]:
    """The requests, in order.

    :param known: the voters' directory id
    """
    return [
        vote(2, 1, cluster_id="x", voter_directory=known),
        vote(2, 1, cluster_id=None, pre_vote=True, voter_directory=known),
        vote(2, 1, topic="x", voter_directory=known),
        vote(2, 1, partition=1, voter_directory=known),
        vote(2, 1, times=0),
        vote(2, 0, pre_vote=True, voter_directory=known),
        vote(2, 0, voter_directory=known),
        vote(3, 1, (1, 0), pre_vote=True, voter_directory=known),
        vote(3, 1, (2, 0), pre_vote=True, voter_directory=known),
        vote(3, 1, (1, 0), voter_directory=known),
        vote(3, 1, (-1, 0), voter_directory=known),
        vote(3, 1, (0, -1), voter_directory=known),
        vote(3, -1, voter_directory=known),
        vote(-1, 3, voter_directory=known),
        vote(2, 2, voter=2, voter_directory=known),
        vote(2, 3, voter_directory=directory(9)),
        vote(2, 4, voter=-1),
        vote(2, 5, voter_directory=known),
        vote(2, 5, voter_directory=known),
        vote(3, 5, voter_directory=known),
        vote(3, 5, pre_vote=True, voter_directory=known),
        vote(2, 5, directory=directory(9), voter_directory=known),
        vote(2, 4, voter_directory=known),
        vote(7, 6, voter_directory=known),
        begin(2, 5, voter_directory=known),
        begin(2, 6, cluster_id="x", voter_directory=known),
        begin(2, 6, topic="x", voter_directory=known),
        begin(2, 6, partition=1, voter_directory=known),
        begin(-1, 6, voter_directory=known),
        begin(2, 7, voter=3, voter_directory=known),
        begin(2, 8, voter_directory=directory(9)),
        begin(2, 9, voter_directory=known),
        begin(2, 9, voter_directory=known),
        begin(2, 9, voter=-1),
        vote(3, 9, voter_directory=known),
        vote(3, 9, pre_vote=True, voter_directory=known),
        vote(3, 10, pre_vote=True, voter_directory=known),
        begin(3, 10, voter_directory=known),
        end(3, 9, 2),
        end(3, 10, 2, cluster_id="x"),
        end(3, 10, 2, topic="x"),
        end(3, 10, 2, partition=1),
        end(-1, 10, 2),
        end(3, 10, 2, 3),
        vote(3, 10, voter_directory=known),
        vote(2, 11, voter_directory=known),
        end(2, 12, 3),
        vote(3, 12, voter_directory=known),
        vote(3, 13, voter_directory=known),
    ]


@pytest.fixture(params=[False, True], ids=["static", "dynamic"])
def both(request: pytest.FixtureRequest, kafka_jars: Path, tmp_path: Path) -> Iterator[tuple[Node, Node, bool]]:
    """Yields a controller of each kind, and whether the metadata log has the voters."""
    nodes = []
    for kind in (BARNABAS, APACHE):
        ports = {node_id: free_port() for node_id in (1, 2, 3)}
        addresses = {node_id: f"127.0.0.1:{port}" for node_id, port in ports.items()}
        voters = {"controller.quorum.voters": ",".join(f"{node_id}@{each}" for node_id, each in addresses.items())}
        if request.param:
            voters = {"controller.quorum.bootstrap.servers": addresses[1]}
        roles = {"process.roles": "controller", "node.id": "1", "listeners": f"CONTROLLER://{addresses[1]}"}
        node = Node(kind, tmp_path / kind, {**roles, **voters, **SLOW}, ports[1])
        if request.param:
            first = [f"{number}@{address}:{uuid_text(directory(number))}" for number, address in addresses.items()]
            node.format_options = ("--initial-controllers", ",".join(first))
        nodes.append(node)
    try:
        for node in nodes:
            node.start()
        yield nodes[0], nodes[1], request.param
    finally:
        for node in nodes:
            node.kill()


def shape(answer: Any) -> str:
    """Returns a response without what differs between two nodes: ports, and endpoints of missing nodes."""
    if not isinstance(answer, Exception):
        answer.node_endpoints = [(each.node_id, each.host) for each in answer.node_endpoints]
    return repr(answer)


def test_every_answer_is_alike(both: tuple[Node, Node, bool]) -> None:
    ours, theirs, dynamic = both
    requests = script(directory(1) if dynamic else ZERO_UUID)

    async def scene() -> list[list[str]]:
        found = []
        for node in (ours, theirs):
            ask = Asking(node.port)
            found.append([shape(await ask(request)) for request in requests])
            ask.peers.close()
        return found

    answers = asyncio.run(scene())
    different = [each for each in zip(requests, *answers, strict=True) if each[1] != each[2]]
    assert different == [], "\n".join(map(str, different))
    assert ours.errors() == []
