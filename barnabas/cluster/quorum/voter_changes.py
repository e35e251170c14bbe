"""Changes of the voters by the leader: one at a time, each a control record (KIP-853).

Knows nothing of requests, nor of how records are committed. The checks, their order and their messages are those of
Apache Kafka's ``AddVoterHandler``, ``RemoveVoterHandler`` and ``UpdateVoterHandler``.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from barnabas.clock import Clock, Scheduler, Timer
from barnabas.cluster.features import KRAFT_VERSION
from barnabas.cluster.quorum.client import ReplicaKey
from barnabas.cluster.quorum.controllers import Controllers
from barnabas.cluster.quorum.leader_log import Replica
from barnabas.cluster.quorum.snapshots import KRaftState
from barnabas.cluster.quorum.voters import Levels, Voter, voter_record
from barnabas.config.endpoints import Endpoint
from barnabas.errors import (
    DuplicateVoter,
    InvalidRequest,
    KafkaError,
    NotLeaderOrFollower,
    RequestTimedOut,
    UnsupportedVersion,
    VoterNotFound,
)
from barnabas.peers.peers import Peers
from barnabas.records.control import ControlRecordType
from barnabas.uuids import uuid_text
from barnabas.wire.message import Message
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.control_records import VotersRecord

logger = logging.getLogger(__name__)

LANE = "voters"
CAUGHT_UP_MS = 3_600_000
"""A new voter must have been caught up within this time (``LeaderState.isReplicaCaughtUp``)."""

Done = Callable[[KafkaError | None], object]


class Leading(Protocol):
    """The interface of the leader that is used."""

    key: ReplicaKey

    @property
    def high_watermark(self) -> int | None: ...

    @property
    def is_elected(self) -> bool: ...

    def latest_voters(self) -> tuple[int, KRaftState]:
        """Returns the offset of the last record with voters, and the state of the quorum at the log's end."""

    def replica(self, key: ReplicaKey) -> Replica | None:
        """Returns the progress of a replica; None if it has not fetched."""

    def heard_from(self, key: ReplicaKey) -> None:
        """Counts a voter among those that follow this leader."""

    def append_control(self, records: Sequence[tuple[ControlRecordType, Message, int]]) -> int: ...

    def resign_soon(self) -> None:
        """Resigns in the next turn: the leader is no voter any more."""


class Pending:
    """A change in progress."""

    def __init__(self, done: Done) -> None:
        self.done: Done | None = done
        self.last_offset: int | None = None  #: the offset of its record; None before it is appended
        self.timer: Timer

    def finish(self, error: KafkaError | None) -> None:
        self.timer.cancel()
        done, self.done = self.done, None
        if done is not None:
            done(error)


class VoterChanges:
    """The changes of one leader.

    :param timeout_ms: the maximum time that a new voter is waited for, and that a change takes
    """

    def __init__(
        self,
        leader: Leading,
        controllers: Controllers,
        peers: Peers,
        *,
        clock: Clock,
        scheduler: Scheduler,
        timeout_ms: int,
    ) -> None:
        self._leader = leader
        self._controllers = controllers
        self._peers = peers
        self._clock = clock
        self._scheduler = scheduler
        self._timeout_ms = timeout_ms
        self._pending: Pending | None = None
        self.in_memory: dict[int, Voter] = {}  #: voters with known directories while the log has no voters

    # ------------------------------------------------------------ events of the leader

    def committed(self) -> None:
        """Completes the change that the high watermark has passed. A leader that is no voter any more resigns.

        It resigns even if its removal took longer than the request for it. Apache Kafka's leader goes on then, since
        only the request in progress has it resign (``RemoveVoterHandler.highWatermarkUpdated``); it cannot be added
        again, as a leader is no observer that has caught up.
        """
        high_watermark = self._leader.high_watermark
        if high_watermark is None:
            return
        if self._pending is not None and self._pending.last_offset is not None:
            if high_watermark <= self._pending.last_offset:
                return
            self._end(None)
        offset, kraft = self._leader.latest_voters()
        if kraft.voters is not None and offset < high_watermark and self._leader.key.node_id not in voters_of(kraft):
            self._leader.resign_soon()

    def lost(self) -> None:
        """Fails the change, since another node leads."""
        self.in_memory.clear()
        self._end(NotLeaderOrFollower())

    def _begin(self, done: Done) -> Pending:
        pending = self._pending = Pending(done)
        pending.timer = self._scheduler.call_later(self._timeout_ms / 1000, self._end, RequestTimedOut())
        return pending

    def _end(self, error: KafkaError | None) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.finish(error)

    # ------------------------------------------------------------ checks

    def _checked(self, what: str) -> KRaftState:
        """Returns the current voters.

        :raises RequestTimedOut: another change is in progress, or the log's end is not committed yet
        :raises UnsupportedVersion: the log has no voters
        """
        if self._pending is not None:
            raise RequestTimedOut("Request timed out waiting for leader to handle previous voter change request")
        high_watermark = self._leader.high_watermark
        if high_watermark is None:
            raise RequestTimedOut(
                "Request timed out waiting for leader to establish HWM and fence previous voter changes"
            )
        offset, kraft = self._leader.latest_voters()
        if not kraft.version or kraft.voters is None:
            text = f"because the {KRAFT_VERSION} feature is {kraft.version}"
            raise UnsupportedVersion(f"Cluster doesn't support {what} voter {text}")
        if offset >= high_watermark:
            raise RequestTimedOut(
                "Request timed out waiting for voters to commit the latest voter change at "
                f"Optional[{offset}] with HWM {high_watermark}"
            )
        return kraft

    # ------------------------------------------------------------ changes

    def add(self, key: ReplicaKey, endpoints: Sequence[Endpoint], done: Done, *, waits: bool) -> None:
        """Makes an observer a voter.

        :param done: called with None when the change is committed, or otherwise with the error
        :param waits: whether ``done`` waits for the commit, not only for the append
        :raises KafkaError: the change is refused
        """
        kraft = self._checked("adding")
        voters = voters_of(kraft)
        if key.node_id in voters:
            raise DuplicateVoter(
                f"The voter id for {text_of(key)} is already part of the set of voters {texts_of(voters)}."
            )
        pending = self._begin(done)
        reached = next(each for each in endpoints if each.name == self._controllers.listener)
        self._controllers.learn(key.node_id, reached.host, reached.port)

        def answered(response: ApiVersionsResponse | None, error: KafkaError | None) -> None:
            if self._pending is pending:
                self._add(pending, key, endpoints, response, error, waits=waits)

        request = ApiVersionsRequest(client_software_name="barnabas", client_software_version="1")
        self._peers.send(key.node_id, request, answered, lane=LANE, timeout_ms=self._timeout_ms)

    def _add(
        self,
        pending: Pending,
        key: ReplicaKey,
        endpoints: Sequence[Endpoint],
        response: ApiVersionsResponse | None,
        error: KafkaError | None,
        *,
        waits: bool,
    ) -> None:
        """Continues when the new voter has responded to ApiVersions."""
        if response is None:
            refused: KafkaError = RequestTimedOut(
                f"Aborted add voter operation for since API_VERSIONS returned an error {error!r}"
            )
            self._end(refused)
            return
        _, kraft = self._leader.latest_voters()
        levels = kraft_levels(response)
        if not levels.first <= kraft.version <= levels.last:
            self._end(
                InvalidRequest(
                    f"Aborted add voter operation for {text_of(key)} since the {KRAFT_VERSION} range "
                    f"{_range_of(response)} doesn't support the finalized version {kraft.version}"
                )
            )
        elif not self._is_caught_up(key):
            self._end(RequestTimedOut(f"Aborted add voter operation for {text_of(key)} since it is lagging behind"))
        else:
            added = voter_record(key, endpoints, levels)
            self._append(pending, {**voters_of(kraft), key.node_id: added})
            if not waits and pending.done is not None:
                done, pending.done = pending.done, None
                done(None)

    def _is_caught_up(self, key: ReplicaKey) -> bool:
        replica, now_ms = self._leader.replica(key), self._clock.time_ms()
        return replica is not None and replica.last_caught_up_ms > 0 and replica.last_fetch_ms > now_ms - CAUGHT_UP_MS

    def remove(self, key: ReplicaKey, done: Done) -> None:
        """Makes a voter an observer; a leader that is removed resigns when the change is committed.

        :raises KafkaError: the change is refused
        """
        voters = voters_of(self._checked("removing"))
        voter = voters.get(key.node_id)
        if voter is None or voter.voter_directory_id != key.directory_id or len(voters) == 1:
            raise VoterNotFound(f"Cannot remove voter {text_of(key)} from the set of voters {texts_of(voters)}")
        pending = self._begin(done)
        self._append(pending, {node_id: each for node_id, each in voters.items() if node_id != key.node_id})

    def update(self, key: ReplicaKey, endpoints: Sequence[Endpoint], levels: Levels) -> None:
        """Updates the endpoints and the supported levels of a voter. The response does not wait for the commit.

        :raises KafkaError: the change is refused
        """
        if self._pending is not None or self._leader.high_watermark is None:
            raise RequestTimedOut
        offset, kraft = self._leader.latest_voters()
        if kraft.version and offset >= self._leader.high_watermark:
            raise RequestTimedOut
        if not levels.first <= kraft.version <= levels.last:
            raise InvalidRequest
        if not any(each.name == self._controllers.listener for each in endpoints):
            raise InvalidRequest
        updated = voter_record(key, endpoints, levels)
        if not kraft.version:
            if key.node_id not in self._controllers.configured_voters:
                raise VoterNotFound
            self.in_memory[key.node_id] = updated
            self._leader.heard_from(key)
            return
        voters = voters_of(kraft)
        known = voters.get(key.node_id)
        if known is None or known.voter_directory_id != key.directory_id:
            raise VoterNotFound
        self._leader.append_control([voters_record({**voters, key.node_id: updated})])
        self._leader.heard_from(key)

    def _append(self, pending: Pending, voters: Mapping[int, Voter]) -> None:
        pending.last_offset = self._leader.append_control([voters_record(voters)])
        logger.info("The voters of the metadata quorum are now %s", sorted(voters))
        self.committed()


# ---------------------------------------------------------------- voters


def voters_of(kraft: KRaftState) -> dict[int, Voter]:
    """Returns the voters of the log by their node ids."""
    return {} if kraft.voters is None else {voter.voter_id: voter for voter in kraft.voters.voters}


def voters_record(voters: Mapping[int, Voter]) -> tuple[ControlRecordType, Message, int]:
    """Returns the control record with the voters."""
    record = VotersRecord(version=0, voters=[voters[node_id] for node_id in sorted(voters)])
    return ControlRecordType.KRAFT_VOTERS, record, 0


def kraft_levels(response: ApiVersionsResponse) -> Levels:
    """Returns the levels of ``kraft.version`` that a node supports; 0 if the response has none."""
    return _named_levels(response) or Levels(0, 0)


def _named_levels(response: ApiVersionsResponse) -> Levels | None:
    named = (
        Levels(each.min_version, each.max_version) for each in response.supported_features if each.name == KRAFT_VERSION
    )
    return next(named, None)


def _range_of(response: ApiVersionsResponse) -> str:
    """Returns the levels as in Apache Kafka's message, where a range lacks its closing bracket."""
    levels = _named_levels(response)
    return "(min: 0, max: 0)" if levels is None else f"(min: {levels.first}, max: {levels.last}"


def text_of(key: ReplicaKey) -> str:
    return f"ReplicaKey(id={key.node_id}, directoryId={uuid_text(key.directory_id)})"


def texts_of(voters: Mapping[int, Voter]) -> str:
    keys = [ReplicaKey(each.voter_id, each.voter_directory_id) for each in voters.values()]
    return f"[{', '.join(map(text_of, keys))}]"
