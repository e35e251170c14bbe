"""Checks the files that only the metadata log has: metadata snapshots and ``quorum-state``.

Knows nothing of the log's batches, which are checked as those of every partition.
"""

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from barnabas.cli.checking import texts
from barnabas.cli.checking.findings import Findings
from barnabas.cli.checking.partitions import Extent
from barnabas.cli.checking.scanning import scan
from barnabas.cluster.quorum.snapshots import decode_snapshot, parse_file_name
from barnabas.errors import CorruptMessage

QUORUM_STATE = "quorum-state"
_FIELDS = (
    ("clusterId", "leaderId", "leaderEpoch", "votedId", "appliedOffset", "currentVoters", "data_version"),
    ("leaderId", "leaderEpoch", "votedId", "votedDirectoryId", "data_version"),
)


def check(directory: Path, extent: Extent, node_id: int | None, findings: Findings, *, is_clean: bool) -> None:
    """Checks metadata snapshots and ``quorum-state``.

    :param extent: of the metadata log
    :raises OSError: a file cannot be read
    """
    for path in sorted(directory.glob("*.checkpoint")):
        check_snapshot(path, findings)
        snapshot = parse_file_name(path.name)
        if snapshot is None:
            findings.warning("unknown", str(path), "its name is not that of a snapshot")
        elif not extent.first_offset <= snapshot.end_offset <= extent.end_offset:
            text = f"it ends at {snapshot.end_offset}, but the log goes from {extent.first_offset}"
            findings.error("snapshot", str(path), f"{text} to {extent.end_offset}")
        else:
            epoch = epoch_of(extent, snapshot.end_offset - 1)
            if epoch is not None and epoch != snapshot.epoch:
                text = f"it is of epoch {snapshot.epoch}, but the log has epoch {epoch} at its end"
                findings.error("snapshot", str(path), text)
    _check_state(directory / QUORUM_STATE, extent, node_id, findings, is_clean)


def epoch_of(extent: Extent, offset: int) -> int | None:
    """Returns the leader epoch of an offset; None if it is unknown."""
    slot = bisect_right([start for _, start in extent.epochs], offset) - 1
    return extent.epochs[slot][0] if slot >= 0 else None


def check_snapshot(path: Path, findings: Findings) -> None:
    """Checks a metadata snapshot: batches in order, of one epoch, that begin with a header and end with a footer."""
    name, expected, epochs = str(path), 0, set()
    before = findings.counts.total()

    def damaged(kind: str, position: int, offset: int | None, what: str) -> None:
        findings.error(kind, name, what, position, offset)

    for batch in scan(name, (), damaged, lambda size: None):
        if batch.base_offset != expected:
            text = f"the batch has offset {batch.base_offset}, but {expected} should follow"
            findings.error("order", name, text, batch.position, batch.base_offset)
        expected = batch.last_offset + 1
        epochs.add(batch.leader_epoch)
    snapshot = parse_file_name(path.name)
    wanted = {snapshot.epoch} if snapshot is not None else {0}
    if epochs - wanted:
        text = f"its batches are of epochs {sorted(epochs)}, not {sorted(wanted)}"
        findings.error("epoch", name, text)
    if findings.counts.total() == before:
        try:
            decode_snapshot(path.read_bytes())
        except CorruptMessage as error:
            findings.error("snapshot", name, str(error))


def _check_state(path: Path, extent: Extent, node_id: int | None, findings: Findings, is_clean: bool) -> None:
    if not path.exists():
        findings.warning("missing", str(path), "it is missing; the vote is unknown")
        return
    state = texts.read_json(path, findings)
    if state is None:
        return
    version = state.get("data_version")
    if version not in (0, 1) or sorted(state) != sorted(_FIELDS[version]):
        findings.error("quorum-state", str(path), f"version {version!r} with {', '.join(state)}")
        return
    for text in _contradictions(state, extent, node_id, is_clean):
        findings.error("quorum-state", str(path), text)


def _contradictions(state: dict[str, Any], extent: Extent, node_id: int | None, is_clean: bool) -> Iterator[str]:
    """Yields contradictions of ``quorum-state`` to the log and its owner. In version 1, the voters are in the log."""
    epoch, leader, voted = state["leaderEpoch"], state["leaderId"], state["votedId"]
    latest = extent.epochs[-1][0] if extent.epochs else 0
    if not isinstance(epoch, int) or epoch < latest or (is_clean and leader == node_id and epoch != latest):
        yield f"the leader epoch is {epoch!r}, but the log's latest is {latest}"
    if state["data_version"] == 1:
        if texts.uuid_of(str(state["votedDirectoryId"])) is None:
            yield f"the directory voted for is {state['votedDirectoryId']!r}"
        if not all(isinstance(each, int) and each >= -1 for each in (leader, voted)):
            yield f"the leader is {leader!r}, and the vote is for {voted!r}"
        return
    if state["clusterId"] != "" or state["appliedOffset"] != 0:
        yield f"cluster {state['clusterId']!r} and applied offset {state['appliedOffset']!r}, which are never set"
    try:
        voters = [int(voter["voterId"]) for voter in state["currentVoters"]]
    except (TypeError, KeyError, ValueError):
        yield f"the voters are {state['currentVoters']!r}"
        return
    if node_id is not None and node_id not in voters:
        yield f"the voters are {voters}, but this is node {node_id}"
    for name, value in (("leader", leader), ("vote", voted)):
        if value not in (-1, *voters):
            yield f"the {name} is {value!r}, but the voters are {voters}"
