"""The requests of a controller to the leader, which may be itself: its endpoints, or to become a voter (KIP-853).

Knows nothing of how voters change. Apache Kafka's ``KafkaRaftClient.pollFollowerAsVoter`` and
``pollFollowerAsObserver``.
"""

import contextlib
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from barnabas.clock import Scheduler, Timer
from barnabas.cluster.quorum.client import Leadership, ReplicaKey
from barnabas.cluster.quorum.snapshots import KRaftState
from barnabas.cluster.quorum.voter_changes import voters_of
from barnabas.cluster.quorum.voters import LEVELS, Levels, voter_record
from barnabas.config.endpoints import Endpoint
from barnabas.errors import KafkaError
from barnabas.peers.peers import Peers, error_of
from barnabas.wire.message import Request
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.wire.messages.update_raft_voter import UpdateRaftVoterRequest

logger = logging.getLogger(__name__)

LANE = "voters"


class Following(Protocol):
    """The interface of the controller that is used."""

    key: ReplicaKey
    leadership: Leadership
    voter_endpoints: Sequence[Endpoint]

    @property
    def has_vote(self) -> bool: ...

    def latest_voters(self) -> tuple[int, KRaftState]: ...


class Membership:
    """The requests of one controller.

    :param update: handles an update of the leader itself; may raise KafkaError
    :param interval_ms: the time before the request is sent again
    :param joins: whether a controller without a vote adds itself (``controller.quorum.auto.join.enable``)
    """

    def __init__(
        self,
        node: Following,
        peers: Peers,
        scheduler: Scheduler,
        cluster_id: str,
        *,
        update: Callable[[ReplicaKey, Sequence[Endpoint], Levels], object],
        interval_ms: int,
        joins: bool,
    ) -> None:
        self._node = node
        self._peers = peers
        self._scheduler = scheduler
        self._cluster_id = cluster_id
        self._update_voter = update
        self._interval_s = interval_ms / 1000
        self._joins = joins
        self._timer: Timer | None = None
        self._knows_in_memory = False  # whether the leader has responded while the log has no voters

    def follow(self) -> None:
        """Starts to report to a new leader."""
        self.stop()
        self._knows_in_memory = False
        self._timer = self._scheduler.call_later(0, self._report)

    def stop(self) -> None:
        """Stops to report."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _report(self) -> None:
        """Sends the leader what it does not know of this node, and checks again later, as the voters may change."""
        self._timer = self._scheduler.call_later(self._interval_s, self._report)
        request = self._request()
        leader_id = self._node.leadership.leader_id
        if isinstance(request, UpdateRaftVoterRequest) and leader_id == self._node.key.node_id:
            with contextlib.suppress(KafkaError):  # the change before is not committed yet
                self._update_voter(self._node.key, self._node.voter_endpoints, LEVELS)
        elif request is not None:
            done: Callable[[Any, KafkaError | None], object] = partial(self._answered, request)
            self._peers.send(leader_id, request, done, lane=LANE)

    def _answered(self, request: Request, response: Any, error: KafkaError | None) -> None:
        if response is not None:
            error = error_of(response.error_code)
        if error is None:
            self._knows_in_memory = True
        else:
            logger.info("The leader of the metadata quorum refuses %s: %r", type(request).__name__, error)

    def _request(self) -> Request | None:
        """Returns the next request; None if there is nothing to report."""
        node = self._node
        _, kraft = node.latest_voters()
        voters = voters_of(kraft)
        if node.has_vote:
            own = voter_record(node.key, node.voter_endpoints)
            is_known = voters[node.key.node_id] == own if kraft.version else self._knows_in_memory
            return None if is_known or not node.voter_endpoints else self._update()
        if not self._joins or not kraft.version or not node.voter_endpoints:
            return None
        before = voters.get(node.key.node_id)  # its disk was replaced: the old voter is removed first
        if before is not None:
            return RemoveRaftVoterRequest(
                cluster_id=self._cluster_id, voter_id=before.voter_id, voter_directory_id=before.voter_directory_id
            )
        return AddRaftVoterRequest(
            cluster_id=self._cluster_id,
            timeout_ms=round(self._interval_s * 1000),
            voter_id=node.key.node_id,
            voter_directory_id=node.key.directory_id,
            listeners=[
                AddRaftVoterRequest.Listener(name=each.name, host=each.host, port=each.port)
                for each in node.voter_endpoints
            ],
            ack_when_committed=False,
        )

    def _update(self) -> UpdateRaftVoterRequest:
        node, kind = self._node, UpdateRaftVoterRequest
        return kind(
            cluster_id=self._cluster_id,
            current_leader_epoch=node.leadership.epoch,
            voter_id=node.key.node_id,
            voter_directory_id=node.key.directory_id,
            listeners=[kind.Listener(name=each.name, host=each.host, port=each.port) for each in node.voter_endpoints],
            kraft_version_feature=kind.KRaftVersionFeature(
                min_supported_version=LEVELS.first, max_supported_version=LEVELS.last
            ),
        )
