"""AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter to a controller of Apache Kafka and to ours: the same errors.

Each is its own quorum, whose voters are in the metadata log.
"""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.wire.message import Request
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.wire.messages.update_raft_voter import UpdateRaftVoterRequest
from barnabas.wire.types import ZERO_UUID
from compat_tests.ports import free_port

from .mixed import APACHE, BARNABAS, CLUSTER_ID, Node
from .test_quorum_answers import Asking

pytestmark = pytest.mark.xdist_group("quorum")  # it starts its own nodes

NEW = bytes([9]) * 16
NOWHERE = 1  #: a port without a listener


def add(voter_id: int = 9, directory_id: bytes = NEW, **fields: Any) -> AddRaftVoterRequest:
    listener = AddRaftVoterRequest.Listener(name=fields.get("listener", "CONTROLLER"), host="127.0.0.1", port=NOWHERE)
    return AddRaftVoterRequest(
        cluster_id=fields.get("cluster_id", CLUSTER_ID),
        timeout_ms=1000,
        voter_id=voter_id,
        voter_directory_id=directory_id,
        listeners=fields.get("listeners", [listener]),
    )


def remove(voter_id: int = 9, directory_id: bytes = NEW, cluster_id: str | None = CLUSTER_ID) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(cluster_id=cluster_id, voter_id=voter_id, voter_directory_id=directory_id)


def update(voter_id: int = 9, directory_id: bytes = NEW, epoch: int = 1, **fields: Any) -> UpdateRaftVoterRequest:
    kind = UpdateRaftVoterRequest
    first, last = fields.get("levels", (0, 1))
    return kind(
        cluster_id=fields.get("cluster_id", CLUSTER_ID),
        current_leader_epoch=epoch,
        voter_id=voter_id,
        voter_directory_id=directory_id,
        listeners=[kind.Listener(name=fields.get("listener", "CONTROLLER"), host="127.0.0.1", port=NOWHERE)],
        kraft_version_feature=kind.KRaftVersionFeature(min_supported_version=first, max_supported_version=last),
    )


REQUESTS: dict[str, Request] = {
    "a voter of another cluster": add(cluster_id="x"),
    "a voter without a directory": add(directory_id=ZERO_UUID),
    "a voter without an id": add(-1),
    "a voter without listeners": add(listeners=[]),
    "a voter with another listener": add(listener="OTHER"),
    "a voter that is one": add(1),
    "no voter is removed of another cluster": remove(cluster_id="x"),
    "no voter is removed without a directory": remove(directory_id=ZERO_UUID),
    "no voter is removed without an id": remove(-1),
    "no voter is removed that is none": remove(),
    "no voter is removed with another directory": remove(1),
    "no voter is updated of another cluster": update(cluster_id="x"),
    "no voter is updated in an epoch that has passed": update(epoch=0),
    "no voter is updated in an epoch to come": update(epoch=7),
    "no voter is updated without an id": update(-1),
    "no voter is updated without a directory": update(directory_id=ZERO_UUID),
    "no voter is updated that is none": update(),
    "no voter is updated with another directory": update(1),
    "no voter is updated that is too old": update(levels=(0, 0)),
    "no voter is updated that is too new": update(levels=(2, 3)),
    "no voter is updated without the listener": update(listener="OTHER"),
}


@pytest.fixture
def both(kafka_jars: Path, tmp_path: Path) -> Iterator[tuple[Node, Node]]:
    made = []
    for kind in (BARNABAS, APACHE):
        port = free_port()
        address = f"127.0.0.1:{port}"
        properties = {
            "process.roles": "controller",
            "node.id": "1",
            "listeners": f"CONTROLLER://{address}",
            "controller.quorum.bootstrap.servers": address,
        }
        node = Node(kind, tmp_path / kind, properties, port)
        node.format_options = ("--standalone",)
        made.append(node)
    try:
        for node in made:
            node.start()
        yield made[0], made[1]
    finally:
        for node in made:
            node.kill()


def shape(answer: Any) -> str:
    """Returns a response without what differs between two nodes: ports, and their directory ids."""
    if hasattr(answer, "current_leader"):
        answer.current_leader.port = answer.current_leader.port > 0
    return re.sub(r"(?<=id=1, directoryId=)[-\w]{22}", "its own", repr(answer))


def test_every_refusal_is_alike(both: tuple[Node, Node]) -> None:
    async def scene() -> list[list[str]]:
        found = []
        for node in both:
            ask = Asking(node.port)
            found.append([shape(await ask(request)) for request in REQUESTS.values()])
            ask.peers.close()
        return found

    answers = asyncio.run(scene())
    different = [each for each in zip(REQUESTS, *answers, strict=True) if each[1] != each[2]]
    assert different == [], "\n".join(map(str, different))
    assert both[0].errors() == []
