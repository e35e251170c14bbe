"""The elections of one voter in scenario files: what it is told, and what it answers, stores, sends and becomes.

Knows no rule. tests/scenarios.py reads the files.

    voters 1 2 3                 the voters of the log; this node is 1
    start epoch=4 leader=3       with what quorum-state says; also voted=2
    log 3/10 synced=8            the log ends at offset 10, in epoch 3
    vote 2 epoch=5 end=3/10 pre  a request for a vote; also voter=7, another than this node
    begin 3 epoch=5              BeginQuorumEpoch, and EndQuorumEpoch with its successors
    end 3 epoch=5 2 1
    grant 2 / reject 2 / lose 2  the response to the last request to this node
    hear 3 epoch=5               any message names the leader of an epoch; no leader: 0
    fetched / refused 3          the leader has answered a fetch, or a node refuses connections
    fetch 2 10                   voter 2 fetches from this node, which leads, at an offset
    resign / wait 1.5
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from barnabas.clock import ManualClock
from barnabas.cluster.quorum.client import NO_NODE, ReplicaKey
from barnabas.cluster.quorum.elections import (
    NEVER,
    AskVote,
    BeginEpoch,
    Elected,
    Elections,
    EndEpoch,
    LogEnd,
    Message,
    Nominee,
)
from barnabas.errors import KafkaError
from tests.scenarios import play

SCENARIOS = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))
OWN = ReplicaKey(1)


class World:
    """The voter, its log, and the messages that it has sent."""

    def __init__(self) -> None:
        self.clock, self.ids = ManualClock(), [1, 2, 3]
        self.end, self.synced = LogEnd(0, 0), 0
        self.stored: list[Elected] = []
        self.sent: dict[int, Message] = {}
        self.voter = Elections(OWN, self, self.clock, Random(1))
        self.shown = self._state()

    # ------------------------------------------------------------ surroundings

    def voters(self) -> dict[int, ReplicaKey]:
        return {node_id: ReplicaKey(node_id) for node_id in self.ids}

    def log_end(self) -> LogEnd:
        return self.end

    def synced_offset(self) -> int:
        return self.synced

    def store(self, elected: Elected) -> None:
        self.stored.append(elected)

    # ------------------------------------------------------------ commands

    def command(self, line: str) -> str:
        name, *words = line.split()
        fields = dict(word.split("=") for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        said = getattr(self, f"_{name}")(*plain, **fields)
        lines = [said] if said else []
        for found in (self._stored(), self._messages(), self._stored()):
            lines += found
        state = self._state()
        if state != self.shown:
            self.shown = state
            lines.append(state)
        return "\n".join(lines)

    def _stored(self) -> Iterator[str]:
        yield from (f"stored: {_text(each)}" for each in self.stored)
        self.stored.clear()

    def _messages(self) -> Iterator[str]:
        for message in self.voter.poll():
            node_id = message.voter.node_id
            self.sent[node_id] = message
            match message:
                case AskVote(_, epoch, end, is_pre_vote):
                    kind = "pre-vote" if is_pre_vote else "vote"
                    yield f"to {node_id}: {kind} in epoch {epoch}, with a log up to {end.epoch}/{end.offset}"
                case BeginEpoch(_, epoch):
                    yield f"to {node_id}: begin epoch {epoch}"
                case EndEpoch(_, epoch, successors):
                    yield f"to {node_id}: end epoch {epoch}, successors {[each.node_id for each in successors]}"

    def _state(self) -> str:
        state, due = self.voter.state, self.voter.due
        words = [f"{type(state).__name__} {_text(state.elected)}"]
        if isinstance(state, Nominee):
            words.append(f"granted by {sorted(state.granted)}")
        if self.voter.high_watermark >= 0:
            words.append(f"high watermark {self.voter.high_watermark}")
        words.append("for ever" if due == NEVER else f"until {due:.2f}")
        return ", ".join(words)

    def _voters(self, *ids: str) -> None:
        self.ids = [int(each) for each in ids]
        self.voter.voters_changed()

    def _start(self, epoch: str, leader: str = str(NO_NODE), voted: str = "") -> None:
        self.voter = Elections(OWN, self, self.clock, Random(1))
        self.voter.start(Elected(int(epoch), int(leader), ReplicaKey(int(voted)) if voted else None))

    def _log(self, end: str, synced: str = "") -> None:
        self.end = _end(end)
        self.synced = int(synced or self.end.offset)
        self.voter.advance()

    def _vote(self, node_id: str, pre: str = "", *, epoch: str, end: str = "0/0", voter: str = "1") -> str:
        error, granted = self.voter.vote(
            ReplicaKey(int(node_id)), int(epoch), _end(end), ReplicaKey(int(voter)), pre_vote=pre == "pre"
        )
        return _error(error) or ("granted" if granted else "not granted")

    def _begin(self, node_id: str, *, epoch: str) -> str:
        return _error(self.voter.begin_epoch(int(node_id), int(epoch), OWN)) or "ok"

    def _end(self, node_id: str, *successors: str, epoch: str) -> str:
        keys = [ReplicaKey(int(each)) for each in successors]
        return _error(self.voter.end_epoch(int(node_id), int(epoch), keys)) or "ok"

    def _grant(self, node_id: str) -> None:
        self._answer(int(node_id), granted=True)

    def _reject(self, node_id: str) -> None:
        self._answer(int(node_id), granted=False)

    def _answer(self, node_id: int, *, granted: bool) -> None:
        request = self.sent[node_id]
        assert isinstance(request, AskVote)
        self.voter.voted(node_id, request, granted=granted)

    def _lose(self, node_id: str) -> None:
        self.voter.unanswered(int(node_id))

    def _hear(self, node_id: str, *, epoch: str) -> str:
        return "followed" if self.voter.heard_of(int(node_id) or NO_NODE, int(epoch)) else "ignored"

    def _fetched(self) -> None:
        self.voter.fetched()

    def _refused(self, node_id: str) -> None:
        self.voter.refused(int(node_id))

    def _fetch(self, node_id: str, offset: str) -> None:
        self.voter.copied(int(node_id), int(offset))

    def _resign(self) -> None:
        self.voter.resign()

    def _wait(self, seconds: str) -> None:
        self.clock.advance(float(seconds))


def _end(text: str) -> LogEnd:
    epoch, offset = text.split("/")
    return LogEnd(int(epoch), int(offset))


def _error(error: KafkaError | None) -> str:
    return "" if error is None else type(error).__name__


def _text(elected: Elected) -> str:
    words = f"epoch {elected.epoch}"
    if elected.voted is not None:
        words += f", voted for {elected.voted.node_id}"
    return words if elected.leader_id == NO_NODE else f"{words}, leader {elected.leader_id}"


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path, request: pytest.FixtureRequest) -> None:
    play(path, World().command, rewrite=request.config.getoption("--rewrite"))
