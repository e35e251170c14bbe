"""The votes that voters of the quorum grant each other, read from the requests and responses on the network.

Knows nothing of the voters' states: only responses count, before and after restarts.
"""

from collections.abc import Callable
from typing import NamedTuple

from barnabas.wire.frames import decode_request, decode_response, frames_in
from barnabas.wire.messages.vote import VoteRequest
from tests.simulation.cluster import SimulatedCluster
from tests.simulation.network import Stream

VOTE = VoteRequest.api_key.to_bytes(2)


class Granted(NamedTuple):
    """A vote. A candidate votes for itself. :param voter: its node's name"""

    voter: str
    epoch: int
    candidate: int


class Requested(NamedTuple):
    """A Vote request that is not a pre-vote."""

    epoch: int
    candidate: int
    version: int


class Votes:
    """All votes of a cluster.

    A voter grants one vote an epoch: it has fsynced it before it answers (KIP-595), so neither a restart nor a power
    cut lets it grant another one. Only an older copy of its disk makes it forget; that one begins anew.
    """

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.doubled: list[str] = []  #: the votes that were granted to two candidates
        self.listeners: list[Callable[[Granted], object]] = []
        self._cluster = cluster
        self._requests: dict[int, dict[int, Requested]] = {}  # by connection and correlation id
        self._granted: dict[tuple[str, int, int], int] = {}  # by voter, its disk and epoch
        cluster.network.watchers.append(self._sent)

    def _sent(self, stream: Stream, data: bytes) -> None:
        if not stream.is_accepted:
            if data[4:6] == VOTE:
                self._ask(stream, data[4:])
        elif stream.port in self._requests:
            for frame in frames_in(data):
                self._answer(stream, frame)

    def _ask(self, stream: Stream, frame: bytes) -> None:
        found = decode_request(frame, {VoteRequest.api_key: VoteRequest})
        assert isinstance(found.request, VoteRequest)
        part = found.request.topics[0].partitions[0]
        if not part.pre_vote:
            wanted = Requested(part.replica_epoch, part.replica_id, found.version)
            self._requests.setdefault(stream.port, {})[found.correlation_id] = wanted
            self._grant(Granted(stream.life.name, wanted.epoch, wanted.candidate))

    def _answer(self, stream: Stream, frame: bytes) -> None:
        wanted = self._requests[stream.port].pop(int.from_bytes(frame[:4]), None)
        if wanted is None:
            return
        answer = decode_response(frame, VoteRequest, wanted.version).response
        assert isinstance(answer, VoteRequest.response)
        if any(part.vote_granted for topic in answer.topics for part in topic.partitions):
            self._grant(Granted(stream.life.name, wanted.epoch, wanted.candidate))

    def _grant(self, vote: Granted) -> None:
        disk = self._cluster.nodes[int(vote.voter)].disk
        other = self._granted.setdefault((vote.voter, disk, vote.epoch), vote.candidate)
        if other != vote.candidate:
            self.doubled.append(f"{vote.voter} votes for {other} and {vote.candidate} in epoch {vote.epoch}")
        if vote.voter != str(vote.candidate):
            self._cluster.network.say(f"{vote.voter} grants its vote to {vote.candidate} in epoch {vote.epoch}")
            for listener in list(self.listeners):
                listener(vote)
