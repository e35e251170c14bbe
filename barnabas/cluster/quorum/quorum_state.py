"""``quorum-state``: the leader and the epoch of the quorum, as this node knows it.

Knows nothing of elections. The file is that of Apache Kafka (``FileQuorumStateStore``), in version 0, which has the
voters, or version 1, where control records of the log have them (KIP-853).
"""

from typing import NamedTuple

from barnabas.cluster.quorum.client import NO_NODE, ReplicaKey
from barnabas.log.files import Files
from barnabas.uuids import uuid_of, uuid_text
from barnabas.wire.types import ZERO_UUID

FILE_NAME = "quorum-state"


class QuorumState(NamedTuple):
    """The content of the file. ``voters`` is None if the log has them."""

    leader_id: int = -1
    leader_epoch: int = 0
    voters: tuple[int, ...] | None = ()
    voted: ReplicaKey | None = None  #: the candidate that this node has voted for in the epoch


class CorruptQuorumState(Exception):
    """The file is damaged: the last epoch is not known."""


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
    """Replaces the file durably, since no epoch may be used twice."""
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
