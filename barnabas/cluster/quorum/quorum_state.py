"""``quorum-state``: who leads the quorum of controllers in which epoch, as this node knows it.

Knows nothing of elections. The file is Apache Kafka's (``FileQuorumStateStore``), in
its version 0, which names the voters, or 1, where they are control records of the log (KIP-853).
"""

from typing import NamedTuple

from barnabas.cluster.quorum.client import NO_NODE, ReplicaKey
from barnabas.log.files import Files
from barnabas.uuids import uuid_of, uuid_text
from barnabas.wire.types import ZERO_UUID

FILE_NAME = "quorum-state"


class QuorumState(NamedTuple):
    """The content of the file. ``voters`` is None if the log names them."""

    leader_id: int = -1
    leader_epoch: int = 0
    voters: tuple[int, ...] | None = ()
    voted: ReplicaKey | None = None  #: for whom this node has voted in the epoch


class CorruptQuorumState(Exception):
    """The file is damaged: the last epoch is unknown."""


def read_quorum_state(files: Files, path: str) -> QuorumState | None:
    """Returns the content of the file, None if there is none. :raises CorruptQuorumState: the file is damaged"""
    if not files.exists(path):
        return None
    import json

    try:
        found = json.loads(files.read(path))
        voters = tuple(int(voter["voterId"]) for voter in found.get("currentVoters") or ())
        version = int(found["data_version"])
        voted_id, directory_id = int(found.get("votedId", NO_NODE)), found.get("votedDirectoryId")
        voted = ReplicaKey(voted_id, ZERO_UUID if directory_id is None else uuid_of(directory_id))
        state = QuorumState(
            int(found["leaderId"]),
            int(found["leaderEpoch"]),
            voters if version == 0 else None,
            None if voted_id == NO_NODE else voted,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptQuorumState(f"{path}: {error!r}") from error
    if version not in (0, 1):
        raise CorruptQuorumState(f"{path}: version {version}")
    return state


def write_quorum_state(files: Files, path: str, state: QuorumState) -> None:
    """Replaces the file. It is on the disk on return, since no epoch may be used twice."""
    voted = state.voted or ReplicaKey(NO_NODE)
    if state.voters is None:
        text = (
            f'{{"leaderId":{state.leader_id},"leaderEpoch":{state.leader_epoch},"votedId":{voted.node_id},'
            f'"votedDirectoryId":"{uuid_text(voted.directory_id)}","data_version":1}}'
        )
    else:
        voters = ",".join(f'{{"voterId":{voter}}}' for voter in state.voters)
        text = (
            f'{{"clusterId":"","leaderId":{state.leader_id},"leaderEpoch":{state.leader_epoch},"votedId":{voted.node_id},'
            f'"appliedOffset":0,"currentVoters":[{voters}],"data_version":0}}'
        )
    files.write_atomically(path, text.encode(), sync=True)
